"""The serve matrix: its rows, its ledger, and serve/all.

Input: config/serve.yaml, config/failures.yaml, what rules/serve_inputs.smk makes. Output:
results/{revision}/{gpu}/seed{seed}-limit{limit}/serve/{row}/summary.json for every row, a failed one too, with the logs
of each attempt beside it; of each key the ledger, the matrix as table and figure, and the score of the preflight;
serve/all, the manifest.
"""


rule serve_row:
    input:
        environments=engine_environments,
        tools=expand("resources/environments/{tool}/environment.json", tool=["inspect", "aiperf"]),
        models=model_inputs,
        problems="resources/problems",
        failures=ancient("config/failures.yaml"),
    output:
        SERVE_SUMMARY,
    log:
        "logs/serve_row/{revision}/{gpu}/seed{seed}-limit{limit}/{row}.log",
    conda:
        "../envs/generate.yaml"
    threads: WHOLE_MACHINE
    resources:
        gpu=serve_devices,
    params:
        spec=serve_spec,
        model=served_name,
        tokenizer=tokenizer_source,
        overlays=engine_overlays,
        skip=skip_predicted,
        source_code=source_digest(*SERVE_SOURCES),
    shell:
        "python workflow_scripts/serve_row.py --spec {params.spec:q} --model {params.model:q}"
        " --tokenizer {params.tokenizer:q} --problems {input.problems:q} --environment {input.environments[0]:q}"
        " --server-overlays {params.overlays:q} --inspect-overlay resources/environments/inspect/site-packages"
        " --aiperf-overlay resources/environments/aiperf/site-packages --failures {input.failures:q}"
        " {params.skip} --out {output:q} 2> {log:q}"
