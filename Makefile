# `make demo` and `make test` set up .venv by themselves; nothing else needs to be installed by hand.
PYTHON ?= python3
BIN := .venv/bin
PIP := -m pip install --quiet --disable-pip-version-check
WORKERS ?= 2

.PHONY: demo test test-all test-lowest lint docs dist clean

.venv/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python $(PIP) --editable '.[dev]'
	touch $@

demo: .venv/installed
	$(BIN)/scorefield demo --out demo

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Programs that one worker, or a command that a test starts, has compiled are there for the others, and for the next run.
KEPT_PROGRAMS := JAX_COMPILATION_CACHE_DIR="$(CURDIR)/.jax_cache" JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0.03 JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1
# Workers with a thread each: two that want every core are several times slower.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NPROC=1
ONE_XLA_THREAD := --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1
# Tests run most programs for a moment, and compiling is much of their time: without optimization and fusion emitters it is
# less than half as long. Training and chains of rows keep their level. Versions of XLA differ in their flags, and an
# unknown one ends the process, so they are tried first. `make test-all` compiles as users do.
SOON := --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false
COMPILED_SOON = $(shell XLA_FLAGS="$(SOON)" $(BIN)/python -c "import jax; jax.devices()" 2>/dev/null && echo "$(SOON)")

# worksteal gives each worker a run of neighbouring tests: the models and programs that a file shares are made once.
test: lint
	$(KEPT_PROGRAMS) $(ONE_THREAD) XLA_FLAGS="$(COMPILED_SOON) $(ONE_XLA_THREAD)" $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow"

test-all: lint
	$(KEPT_PROGRAMS) $(ONE_THREAD) XLA_FLAGS="$(ONE_XLA_THREAD)" $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# The lowest versions that pyproject.toml allows; PYTHON=python3.11 for the lowest Python too.
.venv-lowest/installed: pyproject.toml
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/python $(PIP) uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct --editable '.[test]'
	touch $@

test-lowest: .venv-lowest/installed
	$(KEPT_PROGRAMS) $(ONE_THREAD) XLA_FLAGS="$(ONE_XLA_THREAD)" .venv-lowest/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow"

.venv/docs: .venv/installed
	$(BIN)/python $(PIP) --editable '.[docs]'
	touch $@

# SPHINXOPTS="-D plot_gallery=0" leaves the examples unrun, which takes seconds instead of minutes.
docs: .venv/docs
	$(BIN)/python -m sphinx -W --keep-going -q $(SPHINXOPTS) docs docs/_build/html
	@echo "open docs/_build/html/index.html"

# The wheel is built from the sdist and tried in new environments, so a file or dependency that is missing is noticed.
dist:
	rm -rf dist
	$(PYTHON) -m venv --clear .venv-dist
	.venv-dist/bin/python $(PIP) build
	.venv-dist/bin/python -m build
	$(PYTHON) -m venv --clear .venv-dist
	.venv-dist/bin/python $(PIP) dist/*.whl
	.venv-dist/bin/python .ci/smoke.py
	.venv-dist/bin/python $(PIP) "$$(ls dist/*.whl)[cli]"
	PATH="$$PWD/.venv-dist/bin:$$PATH" python .ci/smoke.py --cli

clean:
	rm -rf .venv .venv-lowest .venv-dist demo docs/_build docs/gallery docs/generated build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .jax_cache
