# Everything a newcomer needs: `make demo` and `make test` set themselves up from a clean clone.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: setup demo test lint types bench studies docs lock clean

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# Two synthetic tables, each planned, released, checked and compared with its own truth.
demo: $(READY)
	rm -rf demo
	@for kind in commuting census; do set -e; \
	  for step in "example $$kind demo/$$kind" "plan demo/$$kind/release.toml" \
	      "release demo/$$kind/release.toml" "check demo/$$kind/out" \
	      "compare demo/$$kind/release.toml --picture demo/$$kind/errors.png"; do \
	    echo; echo "\$$ hedgerow $$step"; $(BIN)/hedgerow $$step; \
	  done; \
	done
	@echo; echo "Pictures of the error by level: demo/commuting/errors.png, demo/census/errors.png"

test: lint types
	$(BIN)/pytest -n 2 --dist loadgroup

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m benchmarks.run

studies: $(READY)
	$(BIN)/python -m studies.run

# The documentation as a site.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html"

lock:
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --all-extras --group dev -o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) demo .mypy_cache .ruff_cache .pytest_cache
