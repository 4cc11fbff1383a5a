"""The evaluation's data offline: problems as JSONL, written where `datasets` looks before it asks the hub."""

from __future__ import annotations

from pathlib import Path

from servingbench.errors import UserError
from servingbench.records.files import read_jsonl, sha256_json, write_json

DATASET = Path("openai/gsm8k/main")
SPLITS = ("train", "test")
FEWSHOT = 10


def write_problems(source: Path, folder: Path) -> None:
    """Write ``source``/{train,test}.jsonl as parquet files below ``folder``, and problems.json with their hash.

    Args:
        source: folder of the JSONL; rows have GSM8K's form, {"question", "answer"} with the number behind ####.
        folder: the working directory of the evaluation.

    Raises:
        UserError: for a row of another form, or fewer worked examples than the evaluation shows.
    """
    rows = {split: [_checked(row, source / f"{split}.jsonl", line) for line, row in
                    read_jsonl(source / f"{split}.jsonl")] for split in SPLITS}  # fmt: skip
    if len(rows["train"]) < FEWSHOT:
        problem = f"the evaluation shows {FEWSHOT} worked examples"
        raise UserError(problem, file=source / "train.jsonl", value=len(rows["train"]), remedy="add some")
    import pyarrow
    import pyarrow.parquet

    (folder / DATASET).mkdir(parents=True, exist_ok=True)
    for split, own in rows.items():
        path = folder / DATASET / f"{split}-00000-of-00001.parquet"
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(own), path)
    counts = {split: len(own) for split, own in rows.items()}
    write_json(folder / "problems.json", {"schema_version": 1, "sha256": sha256_json(rows), "problems": counts})


def _checked(row: object, path: Path, line: int) -> dict[str, str]:
    if not isinstance(row, dict) or set(row) != {"question", "answer"} or "####" not in str(row["answer"]):
        problem = "must have question and answer, and the answer its number behind ####"
        raise UserError(problem, file=path, key=f"line {line}", remedy="write it as GSM8K does")
    return {"question": str(row["question"]), "answer": str(row["answer"])}
