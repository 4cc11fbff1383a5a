"""What the rows of the serve matrix are made of.

Output: resources/environments/{tool}/environment.json, beside it the packages of Inspect, aiperf, llama.cpp and of a
transformers server; resources/tiny/{revision}/{tiny}/, checkpoints with random weights; resources/gguf/{model}.gguf;
resources/problems/, the evaluation's data where Inspect finds it offline.
"""


rule install_tool:
    input:
        pins=ancient("envs/{tool}.txt"),  # its content counts (params), not when a checkout wrote it
    output:
        "resources/environments/{tool}/environment.json",
    log:
        "logs/install_tool/{tool}.log",
    conda:
        "../envs/workflow.yaml"
    params:
        pins_sha256=tool_pins_sha256,
        folder=subpath(output[0], parent=True),
    shell:
        "python workflow_scripts/install_tool.py {wildcards.tool:q} --pins {input.pins:q} --out {params.folder:q} 2> {log:q}"


rule make_tiny:
    input:
        environment="resources/revisions/{revision}/environment.json",
        texts=f"{PROBLEMS}/train.jsonl",
    output:
        directory("resources/tiny/{revision}/{tiny}"),
    log:
        "logs/make_tiny/{revision}/{tiny}.log",
    conda:
        "../envs/generate.yaml"
    params:
        model=tiny_model_json,
        overlay=overlay,
        source_code=source_digest("serving/tiny.py"),
    shell:
        "PYTHONPATH={params.overlay:q} python workflow_scripts/make_tiny.py --model {params.model:q}"
        " --texts {input.texts:q} --environment {input.environment:q} --out {output:q} 2> {log:q}"


rule unpack_gguf:
    output:
        "resources/gguf/{model}.gguf",
    log:
        "logs/unpack_gguf/{model}.log",
    conda:
        "../envs/workflow.yaml"
    params:
        row=row_json("models", "model"),
    shell:
        "python workflow_scripts/unpack_gguf.py --row {params.row:q} --out {output:q} 2> {log:q}"


rule write_problems:
    input:
        environment="resources/environments/inspect/environment.json",
        train=f"{PROBLEMS}/train.jsonl",
        test=f"{PROBLEMS}/test.jsonl",
    output:
        directory("resources/problems"),
    log:
        "logs/write_problems.log",
    conda:
        "../envs/workflow.yaml"
    params:
        folder=subpath(input.train, parent=True),
        source_code=source_digest("serving/problems.py"),
    shell:
        "PYTHONPATH=resources/environments/inspect/site-packages python workflow_scripts/write_problems.py"
        " --source {params.folder:q} --out {output:q} 2> {log:q}"
