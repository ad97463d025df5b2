# Works on a machine that has Python 3.11 or later and make: everything else goes into .venv.
#
#   make run     set up, archive what your agents have kept, and show the newest sessions
#   make test    set up, then check everything (the same as `make check`)
#   make docs    write the generated pages again
#   make pictures  take the pictures of the README anew
#   make bench   measure speed and memory, against peers, and write docs/benchmarks.md (BENCH="sync list": only these)
#   make clean   remove what the other targets made, .venv included

PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test check lint types contracts fresh tests bench docs pictures clean

run: .venv/retold.stamp
	@$(BIN)/retold

test: check

check: lint types contracts fresh tests

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev.stamp
	$(BIN)/mypy

contracts: .venv/dev.stamp
	$(BIN)/lint-imports

fresh: .venv/dev.stamp
	$(BIN)/python scripts/generate_docs.py --check

tests: .venv/dev.stamp
	@sh scripts/node.sh
	@sh scripts/browser.sh
	@sh scripts/java.sh
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n auto $(PYTEST_ARGS)
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
	@sh scripts/install.sh "$(PYTHON)" "."
	@touch $@

.venv/dev.stamp: .venv/retold.stamp
	@sh scripts/install.sh "$(PYTHON)" ".[dev]"
	@touch $@

.venv/bench.stamp: .venv/retold.stamp
	@sh scripts/install.sh "$(PYTHON)" ".[bench]"
	@touch $@
