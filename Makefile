# What to type: `make demo`, `make test`. `make help` lists the rest.

VENV := .venv
PYTEST := $(VENV)/bin/python -m pytest --numprocesses=auto --dist=loadgroup
export VENV

.DEFAULT_GOAL := help
.PHONY: help demo test test-all nightly lint format generate bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## find this machine's best backend and move a file to it and back
	@scripts/setup-venv.sh test
	@$(VENV)/bin/nbxrt demo

test: ## the fast tests: needs Python 3.10 or later and a C compiler, under two minutes
	@scripts/setup-venv.sh test
	@$(PYTEST)

test-all: ## everything but long fuzzing: installs what it needs, what is missing is a failure, under 20 minutes
	@scripts/setup-system.sh
	@scripts/setup-venv.sh test,dev
	@scripts/setup-wheels.sh
	@scripts/setup-triton.sh 3.6 3.9
	@scripts/setup-opencl.sh
	@scripts/setup-engines.sh
	@$(MAKE) --no-print-directory lint
	@NBXRT_TEST_TIER=all $(PYTEST)

nightly: ## test-all, then long fuzzing, every other Python of this machine, and the oldest dependencies
	@$(MAKE) --no-print-directory test-all
	@scripts/setup-triton.sh 3.5 3.7 3.8
	@NBXRT_TEST_TIER=nightly $(PYTEST)
	@scripts/test-other-pythons.sh

lint: ## format, lint, types, generated files, backend files
	@scripts/setup-venv.sh test,dev
	@scripts/lint.sh

format: ## format the code and mend what ruff can mend
	@scripts/setup-venv.sh test,dev
	@$(VENV)/bin/ruff format
	@$(VENV)/bin/ruff check --fix

generate: ## write what follows from schema/ and backends/: compiled modules, typing stub, JSON Schema, docs/operations.md
	@scripts/setup-venv.sh test
	@$(VENV)/bin/python -m nbxrt.catalogue.schema
	@$(VENV)/bin/python -m nbxrt.catalogue.compiling

bench: ## print what calls, opening and the first allocation cost here
	@scripts/setup-venv.sh test
	@$(VENV)/bin/python benchmarks/import_and_open.py
	@$(VENV)/bin/python benchmarks/first_alloc.py
	@$(VENV)/bin/python benchmarks/calls.py

clean: ## remove what the other targets made
	rm -rf .venv* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
