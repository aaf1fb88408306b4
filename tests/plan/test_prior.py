"""Priors: public tables that say what counts to expect."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.plan.prior import Prior, has_counts_of
from hedgerow.tables.sources import source
from tests.made import fixed_axis, fixed_tree, random_counts, random_tree

LEVELS = ["state", "county"]
AREAS_2020 = pl.DataFrame({"state": ["A", "A", "B", "B"], "county": ["A1", "A2", "B1", "B2"]})
TREE = hr.Tree([hr.Axis.from_frame("geo", AREAS_2020, LEVELS)])
TABLE_2010 = pl.DataFrame(
    {"state": ["A", "A", "B"], "county": ["A1", "A9", "B1"], "people": [5, 3, 5]}
)


def read(table, tree=TREE, **options):
    return Prior.read(tree, table, **{"count": "people", "public": True, **options})


def as_lists(found):
    return [part.tolist() for part in found]


@pytest.mark.parametrize("public", [False, None, "true", 1], ids=str)
def test_a_prior_must_be_declared_public(public):
    counts = read(TABLE_2010).counts
    with pytest.raises(hr.PlanError, match="must be public"):
        Prior(counts, public=public)
    with pytest.raises(hr.PlanError, match="must be public"):
        read(pl.DataFrame({"no": ["table"]}), public=public)


def test_areas_of_a_prior_are_its_own():
    prior = read(TABLE_2010)
    assert prior.counts.total == 13
    assert prior.counts.tree.leaves == 3
    prior.check_fits(TREE)


def test_a_prior_is_read_from_a_file(tmp_path):
    TABLE_2010.write_csv(tmp_path / "earlier.csv")
    prior = read(tmp_path / "earlier.csv")
    assert as_lists(prior.values(2, 4)) == [[0, 3, 5], [1, 1, 2]]
    assert repr(prior) == "Prior(13 records)"


def test_a_row_is_a_record_where_no_count_is_named():
    rows = TABLE_2010.select(pl.all().repeat_by("people").explode()).drop("people")
    assert as_lists(read(rows, count=None).values(2, 3)) == [[3, 5], [1, 2]]


def test_columns_of_a_prior_may_be_called_otherwise():
    table = TABLE_2010.rename({"state": "st", "county": "cty"})
    assert has_counts_of(
        read(table, columns={"geo": ["st", "cty"]}).counts, read(TABLE_2010).counts
    )
    with pytest.raises(hr.TableError, match=r"one a level .* the deepest alone, got 3"):
        read(table, columns={"geo": ["st", "cty", "x"]})
    with pytest.raises(hr.PlanError, match="no axis 'place'; there is geo"):
        read(table, columns={"place": ["st", "cty"]})


def test_a_missing_column_is_told_of_the_prior():
    with pytest.raises(hr.TableError, match=r"^the prior: .*no column 'county'"):
        read(TABLE_2010.drop("county"))


def test_counts_of_a_depth_are_grouped_and_filled_up_with_empty_nodes():
    prior = read(TABLE_2010)
    assert as_lists(prior.values(0, 1)) == [[13], [1]]
    assert as_lists(prior.values(1, 2)) == [[5, 8], [1, 1]]
    assert as_lists(prior.values(2, 10)) == [[0, 3, 5], [7, 1, 2]]
    assert as_lists(prior.values(2, 2)) == [[3, 5], [1, 2]]


@pytest.mark.parametrize("largest", [10, 10**9], ids=["small", "large"])
def test_grouping_is_that_of_numpy(largest):
    rng = np.random.default_rng(0)
    tree = random_tree(rng, axes=2, depth=3, widest=5)
    counts = random_counts(rng, tree, filled=0.7, mean=largest)
    for depth in range(tree.depth + 1):
        known = counts.roll_up(depth)[1]
        values, times = Prior(counts, public=True).values(depth, len(known))
        expected = np.unique(known, return_counts=True)
        assert np.array_equal(values, expected[0])
        assert np.array_equal(times, expected[1])


def test_a_prior_of_nothing_has_empty_nodes_alone():
    prior = read(TABLE_2010.with_columns(people=pl.lit(0)))
    assert as_lists(prior.values(2, 4)) == [[0], [4]]
    assert not has_counts_of(prior.counts, prior.counts), "an empty table is like no other"


TWO = fixed_tree(o=(2, 2), d=(2, 2)).axes


@pytest.mark.parametrize(
    ("own", "tree", "said"),
    [
        (hr.Tree([fixed_axis("place", 2, 2)]), hr.Tree([fixed_axis("geo", 2, 2)]), "axes"),
        (hr.Tree([fixed_axis("geo", 2, 2, 2)]), hr.Tree([fixed_axis("geo", 2, 2)]), "levels"),
        (hr.Tree(TWO, ["o", "d"]), hr.Tree(TWO, ["d", "o"]), "order of refinement"),
    ],
    ids=["axes", "levels", "order"],
)
def test_other_axes_levels_or_orders_are_refused(own, tree, said):
    prior = Prior(random_counts(np.random.default_rng(0), own), public=True)
    prior.check_fits(own)
    with pytest.raises(hr.PlanError, match=f"must have the {said} of the release"):
        prior.check_fits(tree)


def test_the_table_itself_is_known_whatever_its_labels():
    prior = read(TABLE_2010)
    renamed = pl.DataFrame({"state": ["B", "A", "B"], "county": ["B2", "A1", "B1"]})
    same = hr.Counts.from_frame(
        TREE, renamed.with_columns(people=pl.Series([3, 5, 5])), count="people"
    )
    other = hr.Counts.from_frame(
        TREE, renamed.with_columns(people=pl.Series([3, 5, 6])), count="people"
    )
    assert has_counts_of(prior.counts, same)
    assert not has_counts_of(prior.counts, other)


def test_a_prior_over_a_product_axis_has_its_lists_and_its_attributes():
    lists = [{"age": ["old", "young"]}, {"race": ["1", "2"], "group": ["a", "b"]}]
    person = hr.Axis.from_product("person", lists, ["age", "group", "race"], attribute=True)
    place = hr.Axis.from_frame("place", {"town": ["x", "y"]}, ["town"])
    tree = hr.Tree([person, place])
    table = pl.DataFrame({"town": ["z", "z"], "age": ["old"] * 2, "race": ["2"] * 2})
    prior = read(table, tree, count=None)
    prior.check_fits(tree)
    assert prior.counts.tree.spine == 1
    assert prior.counts.level(4).rows() == [("old", "b", "2", "z", 2)]
    assert read(table, tree, count=None, columns={"person": person.columns}).counts.total == 2
    ages = hr.Axis.from_frame("ages", {"age": ["old"]}, ["age"], attribute=True)
    assert read(table, hr.Tree([ages, place]), count=None).counts.tree.spine == 1
    renamed = table.rename({"race": "r"})
    with pytest.raises(hr.TableError, match="'person' is a product; its columns are called as in"):
        read(renamed, tree, count=None, columns={"person": ("age", "group", "r")})


PLACES = hr.Tree([hr.Axis.from_frame("place", {"town": ["a", "b", "c"]}, ["town"])])


@pytest.mark.parametrize(
    "columns",
    [
        {"town": ["a", "b", "c"], "population": [1, 200, 30]},
        {"town": ["a", "a", "c"], "count": [1, 200, 30]},
        {"town": ["a", "b", "c"], "usual": [1, 200, 30]},  # one row a town, and whole numbers
        {"town": ["a", "b", "c"], "usual": ["1 000", "0", "1,200,000"]},
        {"town": ["a", "b", "c"], "usual": ["0", "0", "2"], "name": ["x", "y", "z"]},
    ],
)
def test_a_prior_whose_rows_are_counts_is_not_read_as_records(columns, tmp_path):
    column = [*columns][1]
    file = tmp_path / "earlier.csv"
    pl.DataFrame(columns).write_csv(file)
    with pytest.raises(
        hr.HedgerowError, match=f'column {column!r} .*: give count = "{column}", or'
    ):
        hr.Prior.read(PLACES, file, public=True)
    read = hr.Prior.read(PLACES, file, count=column, public=True)
    whole = [int(str(each).replace(" ", "").replace(",", "")) for each in columns[column]]
    assert read.counts.values.sum() == sum(whole)


@pytest.mark.parametrize(
    "columns",
    [
        {"town": ["a", "a", "b"], "age": [30, 41, 7]},
        {"town": ["a", "b", "c"], "name": ["x", "y", "z"]},
        {"town": ["a", "b", "c"], "share": [0.5, 0.25, 0.25]},
        {"town": ["a", "b", "c"], "flag": [1, 0, 1]},
        {"town": ["a", "b", "c"], "some": [7, None, 7]},
        {"town": ["a", "b", "c"], "below": [7, -7, 7], "beyond": ["9", "inf", "nan"]},
        {"town": ["a", "b", "c"]},
    ],
)
def test_a_prior_of_records_is_read_as_records(columns, tmp_path):
    pl.DataFrame(columns).write_csv(tmp_path / "earlier.csv")
    assert hr.Prior.read(PLACES, tmp_path / "earlier.csv", public=True).counts.values.sum() == 3


def test_columns_that_are_left_over_in_a_prior_are_looked_at_together(tmp_path, monkeypatch):
    opened, open_file = [], source.open_file

    def counted(*given):
        opened.append(given)
        return open_file(*given)

    monkeypatch.setattr(source, "open_file", counted)
    rows, times = {"town": ["a", "b", "c"]}, []
    for left in (1, 8, 60):
        rows |= {f"name{i}": ["x", "y", "z"] for i in range(left)}
        pl.DataFrame(rows).write_csv(tmp_path / "earlier.csv")
        hr.Prior.read(PLACES, tmp_path / "earlier.csv", public=True)
        times.append(len(opened))
        opened.clear()
    assert len(set(times)) == 1
