"""Raw records to one summary per method.

Input: raw.jsonl and run.json of every method on a workload. Output: their summary.json, with the metrics of
servingbench.metrics, the resolved configuration and the provenance.
"""


rule summarize:
    input:
        raw=expand(RAW, method=EXPERIMENT.methods, allow_missing=True),
        run=expand(RUN, method=EXPERIMENT.methods, allow_missing=True),
    output:
        expand(SUMMARY, method=EXPERIMENT.methods, allow_missing=True),
    log:
        "logs/summarize/{revision}/{gpu}/seed{seed}-limit{limit}/{model}/{workload}.log",
    conda:
        "../envs/workflow.yaml"
    params:
        source_code=source_digest("metrics"),
    shell:
        "python workflow_scripts/summarize.py --raw {input.raw:q} --run {input.run:q} --out {output:q} 2> {log:q}"
