# Three commands to begin with: `make run`, `make check` and `make test`. Each sets up what it needs, once, in .venv.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# Keep bytecode, even where the environment says otherwise: the tests start many commands, and each would compile anew.
export PYTHONDONTWRITEBYTECODE :=
.PHONY: help setup run plane check test test-pythons soak fuzz chaos bench picture man manifests lock sbom licences audit image \
  format clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PACKAGES := $(VENV)/.packages
COMPILED = setup.py $(shell find src -name '*.pyx' -o -name '*.pxd')
WORKERS = $(shell $(PYTHON) -c 'import os; print(min(4, (os.cpu_count() or 1) + 1))')
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
UPGRADE ?=
CASES := ../shared/conformance
SHAPES ?= a c full
# The tests of `make check`: one room each, nothing that starts a server, a command or a control plane. Properties (which
# hypothesis marks by itself) and tests marked `long` are left to `make test`, which runs every test there is.
UNIT := $(addprefix tests/,objects workloads cluster framework placement eviction actions plugins profiles planner regressions)
SOAK_MINUTES ?= 60
FUZZ_MINUTES ?= 60
CONTAINER ?= docker
BASE ?=
COMPILER ?=
IMAGE ?= maniple:$(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' src/maniple/__init__.py)
EPOCH = $(shell git log -1 --format=%ct 2>/dev/null || echo 1704067200)
ROUNDS ?= 20

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## build the environment in .venv (once, and again when what it needs changes)

$(PACKAGES): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "maniple needs Python 3.11 or newer; try: make setup PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --require-hashes --requirement requirements.lock
	@touch $(PACKAGES)

$(READY): $(PACKAGES) $(COMPILED)
	@command -v cc gcc > /dev/null || { echo "maniple is compiled in part and needs a C compiler; on Debian:" \
	  "apt-get install gcc python3-dev"; exit 1; }
	$(INSTALL) --no-index --no-deps --no-build-isolation --editable .
	@touch $(READY)

run: $(READY) ## schedule an example on the embedded cluster and show what happens
	$(BIN)/maniple run --until-done

plane: $(READY) ## start a real control plane on loopback and print its kubeconfig (the first time it is built)
	$(BIN)/python plane/plane.py start

define static_checks
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports
endef

check: $(READY) ## the fast lane, about a minute: lint, format, types, layers, unit tests
	$(static_checks)
	$(BIN)/pytest -q -n 2 -m "not hypothesis and not long" $(UNIT)

test: $(READY) ## everything: lint, format, types, layers, recorded cases, tests
	@# The first build takes minutes: it runs beside the checks, and the tests that need it come last and wait for it.
	@$(BIN)/python plane/plane.py build > $(VENV)/plane-build.log 2>&1 &
	$(static_checks)
	@if [ -f $(CASES)/judge.py ]; then \
	  for compat in strict default; do \
	    echo "recorded cases, compat $$compat (tests/test_conformance.py names every difference by default):"; \
	    $(BIN)/python $(CASES)/judge.py $(CASES) --floor 0 --compat $$compat | tail -1; \
	  done; \
	else \
	  echo "=============================================================================="; \
	  echo "NOT RUN: the recorded cases. $(CASES) is not here, so conformance is unchecked."; \
	  echo "=============================================================================="; \
	fi
	@# One more than there are cores, since tests on a control plane wait more than they work; at most four, since each
	@# may run one of its own.
	$(BIN)/pytest -n $(WORKERS)

test-pythons: ## the unit tests on every Python from 3.11 to 3.14 that is here, naming those that are not
	$(PYTHON) tests/pythons.py $(UNIT) tests/cli/test_config_command.py tests/cli/test_scheduler_flags.py tests/live/test_on_sim.py

fuzz: $(READY) ## plan random and hostile objects beside healthy ones; FUZZ_MINUTES=60 says for how long
	PYTHONPATH=src:. $(BIN)/python -m tests.fuzz --minutes $(FUZZ_MINUTES)

soak: $(READY) ## follow random clusters, judged by an oracle; SOAK_MINUTES=60 says for how long
	PYTHONPATH=src:. $(BIN)/python -m tests.soak --minutes $(SOAK_MINUTES)

chaos: $(READY) ## play faults on a real API server, again and again; ROUNDS=20 says how often each
	PYTHONPATH=src:. $(BIN)/python -m tests.chaos --rounds $(ROUNDS)

bench: $(READY) ## time one scheduling cycle; SHAPES="a b c full" chooses the clusters
	$(BIN)/maniple bench $(foreach shape,$(SHAPES),--shape $(shape))

picture: $(READY) ## draw the picture of the README again
	$(BIN)/maniple picture docs/plan.svg examples/quickstart

man: $(READY) ## write the manual pages, made from the help, to build/man
	$(BIN)/maniple man build/man

manifests: $(READY) ## write deploy/ and the generated files of the chart again, from the chart and examples/rbac*.yaml
	PYTHONPATH=src:. $(BIN)/python -m tests.install.manifests

lock: $(READY) ## resolve requirements.lock and plane/toolchain.lock again; UPGRADE=--upgrade takes new releases
	$(BIN)/python -m supply.lock $(UPGRADE)

sbom: $(READY) ## write what is shipped to build/sbom.json, in CycloneDX
	SOURCE_DATE_EPOCH=$(EPOCH) $(BIN)/python -m supply.sbom build/sbom.json

licences: $(READY) ## list the licences of what is shipped; fails for one that is not on the list of allowed ones
	$(BIN)/python -m supply.licences

audit: $(READY) ## look up known vulnerabilities of everything in requirements.lock; needs an advisory database
	$(BIN)/python -m supply.audit

image: ## build the container image; IMAGE=registry.example.com/maniple:1 names it, CONTAINER=podman builds it
	$(CONTAINER) build --build-arg SOURCE_DATE_EPOCH=$(EPOCH) $(if $(BASE),--build-arg PYTHON=$(BASE)) $(if $(COMPILER),--build-arg COMPILER=$(COMPILER)) --tag $(IMAGE) .

format: $(READY) ## let ruff mend what it can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean: ## remove the environment and every cache
	rm -rf $(VENV) build soak-failures fuzz-failures .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
	find src \( -name '*.so' -o -name '*.c' \) -delete
