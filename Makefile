# Everything a newcomer needs: `make demo` and `make test` set themselves up from a clean clone.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: setup demo test lint types bench lock clean

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

test: lint types
	$(BIN)/pytest -n 2

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

lock:
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --all-extras --group dev -o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) demo .mypy_cache .ruff_cache .pytest_cache
