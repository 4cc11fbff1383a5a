"""Raw records to one summary per method and workload.

Input: raw.jsonl and run.json. Output: summary.json, with the metrics of servingbench.metrics, the resolved configuration
and the provenance.
"""


rule summarize:
    input:
        raw=RAW,
        run=RUN,
    output:
        SUMMARY,
    log:
        "logs/summarize/{revision}/{gpu}/seed{seed}-limit{limit}/{model}/{workload}/{method}.log",
    params:
        source_code=source_digest("metrics"),
    conda:
        "../envs/workflow.yaml"
    shell:
        "python workflow_scripts/summarize.py {input.raw:q} {input.run:q} --out {output:q} 2> {log:q}"
