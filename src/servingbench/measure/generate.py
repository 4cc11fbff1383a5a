"""A whole generation run: lock the folder, load, continue or start the journal, run, write the outputs."""

from __future__ import annotations

import argparse

from servingbench.measure.journal import Journal, folder_lock
from servingbench.measure.monitor import DeviceMonitor
from servingbench.measure.outputs import run_identity, write_outputs
from servingbench.measure.progress import Progress
from servingbench.measure.runner import Block, run_block
from servingbench.measure.session import open_session, parse_spec


def generate(arguments: argparse.Namespace) -> None:
    """Measure what the arguments (see ``session.add_arguments``) describe."""
    key = parse_spec(arguments.spec)["key"]
    label = f"{key['model']} {key['workload']} on {key['gpu']}"
    with folder_lock(arguments.out), Progress(label, log=arguments.log) as progress:
        session = open_session(arguments)
        spec = session.spec
        block = Block(
            workload=key["workload"],
            model=session.model,
            methods=session.methods,
            prompts=session.prompts,
            max_new_tokens=spec["workload"]["max_new_tokens"],
            eos_token_ids=session.eos_token_ids,
            timing=spec["timing"],
            repeats=spec["repeats"],
            device=session.device,
        )
        monitor = DeviceMonitor(session.device)
        journal = Journal(arguments.out, identity=run_identity(session), notice=progress.note)
        progress.begin(
            arms=block.arms_per_prompt * len(block.prompts), done=block.arms_per_prompt * len(journal.entries)
        )
        run_block(block, journal, progress, monitor.sample)
        write_outputs(arguments.out, session, journal, monitor)
        journal.remove()
