"""What will fail, and why, before any row is served.

Input: config/serve.yaml's rows (their models' configs, no weights), config/failures.yaml. Output:
results/{revision}/{gpu}/seed{seed}-limit{limit}/serve/preflight.json, the verdict of every check on every row; and
serve/preflight, the manifest of them all.
"""


rule preflight:
    input:
        environment="resources/revisions/{revision}/environment.json",
        failures=ancient("config/failures.yaml"),
        models=judged_models,
    output:
        PREFLIGHT,
    log:
        "logs/preflight/{revision}/{gpu}/seed{seed}-limit{limit}.log",
    conda:
        "../envs/generate.yaml"
    params:
        specs=judged_specs,
        overlay=overlay,
        source_code=source_digest("serving/preflight", "serving/failures.py"),
    shell:
        "PYTHONPATH={params.overlay:q} python workflow_scripts/preflight.py --specs {params.specs:q}"
        " --environment {input.environment:q} --failures {input.failures:q} --out {output:q} 2> {log:q}"


rule preflight_manifest:
    input:
        EXPERIMENT.serve_reports(PREFLIGHT),
    output:
        "serve/preflight",
    log:
        "logs/preflight_manifest.log",
    conda:
        "../envs/workflow.yaml"
    shell:
        "python workflow_scripts/preflight_manifest.py {input:q} --out {output:q} 2> {log:q}"
