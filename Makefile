# One door for people and for CI. `make demo` and `make test` work from a clean clone; the second run installs nothing.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
PYTHON := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
SUITE ?= tpch
ARGS ?=
WORKERS ?= 2
MINUTES ?= 10
ENDURANCE ?= 15
SEED ?=
PYTEST := $(PYTHON) -m pytest -q -n $(WORKERS) --dist=worksteal
# What test-all runs a second time, with kernels that test every address (state/checks.py).
CHECKED := tests/unit/backends/embedded tests/oracle tests/backends/test_out_of_memory.py

# The stamp holds the path it was made for: a copied or moved tree installs again, or its `everview` would run the old code.
ifneq ($(shell cat $(INSTALLED) 2>/dev/null),$(CURDIR))
.PHONY: $(INSTALLED)
endif

.PHONY: help demo test test-all soak soak-endurance check bench docs clean java

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

demo: java $(INSTALLED) ## install, then the two-minute tour
	@$(VENV)/bin/everview demo $(ARGS)

test: java $(INSTALLED) ## install, then the quick tests, in WORKERS=2 processes
	@HYPOTHESIS_PROFILE=quick $(PYTEST) $(ARGS)

test-all: java $(INSTALLED) ## the same with the slow tests and long Hypothesis runs, then the law with checked kernels
	@EVERVIEW_SLOW=1 HYPOTHESIS_PROFILE=long $(PYTEST) $(ARGS)
	@EVERVIEW_CHECKED=1 HYPOTHESIS_PROFILE=quick $(PYTEST) $(CHECKED)

soak: java $(INSTALLED) ## generated queries and streams, every answer compared: make soak MINUTES=60 SEED=7
	@$(PYTHON) -m tests.soak --minutes $(MINUTES) --workers $(WORKERS) $(if $(SEED),--seed $(SEED)) $(ARGS)

soak-endurance: java $(INSTALLED) ## twenty views at full speed, memory and latencies watched: 15 minutes
	@$(PYTHON) -m tests.soak --endurance --minutes $(ENDURANCE) $(if $(SEED),--seed $(SEED)) $(ARGS)

check: $(INSTALLED) ## ruff, mypy and the import rules; needs no Java
	@$(PYTHON) -m ruff check --quiet .
	@$(PYTHON) -m ruff format --check --quiet . || { $(PYTHON) -m ruff format --check .; exit 1; }
	@$(PYTHON) -m mypy --no-error-summary
	@$(PYTHON) -m pytest -q tests/unit/test_import_rules.py

bench: java $(INSTALLED) ## a benchmark: make bench SUITE=tpch ARGS=--quick
	@$(VENV)/bin/everview bench $(SUITE) $(ARGS)

docs: $(INSTALLED) ## write docs/supported-sql.md from the corpus
	@PYTHONPATH=. $(PYTHON) tools/supported_sql.py

clean: ## remove what make made, the environment included
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis soak build dist src/*.egg-info spark-warehouse
	find src tests tools examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

java:
	@tools/check-java

$(INSTALLED): pyproject.toml
	@python="$$(tools/find-python)" && { $(PYTHON) -m pip --version >/dev/null 2>&1 || "$$python" -m venv --clear $(VENV); }
	@echo "Installing everview into $(VENV), once; this takes a minute or two."
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-input --editable '.[dev]'
	@printf '%s\n' "$(CURDIR)" > $@
