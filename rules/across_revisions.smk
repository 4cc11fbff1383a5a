"""What another transformers revision does: the configuration's revisions side by side.

Input: the statistics of every revision (with raw records and summaries beside them). Output:
results/across_revisions/{gpu}/seed{seed}-limit{limit}/{model}/revisions.json, the figure of it, and figures/revisions, the
manifest of these figures.
"""


rule compare_revisions:
    input:
        statistics=expand(STATISTICS, revision=EXPERIMENT.revisions, allow_missing=True),
    output:
        ACROSS_REVISIONS,
    log:
        "logs/compare_revisions/{gpu}/seed{seed}-limit{limit}/{model}.log",
    conda:
        "../envs/workflow.yaml"
    params:
        source_code=source_digest("metrics", "statistics"),
    shell:
        "python workflow_scripts/compare_revisions.py {input.statistics:q} --out {output:q} 2> {log:q}"


rule plot_revisions:
    input:
        comparison=ACROSS_REVISIONS,
        methods="config/methods.yaml",
        revisions="config/revisions.yaml",
    output:
        svg=f"{REVISIONS_FIGURE}.svg",
        pdf=f"{REVISIONS_FIGURE}.pdf",
        png=report(
            f"{REVISIONS_FIGURE}.png",
            caption="../docs/captions/figure.rst",
            category="Figures",
            subcategory="{model} on {gpu}",
            labels={"figure": "revisions", "prompts per workload": "{limit}"},
        ),
    log:
        "logs/plot_revisions/{gpu}/seed{seed}-limit{limit}/{model}.log",
    conda:
        "../envs/workflow.yaml"
    params:
        stem=REVISIONS_FIGURE,
        source_code=source_digest("figures"),
    shell:
        "python workflow_scripts/plot_revisions.py {input.comparison:q} --methods-table {input.methods:q}"
        " --revisions-table {input.revisions:q} --out-stem {params.stem:q} 2> {log:q}"


rule revisions_manifest:
    input:
        EXPERIMENT.expand_models(f"{REVISIONS_FIGURE}.{{suffix}}", suffix=["svg", "pdf", "png"]),
    output:
        "figures/revisions",
    log:
        "logs/revisions_manifest.log",
    conda:
        "../envs/workflow.yaml"
    params:
        inputs=json.dumps(EXPERIMENT.revision_figure_inputs()),
        source_code=source_digest("figures/manifest.py"),
    shell:
        "python workflow_scripts/figure_manifest.py {input:q} --inputs {params.inputs:q} --out {output:q} 2> {log:q}"
