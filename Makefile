# On a fresh machine each command does its own set-up. `make help` lists them.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
BEGAN  := $(shell date +%s)
WORKERS = -n 4 --dist worksteal  # for two cores: half of the time they wait for Spark, the browser or the service; neighbours share one
PIP     = $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt
unexport PYTHONDONTWRITEBYTECODE  # many processes start: each would compile everything again

.PHONY: help demo check lint test exhaustive flaky golden smoke bench bench-large docs clean java browser postgres curl

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.core  ## an example from scores to shortlist
	$(BIN)/surelist demo

check: $(VENV)/.dev lint  ## lint, types and the fast tests: 90 seconds on two cores
	$(BIN)/python -m pytest $(WORKERS) -q -m "not slow and not exhaustive"

test: $(VENV)/.dev java browser postgres curl lint  ## the test command: real engines, databases, a browser, the wheel
	@$(BIN)/python tests/project/smoke.py --alone >$(VENV)/smoke.log 2>&1 & smoke=$$!; \
	$(BIN)/python -m pytest $(WORKERS) -m "not exhaustive" --junit-xml=$(VENV)/tests.xml || failed=1; \
	wait $$smoke || failed=1; \
	cat $(VENV)/smoke.log; \
	$(BIN)/python tests/helpers/closing.py $(VENV)/tests.xml $(BEGAN); exit $${failed:-0}

exhaustive: $(VENV)/.dev java browser postgres curl  ## what `make test` tests by example: all mutants, the strict site, long fault runs
	$(BIN)/python -m pytest $(WORKERS) -m exhaustive
	$(BIN)/python tests/project/smoke.py

flaky: $(VENV)/.dev  ## does a test fail by chance? the fast ones 30 times, those of fresh randomness 200 times, at load 4
	$(BIN)/python tests/flaky.py

golden: $(VENV)/.dev  ## write pinned sentences, and outputs printed in README and docs, anew; then read `git diff`
	$(BIN)/surelist promises > docs/combinations.md
	$(BIN)/python -m pytest -q --renew tests/golden tests/project/test_docs.py -k "pinned or print_what"

smoke: $(VENV)/.dev  ## the wheel on every Python here, and with the lowest declared versions
	$(BIN)/python tests/project/smoke.py

bench: $(VENV)/.dev  ## every limit of speed in one table, in five minutes; fails where one is broken
	$(BIN)/python benchmarks/limits.py

bench-large: $(VENV)/.dev java  ## the same with 50 million rows, Spark and longer turns
	$(BIN)/python benchmarks/limits.py --large

docs: $(VENV)/.dev java  ## the documentation site: strict, no network; then `surelist docs` opens it
	$(BIN)/sphinx-build -q -W --keep-going -j 2 -d .cache/doctrees docs .cache/site/html
	rm -rf src/surelist/site && cp -r .cache/site/html src/surelist/site
	@echo "Built. See src/surelist/site/index.html, or: surelist docs"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:  ## remove what the commands above made
	rm -rf $(VENV) .cache src/surelist/site docs/reference/names .pytest_cache .mypy_cache .ruff_cache

$(VENV)/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e ".[dev]"
	touch $@ $(VENV)/.core

# $(call installed,package): with apt, as root or through sudo
installed = { SUDO=$$([ "$$(id -u)" = 0 ] || echo sudo); \
  $$SUDO apt-get update -qq && $$SUDO apt-get install -y -qq --no-install-recommends $(1); }

java:  # for the tests on Spark
	@command -v java >/dev/null || $(call installed,openjdk-17-jre-headless)

browser:  # for the tests of the page
	@command -v chromium >/dev/null || $(call installed,chromium)

postgres:  # for the tests of the record; they start a cluster of their own
	@[ -n "$$(ls /usr/lib/postgresql/*/bin/initdb /usr/local/bin/initdb 2>/dev/null)" ] || $(call installed,postgresql)

curl:  # for the examples of docs/app.md
	@command -v curl >/dev/null || $(call installed,curl)
