"""Record a model's greedy outputs as a corpus for bench_decoding.py: {task, prompt: [ids], out: [ids]} per line."""

from __future__ import annotations

import argparse
from pathlib import Path

from servingbench import console
from servingbench.provenance import ROOT
from servingbench.simulate.load import load
from servingbench.simulate.record import record, tasks_of_files, tasks_of_table

EXAMPLES = """\
examples (with a transformers revision on the path: PYTHONPATH=resources/revisions/v5.24.0/site-packages):
  the committed corpus, all of this project's own prompts:
    record_corpus.py --workloads chat code-editing code-generation extraction math summarization terminal text-to-sql \\
      translation-fr-en --out config/corpus/demo.jsonl
  seven tasks, five of them from copies of Spec-Bench and GSM8K in DIR (the table says which files):
    record_corpus.py --table config/corpus/public.yaml --data DIR --limit 12 --out corpus.jsonl
  prompts of your own, one JSONL file per task, a prompt or messages per line:
    record_corpus.py --prompts FILE.jsonl --out corpus.jsonl
"""


def main() -> None:
    """Parse the command line, decode, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--prompts", type=Path, nargs="+", default=[], metavar="FILE", help="JSONL files, each a task of its name")
    add("--workloads", nargs="+", default=[], metavar="NAME", help="rows of the table (default: all of them)")
    add("--table", type=Path, metavar="FILE", help="default: config/workloads.yaml, where there are no --prompts")
    add("--data", type=Path, metavar="DIR", help="the folder of rows that name one (source.folder)")
    add("--model", type=Path, default=Path("resources/models/smollm2-135m"), metavar="DIR", help="default: %(default)s")
    add("--seed", type=int, default=0, help="chooses the prompts (default: 0)")
    add("--limit", type=int, default=4, help="most prompts of each task (default: 4)")
    add("--max-new-tokens", type=int, default=128, help="cap of an output (default: 128)")
    add("--out", type=Path, required=True, metavar="FILE", help="the corpus to write")
    arguments = parser.parse_args()
    tasks = tasks_of_files(arguments.prompts)
    if arguments.table or arguments.workloads or not tasks:
        table = arguments.table or ROOT / "config/workloads.yaml"
        tasks += tasks_of_table(table, arguments.workloads, data=arguments.data)
    model, tokenizer = load(arguments.model)
    settings = {"seed": arguments.seed, "limit": arguments.limit, "max_new_tokens": arguments.max_new_tokens}
    count = record(arguments.out, model, tokenizer, tasks, **settings)
    print(f"{count} outputs of {len(tasks)} tasks -> {arguments.out}")


if __name__ == "__main__":
    console.run(main)
