"""Figures, and figures/all: the manifest of every figure with its hash and its inputs.

Input: statistics.json (with the summaries beside it), the tables' labels, the published numbers.
Output: figures/{revision}/{gpu}/seed{seed}-limit{limit}/{model}/{figure}.svg|pdf|png.
"""


rule plot:
    input:
        statistics=STATISTICS,
        methods="config/methods.yaml",
        workloads="config/workloads.yaml",
        reported="config/reported",
    output:
        svg=f"{FIGURE}.svg",
        pdf=f"{FIGURE}.pdf",
        png=report(
            f"{FIGURE}.png",
            caption="../docs/captions/figure.rst",
            category="Figures",
            subcategory="{model} on {gpu}, {revision}",
            labels={"figure": "{figure}", "prompts per workload": "{limit}"},
        ),
    log:
        "logs/plot/{revision}/{gpu}/seed{seed}-limit{limit}/{model}/{figure}.log",
    conda:
        "../envs/workflow.yaml"
    params:
        stem=FIGURE,
        source_code=source_digest("figures"),
    shell:
        "python workflow_scripts/plot.py {wildcards.figure} --statistics {input.statistics:q}"
        " --methods-table {input.methods:q} --workloads-table {input.workloads:q}"
        " --reported {input.reported:q} --out-stem {params.stem:q} 2> {log:q}"


rule figure_manifest:
    input:
        EXPERIMENT.expand(f"{FIGURE}.{{suffix}}", figure=FIGURE_NAMES, suffix=["svg", "pdf", "png"]),
    output:
        report(
            "figures/all", caption="../docs/captions/manifest.rst", category="Figures", labels={"figure": "manifest"}
        ),
    log:
        "logs/figure_manifest.log",
    conda:
        "../envs/workflow.yaml"
    params:
        inputs=json.dumps(EXPERIMENT.figure_inputs()),
        source_code=source_digest("figures/manifest.py"),
    shell:
        "python workflow_scripts/figure_manifest.py {input:q} --inputs {params.inputs:q} --out {output:q} 2> {log:q}"
