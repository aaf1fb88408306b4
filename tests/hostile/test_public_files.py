"""Public files of nonsense of every kind: planned, or refused in a sentence without controls."""

import gzip
from functools import cache

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.errors import HedgerowError, PlanError
from hedgerow.plan.facts.constraints import constraints_of
from hedgerow.plan.facts.facts import PublicTable, Zeros, read_facts
from tests.hostile.commands import ended_well, write
from tests.hostile.mutations import csv, parquet, toml

BLOCKS = {"tract": ["A", "A", "B"], "block": ["A1", "A2", "B1"]}
ODD = ["home", "\x1b[2J\r", "", "a\nb", "\u202ex", "é", "[/bold]", "x" * 10_000]
KINDS = {"kind": [kind for kind in ODD if kind]}
SPEC = {
    "table": {"source": "people.csv"},
    "axis": [
        {"name": "place", "levels": ["tract", "block"], "areas": "areas.csv"},
        {"name": "kind", "levels": ["kind"], "areas": "kinds.parquet", "attribute": True},
    ],
    "workload": {"cuboids": "cube"},
    "privacy": {"neighbours": "replace", "rho": "1/20"},
}
LARGE = 10_000_000


def planned(folder, facts, content=b"", name="facts.csv"):
    """The exit code of a plan with these public facts, and what was printed."""
    files = {
        "areas.csv": csv(BLOCKS),
        "kinds.parquet": parquet(KINDS),
        name: content,
        "people.csv": csv({"block": ["A1"], "kind": ["home"]}),
        "release.toml": toml({**SPEC, "public": facts}).encode(),
    }
    write(folder, files)
    code, out, err = ended_well(folder, "plan", folder / "release.toml")
    for said in (out, err):
        assert not set(said) & set("\x1b\r\u202e"), said[:500]
    assert len(err) < 5_000
    return code, out + err


LISTED = {"source": "facts.csv", "zeros": "listed"}
BOUNDED = {"source": "facts.csv", "at_least": "n"}


@pytest.mark.parametrize("kind", KINDS["kind"])
@pytest.mark.sweep(3)
def test_a_file_names_any_code_and_shows_none_as_it_is(tmp_path, kind):
    rows = parquet({"block": ["A1", "A2"], "kind": [kind, kind]})
    fact = {"source": "facts.parquet", "zeros": "listed"}
    code, said = planned(tmp_path, [fact], rows, "facts.parquet")
    assert code == 0
    assert "2 of 21 cells hold nobody" in said
    twice = parquet({"block": ["A1", "A1"], "kind": [kind, kind]})
    code, said = planned(tmp_path, [fact], twice, "facts.parquet")
    assert code == 2
    assert "twice" in said


@pytest.mark.parametrize(
    "columns",
    [
        {"block": ["A1"], "kind": ["unknown\x1b[2J"]},
        {"block": ["A1\x1b[31m"], "kind": ["home"]},
        {"block": ["x" * LARGE], "kind": ["home"]},
        {"x" * 100_000: ["A1"], "other": ["home"]},
        {"\x1b[2J": ["A1"], "other": ["home"]},
        {"block": [""], "kind": ["home"]},
    ],
)
def test_unknown_codes_and_columns_are_refused_and_cannot_forge_the_message(tmp_path, columns):
    code, said = planned(tmp_path, [LISTED], csv(columns))
    assert code == 2
    assert "[[public]]" in said


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        ("NaN", "has missing values"),
        ("", "has missing values"),
        ("inf", "outside the public bounds"),
        ("-1", "outside the public bounds"),
        ("1e400", "outside the public bounds"),
        ("\x1b[2J", "holds text that is no number"),
        ("9" * 10_000, "outside the public bounds"),
    ],
)
def test_odd_numbers_of_a_prior_are_refused(tmp_path, number, sentence):
    ages = {"name": "age", "low": 0, "high": 100, "bins": 4, "out_of_bounds": "refuse"}
    prior = {"source": "earlier.csv", "public": True}
    spec = {**SPEC, "axis": [SPEC["axis"][0], ages]}
    spec["allocation"] = {"method": "optimal", "prior": prior}
    numbers = [number, "7"]
    files = {"areas.csv": csv(BLOCKS), "people.csv": csv({"block": ["A1"], "age": ["7"]})}
    files["earlier.csv"] = csv({"tract": ["A", "B"], "block": ["A1", "B1"], "age": numbers})
    write(tmp_path, {**files, "release.toml": toml(spec).encode()})
    code, _, err = ended_well(tmp_path, "plan", tmp_path / "release.toml")
    assert code == 2
    assert sentence in err
    assert not set(err) & set("\x1b\r")
    assert len(err) < 5_000


