"""Libraries of other projects that methods draft with.

Output: resources/peers/arctic-inference/, the suffix trees of Arctic Inference, compiled in seconds from its release.
"""


rule build_arctic:
    input:
        pins=ancient("envs/arctic.txt"),  # its content counts (params), not when a checkout wrote it
    output:
        directory(ARCTIC),
    log:
        "logs/build_arctic.log",
    conda:
        "../envs/generate.yaml"
    params:
        pins_sha256=sha256_file(Path(workflow.basedir, "envs/arctic.txt")),
        source_code=source_digest("peers"),
    shell:
        "python workflow_scripts/build_arctic.py --pins {input.pins:q} --out {output:q} 2> {log:q}"
