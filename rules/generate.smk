"""Paired generation runs.

Input: sampled prompts, the revision's environment, the prepared model (and draft model).
Output: per method raw.jsonl (one record per prompt and repeat) and run.json (what ran where).
Steps: load the model once, then take every method to each prompt in a balanced rotated order. A killed run continues
from its journal. With `design: single` each method gets a job, and a model load, of its own.
"""

PAIRED = EXPERIMENT.design == "paired"


rule generate:
    input:
        prompts=PROMPTS,
        environment="resources/revisions/{revision}/environment.json",
        model="resources/models/{model}",
        draft=draft_folder,
        static_table=static_table,
        static_table_data=static_table_data,
        peers=peer_folders,
    output:
        raw=expand(RAW, method=EXPERIMENT.methods, allow_missing=True) if PAIRED else RAW,
        run=expand(RUN, method=EXPERIMENT.methods, allow_missing=True) if PAIRED else RUN,
    log:
        "logs/generate/{revision}/{gpu}/seed{seed}-limit{limit}/{model}/{workload}.log"
        if PAIRED
        else "logs/generate/{revision}/{gpu}/seed{seed}-limit{limit}/{model}/{workload}/{method}.log",
    conda:
        "../envs/generate.yaml"
    threads: WHOLE_MACHINE
    resources:
        gpu=1,
        gpu_key=gpu_key,
        runtime=RUNTIME_MIN,
    params:
        spec=generation_spec,
        overlay=overlay,
        folder=workload_folder,
        source_code=source_digest("decoding", "measure"),
    shell:
        "PYTHONPATH={params.overlay:q} python workflow_scripts/generate.py --spec {params.spec:q}"
        " --prompts {input.prompts:q} --environment {input.environment:q}"
        " --model {input.model:q} --draft-model {input.draft:q}"
        " --static-table {input.static_table:q} --out {params.folder:q} --log {log:q}"
