"""Shared by all rules: the checked configuration, the path patterns of the keys, and a few tiny input functions.

Everything heavy lives in the package; this file must import in well under a second.
"""

import json
import os
import sys
from pathlib import Path

# Entry points run as `python workflow_scripts/NAME.py` with this interpreter and this package, activated or not.
# A row's server ends with the workflow that started it, however that ends: its guard watches this process.
os.environ.setdefault("SERVINGBENCH_WORKFLOW_PID", str(os.getpid()))
os.environ.update(PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
sys.path.insert(0, str(Path(workflow.basedir) / "src"))

from servingbench.config.experiment import load_experiment
from servingbench.config import serve
from servingbench.config.paths import (
    ACROSS_REVISIONS,
    ARCTIC,
    FIGURE,
    LEDGER,
    LOSSLESS,
    MATRIX,
    POSTER,
    PREFLIGHT,
    PROMPTS,
    RAW,
    REVISIONS_FIGURE,
    RUN,
    SCORE,
    SERVE_SUMMARY,
    STATIC_TABLE,
    STATIC_TABLE_DATA,
    STATISTICS,
    SUMMARY,
    TABLES,
    WORKLOAD_FOLDER,
)
from servingbench.config.sources import source_digest
from servingbench.errors import UserError
from servingbench.figures.names import FIGURE_NAMES
from servingbench.records.files import sha256_file

try:
    EXPERIMENT = load_experiment(Path(workflow.basedir, "config"), config, map(Path, workflow.configfiles))
except UserError as error:
    sys.exit(f"error: {error}")  # a WorkflowError would add a stack trace that helps nobody


wildcard_constraints:
    revision="[a-z0-9][a-z0-9.-]*",
    gpu="[a-z0-9][a-z0-9.-]*",
    seed="[0-9]+",
    limit="[1-9][0-9]*",
    model="[a-z0-9][a-z0-9.-]*",
    workload="[a-z0-9][a-z0-9.-]*",
    method="[a-z0-9_]+",
    figure="[a-z0-9_]+",
    row="[a-z0-9][a-z0-9.-]*",
    tiny="[a-z0-9][a-z0-9.-]*",
    tool="[a-z0-9]+",


# A measuring job takes the whole machine, so that nothing else runs while a timer does.
WHOLE_MACHINE = workflow.cores or 1

# What serving.serve_row's results depend on; the ledger, the figure and the preflight are not among it.
SERVE_SOURCES = [f"serving/{name}" for name in ("attempt.py", "engines.py", "evaluate.py", "load.py", "servers")]
PROBLEMS = EXPERIMENT.serve["problems"]


# The longest that a measuring job may take where time is money, in minutes.
RUNTIME_MIN = 240


def gpu_key(wildcards):
    """The GPU that a job needs; what is made for all of them, like a static table, is made on the first."""
    return wildcards.get("gpu", EXPERIMENT.gpus[0])


def row_json(table, wildcard):
    """An input function: the row of ``table`` that the wildcard names, as JSON."""
    return lambda wildcards: EXPERIMENT.row_json(table, wildcards[wildcard])


def generation_spec(wildcards):
    """What a generation or audit run is asked to do, as JSON."""
    return EXPERIMENT.generation_spec(**wildcards)


def audit_spec(wildcards):
    """What a run of the lossless gate is asked to do, as JSON."""
    return EXPERIMENT.audit_spec(**wildcards)


def comparison_settings(wildcards):
    """How the statistics of one model are made, as JSON."""
    return EXPERIMENT.comparison_settings(**wildcards)


def draft_folder(wildcards):
    """The prepared folder of the draft model, where a method needs one."""
    draft = EXPERIMENT.draft_model(wildcards.model)
    return f"resources/models/{draft}" if draft else []


def static_table(wildcards):
    """The model's static bigram table, where a method of the job drafts from one."""
    needed = EXPERIMENT.needs_static_table(wildcards.get("method"))
    return STATIC_TABLE.format(**wildcards) if needed else []


def static_table_data(wildcards):
    """Its numbers, which lie beside it and must go where the job goes."""
    needed = EXPERIMENT.needs_static_table(wildcards.get("method"))
    return STATIC_TABLE_DATA.format(**wildcards) if needed else []


def peer_folders(wildcards):
    """The libraries of other projects that methods draft with."""
    drafts = {EXPERIMENT.tables.methods[name].get("draft") for name in EXPERIMENT.methods}
    return [ARCTIC] if "arctic" in drafts else []


def overlay(wildcards):
    """The folder that goes before the shared torch on the path: the revision's own packages."""
    return f"resources/revisions/{wildcards.revision}/site-packages"


def workload_folder(wildcards):
    """Where a generation run keeps its journal and, when it is complete, its records."""
    return WORKLOAD_FOLDER.format(**wildcards)


def pinned_closure(wildcards):
    """The requirements file of a revision's family."""
    return "envs/{environment}.txt".format(**EXPERIMENT.tables.row("revisions", wildcards.revision))


def pinned_closure_sha256(wildcards):
    """The hash of that file: another content reinstalls the revision."""
    return sha256_file(Path(workflow.basedir, pinned_closure(wildcards)))


def source_state(wildcards):
    """Of a revision that is a working folder, its present content: another one reinstalls it."""
    return json.dumps(EXPERIMENT.source_state(wildcards.revision))


def converter(wildcards):
    """environment.json of the revision that converts a model, where it is converted at all."""
    revision = EXPERIMENT.tables.row("models", wildcards.model).get("prepared_with")
    return f"resources/revisions/{revision}/environment.json" if revision else []


def converter_overlay(wildcards):
    """That revision's packages."""
    return str(Path(converter(wildcards)).parent / "site-packages") if converter(wildcards) else ""


def cut_from(wildcards):
    """The prepared folder of the model that a truncated one is cut from."""
    source = EXPERIMENT.tables.row("models", wildcards.model).get("of")
    return f"resources/models/{source}" if source else []


def workload_source(wildcards):
    """The files that a workload is read from; none where a wheel has to be fetched."""
    return EXPERIMENT.source_files(wildcards.workload)


def tool_pins_sha256(wildcards):
    """The hash of a tool's requirements file: another content reinstalls it."""
    return sha256_file(Path(workflow.basedir, f"envs/{wildcards.tool}.txt"))


def tiny_model_json(wildcards):
    """The row of a tiny model, as JSON."""
    return json.dumps(EXPERIMENT.serve_table.models[wildcards.tiny])


def serve_spec(wildcards):
    """What one row of the serve matrix is asked to do, as JSON."""
    return json.dumps(EXPERIMENT.serve_spec(**wildcards), ensure_ascii=False)


def engine_environments(wildcards):
    """environment.json of what a row's server runs with; the engine's own comes first."""
    return [f"{folder}/environment.json" for folder in serve.engine_folders(EXPERIMENT.serve_spec(**wildcards))]


def engine_overlays(wildcards):
    """The package folders of a row's server, in the order of the path."""
    return [f"{folder}/site-packages" for folder in serve.engine_folders(EXPERIMENT.serve_spec(**wildcards))]


def model_inputs(wildcards):
    """What a row's server and its load test read, where the workflow makes it."""
    spec = EXPERIMENT.serve_spec(**wildcards)
    made = {serve.model_input(spec), serve.tokenizer_source(spec)}
    return sorted(path for path in made if path and path.startswith("resources/"))


def served_name(wildcards):
    """What a row's server is given and clients ask for."""
    return serve.served_name(EXPERIMENT.serve_spec(**wildcards))


def tokenizer_source(wildcards):
    """Where the load test finds a tokenizer."""
    return serve.tokenizer_source(EXPERIMENT.serve_spec(**wildcards))


def serve_devices(wildcards):
    """The GPUs that a row's server sees (a CPU row takes the one slot too)."""
    return EXPERIMENT.serve_spec(**wildcards)["hardware"]["count"]


def skip_predicted(wildcards):
    """The option that leaves a row out which the preflight saw fail."""
    return "--skip-predicted" if EXPERIMENT.serve["predicted_fail"] == "skip" else ""


def judged_specs(wildcards):
    """The rows that one preflight judges, as JSON."""
    specs = EXPERIMENT.serve_specs(revision=wildcards.revision, gpu=wildcards.gpu)
    return json.dumps(specs, ensure_ascii=False)


def judged_models(wildcards):
    """The prepared folders whose config.json it reads; other models' configs stand in the table."""
    specs = EXPERIMENT.serve_specs(revision=wildcards.revision, gpu=wildcards.gpu)
    names = {serve.model_input(spec) for spec in specs if spec["model"]["kind"] == "prepared"}
    return sorted(filter(None, names))


def serve_summaries(wildcards):
    """summary.json of every row with this revision and GPU."""
    specs = EXPERIMENT.serve_specs(revision=wildcards.revision, gpu=wildcards.gpu)
    return [SERVE_SUMMARY.format(row=spec["id"], **wildcards) for spec in specs]
