# Everything runs from a virtual environment in .venv, made on first use. Needs Python 3.11 or newer, and make.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
TESTS ?=
JOBS ?= 2

.PHONY: help demo test test-fast e2e check chart fmt bench soak clean

help: ## Show what can be made
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "fieldwarden needs Python 3.11 or newer; none was found on PATH" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.developing: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed ## Start the webhook and replay real clients' writes; tells a story too once a kube-apiserver is built
	$(BIN)/fieldwarden demo --policies policies --reviews tests/reviews

test: $(VENV)/.developing ## Run every test that needs no cluster of yours (builds a kube-apiserver on first use)
	$(BIN)/fieldwarden sandbox prepare
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(TESTS)

test-fast: $(VENV)/.developing ## Run the tests that need no kube-apiserver
	$(BIN)/python -m pytest -n $(JOBS) -m "not server" $(TESTS)

e2e: $(VENV)/.developing ## Run the chart and the stories on the cluster that KUBECONFIG names, with FIELDWARDEN_IMAGE
	.ci/e2e

check: $(VENV)/.developing ## Lint, format, types, import contract, shipped policies
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/fieldwarden lint --strict policies
	$(BIN)/python charts/generate.py --check

chart: $(VENV)/.developing ## Make the generated parts of the chart anew: schema, README table, CRD, policies
	$(BIN)/python charts/generate.py

fmt: $(VENV)/.developing ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.developing ## Print the figures: pairs, measured in one run
	$(BIN)/python bench/run.py

soak: $(VENV)/.developing ## Ten minutes of load while workers are killed; every event must be counted right
	$(BIN)/python bench/soak.py

clean: ## Remove the virtual environment and what tools left behind
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
