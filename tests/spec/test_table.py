"""``[table]`` says where the records are, and other sections how they are counted."""

import polars as pl
import pytest

from hedgerow.errors import SpecError, TableError
from hedgerow.spark.table import SparkSource
from hedgerow.spec.release_spec import ReleaseSpec
from hedgerow.tables.read import Query
from hedgerow.tables.sources import files

LISTED = '[[axis]]\nname = "place"\nlevels = ["town"]\nareas = "towns.csv"\n'
NUMERIC = '[[axis]]\nname = "income"\nlow = 0\nhigh = 8\nbins = 4\n'


@pytest.fixture
def spec_of(tmp_path):
    """A release file from its table, axes and other keys of ``[privacy]``; and its spec."""
    towns = ["a", "a", "a", "b"]
    table = {
        "town": towns,
        "people": [3, 1, 1, 5],
        "who": ["p", "p", "q", "p"],
        "income": [1.0] * 4,
    }
    pl.DataFrame(table).write_csv(tmp_path / "table.csv")
    pl.DataFrame({"town": ["a", "b", "c"]}).write_csv(tmp_path / "towns.csv")

    def made(table='source = "table.csv"', axes=LISTED, privacy="", engine="local"):
        file = tmp_path / "release.toml"
        file.write_text(
            f"[table]\n{table}\n{axes}[privacy]\nrho = 1\n{privacy}\n[engine]\nname = {engine!r}\n"
        )
        return ReleaseSpec(file)

    return made


def test_a_path_is_relative_to_the_file(spec_of, tmp_path):
    assert spec_of().table.source == tmp_path / "table.csv"


@pytest.mark.parametrize(
    "name", ["people.db", "./people.db", "../{}/people.db", "link.db", "{}{}/people.db"]
)
def test_a_database_file_is_relative_to_the_file_and_known_by_any_name(spec_of, tmp_path, name):
    (tmp_path / "link.db").symlink_to(tmp_path / "people.db")
    name = name.replace("{}{}", str(tmp_path)).replace("{}", tmp_path.name)
    spec = spec_of(f'source = "sqlite:///{name}?immutable=1"\nquery = "SELECT 1"')
    url = f"sqlite:///{tmp_path}/people.db?immutable=1"
    assert spec.table.source == Query(url, "SELECT 1")


def test_a_server_is_asked_under_its_own_url(spec_of):
    url = "postgresql://me@server/people.db"
    spec = spec_of(f'source = "{url}"\nquery = "SELECT 1"')
    assert spec.table.source == Query(url, "SELECT 1")


def test_a_database_needs_a_query_and_a_query_a_database(spec_of):
    url = 'source = "sqlite:///people.db"'
    with pytest.raises(SpecError, match="needs query"):
        _ = spec_of(url).table.source
    with pytest.raises(SpecError, match="needs a database URL"):
        _ = spec_of('source = "table.csv"\nquery = "SELECT 1"').table.source


def test_what_spark_alone_reads_is_known_and_not_read_here(spec_of):
    spec = spec_of('source = "table:census.people"', engine="spark")
    assert spec.table.source == SparkSource("table:census.people")
    with pytest.raises(SpecError, match="can be read by Spark only"):
        spec.table.counts(spec.tree())
    assert spec_of('source = "table:census.people"').table.source.name == "table:census.people"


def test_a_query_is_not_run_on_spark(spec_of):
    spec = spec_of('source = "sqlite:///people.db"\nquery = "SELECT 1"', engine="spark")
    with pytest.raises(SpecError, match="on Spark a database is read by JDBC"):
        spec.table.on_spark(None, spec.tree())


def test_the_table_is_known_by_any_name(spec_of, tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "table.csv")
    table = spec_of().table
    assert table.shares_files(tmp_path / "link.csv")
    assert not table.shares_files(tmp_path / "towns.csv")


NAMES = [
    "file://{}/table.csv",
    "file://localhost{}/table.csv",
    "file://{}/link.csv",
    "file://{}/../{name}/t%61ble.csv",
    "file://{}",
    "file://{}/tab*.csv",
    "file://{}/{{other,table}}.csv",
    "file://{}/[^x]able.csv",
    "file://{}/{{tables/{{a,b}},t{{x,a}}ble}}.csv",
    r"file://{}/t\\able.csv",
    r"file://{}/{{other,t\\able}}.csv",
    "file://{}/behind/a",
    "jdbc:sqlite:{}/table.csv",
    "jdbc:sqlite:file:{}/table.csv?mode=ro",
    "jdbc:duckdb:{}/table.csv",
]


@pytest.mark.parametrize("name", NAMES)
def test_what_spark_reads_from_this_machine_is_known_by_any_name_too(spec_of, tmp_path, name):
    (tmp_path / "link.csv").symlink_to(tmp_path / "table.csv")
    (tmp_path / "behind" / "a").mkdir(parents=True)
    (tmp_path / "behind" / "b").mkdir()
    (tmp_path / "behind" / "a" / "b").symlink_to(tmp_path / "behind" / "b")
    (tmp_path / "behind" / "b" / "a").symlink_to(tmp_path / "behind" / "a")
    (tmp_path / "behind" / "b" / "part.csv").hardlink_to(tmp_path / "table.csv")
    source = name.format(tmp_path, name=tmp_path.name)
    query = '\nquery = "SELECT 1"' if "jdbc" in name else ""
    table = spec_of(f'source = "{source}"{query}', engine="spark").table
    assert table.shares_files(tmp_path / "table.csv")
    assert table.shares_files(tmp_path / "link.csv")
    whole = name == "file://{}"
    assert table.shares_files(tmp_path / "towns.csv") == whole
    assert table.not_compared is None


