# make run     search the documentation of your own Python on http://127.0.0.1:8080
# make test    the whole test suite, live processes included
# make lint    style, format, types and floors
# make bench   every benchmark, into docs/results.md; hours, or use python -m bench all --quick
# make pictures  the pictures of the page in docs/pictures, of a real fleet
# make clean   removes what the others made, the sample index included

PYTHON ?= python3
VENV ?= .venv
BIN := $(abspath $(VENV))/bin

# Built by `make run` when it is not there; another one must be.
SAMPLE_INDEX := index_data/shards

# The same settings as in the Procfile; see docs/operations.md.
export HEDGEROW_PORT ?= 8080
export HEDGEROW_LEAF_PORT ?= 8081
export HEDGEROW_INDEX ?= $(SAMPLE_INDEX)

PARALLEL := --quiet --numprocesses auto --dist loadfile --durations 10

.PHONY: run test lint bench pictures clean
.DEFAULT_GOAL := run

run: $(VENV)/.ready
	@$(BIN)/python -c "$$CHECK_PORTS" $(HEDGEROW_PORT) $(HEDGEROW_LEAF_PORT)
	@test "$$HEDGEROW_INDEX" != $(SAMPLE_INDEX) || ls -d $(SAMPLE_INDEX)/[0-9]* > /dev/null 2>&1 || \
	    $(BIN)/python -m index_data build --source pydocs --out $(SAMPLE_INDEX) --shards 16
	@IFS=,; for each in $$HEDGEROW_INDEX; do \
	    $(BIN)/python -m index_data show "$${each#[a-z0-9_-]*=}" > /dev/null || exit; done
# Ctrl-C is how it ends: the shell waits for honcho, and 130 is no error.
	@trap : INT; PATH="$(BIN):$$PATH" HEDGEROW_ADMIN_TOKEN="$${HEDGEROW_ADMIN_TOKEN:-$$($(NEW_TOKEN))}" honcho start || test $$? -eq 130

test: $(VENV)/.ready-dev
	$(BIN)/python -m pytest $(PARALLEL) --ignore tests/root
	$(BIN)/python -m pytest $(PARALLEL) tests/root --cov

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.ready-dev
	$(BIN)/python -m bench all

pictures: $(VENV)/.ready-dev
	$(BIN)/python -m tests.browser.pictures docs/pictures

clean:
	rm -rf .venv index_data/shards build dist *.egg-info .*_cache .hypothesis .coverage htmlcov
	find . -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.ready: pyproject.toml
	@$(make_venv)
	$(BIN)/pip install --quiet --editable .
	@touch $@

$(VENV)/.ready-dev: pyproject.toml
	@$(make_venv)
	$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.ready

# For the buttons of the page that slow a leaf: nobody else knows it.
NEW_TOKEN := $(BIN)/python -c 'import secrets; print(secrets.token_hex(16))'

define make_venv
command -v $(PYTHON) > /dev/null || \
    { echo "Hedgerow needs Python 3.11 or newer, and there is no $(PYTHON): name one with make PYTHON=..." >&2; exit 2; }; \
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
    { echo "Hedgerow needs Python 3.11 or newer, and $(PYTHON) is older: name another with make PYTHON=..." >&2; exit 2; }; \
$(PYTHON) -c 'import venv, ensurepip' 2> /dev/null || \
    { echo "$(PYTHON) has no venv module: install it (on Debian: apt install python3-venv) and try again" >&2; exit 2; }; \
test -x $(BIN)/pip || $(PYTHON) -m venv --clear $(VENV)
endef

# Root and four leaves: asked before anything starts, so that the answer is one sentence.
define CHECK_PORTS
import socket, sys
try:
    root, leaf = map(int, sys.argv[1:])
    ports = [root, leaf, leaf + 1, leaf + 2, leaf + 3]
    if len(set(ports)) < 5 or not all(0 < port < 65536 for port in ports):
        raise ValueError
except ValueError:
    sys.exit(print("HEDGEROW_PORT and HEDGEROW_LEAF_PORT (and the three after it) must be five different ports", file=sys.stderr) or 2)
for port in ports:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            sys.exit(print(f"port {port} cannot be used ({error.strerror}): stop what listens there, or set HEDGEROW_PORT and HEDGEROW_LEAF_PORT", file=sys.stderr) or 2)
endef
export CHECK_PORTS
