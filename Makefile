# Everything a developer types. A fresh machine needs python3 (3.11 or newer, with venv and pip) and make.
#
#   make demo     a small plant, the daemon and the cloud job, live; ARGS="--broker mqtt://host:1883" for a real broker
#   make quick    the core of the test suite, in less than a minute
#   make test     the test suite without its long searches; ARGS="tests/unit/edge" for a part of it
#   make search   the long searches: properties over more examples, and packages built and installed
#   make test-all every test, as continuous integration runs them
#   make crash    kill the gateway for a minute while messages flow, then count; ARGS="--seconds 600 --seed 7"
#   make fuzz     damaged payloads, rule files, SQL, packets, files and requests; ARGS="--seconds 600 --seed 7 sql"
#   make check    lint, format, types, layers, tidiness, generated documentation: what must hold before a commit
#   make parity   the engine inside Spark beside the engine; ARGS="FILE.jsonl" for other scenarios
#   make crash-cloud  kill drivers and executors of the cloud job while a reader polls; ARGS="--folder DIR --seconds 900" for a piece of 200 kills
#   make delta    the Delta table, on the pair of Spark and Delta that is pinned, in an environment of its own
#   make engines  the job on a cluster of two workers, on Spark Connect, and with Delta tables on an S3 server (downloads 700 MB once)
#   make docs     write the generated parts of docs/ anew
#   make site     the manual as a site with search, in build/site
#   make bench    the benchmarks
#   make image    the container image, with docker, podman or buildah; ENGINE=podman to choose, IMAGE=name:tag
#   make lock     pin the image's dependencies anew: requirements.lock, requirements-build.lock
#   make clean    remove what these commands made, the virtual environment too

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
ARGS ?=
PROFILE ?= ci
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check

# Tests start many processes: without the compiled modules each takes twice the processor time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo quick test search test-all crash fuzz check parity crash-cloud delta engines engines-local engines-s3 docs site bench image lock clean

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

# Tests of daemons and brokers wait more than they compute; WORKERS=0 runs all in one process.
WORKERS ?= 4
PYTEST := $(RUN) -m pytest -n $(WORKERS)
CORE := tests/unit tests/scenarios tests/reference tests/conformance --ignore=tests/unit/tidy --ignore=tests/unit/fast

quick: WORKERS := 3
quick: $(VENV)/.for-development
	HYPOTHESIS_PROFILE=quick $(PYTEST) --dist worksteal -m "not broker and not slow and not long" $(or $(ARGS),$(CORE))

# `make check` runs the tests of tidiness.
test: $(VENV)/.for-development
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-quick} $(PYTEST) -m "not slow and not spark and not container" \
	  $(or $(ARGS),tests --ignore=tests/unit/tidy)

search: $(VENV)/.for-development
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-dev} $(PYTEST) $(or $(ARGS),tests/property tests/integration/plugins)

test-all: $(VENV)/.for-development
	HYPOTHESIS_PROFILE=$(PROFILE) $(PYTEST) $(ARGS)

crash: $(VENV)/.for-development
	$(RUN) -m tests.crash $(ARGS)

fuzz: $(VENV)/.for-development
	$(RUN) -m tests.fuzz $(ARGS)

check: $(VENV)/.for-development
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports
	$(RUN) -m edge.docs --check
	$(RUN) -m pytest tests/unit/tidy

parity: $(VENV)/.for-development
	$(RUN) -m tests.spark.parity $(or $(ARGS),tests/conformance/scenarios/rules.jsonl)

crash-cloud: $(VENV)/.for-development
	$(RUN) -m tests.spark.crash $(ARGS)

$(VENV)/.for-delta: pyproject.toml | $(VENV)/bin/python
	@echo "installing penstock with Spark 4.2 and Delta 4.4 (a few hundred MB, once) ..."
	@$(PIP) --editable '.[cloud,delta,object-store]' 'pytest>=8' 'pytest-xdist>=3.6' 'hypothesis>=6.100'
	@touch $@

delta:
	@$(MAKE) --no-print-directory VENV=.venv-delta .venv-delta/.for-delta
	PENSTOCK_REQUIRE_DELTA=1 .venv-delta/bin/python -m pytest $(or $(ARGS),tests/spark/test_delta.py)

$(VENV)/.for-engines: $(VENV)/.for-delta
	@echo "installing an S3 server, and jars of Delta and of the S3 connector (700 MB, once) ..."
	@$(PIP) 'moto[server]==5.2.5'
	@$(RUN) -m tests.support.jars $(VENV)/jars
	@touch $@

engines-local: $(VENV)/.for-development
	PENSTOCK_REQUIRE_ENGINES=cluster,connect $(RUN) -m pytest tests/spark/test_engines.py

engines-s3:
	@$(MAKE) --no-print-directory VENV=.venv-delta .venv-delta/.for-engines
	PENSTOCK_REQUIRE_ENGINES=s3 .venv-delta/bin/python -m pytest tests/spark/test_engines.py

engines: engines-local engines-s3

docs: $(VENV)/.for-development
	$(RUN) -m edge.docs

site: $(VENV)/.for-development
	$(VENV)/bin/mkdocs build --strict --quiet --config-file deploy/site/mkdocs.yml
	@echo "build/site/index.html"

bench: $(VENV)/.for-development
	$(RUN) -m benchmarks $(ARGS)

# The first program that works: docker without its service does not. A builder of a machine with its own certificate
# authority needs them mounted: make image IMAGE_FLAGS="--volume /etc/ssl/certs:/etc/ssl/certs:ro"
ENGINE ?=
IMAGE ?= penstock
IMAGE_FLAGS ?=
image:
	@engine="$(ENGINE)"; \
	for program in docker podman buildah; do \
	  [ -n "$$engine" ] || ! $$program info >/dev/null 2>&1 || engine=$$program; \
	done; \
	[ -n "$$engine" ] || { echo "make image needs docker, podman or buildah; on Debian: apt-get install buildah"; exit 1; }; \
	case "$$engine" in docker*) format="";; *) format="--format docker";; esac; \
	echo "building $(IMAGE) with $${engine%% *} ..."; \
	$$engine build $$format --tag $(IMAGE) $(IMAGE_FLAGS) \
	  --build-arg VERSION=$$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml) \
	  --build-arg REVISION=$$(git rev-parse HEAD 2>/dev/null || echo unknown) .

UV := $(VENV)/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
  --custom-compile-command "make lock"

lock: $(VENV)/.for-development
	$(UV) $(ARGS) pyproject.toml --extra object-store --extra re2 --output-file requirements.lock
	printf 'pip\nsetuptools>=77\n' | $(UV) $(ARGS) - --output-file requirements-build.lock

clean:
	rm -rf $(VENV) .venv-delta build dist demo-run *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
