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
        preflight=ancient(PREFLIGHT),  # another row's verdict is no reason to serve this one again
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
        gpu_key=gpu_key,
        runtime=RUNTIME_MIN,
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
        " --preflight {input.preflight:q} {params.skip} --out {output:q} 2> {log:q}"


rule serve_ledger:
    input:
        summaries=serve_summaries,
        failures="config/failures.yaml",
        reported="config/reported/serve_attempts.yaml",
    output:
        json=f"{LEDGER}.json",
        markdown=f"{LEDGER}.md",
        score=SCORE,
    log:
        "logs/serve_ledger/{revision}/{gpu}/seed{seed}-limit{limit}.log",
    conda:
        "../envs/workflow.yaml"
    params:
        labels=EXPERIMENT.serve_labels(),
        source_code=source_digest("serving/ledger.py", "serving/failures.py", "serving/score.py"),
    shell:
        "python workflow_scripts/serve_ledger.py --summaries {input.summaries:q} --labels {params.labels:q}"
        " --failures {input.failures:q}"
        " --reported {input.reported:q} --out-json {output.json:q} --out-markdown {output.markdown:q}"
        " --out-score {output.score:q} 2> {log:q}"


rule serve_matrix:
    input:
        summaries=serve_summaries,
    output:
        multiext(MATRIX, ".md", ".svg", ".pdf"),
        csv=report(
            f"{MATRIX}.csv",
            caption="../docs/captions/serve_matrix.rst",
            category="Serve matrix",
            labels={"what": "table", "GPU": "{gpu}", "revision": "{revision}"},
        ),
        png=report(
            f"{MATRIX}.png",
            caption="../docs/captions/serve_matrix.rst",
            category="Serve matrix",
            labels={"what": "figure", "GPU": "{gpu}", "revision": "{revision}"},
        ),
    log:
        "logs/serve_matrix/{revision}/{gpu}/seed{seed}-limit{limit}.log",
    conda:
        "../envs/workflow.yaml"
    params:
        labels=EXPERIMENT.serve_labels(),
        folder=subpath(output.csv, parent=True),
        source_code=source_digest("serving/matrix.py", "figures/serve_matrix.py", "figures/style.py"),
    shell:
        "python workflow_scripts/serve_matrix.py --summaries {input.summaries:q} --labels {params.labels:q}"
        " --out {params.folder:q} 2> {log:q}"


rule serve_manifest:
    input:
        summaries=[SERVE_SUMMARY.format(row=spec["id"], **spec["key"]) for spec in EXPERIMENT.serve_specs()],
        reports=EXPERIMENT.serve_reports(
            f"{LEDGER}.json",
            f"{LEDGER}.md",
            SCORE,
            *(f"{MATRIX}.{suffix}" for suffix in ("csv", "md", "svg", "pdf", "png")),
        ),
    output:
        "serve/all",
    log:
        "logs/serve_manifest.log",
    conda:
        "../envs/workflow.yaml"
    shell:
        "python workflow_scripts/serve_manifest.py --summaries {input.summaries:q} --reports {input.reports:q}"
        " --out {output:q} 2> {log:q}"
