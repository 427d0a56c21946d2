# Every command of the project. `make` alone lists them.

PYTHON ?= python3
BIN := .venv/bin
TESTS ?= tests

.DEFAULT_GOAL := help
.PHONY: help setup run test check format bench docs setup-tests

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/installed ## make .venv and install holdfast into it

run: .venv/installed ## start the server on its defaults (setting up what is missing)
	@exec $(BIN)/holdfast serve

test: .venv/installed-dev ## run every test (TESTS=path for a part; setting up what is missing)
	@scripts/setup-tests
	$(BIN)/python -m pytest $(TESTS)

check: .venv/installed-dev ## style, types, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/installed-dev ## put the code into its form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/installed-dev ## measure ourselves beside our peers (NAME=scenario for one)
	$(BIN)/python -m bench $(NAME)

docs: .venv/installed-dev ## write the pages that are made from the code
	$(BIN)/python -m scripts.write_reference

setup-tests: ## install the servers that the tests talk to (Debian packages; needs root)
	@scripts/setup-tests --install

# The files say what was installed, so that a second `make` is quick and a new dependency is noticed.
.venv/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "holdfast needs Python 3.11 or newer: make PYTHON=/path/to/python3 ..." >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[server]'
	@touch $@

.venv/installed-dev: .venv/installed
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@
