# `make demo` and `make test` set up .venv by themselves; nothing else needs to be installed by hand.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all lint docs clean

.venv/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: .venv/installed
	$(BIN)/scorefield demo --out demo

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Two workers with a thread each: two that want every core are several times slower.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NPROC=1 XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

test: lint
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 -m "not slow"

test-all: lint
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2

.venv/docs: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

docs: .venv/docs
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html
	@echo "open docs/_build/html/index.html"

clean:
	rm -rf .venv demo docs/_build docs/gallery docs/generated build dist .mypy_cache .ruff_cache .pytest_cache