@pytest.mark.parametrize(
    "bound",
    [
        "-1",
        "0.5",
        "NaN",
        "inf",
        "-inf",
        "1e3",
        "many",
        "0x10",
        "1_000",
        "\x1b[2J",
        "-" + "9" * 400,
    ],
)
@pytest.mark.sweep(3)
def test_bounds_that_are_no_whole_numbers_from_0_on_are_refused(tmp_path, bound):
    rows = csv({"block": ["A1", "A2"], "n": ["1", bound]})
    for key in ("at_least", "at_most"):
        code, said = planned(tmp_path, [{"source": "facts.csv", key: "n"}], rows)
        assert code == 2
        assert "column 'n'" in said


@pytest.mark.parametrize("bound", [-1, 0.5, float("nan"), float("inf"), -(1 << 63)])
def test_bounds_of_a_parquet_file_are_held_to_the_same(tmp_path, bound):
    rows = parquet({"block": ["A1", "A2"], "n": [1, bound]})
    fact = {"source": "facts.parquet", "at_least": "n"}
    assert planned(tmp_path, [fact], rows, "facts.parquet")[0] == 2


@pytest.mark.parametrize("bound", ["9" * 18, "9" * 400, str(1 << 40), "1.0", "+7", "007"])
@pytest.mark.sweep(3)
def test_bounds_of_any_size_are_taken(tmp_path, bound):
    rows = csv({"block": ["A1", "A2", "B1"], "n": [bound] * 3})
    assert planned(tmp_path, [{"source": "facts.csv", "at_most": "n"}], rows)[0] == 0
    assert planned(tmp_path, [BOUNDED], rows)[0] == 0


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0\0\0",
        b"PAR1PAR1",
        b"\xff\xfe\x00b",
        b"block,kind\n\xff,home\n",
        b"block,kind\nA1\n",
        b'block,kind\n"A1,home\n',
        b"block,block\nA1,A2\n",
        b"block\n",
        b"\n\n\n",
        gzip.compress(b"block,kind\nA1,home\n", mtime=0)[:-9],
        b"block,kind\n" + b"A1,home\n" * 100_000,
    ],
)
def test_files_that_are_damaged_are_refused(tmp_path, content):
    assert planned(tmp_path, [LISTED], content)[0] == 2


@pytest.mark.parametrize("source", [".", "/dev/zero", "nothing", "x" * 5_000, "a\nb", "~", "*.x"])
def test_what_is_no_file_is_refused(tmp_path, source):
    assert planned(tmp_path, [{"source": source, "zeros": "listed"}])[0] == 2


@pytest.mark.parametrize(
    "fact",
    [
        {"zeros": {"kind": ["\x1b[2J\r"]}},
        {"zeros": {"\x1b[2J": ["home"]}},
        {"zeros": {"kind": [""]}},
        {"zeros": {"": ["home"]}},
        {"zeros": {"kind": []}},
        {"zeros": {"kind": ["home"] * 200 + ["none"]}},
        {"zeros": {"block": ["A1"]}},
        {"zeros": True},
        {},
    ],
)
def test_rules_that_are_none_are_refused(tmp_path, fact):
    assert planned(tmp_path, [fact])[0] == 2


def test_many_facts_are_taken(tmp_path):
    rule = {"zeros": {"kind": ["home"]}}
    assert planned(tmp_path, [rule] * 300)[0] == 0


@cache
def tree():
    kinds = hr.Axis.from_frame("kind", {"kind": ["a", "b", "c"]}, levels=["kind"], attribute=True)
    return hr.Tree([hr.Axis.from_frame("place", BLOCKS, levels=["tract", "block"]), kinds])


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(),
    st.sampled_from(["A", "A1", "A2", "B1", "a", "b", "c", "listed", "unlisted", "n", "block"]),
    st.lists(st.integers(), max_size=2),
)  # fmt: skip
COLUMNS = st.sampled_from(["tract", "block", "kind", "n", "m", "x"])


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(COLUMNS, st.lists(VALUES, max_size=4)), VALUES, VALUES, VALUES)
def test_frames_of_anything_are_facts_or_refused_in_a_sentence(columns, zeros, least, most):
    try:
        facts = read_facts(tree(), [PublicTable(columns, zeros, least, most)])
        constraints_of(tree(), facts)
    except HedgerowError as error:
        assert str(error)  # noqa: PT017


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(VALUES, st.dictionaries(VALUES.filter(lambda v: not isinstance(v, list)), VALUES)))
def test_rules_of_anything_are_facts_or_refused_in_a_sentence(codes):
    try:
        constraints_of(tree(), read_facts(tree(), [Zeros(codes)]))
    except PlanError as error:
        assert str(error)  # noqa: PT017


def test_a_code_of_many_letters_is_cut_in_messages():
    long = pl.DataFrame({"block": ["A1"], "kind": ["y" * LARGE]})
    with pytest.raises(PlanError) as error:
        constraints_of(tree(), read_facts(tree(), [PublicTable(long, "listed")]))
    assert len(str(error.value)) < 400
