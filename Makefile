# SPDX-License-Identifier: Apache-2.0
# Everything a developer does, one target each; `make help` lists them. The first target that needs Python builds the
# virtual environment from requirements.lock; nothing is installed outside of this folder.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
UV := $(or $(shell command -v uv),.cache/uv/bin/uv)
# What a target that calls it has to wait for: nothing where it is on PATH.
NEEDS_UV := $(if $(findstring .cache,$(UV)),$(UV))
# A new lock, or new metadata of the project, gives a new digest and with it a new stamp.
DIGEST := $(shell cat requirements.lock pyproject.toml | sha256sum | cut -c1-16)
READY := $(VENV)/.ready-$(DIGEST)
# What tests of Kerberos need beside it; it is built here, against the system's headers, and only for tests.
KERBEROS := $(VENV)/.kerberos-$(DIGEST)
REPORTS := build/reports
# Context of the container images' builds, and whether modules are compiled for a quicker start.
IMAGE := build/image
COMPILE := --compile-bytecode
# Tests run in an order of their own; the command that make shows names it, and `make unit SEED=123` runs it again.
SEED := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
PYTEST := $(BIN)/python -m pytest -m "not soak" --randomly-seed=$(SEED)
CODE := batch_resources yarn_copilot nm_proxy lab tests benchmarks
LINTED := $(CODE) .ci/stages.py

.PHONY: help venv check format unit model contract fuzz lab-test prepare test coverage soak bench image-context image-packages image-program demo proto lock docs clean

help: ## Show this help
	@echo "yarn-copilot: what you can do here"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "Pass options to pytest with ARGS, for example: make unit ARGS='-k quantities -x'"
	@echo "Tests run in a random order; SEED=123 runs them in that one, and each run shows its own"
	@echo "The demo without downloads: LAB=embedded make demo"

venv: $(READY) ## Build the virtual environment (.venv) from the lock

.cache/uv/bin/uv:
	@echo "== uv is not on PATH: installing it into .cache/uv"
	$(PYTHON) -m venv .cache/uv
	.cache/uv/bin/python -m pip install --quiet 'uv>=0.8,<1'

$(READY): | $(NEEDS_UV)
	@echo "== virtual environment: $(VENV) from requirements.lock"
	test -x $(BIN)/python || $(PYTHON) -m venv --without-pip $(VENV)
	$(UV) pip sync --quiet --compile-bytecode --python $(BIN)/python requirements.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --editable .
	@rm -f $(VENV)/.ready-* $(VENV)/.kerberos-*
	@touch $@

$(KERBEROS): $(READY) requirements-kerberos.lock
	@command -v krb5-config >/dev/null && command -v gcc >/dev/null || { \
	  echo "the tests need gcc and Kerberos' headers, to build gssapi: apt-get install gcc libkrb5-dev"; exit 1; }
	@echo "== gssapi from requirements-kerberos.lock"
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements-kerberos.lock
	@touch $@

check: $(KERBEROS) ## Format, lint, types, layers, spelling; changes nothing
	$(BIN)/ruff format --check $(LINTED)
	$(BIN)/ruff check $(LINTED)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell $(CODE) docs Makefile README.md CHANGELOG.md

format: $(READY) ## Format the code and mend what ruff can mend
	$(BIN)/ruff format $(LINTED)
	$(BIN)/ruff check --fix $(LINTED)

unit: $(KERBEROS) ## Unit tests, under a minute
	$(PYTEST) tests/unit -n 2 -q --junitxml=$(REPORTS)/unit.xml $(ARGS)

model: $(READY) ## Search a small world for a unit sold twice: one lateness and every pair, mutants, liveness
	$(PYTEST) tests/model -n 2 --maxschedchunk 1 -q -rP --junitxml=$(REPORTS)/model.xml $(ARGS)

