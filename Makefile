# Two commands do all the set-up: `make demo` and `make test`. Everything else is plain snakemake (see README.md).

PYTHON ?= python3
# A CPU build of torch from another index, for instance TORCH_INDEX=https://download.pytorch.org/whl/cpu
TORCH_INDEX ?=
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
TEST_REVISION ?= v5.24.0
OLDEST_REVISION := v4.57.3
TESTED_REVISIONS ?= $(OLDEST_REVISION) v5.0.0 v5.12.0 $(TEST_REVISION)
TEST_PROCESSES ?= 2
# For bench-decoding: recorded outputs (workflow_scripts/record_corpus.py makes more), and prompts per task to time
CORPUS ?= config/corpus/demo.jsonl
TIMED_PROMPTS ?= 2
BENCH_REVISION := resources/revisions/$(TEST_REVISION)
BENCH_MODEL := smollm2-135m
BENCH_TABLE := resources/static_tables/$(TEST_REVISION)/$(BENCH_MODEL)/static_table.safetensors

.PHONY: help demo test test-revisions lint env dev-env arctic bench-decoding list rerun tables clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

env: $(VENV)/installed  ## the project's own environment in .venv

$(VENV)/installed: envs/workflow.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "error: Python 3.11 or newer is needed; name one with PYTHON=python3.12")'
	@echo "Making .venv (about 2 GB with torch, some minutes on a slow line)"
	$(PYTHON) -m venv $(VENV)
	$(if $(TORCH_INDEX),$(PIP) --index-url $(TORCH_INDEX) torch==2.13.0)
	$(PIP) -r envs/workflow.txt
	$(PIP) --no-deps --editable .
	touch $@

dev-env: $(VENV)/installed-dev

$(VENV)/installed-dev: $(VENV)/installed envs/dev.txt envs/modal.txt
	$(PIP) -r envs/dev.txt -r envs/modal.txt
	touch $@

demo: env  ## measure every method on this CPU, draw the figures and the poster
	$(BIN)/snakemake
	@$(BIN)/servingbench show

test: dev-env lint  ## the whole test suite
	$(BIN)/snakemake --quiet all -- resources/models/smollm2-135m $(foreach revision,$(OLDEST_REVISION) $(TEST_REVISION),resources/revisions/$(revision)/environment.json)
	@$(MAKE) --silent arctic || echo "Arctic Inference could not be built: its tests are skipped"
	OMP_NUM_THREADS=1 PYTHONPATH=resources/revisions/$(TEST_REVISION)/site-packages $(BIN)/python -m pytest -n $(TEST_PROCESSES)
	@$(MAKE) --silent test-revisions TESTED_REVISIONS=$(OLDEST_REVISION)

test-revisions: dev-env  ## the decoding tests under every supported transformers release
	$(BIN)/snakemake --quiet all -- $(TESTED_REVISIONS:%=resources/revisions/%/environment.json) resources/models/smollm2-135m
	@for revision in $(TESTED_REVISIONS); do echo "decoding tests under $$revision"; OMP_NUM_THREADS=1 \
	  PYTHONPATH=resources/revisions/$$revision/site-packages $(BIN)/python -m pytest -q -n $(TEST_PROCESSES) tests/unit/decoding \
	  || exit 1; done

lint: dev-env  ## ruff, mypy, snakefmt and snakemake --lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check Snakefile rules
	$(BIN)/snakemake --lint

arctic: env  ## build Arctic Inference's suffix trees, the peer of arctic_suffix_* (needs a C++ compiler)
	$(BIN)/snakemake --quiet all -- resources/peers/arctic-inference

bench-decoding: env  ## our drafts beside Arctic's and transformers', in minutes: make bench-decoding CORPUS=FILE
	$(BIN)/snakemake --quiet all -- resources/models/$(BENCH_MODEL) $(BENCH_REVISION)/environment.json $(BENCH_TABLE)
	@$(MAKE) --silent arctic || echo "Arctic Inference could not be built: its column stays empty"
	PYTHONPATH=$(BENCH_REVISION)/site-packages $(BIN)/python workflow_scripts/bench_decoding.py --corpus "$(CORPUS)" \
	  --model resources/models/$(BENCH_MODEL) --environment $(BENCH_REVISION)/environment.json \
	  --static-table $(BENCH_TABLE) --timed-prompts $(TIMED_PROMPTS)

list: env  ## the suites, methods, workloads, models, GPUs and revisions
	@$(BIN)/servingbench list

rerun: env  ## measure one workload again: make rerun WORKLOAD=math
	$(if $(WORKLOAD),,$(error name a workload: make rerun WORKLOAD=math))
	files=$$($(BIN)/servingbench outputs $(WORKLOAD)) && $(BIN)/snakemake --forcerun $$files -- figures/all

tables: env  ## the poster's tables only
	files=$$($(BIN)/servingbench outputs --tables) && $(BIN)/snakemake -- $$files

clean:  ## remove what runs made; keeps .venv and resources/
	rm -rf results figures logs poster/v*
