# Everything a newcomer or CI needs. Only Python 3.11+ and make must be there already.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PY     := $(BIN)/python

.PHONY: demo test test-slow tutorials pages test-pythons lint docs bench reproduce clean

$(VENV)/.base: pyproject.toml
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check -e ".[plot]"
	@touch $@

$(VENV)/.dev: pyproject.toml
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $(VENV)/.base $@

demo: $(VENV)/.base
	$(BIN)/permix demo

# Bytecode that is kept halves the time it takes to find the tests.
test: $(VENV)/.dev
	env -u PYTHONDONTWRITEBYTECODE $(PY) -m pytest -n auto --dist loadfile -m "not slow and not tutorial" $(ARGS)

# Properties with more examples than in every run, and others each time; then calibration and full grids.
test-slow: $(VENV)/.dev
	PERMIX_EXAMPLES=500 $(PY) -m pytest -n auto -m "hypothesis and not slow" $(ARGS)
	$(PY) -m pytest -n auto -m slow $(ARGS)

# What README and tutorials show is what the commands print.
tutorials: $(VENV)/.dev
	$(PY) -m pytest -n auto -m tutorial tests/test_tutorials.py $(ARGS)

# Every example of README and documentation, in Python and on the command line.
pages: tutorials
	$(PY) -m pytest -n auto README.md docs $(ARGS)

# The demo and all pages on every version of Python that is here, each in an environment of its own.
# PYTHONS="python3.12 /opt/python/bin/python3.13" for others.
PYTHONS ?= python3.11 python3.12 python3.13
test-pythons:
	@for python in $(PYTHONS); do \
	    if ! "$$python" -c "" 2>/dev/null; then echo "$$python is not here: left out"; continue; fi; \
	    venv=build/venv-$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	    echo "== $$("$$python" --version)"; \
	    $(MAKE) --no-print-directory PYTHON="$$python" VENV="$$venv" demo pages || exit 1; \
	done

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.dev
	$(PY) -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(VENV)/.dev
	$(PY) -m benchmarks --page build/benchmarks.md $(ARGS)

# At the papers' own sizes, hours; ARGS="table2 fig3" for some, ARGS="all --quick" for small ones.
reproduce: $(VENV)/.dev
	$(PY) -m benchmarks.reproduce $(or $(ARGS),all) --page build/reproductions.md

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis docs/_build build dist