contract: $(KERBEROS) ## Adapters against in-process servers on loopback
	$(PYTEST) tests/contract -n 2 -q --junitxml=$(REPORTS)/contract.xml $(ARGS)

prepare: $(READY) ## Build and download the real servers of the lab (cached)
	$(BIN)/python -m lab prepare

fuzz: $(KERBEROS) ## Long fuzzing of bytes and files that others send us (about FUZZ_EXAMPLES=20000 examples a test)
	FUZZ_EXAMPLES=$${FUZZ_EXAMPLES:-20000} $(PYTEST) tests/unit -k fuzzing -q --timeout 7200 $(ARGS)
	for target in framing sasl challenge token reports rest xml; do \
	  $(BIN)/python -m tests.fuzz $$target $${FUZZ_SECONDS:-300}; done

lab-test: $(KERBEROS) prepare ## The whole on real servers: etcd, kube-apiserver, kube-scheduler, YARN
	$(PYTEST) tests/lab -q --junitxml=$(REPORTS)/lab.xml $(ARGS)

test: $(KERBEROS) ## Everything: check, unit, model, contract, lab; one summary at the end
	$(BIN)/python .ci/stages.py check unit model contract lab-test

coverage: $(KERBEROS) ## Branch coverage of unit and contract tests
	$(PYTEST) tests/unit tests/contract -q --cov --cov-report=term-missing:skip-covered $(ARGS)

soak: $(KERBEROS) prepare ## Long runs
	$(BIN)/python -m pytest -m soak tests --timeout 7200 $(ARGS)

bench: prepare ## Benchmarks on real servers; figures go to benchmarks/results
	$(BIN)/python -m benchmarks

image-context: image-packages image-program ## What container images are built from, in build/image; see deploy/images

image-packages: | $(NEEDS_UV) ## Of these, what the project needs of others
	rm -rf $(IMAGE)/packages
	$(UV) pip install --quiet --target $(IMAGE)/packages --python $(PYTHON) --python-version 3.11 --only-binary :all: \
	  $(COMPILE) --require-hashes -r requirements-runtime.lock
	rm -rf $(IMAGE)/packages/bin

image-program: | $(NEEDS_UV) ## Of these, the project itself
	rm -rf $(IMAGE)/program
	$(UV) pip install --quiet --target $(IMAGE)/program --python $(PYTHON) $(COMPILE) --no-deps .
	rm -rf $(IMAGE)/program/bin

demo: $(READY) ## Real servers, a day of load, a live table and a summary
	$(BIN)/python -m lab demo

proto: $(READY) ## Generate the protobuf modules from our .proto files
	$(BIN)/python -m grpc_tools.protoc --proto_path=. --python_out=. --pyi_out=. \
	  yarn_copilot/hadoop/proto/rpc.proto yarn_copilot/hadoop/proto/yarn.proto \
	  yarn_copilot/hadoop/proto/operations.proto lab/fleet/proto/tracker.proto

docs: $(READY) ## Write the generated pages and pictures of docs/ from the code
	$(BIN)/python -m yarn_copilot.cli.docs docs
	$(BIN)/python -m nm_proxy.cli.docs docs
	$(BIN)/python -m tests.pictures docs/pictures

lock: | $(NEEDS_UV) ## Resolve the dependencies again and write requirements.lock
	$(UV) pip compile --quiet --python-version 3.11 --group dev --generate-hashes --no-header --no-emit-index-url \
	  --no-annotate --output-file requirements.lock pyproject.toml
	$(UV) pip compile --quiet --python-version 3.11 --constraint requirements.lock --generate-hashes --no-header \
	  --no-emit-index-url --no-annotate --output-file requirements-runtime.lock pyproject.toml
	echo 'gssapi>=1.9,<2' | $(UV) pip compile --quiet --python-version 3.11 --generate-hashes --no-header \
	  --no-emit-index-url --no-annotate --output-file requirements-kerberos.lock -

clean: ## Remove what was built; keeps the caches of the lab's servers
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
