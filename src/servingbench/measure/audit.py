"""A whole audit run: load, run every method free, judge, write lossless.json."""

from __future__ import annotations

import argparse

from servingbench.decoding.types import Generation
from servingbench.errors import UserError
from servingbench.measure.journal import now
from servingbench.measure.monitor import DeviceMonitor
from servingbench.measure.outputs import provenance
from servingbench.measure.progress import Progress
from servingbench.measure.session import open_session, parse_spec
from servingbench.records.files import write_json
from servingbench.records.schema import validate
from servingbench.statistics.lossless import Gate, audit


def audit_run(arguments: argparse.Namespace) -> None:
    """Audit what the arguments (see ``session.add_arguments``) describe; ``arguments.out`` is the lossless.json."""
    spec = parse_spec(arguments.spec)
    key, settings, dtype = spec["key"], spec["lossless"], spec["model"]["dtype"]
    if dtype not in settings["epsilon"]:
        raise UserError("no epsilon for this dtype", file="--spec", key="lossless.epsilon", value=dtype)
    started = now()
    with Progress(f"{key['model']} {key['workload']} lossless gate", log=arguments.log) as progress:
        session = open_session(arguments, max_new_tokens=settings["max_new_tokens"], prompts=settings["prompts"])
        gate = Gate(
            model=session.model,
            methods=session.methods,
            prompts=session.prompts,
            max_new_tokens=settings["max_new_tokens"],
            eos_token_ids=session.eos_token_ids,
            epsilon=settings["epsilon"][dtype],
        )
        monitor = DeviceMonitor(session.device)
        progress.begin(arms=len(gate.methods) * len(gate.prompts))

        def told(prompt_id: str, name: str, answer: Generation | None) -> None:
            progress.arm(tokens=len(answer.new_token_ids) if answer else 0, wall_ns=answer.wall_ns if answer else 0)

        result = audit(gate, told)
        for name, entry in result["methods"].items():
            progress.note(f"{name}: {'passed' if entry['passed'] else 'FAILED: ' + entry['reason']}")
        report = {
            "schema_version": 1,
            "key": key,
            "dtype": dtype,
            "epsilon": gate.epsilon,
            "prompts": len(gate.prompts),
            "max_new_tokens": gate.max_new_tokens,
            **result,
            "unsupported": session.spec["unsupported"],
            "provenance": provenance(session, started=started, resumed=0, samples=[monitor.sample()], monitor=monitor),
        }
        validate(report, "lossless", file=arguments.out)
        write_json(arguments.out, report)
