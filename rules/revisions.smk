"""One isolated environment per transformers revision.

Input: the family's pinned closure in envs/, and for a fork its git repository or working folder. Output:
resources/revisions/{revision}/environment.json, beside it the overlay folder site-packages/ that a run puts before the
shared torch, and the checkout of a git revision.
"""


rule install_revision:
    input:
        pins=ancient(pinned_closure),  # its content counts (params), not when a checkout wrote it
    output:
        "resources/revisions/{revision}/environment.json",
    log:
        "logs/install_revision/{revision}.log",
    conda:
        "../envs/workflow.yaml"
    params:
        row=row_json("revisions", "revision"),
        pins_sha256=pinned_closure_sha256,
        state=source_state,
        folder=subpath(output[0], parent=True),
    shell:
        "python workflow_scripts/install_revision.py {wildcards.revision:q} --row {params.row:q}"
        " --pins {input.pins:q} --out {params.folder:q} 2> {log:q}"
