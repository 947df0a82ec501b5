# Two commands for a fresh machine: `make demo` and `make test`. Each does its own set-up.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin

.PHONY: demo test check system clean java

demo: $(VENV)/.core
	$(BIN)/surelist demo

test: $(VENV)/.dev java
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

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
