"""The poster's tables and the poster.

Input: statistics (with the summaries and gates beside them), published numbers, figures. Output: poster/.../{model}/tables/ (CSV and
Markdown), poster.pdf and poster.png (24 x 36 in, typeset by Typst from poster/src).
"""


rule poster_tables:
    input:
        statistics=STATISTICS,
        methods="config/methods.yaml",
        workloads="config/workloads.yaml",
        reported="config/reported",
    output:
        report(
            directory(TABLES),
            patterns=["{table}.csv"],
            caption="../docs/captions/tables.rst",
            category="Tables",
            subcategory="{model} on {gpu}, {revision}",
            labels={"table": "{table}"},
        ),
    log:
        "logs/poster_tables/{revision}/{gpu}/seed{seed}-limit{limit}/{model}.log",
    conda:
        "../envs/workflow.yaml"
    params:
        source_code=source_digest("poster", "figures"),
    shell:
        "python workflow_scripts/poster_tables.py --statistics {input.statistics:q} --methods-table {input.methods:q}"
        " --workloads-table {input.workloads:q} --reported {input.reported:q} --out {output:q} 2> {log:q}"


rule typeset_poster:
    input:
        tables=TABLES,
        figures=expand(f"{FIGURE}.svg", figure=FIGURE_NAMES, allow_missing=True),
        source="poster/src",
    output:
        pdf=f"{POSTER}.pdf",
        png=report(
            f"{POSTER}.png",
            caption="../docs/captions/poster.rst",
            category="Poster",
            labels={"model": "{model}", "GPU": "{gpu}", "revision": "{revision}"},
        ),
    log:
        "logs/typeset_poster/{revision}/{gpu}/seed{seed}-limit{limit}/{model}.log",
    conda:
        "../envs/workflow.yaml"
    params:
        source_code=source_digest("poster", "figures"),
    shell:
        "python workflow_scripts/typeset_poster.py --source {input.source:q} --tables {input.tables:q}"
        " --figures {input.figures:q} --out-pdf {output.pdf:q} --out-png {output.png:q} 2> {log:q}"
