"""Models: unpacked, truncated or only pointed at.

Output: resources/models/{model}/, always with a model.json that says where the weights are. A conversion runs under the
revision that the model's row names. And resources/static_tables/{revision}/{model}/, the model's next tokens after each
single token, which suffix drafts start from: made once, on a GPU where there is one, and the same for every GPU's runs.
"""


rule prepare_model:
    input:
        environment=converter,
        source=cut_from,
    output:
        directory("resources/models/{model}"),
    log:
        "logs/prepare_model/{model}.log",
    conda:
        "../envs/generate.yaml"
    params:
        row=row_json("models", "model"),
        overlay=converter_overlay,
        source_code=source_digest("models"),
    shell:
        "PYTHONPATH={params.overlay:q} python workflow_scripts/prepare_model.py {wildcards.model:q} --row {params.row:q}"
        " --environment {input.environment:q} --source {input.source:q} --out {output:q} 2> {log:q}"


rule static_table:
    input:
        environment="resources/revisions/{revision}/environment.json",
        model="resources/models/{model}",
    output:
        described=STATIC_TABLE,
        table=STATIC_TABLE_DATA,
    log:
        "logs/static_table/{revision}/{model}.log",
    conda:
        "../envs/generate.yaml"
    threads: WHOLE_MACHINE
    resources:
        gpu=1,
        gpu_key=gpu_key,
        runtime=RUNTIME_MIN,
    params:
        row=row_json("models", "model"),
        overlay=overlay,
        source_code=source_digest("decoding/static_table.py", "measure/static_table.py"),
    shell:
        "PYTHONPATH={params.overlay:q} python workflow_scripts/static_table.py --model {input.model:q}"
        " --row {params.row:q} --environment {input.environment:q} --out {output.described:q} --log {log:q}"
