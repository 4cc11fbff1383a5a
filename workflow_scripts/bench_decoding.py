"""Measure our drafts beside Arctic Inference's and transformers' on a corpus of recorded outputs; print and write it.

Ctrl-C ends the measuring; what was finished is printed, and written to OUT with .partial in its name.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from servingbench import console
from servingbench.config.tables import load_tables
from servingbench.measure.session import eos_token_ids
from servingbench.provenance import ROOT
from servingbench.records.files import write_json
from servingbench.records.schema import validate
from servingbench.revisions.environment import check
from servingbench.simulate.arms import Ours, table_of
from servingbench.simulate.bench import Bench
from servingbench.simulate.corpus import read_corpus
from servingbench.simulate.load import load
from servingbench.simulate.report import full_report, load_average, text_table


def main() -> None:
    """Parse the command line, measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--corpus", type=Path, required=True, metavar="FILE", help="{task, prompt: [ids], out: [ids]} per line")
    add("--model", type=Path, required=True, metavar="DIR", help="the prepared model that wrote it")
    add("--environment", type=Path, required=True, metavar="FILE", help="environment.json of the transformers revision")
    add("--static-table", type=Path, metavar="FILE", help="the model's static table (default: draft without one)")
    add("--timed-prompts", type=int, default=2, metavar="N", help="prompts per task to time decoding on (default: 2)")
    add("--cap", type=int, default=128, metavar="N", help="max_new_tokens of the outputs (default: 128)")
    add("--out", type=Path, default=Path("results/bench/decoding.json"), metavar="FILE", help="default: %(default)s")
    arguments = parser.parse_args()
    if arguments.timed_prompts < 0 or arguments.cap < 2:
        parser.error("--timed-prompts must be at least 0, --cap at least 2")
    recordings = read_corpus(arguments.corpus)
    check(arguments.environment)
    model, tokenizer = load(arguments.model)
    bench = Bench(
        recordings,
        model,
        eos_token_ids=eos_token_ids(model, tokenizer),
        ours=Ours(load_tables(ROOT / "config").methods, table_of(arguments.static_table, model)),
        cap=arguments.cap,
        timed_prompts=arguments.timed_prompts,
    )
    before = load_average()
    bench.run()
    report = full_report(bench, arguments.corpus, model=arguments.model.name, load_averages=[before, load_average()])
    out = arguments.out if bench.finished else arguments.out.with_suffix(f".partial{arguments.out.suffix}")
    validate(report, "bench", file=out)
    write_json(out, report)
    print(text_table(report))
    print(f"-> {out}")
    if not bench.finished:
        print("interrupted: the table holds what was finished; the same command measures anew.", file=sys.stderr)
        sys.exit(console.EXIT_INTERRUPTED)


if __name__ == "__main__":
    console.run(main)
