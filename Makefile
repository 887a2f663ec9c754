# One file, nothing to remember: `make help` lists what there is.
# Every target that runs something sets itself up first: a virtual environment in .venv with asymhash
# installed in editable form. It is installed again when what is compiled or declared has changed (by
# content, not by date), or when Python files came or went; edits inside Python files need nothing.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
# Arguments for the command behind a target, e.g. `make test ARGS="tests/kernels -x"`.
ARGS :=

.PHONY: help setup demo test lint format sanitize clean

help: ## show this list
	@sed -nE 's/^([a-z]+):.*## (.*)/\1 \2/p' $(MAKEFILE_LIST) | while read -r name text; do printf '  make %-8s %s\n' "$$name" "$$text"; done

demo: setup ## learn and search on three small data sets, in under 90 seconds
	@$(BIN)/asymhash demo $(ARGS)

test: setup ## run all tests
	@$(BIN)/python -m pytest -q $(ARGS)

lint: setup ## check style, types and the layers of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: setup ## put all Python files into the one style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The sanitized module has an environment of its own, which finds the tools in .venv: there the editable installation
# would put itself before every other asymhash. A test asks the module whether it is the sanitized one. What pytest
# captures by file descriptor is lost when a sanitizer ends the process, so only sys is captured. libstdc++ is loaded
# along, which Python may not have: libasan looks for the function that throws at the start, and never again.
SANITIZED := build/sanitize
sanitize: setup ## run the tests of the kernels under AddressSanitizer and UndefinedBehaviorSanitizer
	@wanted="$$(cat $(VENV)/installed)"; \
	if [ "$$(cat $(SANITIZED)/installed 2>/dev/null || true)" != "$$wanted" ]; then \
	    rm -rf $(SANITIZED); \
	    $(BIN)/python -m venv --without-pip $(SANITIZED); \
	    $(BIN)/python -m pip --python $(SANITIZED)/bin/python install --quiet --disable-pip-version-check --no-deps \
	        --config-settings=cmake.define.ASYMHASH_SANITIZE=ON .; \
	    tools="$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"; \
	    echo "$$tools" > "$$($(SANITIZED)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tools.pth"; \
	    echo "$$wanted" > $(SANITIZED)/installed; \
	fi
	ASYMHASH_EXPECT_SANITIZED=1 LD_PRELOAD="$$($${CXX:-g++} -print-file-name=libasan.so) $$($${CXX:-g++} -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
	    $(SANITIZED)/bin/python -m pytest -q --capture=sys tests/kernels $(ARGS)

clean: ## remove the virtual environment and everything that tools left behind
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

setup: ## make or renew .venv; the other targets do it themselves
	@wanted="$$( { cat pyproject.toml CMakeLists.txt cpp/*; find cpp src -name '*.[ch]pp' -o -name '*.py' | LC_ALL=C sort; } | cksum)"; \
	if [ "$$(cat $(VENV)/made-in 2>/dev/null || true)" != "$$PWD" ]; then \
	    rm -rf $(VENV); \
	    for python in python3.11 python3 python3.12 python3.13 python; do \
	        if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then break; fi; \
	        python=; \
	    done; \
	    if [ -z "$$python" ]; then echo 'make: Python 3.11 or newer is needed, found none. Install python3.11.' >&2; exit 1; fi; \
	    echo "Making $(VENV) with $$("$$python" --version)" >&2; \
	    "$$python" -m venv $(VENV); \
	    echo "$$PWD" > $(VENV)/made-in; \
	fi; \
	if [ "$$(cat $(VENV)/installed 2>/dev/null || true)" != "$$wanted" ]; then \
	    echo 'Installing asymhash and its tools (a minute or two the first time)' >&2; \
	    rm -f $(VENV)/installed; \
	    $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'; \
	    echo "$$wanted" > $(VENV)/installed; \
	fi
