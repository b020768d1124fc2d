# Baton's commands. Bare `make` lists them; each does its own set-up. No root, no Docker.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV  := .venv
PY    := $(VENV)/bin/python
STAMP := $(VENV)/.installed
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# Parallel test processes, one of which mostly waits (tests/kit/order.py); `make test JOBS=4` overrides.
JOBS  ?= $(shell expr $(CORES) + 1)
# Seconds of an outage in `make soak` (60), of faults in `make chaos` (120).
DURATION ?=
# How many orders `make interleave` runs, and from which seed on (drawn without one).
SCHEDULES ?= 3000
SEED ?=
# Passed on to the target's program, as in `make test ARGS="tests/lua -k pop"`.
ARGS  ?=
# What is tested on PostgreSQL beside SQLite.
OUTBOX := tests/dispatch tests/outbox tests/quota
# Hundreds of processes would compile every module anew where a machine's environment forbids to keep
# what was compiled: three seconds of each start.
unexport PYTHONDONTWRITEBYTECODE
# The Python to build the environment from; `make setup PYTHON=/path/to/python3.12` overrides.
PYTHON ?=

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) ## Create .venv and install the locked packages

.PHONY: demo
demo: $(STAMP) ## Run real jobs on a real stack, kill a worker, show that nothing is lost
	@$(PY) manage.py demo $(ARGS)

.PHONY: up
up: $(STAMP) ## Run the whole stack in this terminal until Ctrl-C
	@exec $(PY) manage.py up $(ARGS)

# The outbox's tests once more, on PostgreSQL; first, so that the last line is the whole run's sum.
.PHONY: test
test: $(STAMP) ## Run the tests on real servers (ARGS="-k name" selects)
	@if [ -z '$(ARGS)' ]; then $(PY) -m tests.kit.postgres --optional \
		$(PY) -m pytest -q -n $(JOBS) $(OUTBOX) --ignore=tests/outbox/test_crash.py; fi
	@$(PY) -m pytest -n $(JOBS) --dist worksteal $(ARGS)

.PHONY: test-postgres
test-postgres: $(STAMP) ## Run the outbox's tests and its kills on a PostgreSQL of their own
	@BATON_CRASH_KILLS=0 $(PY) -m tests.kit.postgres $(PY) -m pytest -n $(JOBS) $(OUTBOX) $(ARGS)

.PHONY: soak
soak: $(STAMP) ## Cut real workers off for DURATION seconds (60), restart them 20 times under load
	@BATON_SOAK_OUTAGE=$(or $(DURATION),60) BATON_SOAK_RESTARTS=20 BATON_SOAK_KILLS=20 BATON_SOAK_CANDIDATES=100000 \
		$(PY) -m pytest tests/trust $(ARGS)

.PHONY: chaos
chaos: $(STAMP) ## Hurt everything for DURATION seconds (120) while work goes on (ARGS="--seed N --slots 4")
	@$(PY) -m tests.chaos --seconds $(or $(DURATION),120) $(ARGS)

.PHONY: crash
crash: $(STAMP) ## Kill processes before and after every command (ARGS="--every-way --slots 4")
	@$(PY) -m tests.crash $(ARGS)

.PHONY: interleave
interleave: $(STAMP) ## Step processes command by command in SCHEDULES orders (3000; SEED= repeats)
	@$(PY) -m tests.interleaving --schedules $(SCHEDULES) $(if $(SEED),--seed $(SEED)) $(ARGS)

# Sizes of `make capacity`; BATON_CAPACITY_WORKFLOWS and the others override them.
.PHONY: capacity
capacity: $(STAMP) ## Prove limits with 1,000 workflows behind a limit of 8, on real workers
	@$(PY) -m pytest -q -n $(CORES) tests/capacity_proof $(ARGS)
	@BATON_CAPACITY_WORKFLOWS=$${BATON_CAPACITY_WORKFLOWS:-1000} \
		BATON_CAPACITY_CALL_MS=$${BATON_CAPACITY_CALL_MS:-500} \
		BATON_CAPACITY_CHILDREN=$${BATON_CAPACITY_CHILDREN:-4} \
		BATON_CAPACITY_SLOTS=$${BATON_CAPACITY_SLOTS:-4} $(PY) -m tests.capacity_proof

.PHONY: mutants
mutants: $(STAMP) ## Break one guard at a time and see the tests notice (ARGS="--whole", or words)
	@$(PY) -m tests.mutants $(ARGS)

.PHONY: check
check: $(STAMP) ## Format, lint, types, import rules and the repository's own rules
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@$(VENV)/bin/lint-imports
	@$(PY) -m pytest -q tests/repo

.PHONY: lint
lint: $(STAMP) ## Lint and types only
	@$(PY) -m ruff check .
	@$(PY) -m mypy

.PHONY: format
format: $(STAMP) ## Format the code and apply the safe fixes
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

.PHONY: bench
bench: $(STAMP) ## Measure throughput, start, end to end and takeover beside the raw limits
	@$(PY) -m bench $(ARGS)

.PHONY: profile
profile: $(STAMP) ## Show where the time of a workflow goes, layer by layer
	@$(PY) -m bench.profile $(ARGS)

.PHONY: lock
lock: $(STAMP) ## Write requirements.lock anew from pyproject.toml
	@$(PY) -m pip install --quiet uv
	@$(PY) -m uv pip compile pyproject.toml --extra dev --python-version 3.11 --universal \
		--generate-hashes --no-header --quiet --output-file requirements.lock

.PHONY: clean
clean: ## Remove .venv and caches (the data folder .data stays)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): requirements.lock
	@python=; \
	for candidate in $(PYTHON) python3.11 python3.12 python3.13 python3 python; do \
		if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
		then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
		echo "make: no Python 3.11 or newer found (tried python3.11, 3.12, 3.13, python3);" >&2; \
		echo "      install one, or name it: make setup PYTHON=/path/to/python3" >&2; exit 1; \
	fi; \
	if [ -x $(PY) ] && $(PY) -m pip --version >/dev/null 2>&1; then :; \
	elif "$$python" -c 'import venv, ensurepip' 2>/dev/null; then \
		"$$python" -m venv --clear $(VENV); \
	elif "$$python" -c 'import venv, pip' 2>/dev/null; then \
		"$$python" -m venv --clear --without-pip $(VENV) && \
		"$$python" -m pip --quiet --python $(PY) install pip; \
	else \
		echo "make: $$python has neither ensurepip nor pip, so no environment can be made;" >&2; \
		echo "      install python3-venv (Debian, Ubuntu: apt-get install python3-venv)," >&2; \
		echo "      or name another one: make setup PYTHON=/path/to/python3" >&2; exit 1; \
	fi; \
	echo "Installing the locked packages into $(VENV) (about 30 s) ..." >&2; \
	$(PY) -m pip install -qq --no-input --disable-pip-version-check --no-compile \
		--require-hashes --requirement requirements.lock
	@touch $@