def test_a_path_on_spark_may_be_a_pattern_of_its_own_kind(spec_of, tmp_path):
    table = spec_of('source = "{other,table}.csv"', engine="spark").table
    assert table.shares_files(tmp_path / "table.csv")
    assert not table.shares_files(tmp_path / "towns.csv")


def test_a_backslash_on_spark_makes_a_letter_of_a_wildcard(spec_of, tmp_path):
    name = "a[1]{b,c}*.csv"
    (tmp_path / name).hardlink_to(tmp_path / "table.csv")
    for given in (r"a\\[1\\]\\{b,c\\}\\*.csv", r"a\\[1\\]*"):
        table = spec_of(f'source = "file://{tmp_path}/{given}"', engine="spark").table
        assert table.shares_files(tmp_path / name), given
        assert not table.shares_files(tmp_path / "towns.csv")


def test_a_pattern_with_too_many_alternatives_is_refused_before_they_are_written_out(spec_of):
    for braces in ("{a,b}" * 14, "{a,b}" * 3_000, f"{{{',' * 10_000}}}"):
        table = spec_of(f'source = "file:///data/{braces}"', engine="spark").table
        with pytest.raises(TableError, match="more than 10,000 paths"):
            _ = table.places
    few = spec_of(f'source = "file:///data/{"{a}" * 5_000}"', engine="spark").table
    assert len(set(few.places)) == 2


@pytest.mark.parametrize("kind", ["folder", "pattern", "link"])
def test_a_folder_too_large_to_be_compared_is_refused_on_spark_too(
    spec_of, tmp_path, monkeypatch, kind
):
    """Spark reads it, so a part of it would pass as a public file without a word."""
    monkeypatch.setattr(files, "MOST_ENTRIES", 5)
    (tmp_path / "many").mkdir()
    for number in range(6):
        (tmp_path / "many" / f"{number}.csv").hardlink_to(tmp_path / "table.csv")
    (tmp_path / "people").mkdir()
    (tmp_path / "people" / "link").symlink_to(tmp_path / "many")
    name = {"folder": "many", "pattern": "many/**/*.csv", "link": "people"}[kind]
    table = spec_of(f'source = "file://{tmp_path}/{name}"', engine="spark").table
    with pytest.raises(TableError, match="is a folder with more than 5 files and folders below it"):
        table.shares_files(tmp_path / "many" / "0.csv")


def test_a_database_in_a_file_is_known_as_well(spec_of, tmp_path):
    (tmp_path / "people.db").write_text("")
    (tmp_path / "link.gpkg").symlink_to(tmp_path / "people.db")
    table = spec_of('source = "sqlite:///people.db?immutable=1"\nquery = "SELECT 1"').table
    assert table.shares_files(tmp_path / "link.gpkg")
    assert table.not_compared is None


ELSEWHERE = [
    'source = "hdfs://cluster/people.parquet"',
    'source = "s3a://bucket/people.parquet"',
    'source = "table:census.people"',
    'source = "jdbc:postgresql://server/people"\nquery = "SELECT 1"',
    'source = "postgresql://server/people"\nquery = "SELECT 1"',
]


@pytest.mark.parametrize("source", ELSEWHERE)
def test_a_table_elsewhere_is_compared_with_no_file_and_the_plan_says_so(spec_of, source):
    engine = "local" if source.startswith('source = "postgresql') else "spark"
    said = spec_of(source, engine=engine).table.not_compared
    assert said.startswith("the table is no file of this machine, so nothing checked whether")
    numeric = spec_of(source, axes=NUMERIC, engine=engine)
    assert numeric.table.not_compared is None, "there is no public file"


def test_contributions_are_bounded_unless_tables_are_compared(spec_of):
    spec = spec_of('source = "table.csv"\nunit = "who"', privacy="contributions = 2")
    tree = spec.tree()
    assert (spec.table.counts(tree).total, spec.table.counts(tree, bounded=False).total) == (3, 4)


def test_a_column_of_counts_is_summed(spec_of):
    spec = spec_of('source = "table.csv"\ncount = "people"')
    assert spec.table.counts(spec.tree()).values.tolist() == [5, 5]


def test_numbers_become_bins_beside_the_other_columns(spec_of):
    spec = spec_of('source = "table.csv"\ncount = "people"', axes=NUMERIC + LISTED)
    counts = spec.table.counts(spec.tree())
    assert counts.values.tolist() == [5, 5]
    assert [codes.tolist() for codes in counts.codes] == [[0, 0], [0, 1]]


def test_columns_that_are_called_like_bins_do_not_matter(spec_of, tmp_path):
    spec = spec_of(axes=NUMERIC)
    tree = spec.tree()
    others = {name: pl.lit("?") for name in tree.axes[0].columns}
    pl.read_csv(tmp_path / "table.csv").with_columns(**others).write_csv(tmp_path / "table.csv")
    assert spec.table.counts(tree).values.tolist() == [4]


@pytest.mark.parametrize("key", ["count", "unit"])
def test_a_numeric_column_is_nothing_else(spec_of, key):
    spec = spec_of(f'source = "table.csv"\n{key} = "income"', axes=NUMERIC)
    with pytest.raises(TableError, match="'income' is already the numeric column"):
        spec.table.counts(spec.tree())
