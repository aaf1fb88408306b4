"""What priors, simulated tables and public facts may call the columns of an axis."""

import polars as pl
import pytest

from hedgerow.errors import PlanError, TableError
from hedgerow.plan.facts.facts import PublicTable, read_facts
from hedgerow.plan.prior import Prior
from hedgerow.spec.release_spec import ReleaseSpec
from hedgerow.spec.simulate_spec import SimulateSpec
from hedgerow.tables.axis import Axis
from hedgerow.tables.codes.rules import Division, Parents, Prefix
from hedgerow.tables.tree import Tree

LIST = {"state": ["A", "A", "B"], "town": ["a1", "a2", "b1"]}
LEVELS = ["state", "town"]
CODES = {"GEOID": ["a1", "a2", "b1"]}
CAUSES = {"code": ["a", "b", "a1", "a2", "b1"], "above": [None, None, "a", "a", "b"]}
SQUARES = {"x": [10, 20, 110], "y": [10, 10, 10]}
TOWNS = ["a1", "a1", "b1"]
PATHS = {"state": ["A", "A", "B"], "town": TOWNS}


def plain(**options):
    return Axis.from_frame("home", LIST, LEVELS, **options)


def renamed(table, *names):
    return dict(zip(names, table.values(), strict=True))


def home_and_work():
    return Tree(
        [
            Axis.from_frame("home", LIST, LEVELS, columns=["O"]),
            Axis.from_frame("work", LIST, LEVELS, columns=["D"]),
        ]
    )


GRID = Axis.from_frame("g", SQUARES, ["big", "small"], rule=Division([100, 10], code=["x", "y"]))


def cut(**options):
    return Axis.from_frame("home", CODES, LEVELS, rule=Prefix([1, 2], code="GEOID"), **options)


@pytest.mark.parametrize(
    ("axis", "table"),
    [
        (plain(), PATHS),
        (plain(), {"town": TOWNS}),
        (plain(columns=["S", "T"]), renamed(PATHS, "S", "T")),
        (plain(columns=["S", "T"]), PATHS),
        (plain(columns=["S", "T"]), {"T": TOWNS}),
        (plain(columns=["S", "T"]), {"town": TOWNS}),
        (plain(columns=["T"]), {"T": TOWNS}),
        (plain(columns=["T"]), {"town": TOWNS}),
        (plain(columns=["T"]), PATHS),
        (plain(columns=["T"]), renamed(PATHS, "state", "T")),
        (cut(), {"GEOID": ["a19", "a1", "b1"]}),
        (cut(columns=["T"]), {"GEOID": TOWNS}),
        (cut(columns=["T"]), {"T": TOWNS}),
        (cut(columns=["T"]), {"town": TOWNS}),
        (cut(columns=["T"]), PATHS),
        (
            Axis.from_frame("home", CAUSES, LEVELS, columns=["T"], rule=Parents("above", "code")),
            {"code": TOWNS},
        ),
        (GRID, {"x": [11, 12, 110], "y": [11, 12, 10]}),
    ],
)
def test_a_prior_calls_its_columns_as_the_table_or_as_the_list(axis, table):
    prior = Prior.read(Tree([axis]), table, public=True)
    prior.check_fits(Tree([axis]))
    assert sorted(prior.counts.values.tolist()) == [1, 2]
    assert sorted(prior.counts.roll_up(1)[1].tolist()) == [1, 2]


@pytest.mark.parametrize(
    ("axis", "columns"),
    [
        (plain(columns=["S", "T"]), ["s10", "t10"]),
        (plain(columns=["S", "T"]), ["t10"]),
        (plain(columns=["T"]), ["s10", "t10"]),
        (cut(), ["t10"]),
        (cut(), ["s10", "t10"]),
    ],
)
def test_a_prior_may_be_told_what_it_calls_them(axis, columns):
    table = {"s10": ["A", "A", "B"], "t10": TOWNS, "town": ["?", "?", "?"]}
    prior = Prior.read(Tree([axis]), table, columns={"home": columns}, public=True)
    assert sorted(prior.counts.values.tolist()) == [1, 2]


def test_a_column_of_the_list_that_two_axes_have_is_nobodys():
    tree = home_and_work()
    assert Prior.read(tree, {"O": TOWNS, "D": TOWNS}, public=True).counts.total == 3
    columns = {"home": ["o10"], "work": ["d10"]}
    table = {"o10": TOWNS, "d10": TOWNS}
    assert Prior.read(tree, table, columns=columns, public=True).counts.total == 3
    with pytest.raises(TableError, match=r"has no column 'D'; of axis 'work' it needs D, or"):
        Prior.read(tree, {"O": TOWNS, "town": TOWNS}, public=True)


def test_one_sentence_says_what_is_needed_and_how_to_name_it():
    with pytest.raises(TableError) as caught:
        Prior.read(Tree([plain(columns=["S", "T"])]), {"place": TOWNS}, public=True)
    assert str(caught.value) == (
        "the prior: the table has no column 'T'; of axis 'home' it needs S, T, or T alone, or the "
        "same under the names of the list; if they are called otherwise, say so: "
        'columns = {home = ["…"]}'
    )
    with pytest.raises(TableError, match=r"name one a level .* deepest alone, got 3"):
        Prior.read(Tree([plain()]), PATHS, columns={"home": ["a", "b", "c"]}, public=True)
    with pytest.raises(PlanError, match="no axis 'place'; there is home"):
        Prior.read(Tree([plain()]), PATHS, columns={"place": ["town"]}, public=True)


