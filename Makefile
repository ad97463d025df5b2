# Works on a machine that has Python 3.11 or later and make: everything else goes into .venv.
#
#   make run         set up, archive what your agents have kept, and show the newest sessions
#   make test        set up, then check everything (the same as `make check`); what continuous integration runs
#   make test-fast   the tests for the inner loop: no Node, Java or browser, no test that tries thousands of inputs
#   make test-heavy  the tests that need hundreds of megabytes or many minutes
#   make coverage    all tests but the heavy ones, with branch coverage and its bar
#   make docs        write the generated pages again
#   make pictures    take the pictures of the README again
#   make bench       measure speed and memory, against a peer, and write docs/benchmarks.md (BENCH="sync search": only these)
#   make clean       remove what the other targets made, .venv included
#
# PYTEST_ARGS="-k rewind" chooses tests, in every target that runs them.

PYTHON ?= python3
BIN := .venv/bin
# A worker takes a whole file, so that its fixtures are made once; the longest come first (tests/conftest.py).
PARALLEL := -n auto --dist loadfile --no-loadscope-reorder
PYTEST = -m pytest $(PARALLEL)
# Tests start retold hundreds of times: without compiled modules each start would compile them again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test check lint types contracts fresh tests programs test-fast test-heavy coverage bench docs pictures clean

run: .venv/retold.stamp
	@$(BIN)/retold

test: check

# The tests also check the generated pages. mypy needs a minute and one core, so it runs beside them.
check: lint
	@$(MAKE) --no-print-directory -j3 types contracts tests

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev.stamp
	$(BIN)/mypy

contracts: .venv/dev.stamp
	$(BIN)/lint-imports
	$(BIN)/python scripts/check_layout.py

fresh: .venv/dev.stamp
	$(BIN)/python scripts/generate_docs.py --check

tests: .venv/dev.stamp programs
	$(BIN)/python $(PYTEST) $(PYTEST_ARGS)

programs:
	@sh scripts/node.sh
	@sh scripts/browser.sh
	@sh scripts/java.sh

test-fast: .venv/dev.stamp
	$(BIN)/python $(PYTEST) -m "not foreign and not slow and not heavy" $(PYTEST_ARGS)

test-heavy: .venv/dev.stamp
	$(BIN)/python $(PYTEST) -m heavy $(PYTEST_ARGS)

coverage: .venv/dev.stamp programs
	$(BIN)/coverage erase
	$(BIN)/coverage run $(PYTEST) $(PYTEST_ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

docs: .venv/dev.stamp
	$(BIN)/python scripts/generate_docs.py

pictures: .venv/dev.stamp
	@sh scripts/browser.sh
	RETOLD_PICTURES=write $(BIN)/python -m pytest -q -p no:cacheprovider tests/test_pictures.py

bench: .venv/bench.stamp
	$(BIN)/python benchmarks/run.py $(BENCH)

clean:
	rm -rf .venv .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache build dist
	find src tests scripts benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/retold.stamp: pyproject.toml
	@sh scripts/install.sh "$(PYTHON)" ".[all]"
	@touch $@

.venv/dev.stamp: pyproject.toml
	@sh scripts/install.sh "$(PYTHON)" ".[dev]"
	@touch .venv/retold.stamp $@

.venv/bench.stamp: pyproject.toml
	@sh scripts/install.sh "$(PYTHON)" ".[bench]"
	@touch $@
