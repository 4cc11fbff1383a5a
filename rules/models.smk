"""Models: unpacked, truncated or only pointed at.

Output: resources/models/{model}/, always with a model.json that says where the weights are. A conversion runs under the
revision that the model's row names.
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