SEX = Axis.from_frame("sex", {"sex": ["1", "2"]}, ["sex"], attribute=True)


@pytest.mark.parametrize(
    ("axis", "name", "codes"),
    [
        (plain(columns=["S", "T"]), "T", TOWNS[1:]),
        (plain(columns=["S", "T"]), "town", TOWNS[1:]),
        (plain(columns=["T"]), "town", TOWNS[1:]),
        (cut(columns=["T"]), "T", ["a19", "b1"]),
        (cut(columns=["T"]), "town", ["a1", "b1"]),
    ],
)
def test_a_public_fact_calls_its_columns_as_the_table_or_as_the_list(axis, name, codes):
    tree = Tree([axis, SEX])
    table = {"sex": ["1", "2"], name: codes, "most": [3, 4]}
    (rows,) = read_facts(tree, [PublicTable(table, at_most="most")])
    column = tree.axes[0].columns[-1]
    assert rows.frame.select(column, "sex", "most").rows() == [("a1", "1", 3), ("b1", "2", 4)]


def test_a_public_fact_of_one_level_is_of_that_level_under_either_name():
    tree = Tree([plain(columns=["S", "T"]), SEX])
    (own,) = read_facts(tree, [PublicTable({"S": ["A"], "sex": ["1"]}, zeros="listed")])
    (listed,) = read_facts(tree, [PublicTable({"state": ["A"], "sex": ["1"]}, zeros="listed")])
    assert own.to_dict() == listed.to_dict()


RELEASE = """
[table]
source = "secret.csv"
count = "n"

[[axis]]
name = "home"
areas = "towns.csv"
levels = ["state", "town"]
columns = ["T"]

[privacy]
epsilon = 1
delta = 1e-8
neighbours = "add-remove"

[allocation]
method = "optimal"
prior = {source = "earlier.csv", public = true, count = "n"MORE}

[output]
directory = "out"
"""


def made(folder, more=""):
    pl.DataFrame(LIST).write_csv(folder / "towns.csv")
    pl.DataFrame({"T": TOWNS, "n": [5, 6, 7]}).write_csv(folder / "secret.csv")
    pl.DataFrame({"town": TOWNS, "t10": TOWNS, "n": [1, 2, 4]}).write_csv(folder / "earlier.csv")
    (folder / "hedgerow.toml").write_text(RELEASE.replace("MORE", more))
    return ReleaseSpec(folder / "hedgerow.toml")


@pytest.mark.parametrize("more", ["", ', columns = {home = ["t10"]}'])
def test_a_release_file_reads_such_a_prior(more, tmp_path):
    spec = made(tmp_path, more)
    assert spec.allocation.prior(spec.tree()).counts.total == 7


@pytest.mark.parametrize("more", ["", ', columns = {home = ["t10"]}'])
def test_a_copy_of_the_table_is_known_whatever_its_columns_are_called(more, tmp_path):
    spec = made(tmp_path, more)
    pl.DataFrame({"town": TOWNS, "t10": TOWNS, "n": [5, 6, 7]}).write_csv(tmp_path / "earlier.csv")
    tree = spec.tree()
    assert spec.allocation.is_own_prior(tree, spec.table.counts(tree))


def simulated(folder, table):
    made(folder)
    pl.DataFrame(table).write_csv(folder / "public.csv")
    (folder / "simulate.toml").write_text(
        '[simulate]\npublic = true\nrelease = "hedgerow.toml"\n'
        'table = {source = "public.csv", count = "n"}\n'
    )
    spec = SimulateSpec(folder / "simulate.toml")
    tree = spec.tree()
    counts = spec.counts(tree)
    assert counts.tree is tree
    return counts.values.tolist()


@pytest.mark.parametrize(
    "table", [{"T": TOWNS}, {"town": TOWNS}, PATHS, {"home_state": ["?"] * 3, "T": TOWNS}]
)
def test_a_simulated_table_has_leaf_codes_alone_or_all(table, tmp_path):
    assert simulated(tmp_path, table | {"n": [1, 2, 4]}) == [3, 4]


def test_a_simulated_copy_of_the_table_is_known_whatever_its_columns_are_called(tmp_path):
    for counts in ([5, 6, 7], [5, 6, 8]):
        simulated(tmp_path, {"town": TOWNS, "n": counts})
        spec = SimulateSpec(tmp_path / "simulate.toml")
        assert spec.is_own_table(spec.tree()) == (counts == [5, 6, 7])


def test_a_simulated_table_without_codes_is_told_what_it_needs(tmp_path):
    with pytest.raises(TableError, match=r"public\.csv has no column 'T'; of axis 'home' it needs"):
        simulated(tmp_path, {"place": TOWNS, "n": [1, 2, 4]})


def test_the_confidential_table_has_the_columns_that_its_user_named(tmp_path):
    spec = made(tmp_path)
    pl.DataFrame({"town": TOWNS, "n": [5, 6, 7]}).write_csv(tmp_path / "secret.csv")
    with pytest.raises(TableError, match="has no column 'T'"):
        spec.table.counts(spec.tree())
