"""Dataset sampling.

Input: the workload's source. Output: results/prompts/seed{seed}-limit{limit}/{workload}.jsonl, a header line with source,
fingerprint, seed and limit, then one prompt per line. The sample is nested in the limit and independent of the order of
the source.
"""


rule sample_prompts:
    input:
        workload_source,
    output:
        PROMPTS,
    log:
        "logs/sample_prompts/seed{seed}-limit{limit}/{workload}.log",
    conda:
        "../envs/workflow.yaml"
    params:
        row=row_json("workloads", "workload"),
        datasets_root=EXPERIMENT.config.get("datasets_root", []),
        source_code=source_digest("prompts"),
    shell:
        "python workflow_scripts/sample_prompts.py --workload {wildcards.workload:q} --row {params.row:q}"
        " --seed {wildcards.seed} --limit {wildcards.limit} --datasets-root {params.datasets_root:q}"
        " --out {output:q} > {log:q} 2>&1"
