# Everything a newcomer needs: `make demo` and `make test` set themselves up from a clean clone.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
RUN    := $(VENV)/.run
READY  := $(VENV)/.ready
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check
PYTHONS := 3.11 3.12 3.13

# Keep compiled modules, even where this is set: tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test quick hostile oracle oracle-large lint types bench studies docs lock clean

setup: $(READY)

define SUPPORTED
import sys
found = "%d.%d" % sys.version_info[:2]
if found not in sys.argv[1:]:
    sys.exit("Hedgerow needs Python %s, and %s is %s: make clean, and make PYTHON=python%s" % (
        ", ".join(sys.argv[1:]), sys.executable, found, sys.argv[-1]))
endef
export SUPPORTED

# What a release needs, and no more: of a Python for which the lock is made.
$(RUN): requirements-run.lock pyproject.toml
	@python=$(BIN)/python; test -x $$python || python="$(PYTHON)"; $$python -c "$$SUPPORTED" $(PYTHONS)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements-run.lock
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

# What developers need as well: linters, judges, peers.
$(READY): $(RUN) requirements.lock
	$(PIP) --require-hashes -r requirements.lock
	@touch $@

# Two synthetic tables, each planned, released, checked and compared with its own truth: of what
# each command says the first paragraph; all of it is in demo/.
demo: $(RUN)
	@rm -rf demo && mkdir demo
	@for kind in commuting census; do set -e; \
	  for step in "example $$kind demo/$$kind" "plan demo/$$kind/release.toml" \
	      "release demo/$$kind/release.toml" "check demo/$$kind/out" \
	      "compare demo/$$kind/release.toml" "table demo/$$kind/out --depth 1"; do \
	    said=demo/$$kind-$${step%% *}.txt; \
	    case $$step in compare*) ;; *) echo "\$$ hedgerow $$step";; esac; \
	    $(BIN)/hedgerow $$step > $$said 2> $$said.log || { cat $$said $$said.log >&2; exit 1; }; \
	    case $$step in plan*|release*|check*|table*) \
	      awk 'NF {print; begun = 1} !NF && begun {exit}' $$said;; esac; \
	  done; \
	done
	@echo "Open demo/commuting/out/report.html and demo/census/out/report.html;" \
	  "what else was said, and errors against the truth (hedgerow compare): demo/*.txt"

# One thread a worker: matrices and tables are small, and threads that wait for each other cost more.
# Three workers for two cores: one of them often waits for a browser, a database or a JVM.
PYTEST := OPENBLAS_NUM_THREADS=1 POLARS_MAX_THREADS=1 $(BIN)/pytest -n 3 --dist loadgroup

test: lint types
	$(PYTEST)

# What a developer runs after each edit: the tests that neither sweep nor start anything.
quick: $(READY)
	$(PYTEST) -q -m "not slow"

# The cases of sweeps that make test leaves out: hostile input, kills, audits, seeds.
hostile: $(READY)
	HEDGEROW_REST_OF_SWEEPS=1 $(PYTEST)

# Releases of every kind of plan beside what was recorded; which are not the same, and in what.
oracle: $(READY)
	$(BIN)/python -m tests.oracle

# Time and memory of large releases, by this commit and another: make oracle-large AGAINST=main
oracle-large: $(READY)
	$(BIN)/python -m benchmarks.oracle_large $(AGAINST) $(OPTIONS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m benchmarks.run

# Their own tests first.
studies: $(READY)
	$(BIN)/pytest -q studies
	$(BIN)/python -m studies.run

# The documentation as a site.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html"

COMPILE := uv pip compile --quiet --universal --generate-hashes --no-emit-index-url
lock:
	$(COMPILE) --all-extras --group dev -o requirements.lock pyproject.toml
	$(COMPILE) --group build -c requirements.lock -o requirements-run.lock pyproject.toml

clean:
	rm -rf $(VENV) demo .mypy_cache .ruff_cache .pytest_cache
