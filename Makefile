# Everything a developer types. A fresh machine needs python3 (3.11 or newer, with venv and pip) and make.
#
#   make demo     a small plant, the daemon and the cloud job, live; ARGS="--broker mqtt://host:1883" for a real broker
#   make test     the whole test suite; ARGS="-k spool" for a part of it
#   make check    lint, format, types, layers, tidiness, generated documentation: what must hold before a commit
#   make docs     write the generated parts of docs/ anew
#   make bench    the benchmarks
#   make clean    remove what these commands made, the virtual environment too

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
ARGS ?=
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test check docs bench clean

help:
	@sed -n 's/^#   //p' Makefile

# A stamp says that the environment was made for this pyproject.toml, so that the second run starts at once.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "penstock needs Python 3.11 or newer; found $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12"; exit 1; }
	@echo "making the virtual environment $(VENV) ..."
	@$(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "python3 cannot make virtual environments here; on Debian: apt-get install python3-venv"; exit 1; }

$(VENV)/.for-demo: pyproject.toml | $(VENV)/bin/python
	@echo "installing penstock, PySpark and the demo's broker (a few hundred MB, once) ..."
	@$(PIP) --editable '.[cloud,demo]'
	@touch $@
	@echo "installed."

$(VENV)/.for-development: pyproject.toml | $(VENV)/bin/python
	@echo "installing penstock with everything that tests and checks need (a few hundred MB, once) ..."
	@$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.for-demo
	@echo "installed."

demo: $(VENV)/.for-demo
	@$(RUN) -m edge.demo $(ARGS)

test: $(VENV)/.for-development
	$(RUN) -m pytest $(ARGS)

check: $(VENV)/.for-development
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports
	$(RUN) -m edge.docs --check
	$(RUN) -m pytest tests/unit/tidy

docs: $(VENV)/.for-development
	$(RUN) -m edge.docs

bench: $(VENV)/.for-development
	$(RUN) -m benchmarks $(ARGS)

clean:
	rm -rf $(VENV) build dist demo-run *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
