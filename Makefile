# Two commands for a fresh machine: `make demo` and `make test`. Each does its own set-up.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin

.PHONY: demo test clean java browser postgres curl

demo: $(VENV)/.core
	$(BIN)/surelist demo

test: $(VENV)/.dev java browser postgres curl
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2

$(VENV)/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@ $(VENV)/.core

java:  # for the tests on Spark
	@command -v java >/dev/null || { SUDO=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	  $$SUDO apt-get update -qq && $$SUDO apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless; }

browser:  # for the tests of the page
	@command -v chromium >/dev/null || { SUDO=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	  $$SUDO apt-get update -qq && $$SUDO apt-get install -y -qq --no-install-recommends chromium; }

postgres:  # for the tests of the record; they start a cluster of their own
	@[ -n "$$(ls /usr/lib/postgresql/*/bin/initdb /usr/local/bin/initdb 2>/dev/null)" ] || { \
	  SUDO=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	  $$SUDO apt-get update -qq && $$SUDO apt-get install -y -qq --no-install-recommends postgresql; }

curl:  # for the examples of docs/app.md
	@command -v curl >/dev/null || { SUDO=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	  $$SUDO apt-get update -qq && $$SUDO apt-get install -y -qq --no-install-recommends curl; }

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
