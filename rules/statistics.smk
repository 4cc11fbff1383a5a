"""The lossless gate of each workload, and the paired statistics of each model.

Input: prompts, models and raw records. Output: {workload}/lossless.json and statistics.json.
Steps: the gate runs every method free and audits its text under float32 weights; a method that fails gets no speedup.
"""


rule audit_lossless:
    input:
        prompts=PROMPTS,
        environment="resources/revisions/{revision}/environment.json",
        model="resources/models/{model}",
        draft=draft_folder,
        static_table=static_table,
        static_table_data=static_table_data,
        peers=peer_folders,
    output:
        LOSSLESS,
    log:
        "logs/audit_lossless/{revision}/{gpu}/seed{seed}-limit{limit}/{model}/{workload}.log",
    conda:
        "../envs/generate.yaml"
    threads: WHOLE_MACHINE
    resources:
        gpu=1,
        gpu_key=gpu_key,
        runtime=RUNTIME_MIN,
    params:
        spec=audit_spec,
        overlay=overlay,
        source_code=source_digest("decoding", "statistics/lossless.py"),
    shell:
        "PYTHONPATH={params.overlay:q} python workflow_scripts/audit_lossless.py --spec {params.spec:q}"
        " --prompts {input.prompts:q} --environment {input.environment:q}"
        " --model {input.model:q} --draft-model {input.draft:q}"
        " --static-table {input.static_table:q} --out {output:q} --log {log:q}"


rule compare:
    input:
        raw=expand(RAW, workload=EXPERIMENT.workloads, method=EXPERIMENT.methods, allow_missing=True),
        lossless=expand(LOSSLESS, workload=EXPERIMENT.workloads, allow_missing=True),
        # Not read here: figures and tables find them beside the statistics, and one dependency in their place makes the
        # plan of a large matrix several times faster.
        summaries=expand(SUMMARY, workload=EXPERIMENT.workloads, method=EXPERIMENT.methods, allow_missing=True),
    output:
        STATISTICS,
    log:
        "logs/compare/{revision}/{gpu}/seed{seed}-limit{limit}/{model}.log",
    conda:
        "../envs/workflow.yaml"
    params:
        settings=comparison_settings,
        source_code=source_digest("metrics", "statistics"),
    shell:
        "python workflow_scripts/compare.py --raw {input.raw:q} --lossless {input.lossless:q}"
        " --settings {params.settings:q} --out {output:q} 2> {log:q}"
