"""`--beside` of `compare` and `simulate`: the same table under what offices do today."""

from pathlib import Path

import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.examples import EXAMPLES
from hedgerow.release.execution import in_memory
from hedgerow.spec.release_spec import ReleaseSpec
from tests.evaluate.perturbation import STANDARD

PUBLIC = """
[simulate]
public      = true
estimators  = ["euclidean"]
measures    = ["survivors"]
allocations = ["uniform"]
baselines   = []
"""
GROUPS = (
    "Mean error of the numbers published, in records",
    "Mean error of sums of the finest published cells, in records",
    "Of what is published",
    "Counts of 1 to 9 that an attacker's guess hits",
)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The commuting example, declared public and released, with a table of perturbation."""
    path = Path(EXAMPLES["commuting"](tmp_path_factory.mktemp("beside") / "trips", "small"))
    text = path.read_text().replace("epsilon       = 1 ", 'rho = "1/100" ')
    path.write_text(text.replace("delta         =", "#") + PUBLIC)
    (path.parent / "keys.txt").write_text(STANDARD)
    spec = ReleaseSpec(path)
    tree = spec.tree()
    counts, plan = spec.table.counts(tree), spec.plan(tree)
    in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(1)).write(spec.output)
    return path


def methods(file):
    return f"rounding:5,suppression:10,cell-key:{file.parent / 'keys.txt'}"


def rows_of(said, figure):
    """The words behind each row of a name, one list a table."""
    return [line.split()[len(figure.split()) :] for line in said.splitlines() if figure in line]


def test_a_release_stands_beside_what_offices_do(succeeds, file):
    alone = succeeds("compare", file)
    said = succeeds("compare", file, "--beside", methods(file))
    assert said.startswith(alone)  # what compare says anyway
    shown = said[len(alone) :]
    for group in GROUPS:
        assert f"{group} (confidential):" in shown
    assert max(map(len, shown.splitlines())) <= 80
    said_of_keys = "cell-key:keys changes counts by at most 2; from 2 on with a variance of 0.9"
    assert f"{said_of_keys}, and 41% stay as they are." in " ".join(shown.split())
    headings = [line.split() for line in shown.splitlines() if "Hedgerow  " in line]
    assert all(heading[0] == "Hedgerow" for heading in headings)
    whole = succeeds("compare", file, "--beside", methods(file), "--wide")
    assert "  Hedgerow  rounding:5  suppression:10  cell-key:keys\n" in whole
    apart = rows_of(shown, "totals that do not add up")
    assert {each[0] for each in apart} == {"0.0%"}
    rounded, suppressed, keyed = (word for each in apart for word in each[1:])
    assert suppressed == "0.0%", "what is blank contradicts nothing"
    assert min(float(word[:-1]) for word in (rounded, keyed)) > 30
    blank = [word for each in rows_of(shown, "cells without a number") for word in each]
    assert sum(word != "0.0%" for word in blank) == 1  # suppression
    ordered = [word for each in rows_of(shown, "from 40 sums to order") for word in each]
    assert "100.0%" in ordered


def test_a_simulation_shows_what_offices_do_in_tables_of_their_own(succeeds, file):
    before = sorted(file.parent.rglob("*"))
    said = succeeds("simulate", file, "--runs", 3, "--beside", methods(file), "--show", "rmse")
    table, shown = said.split("Hedgerow is: ")
    for name in ("rounding:5", "suppression:10", "cell-key:keys"):
        assert name not in table, "a cell without a number is no error of the count 0"
        assert name in shown
    assert "uniform" in shown.splitlines()[0]
    for group in GROUPS:
        assert f"{group} (3 releases):" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert sorted(file.parent.rglob("*")) == before


@pytest.mark.parametrize(
    ("command", "words", "said"),
    [
        ("compare", "swapping:5", "no method is called 'swapping'"),
        ("compare", "cell-key:no.txt", "cannot read 'no.txt': No such file"),
        ("simulate", "rounding:1", "the base of rounding"),
    ],
)
def test_methods_that_cannot_be_are_refused_before_anything_is_read(refuses, command, words, said):
    refuses(said, command, "no_such_file.toml", "--beside", words)
