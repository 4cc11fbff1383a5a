"""serving-bench: what does a decoding method, a transformers revision or a serve configuration buy, and how sure can we be?

    snakemake figures/all                     every figure of the configuration, and its manifest
    snakemake                                 the figures and the poster
    snakemake serve/preflight serve/all       what serving does, predicted and measured
    snakemake figures/revisions               what another transformers revision does (a suite with several of them)
    snakemake --configfile config/suites/NAME.yaml figures/all

This file only wires: config/README.md explains the configuration, docs/ the rest.
"""

from snakemake.utils import min_version

min_version("9.27")


# Whatever folder snakemake is called from, paths are the repository's.
workdir: workflow.basedir


configfile: "config/config.yaml"


include: "rules/common.smk"
include: "rules/revisions.smk"
include: "rules/models.smk"
include: "rules/peers.smk"
include: "rules/prompts.smk"
include: "rules/generate.smk"
include: "rules/summarize.smk"
include: "rules/statistics.smk"
include: "rules/serve_inputs.smk"
include: "rules/preflight.smk"
include: "rules/serve.smk"
include: "rules/figures.smk"
include: "rules/across_revisions.smk"
include: "rules/poster.smk"


rule all:
    default_target: True
    input:
        "figures/all",
        EXPERIMENT.expand(f"{POSTER}.pdf"),


# What no GPU is needed for stays on the user's machine, wherever the GPU jobs go.
localrules:
    all,
    build_arctic,
    compare,
    compare_revisions,
    figure_manifest,
    install_revision,
    install_tool,
    make_tiny,
    plot,
    plot_revisions,
    poster_tables,
    preflight,
    preflight_manifest,
    prepare_model,
    revisions_manifest,
    sample_prompts,
    serve_ledger,
    serve_manifest,
    serve_matrix,
    summarize,
    typeset_poster,
    unpack_gguf,
    write_problems,
