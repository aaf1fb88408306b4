"""Records find their leaf of a product axis by their codes together."""

from collections import Counter

import numpy as np
import polars as pl
import pytest

from hedgerow.errors import TableError
from hedgerow.tables.axis import Axis
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree
from tests.refused import refused
from tests.tables.lists.test_product import AGES, KINDS, RACES, person

AREAS = {"county": ["A", "A", "B"], "block": ["A1", "A2", "B1"]}
GROUPS = {(h, c): g for h, c, g in zip(*RACES.values(), strict=True)}


def tree(**options):
    place = Axis.from_frame("place", AREAS, ["county", "block"])
    return Tree([place, person(attribute=True, **options)])


def records(rng, n=500):
    """Records without the derived column."""
    block = rng.choice(AREAS["block"], n)
    return pl.DataFrame({
        "cenrace": rng.choice(["01", "02"], n),
        "block": block,
        "hhgq": rng.choice(KINDS["hhgq"], n),
        "votingage": rng.choice(AGES["votingage"], n),
        "hispanic": rng.choice(["h", "n"], n),
    })  # fmt: skip


@pytest.mark.parametrize("derived", [False, True], ids=["left out", "given"])
def test_records_are_counted_at_their_combination(derived):
    table = records(np.random.default_rng(5))
    wanted = Counter(
        (r["block"][0], r["block"], r["hhgq"], r["votingage"],
         GROUPS[r["hispanic"], r["cenrace"]], r["hispanic"], r["cenrace"])
        for r in table.iter_rows(named=True)
    )  # fmt: skip
    if derived:
        groups = [GROUPS[row] for row in table.select("hispanic", "cenrace").rows()]
        table = table.with_columns(group=pl.Series(groups))
    counts = Counts.from_frame(tree(), table)
    found = counts.level(counts.tree.depth)
    columns = ["county", "block", "hhgq", "votingage", "group", "hispanic", "cenrace"]
    assert found.columns == [*columns, "count"]
    assert {row[:-1]: row[-1] for row in found.rows()} == wanted


def test_a_level_has_the_columns_that_it_tells():
    counts = Counts.from_frame(tree(), records(np.random.default_rng(6)))
    assert counts.level(3).columns == ["county", "block", "hhgq", "count"]
    assert counts.tree.columns_of((1, 2)) == ["county", "hhgq", "votingage"]
    assert counts.tree.columns_of((0, 4)) == list(counts.tree.axes[1].columns)
    by_hand = Counter(records(np.random.default_rng(6)).select("block", "hhgq").rows())
    assert {row[1:3]: row[3] for row in counts.level(3).rows()} == by_hand


@pytest.mark.parametrize(
    ("changed", "words", "value"),
    [
        ({"hhgq": "101 "}, "are in no row of the public lists", "no list has 'hhgq' so"),
        ({"cenrace": "1"}, "are in no row of the public lists", "no list has 'cenrace' so"),
        ({"group": "black"}, "are in no row", "no row of a list has them together"),
        ({"votingage": None}, "column 'votingage' lacks a code for some record", "None"),
    ],
)
def test_a_record_that_is_no_row_of_the_lists_is_refused(changed, words, value):
    table = records(np.random.default_rng(7), 20)
    groups = [GROUPS[row] for row in table.select("hispanic", "cenrace").rows()]
    table = table.with_columns(group=pl.Series(groups))
    wrong = table.slice(3, 1).with_columns(
        hispanic=pl.lit("n"), cenrace=pl.lit("01"), group=pl.lit("white")
    )
    wrong = wrong.with_columns(**{k: pl.lit(v, pl.String) for k, v in changed.items()})
    with refused(words) as caught:
        Counts.from_frame(tree(), pl.concat([table, wrong]))
    assert value in caught.value.confidential


@pytest.mark.parametrize("missing", ["hhgq", "cenrace", "votingage"])
def test_a_column_that_the_others_do_not_tell_must_be_there(missing):
    table = records(np.random.default_rng(8), 20).drop(missing)
    with pytest.raises(TableError, match=f"no column '{missing}'.*but for those that the others"):
        Counts.from_frame(tree(), table)


def test_of_two_columns_that_tell_each_other_one_is_enough():
    names = {"code": ["1", "2"], "name": ["one", "two"]}
    axis = Axis.from_product("a", [names], ["code", "name"])
    for column in names:
        counts = Counts.from_frame(Tree([axis]), {column: [names[column][1]] * 3})
        assert counts.level(2).rows() == [("2", "two", 3)]
    with pytest.raises(TableError, match="no column 'code'"):
        Counts.from_frame(Tree([axis]), {"other": ["1"]})
