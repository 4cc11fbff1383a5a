"""The path patterns of the keys (what docs/layout.md draws), in one place."""

STATIC_TABLE = "resources/static_tables/{revision}/{model}/static_table.json"
STATIC_TABLE_DATA = "resources/static_tables/{revision}/{model}/static_table.safetensors"

ARCTIC = "resources/peers/arctic-inference"

PROMPTS = "results/prompts/seed{seed}-limit{limit}/{workload}.jsonl"

MODEL_FOLDER = "results/{revision}/{gpu}/seed{seed}-limit{limit}/{model}"
STATISTICS = f"{MODEL_FOLDER}/statistics.json"

WORKLOAD_FOLDER = f"{MODEL_FOLDER}/{{workload}}"
LOSSLESS = f"{WORKLOAD_FOLDER}/lossless.json"

RAW = f"{WORKLOAD_FOLDER}/{{method}}/raw.jsonl"
RUN = f"{WORKLOAD_FOLDER}/{{method}}/run.json"
SUMMARY = f"{WORKLOAD_FOLDER}/{{method}}/summary.json"

FIGURE_FOLDER = "figures/{revision}/{gpu}/seed{seed}-limit{limit}/{model}"
FIGURE = f"{FIGURE_FOLDER}/{{figure}}"

ACROSS_REVISIONS = "results/across_revisions/{gpu}/seed{seed}-limit{limit}/{model}/revisions.json"
REVISIONS_FIGURE = "figures/across_revisions/{gpu}/seed{seed}-limit{limit}/{model}/revisions"

POSTER_FOLDER = "poster/{revision}/{gpu}/seed{seed}-limit{limit}/{model}"
POSTER = f"{POSTER_FOLDER}/poster"
TABLES = f"{POSTER_FOLDER}/tables"

SERVE_FOLDER = "results/{revision}/{gpu}/seed{seed}-limit{limit}/serve"
SERVE_ROW = f"{SERVE_FOLDER}/{{row}}"
PREFLIGHT = "results/{revision}/{gpu}/seed{seed}-limit{limit}/serve/preflight.json"
SERVE_SUMMARY = f"{SERVE_ROW}/summary.json"
LEDGER = f"{SERVE_FOLDER}/ledger"
MATRIX = f"{SERVE_FOLDER}/matrix"
SCORE = f"{SERVE_FOLDER}/score.json"
