"""Judge the serve rows of one revision before any of them runs: no weights, no GPU, no network."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tqdm import tqdm

from servingbench import console
from servingbench.config.serve import served_name
from servingbench.errors import UserError
from servingbench.records.files import read_json, write_json
from servingbench.revisions.environment import check
from servingbench.serving.failures import load_failures
from servingbench.serving.preflight import run
from servingbench.serving.preflight.case import Case


def main() -> None:
    """Parse, judge every row, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--specs", type=json.loads, required=True, help="the rows, as JSON")
    add("--environment", type=Path, required=True, help="environment.json of the revision to judge under")
    add("--failures", type=Path, required=True, help="the table of known failures")
    add("--out", type=Path, required=True, help="preflight.json to write: row -> checks")
    arguments = parser.parse_args()
    revision = check(arguments.environment)["revision"]
    failures = load_failures(arguments.failures)
    rows = {}
    for spec in tqdm(arguments.specs, desc="preflight", unit="row"):
        # Another engine has no code here that could be asked.
        rows[spec["id"]] = run(case_of(spec, failures)) if spec["engine"] == "transformers" else []
    write_json(arguments.out, {"schema_version": 1, "revision": revision, "rows": rows})


def case_of(spec: dict[str, object], failures: dict[str, dict[str, object]]) -> Case:
    """A row with its model's config: from the table, from a file that the table names, or from the prepared folder."""
    model = dict(spec["model"])  # type: ignore[call-overload]
    config = model.get("config")
    folder = Path(served_name(spec))
    if isinstance(config, str):
        config = read_json(Path(config))
    elif config is None:
        if not (folder / "config.json").is_file():
            remedy = "name a file with its config.json in models.config of config/serve.yaml"
            raise UserError("no config to judge by", file="config/serve.yaml", key=model["name"], remedy=remedy)
        config = read_json(folder / "config.json")
    return Case(spec, config, folder if folder.is_dir() else None, failures)


if __name__ == "__main__":
    console.run(main)
