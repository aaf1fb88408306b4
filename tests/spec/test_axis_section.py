"""``[[axis]]``: attributes, and axes that are made of several columns."""

import polars as pl
import pytest

from hedgerow.errors import SpecError, TableError
from hedgerow.spec.other_file import read_measurements
from hedgerow.spec.release_spec import ReleaseSpec

PLACE = '[[axis]]\nname = "place"\nlevels = ["town"]\nareas = "towns.csv"\n'
ORDER = 'product = ["age", "group", "detail"]\n'
LISTS = 'lists = ["age.csv", "race.parquet"]\n'


def person(keys=ORDER + LISTS, attribute="attribute = true\n"):
    return f'[[axis]]\nname = "person"\n{attribute}{keys}'


@pytest.fixture
def spec_of(tmp_path):
    """A release file from its axes; and its spec."""
    pl.DataFrame({"town": ["a", "b"]}).write_csv(tmp_path / "towns.csv")
    pl.DataFrame({"age": ["minor", "adult"]}).write_csv(tmp_path / "age.csv")
    races = pl.DataFrame({"race": ["1", "2", "3"], "group": ["x", "y", "y"]})
    races.write_parquet(tmp_path / "race.parquet")
    table = {"town": ["a", "a"], "age": ["minor", "adult"], "race": ["1", "3"]}
    pl.DataFrame(table).write_csv(tmp_path / "table.csv")

    def made(axes, allocation=""):
        file = tmp_path / "release.toml"
        file.write_text(
            f'[table]\nsource = "table.csv"\n{axes}[privacy]\nrho = 1\n[allocation]\n{allocation}\n'
        )
        return ReleaseSpec(file)

    return made


def test_an_axis_of_several_columns_is_an_attribute_beside_the_spine(spec_of):
    spec = spec_of(person() + PLACE)
    tree = spec.tree()
    assert tree.spine == 1
    assert tree.axes[0].attribute
    assert tree.cuboid_name(tree.depth) == "person.detail × place.town"
    assert [tree.cuboid_name(t) for t in (1, 2)] == ["place.town", "person.age × place.town"]
    assert tree.columns_of((2, 1)) == ["age", "group", "town"]
    rows = spec.table.counts(tree).level(tree.depth).rows()
    assert rows == [("adult", "y", "3", "a", 1), ("minor", "x", "1", "a", 1)]


def test_any_kind_of_axis_may_be_an_attribute(spec_of):
    listed = PLACE + "attribute = true\n"
    bins = '[[axis]]\nname = "income"\nlow = 0\nhigh = 8\nbins = 4\n'
    tree = spec_of(listed + bins).tree()
    assert [axis.attribute for axis in tree.axes] == [True, False]
    tree = spec_of(PLACE + bins + "attribute = true\n").tree()
    assert [axis.attribute for axis in tree.axes] == [False, True]
    with pytest.raises(TableError, match=r"\[tree\] beside attributes .* got attributes alone"):
        spec_of(bins + "attribute = true\n", 'method = "distribution"').tree()


def test_a_numeric_axis_alone_has_no_product(spec_of):
    numeric = '[[axis]]\nname = "income"\nlow = 0\nhigh = 8\nbins = 4\n'
    with pytest.raises(SpecError, match="an axis with product and lists has no low"):
        spec_of(numeric + LISTS, 'method = "distribution"').tree()


def test_an_axis_of_several_columns_may_stand_alone(spec_of):
    tree = spec_of(person(attribute="")).tree()
    assert tree.spine is None
    assert [tree.cuboid_name(t) for t in range(4)] == ["total", "age", "group", "detail"]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (ORDER, "'person' lists is missing"),
        (LISTS, "'person' product is missing"),
        (ORDER + LISTS + 'levels = ["age"]\n', "with product and lists has no levels"),
        (ORDER + LISTS + 'areas = "towns.csv"\n', "with product and lists has no areas"),
        (ORDER + LISTS + 'columns = ["age"]\n', "with product and lists has no columns"),
        (ORDER + LISTS + 'not_stated = "9"\n', "with product and lists has no not_stated"),
        (ORDER + LISTS + "low = 0\n", "with product and lists has no low"),
        (ORDER + 'lists = ["table.csv"]\n', "a list is the confidential table itself"),
        (ORDER + 'lists = ["none.csv"]\n', "none.csv"),
        ('product = ["agee"]\n' + LISTS, "agee is no column .* did you mean 'age'"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(spec_of, keys, words):
    with pytest.raises((SpecError, TableError), match=words):
        spec_of(PLACE + person(keys)).tree()


def test_measurements_from_elsewhere_may_have_an_axis_of_several_columns(spec_of, tmp_path):
    spec_of(PLACE)
    rows = {"age": ["adult", "minor"], "noisy_count": [3, 4]}
    pl.DataFrame(rows | {"variance": [1.0, 1.0]}).write_csv(tmp_path / "age_noisy.csv")
    file = tmp_path / "measurements.toml"
    lists = LISTS.replace(', "race.parquet"', "")
    file.write_text(
        "total = 7\n"
        + person(f'product = ["age"]\n{lists}', "")
        + '[[measurement]]\nlevel = "age"\nsource = "age_noisy.csv"\n'
    )
    found = read_measurements(file).stored
    assert found.tree.axes[0].leaf_frame().rows() == [("adult",), ("minor",)]
