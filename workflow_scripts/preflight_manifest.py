"""Write serve/preflight: per row the worst verdict, and the verdict of every check."""

from __future__ import annotations

import argparse
from pathlib import Path

from servingbench import console
from servingbench.records.files import read_json, write_json
from servingbench.serving.preflight import worst


def main() -> None:
    """Parse, collect, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", help="preflight.json of every key")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    rows = []
    for file in arguments.files:
        for name, checks in read_json(file)["rows"].items():
            decisive = worst(checks)
            rows.append(
                {
                    "row_id": name,
                    "file": file.as_posix(),
                    "verdict": decisive["verdict"] if decisive else None,
                    "decided_by": decisive["check"] if decisive and decisive["verdict"] != "pass" else None,
                    "checks": {entry["check"]: entry["verdict"] for entry in checks},
                }
            )
    write_json(arguments.out, {"schema_version": 1, "rows": rows})


if __name__ == "__main__":
    console.run(main)
