"""A numeric axis in a release file, and the command that reads a distribution."""

import shutil
from datetime import date
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.cli.distribution import _digits
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import OUTSIDE
from hedgerow.examples.files import write_incomes
from hedgerow.release.distribution.distribution import read_distribution
from hedgerow.spec.axis_section import AxisSection
from hedgerow.spec.release_spec import ReleaseSpec


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    return write_incomes(tmp_path_factory.mktemp("incomes") / "incomes", "small").parent


@pytest.fixture
def incomes(written, tmp_path):
    """The example with fewer bins and less to do."""
    file = Path(shutil.copytree(written, tmp_path / "incomes")) / "release.toml"
    edit(file, "bins = 1000", "bins = 40")
    return file


def edit(file, *changes):
    text = file.read_text()
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new)
    file.write_text(text)


def replace_table(file, **columns):
    pl.DataFrame(columns).write_parquet(file.parent / "incomes.parquet")


def test_quantiles_counts_and_cdf_are_shown_from_the_directory_alone(succeeds, incomes):
    succeeds("release", incomes)
    out = incomes.parent / "out"
    truth = pl.read_parquet(incomes.parent / "incomes.parquet")["income"]
    for file in ("release.toml", "incomes.parquet"):
        (incomes.parent / file).unlink()
    picture = incomes.parent / "cdf.png"
    said = succeeds("distribution", out, "--between", "20000", "50000", "--picture", picture)
    assert "income: 20,000 records, a public number" in said
    rows = [line.split() for line in said.splitlines()]
    deciles = {row[0]: row[1:] for row in rows if row and row[0] in {"0.1", "0.5", "0.9"}}
    value, low, high = (float(word.replace(",", "")) for word in deciles["0.5"])
    assert low <= value <= high
    assert abs(value - truth.median()) < 2500
    exact = int(((truth >= 20_000) & (truth < 50_000)).sum())
    (between,) = [line for line in said.splitlines() if line.startswith("From 20000 to below")]
    assert abs(int(between.split(":")[1].split()[0].replace(",", "")) - exact) < 300
    assert ["200,000", "20,000", "1.0000", "20,000", "20,000"] in rows
    assert picture.stat().st_size > 1000
    succeeds("check", out)


def test_the_confidence_is_called_as_in_other_commands_and_as_before(run, succeeds, incomes):
    succeeds("release", incomes)
    out = incomes.parent / "out"
    said = run("distribution", out, "--confidence", "0.9")
    assert (said[0], "90 % interval" in said[1]) == (0, True)
    assert said == run("distribution", out, "--level", "0.9")


def test_chosen_quantiles_alone_are_shown(run, succeeds, incomes):
    succeeds("release", incomes)
    out = incomes.parent / "out"
    said = succeeds("distribution", out, "--quantile", "0.25", "--quantile", "0.99")
    shown = said.split("below")[0].split()
    assert "0.25" in shown
    assert "0.99" in shown
    assert "0.5" not in shown
    code, said, err = run("distribution", out, "--quantile", "1.5")
    assert code == 2
    assert "records" not in said
    assert "a quantile's rank must be in (0, 1), got 1.5" in err


def test_nothing_is_shown_before_all_is_known(run, succeeds, incomes):
    succeeds("release", incomes)
    out = incomes.parent / "out"
    for wrong in (["--between", "5", "1"], ["--picture", incomes.parent / "none" / "cdf.png"]):
        code, said, _ = run("distribution", out, *wrong)
        assert code == 2
        assert "records" not in said


@pytest.mark.parametrize(
    ("edges", "digits"),
    [
        (np.arange(1001) * 200.0, 6),
        (1e9 + np.arange(11.0), 11),
        (1 + np.arange(5) * 2.0**-52, 17),
        ([-1.7e308, 0, 5e-324, 1.7e308], 6),
        ([1e-300, 1e-299, 1.0], 6),
    ],
    ids=["incomes", "seconds", "ulps", "extremes", "uneven"],
)
def test_edges_are_shown_with_the_digits_that_tell_them_apart(edges, digits):
    found = _digits(np.array(edges))
    assert found == digits
    assert len({f"{edge:,.{found}g}" for edge in np.array(edges).tolist()}) == len(edges)


def test_bounds_of_a_release_file_make_edges_as_they_were_typed():
    low, high = Fraction(1, 3), Fraction(200, 3)
    section = AxisSection(name="x", low="1/3", high="200/3", bins=199)
    wanted = [float(low + (high - low) * i / 199) for i in range(200)]
    assert section.ranges.edges.tolist() == wanted
    assert Ranges.equal_width("x", float(low), float(high), 199).edges.tolist() != wanted


def test_edges_that_are_large_and_close_are_told_apart(succeeds, incomes):
    edit(incomes, "low  = 0", "low = 1700000000", "high = 200000", "high = 1700000010")
    edit(incomes, "bins = 40", "bins = 5")
    replace_table(incomes, income=[1_700_000_002.0] * 9)
    edit(incomes, "epsilon       = 1", "epsilon = 300")
    succeeds("release", incomes)
    said = succeeds("distribution", incomes.parent / "out")
    rows = [line.split() for line in said.splitlines()]
    assert ["1,700,000,002", "0", "0.0000", "0", "0"] in rows
    assert ["1,700,000,004", "9", "1.0000", "9", "9"] in rows


def test_the_plan_opens_no_table_and_signs_the_edges(run, succeeds, incomes):
    (incomes.parent / "incomes.parquet").unlink()
    first = run("plan", incomes, "--json")
    assert first[0] == 0
    edit(incomes, "high = 200000", "high = 200001")
    assert succeeds("plan", incomes, "--json").split("sha256")[-1] != first[1].split("sha256")[-1]


FILES = {
    "bounds reversed": (("high = 200000", "high = -1"), "low must be below high"),
    "one bin": (("bins = 40", "bins = 1"), "from 2 to 2^20, got 1"),
    "infinite": (("high = 200000", "high = inf"), "high must be a number"),
    "NaN": (("low  = 0", "low = nan"), "low must be a number"),
    "too large": (("high = 200000", 'high = "1e999"'), "high is too large"),
    "no bins": (("bins = 40", ""), "needs low, high and bins, or edges"),
    "edges fall": (
        ("low  = 0", "edges = [0, 2, 1]", "high = 200000", "", "bins = 40", ""),
        "edges must increase, but edge 1 is 2",
    ),
    "edges and bins": (("bins = 40", "edges = [0, 1]"), "or edges, not both"),
    "levels": (
        ("bins = 40", 'bins = 40\nlevels = ["a"]'),
        "has bins, and no levels",
    ),
    "two columns": (("bins = 40", 'bins = 40\ncolumns = ["a", "b"]'), "has one column, got 2"),
    "out of bounds": (('"clamp"         # move', '"wrap" # move'), "out_of_bounds"),
    "survivors": (('measure = "all"', 'measure = "survivors"'), 'it needs measure = "all"'),
    "neither": (
        ("low  = 0", "", "high = 200000", "", "bins = 40", "", 'out_of_bounds = "clamp"', ""),
        "levels is missing",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_a_bad_numeric_axis_is_refused_before_the_table_is_read(run, incomes, case):
    changes, sentence = FILES[case]
    edit(incomes, *changes)
    (incomes.parent / "incomes.parquet").unlink()
    code, _, err = run("plan", incomes)
    assert code == 2
    assert sentence in err
    assert err.count("Error") == 1


COLUMNS = {
    "all outside": ({"income": [987654.0, -987654.0]}, "values outside the public bounds"),
    "NaN": ({"income": [1.0, float("nan")]}, "missing values"),
    "null": ({"income": [1.0, None]}, "missing values"),
    "infinite": ({"income": [float("inf")]}, "values outside the public bounds"),
    "words": ({"income": ["12", "987654x"]}, "holds text that is no number"),
}
SCHEMAS = {
    "dates": ({"income": [date(2020, 1, 1)]}, "a numeric axis needs numbers"),
    "no column": ({"incomes": [1.0]}, "no column 'income'"),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_what_is_wrong_with_a_column_is_shown_on_a_terminal_alone(
    run, run_on_terminal, incomes, case
):
    columns, sentence = COLUMNS[case]
    edit(incomes, '"clamp"', '"refuse"')
    replace_table(incomes, **columns)
    code, out, err = run("release", incomes)
    assert (code, out) == (2, "")
    assert OUTSIDE in err
    assert "987654" not in err
    assert sentence not in err
    assert sentence in run_on_terminal("release", incomes)[2]
    assert not (incomes.parent / "out").exists()


@pytest.mark.parametrize("case", SCHEMAS)
def test_a_column_of_another_name_or_type_is_told_of(refuses, incomes, case):
    columns, sentence = SCHEMAS[case]
    replace_table(incomes, **columns)
    refuses(sentence, "release", incomes)


def test_how_many_values_were_moved_to_a_bound_is_told_on_a_terminal_alone(
    run, succeeds, run_on_terminal, incomes
):
    replace_table(incomes, income=[-5.0, 10.0, float("inf")])
    code, out, err = run("release", incomes)
    assert code == 0
    assert "2 of 3" not in out + err
    assert "values outside the bounds are counted in the outermost bins" in err
    (incomes.parent / "out").rename(incomes.parent / "first")
    assert "2 of 3 values outside the bounds are counted" in run_on_terminal("release", incomes)[2]
    assert "2 of 3 values outside the bounds are counted" in succeeds("compare", incomes)


def test_an_empty_table_is_a_valid_release_without_quantiles(succeeds, incomes):
    replace_table(incomes, income=pl.Series([], dtype=pl.Float64))
    succeeds("release", incomes)
    out = incomes.parent / "out"
    succeeds("check", out)
    said = succeeds("distribution", out)
    assert "income: 0 records" in said
    rows = [
        line.split() for line in succeeds("distribution", out, "--quantile", "0.5").splitlines()
    ]
    assert ["0.5", "0", "200,000", "whole", "axis"] in rows  # and no value


def test_a_csv_file_with_public_edges_and_units_is_released(succeeds, run_on_terminal, incomes):
    edit(
        incomes,
        "low  = 0", "edges = [0, 10, 20.5, 100]", "high = 200000", 'columns = ["paid"]',
        "bins = 40", "", "incomes.parquet", "paid.csv", '"replace"', '"add-remove"',
        "contributions = 1", "contributions = 2", "epsilon       = 1", "epsilon = 1000",
        "[[axis]]", 'unit = "who"\n\n[[axis]]',
    )  # fmt: skip
    rows = ["who,paid", *["a, 20.5"] * 5, "b,9.99", "b,1e1", "c,-3", "d,"]
    (incomes.parent / "paid.csv").write_text("\n".join(rows))
    code, _, err = run_on_terminal("release", incomes)
    assert code == 2
    assert "missing values" in err
    (incomes.parent / "paid.csv").write_text("\n".join(rows[:-1]))
    succeeds("release", incomes)
    found = read_distribution(incomes.parent / "out")
    assert found.cdf["count"].to_list() == [2, 3, 5]
    assert found.ranges.edges.tolist() == [0, 10, 20.5, 100]
    succeeds("check", incomes.parent / "out")


def test_a_numeric_axis_refines_with_a_hierarchy(succeeds, refuses, incomes):
    replace_table(incomes, income=[10.0, 10.0, 190_000.0], region=["n", "s", "s"])
    pl.DataFrame({"region": ["n", "s"]}).write_csv(incomes.parent / "regions.csv")
    axis = '[[axis]]\nname = "place"\nlevels = ["region"]\nareas = "regions.csv"\n\n[privacy]'
    edit(incomes, "[privacy]", axis, 'method = "distribution"', 'method = "uniform"')
    edit(incomes, "epsilon       = 1", "epsilon = 300")
    succeeds("release", incomes)
    out = incomes.parent / "out"
    succeeds("check", out)
    last = max((out / "counts").iterdir())
    found = pl.read_parquet(last).select("income_bin", "region", "count").rows()
    assert found == [
        ("00 [0 or less, 5000)", "n", 1),
        ("00 [0 or less, 5000)", "s", 1),
        ("38 [190000, 195000)", "s", 1),
    ]
    said = succeeds("distribution", out, "--by", "region")
    assert said.splitlines()[1] == "income: 2 places"
    rows = [line.split() for line in said.splitlines()]
    assert ["n", "0.5", "2,500", "0", "200,000", "1", "whole", "axis"] in rows  # of one record
    assert ["s", "0.5", "5,000", "0", "195,000", "2"] in rows
    assert "income: 3 records" in succeeds("distribution", out)
    refuses("draws a column that was", "distribution", out, "--picture", incomes.parent / "a.png")
    edit(incomes, 'method = "uniform"', 'method = "distribution"')
    refuses("is for one numeric axis, and this tree has 2 axes", "plan", incomes)


PLACES = {"tract": ["a1", "a2", "b1", "b2"], "county": ["a", "a", "b", "b"]}


@pytest.fixture
def places(incomes):
    """Incomes of four tracts, the last of which is empty, in a cube."""
    rng = np.random.default_rng(5)
    tract = rng.choice(PLACES["tract"][:3], 3000)
    income = rng.uniform(0, 100_000, 3000) + 50_000 * (tract == "b1")
    replace_table(incomes, income=income, tract=tract)
    pl.DataFrame(PLACES).write_csv(incomes.parent / "tracts.csv")
    axis = '[[axis]]\nname = "place"\nlevels = ["county", "tract"]\nareas = "tracts.csv"\n\n'
    edit(incomes, "[privacy]", f'{axis}[workload]\ncuboids = "cube"\n\n[privacy]')
    edit(
        incomes,
        'method = "distribution"',
        'method = "uniform"',
        "bins = 40",
        "bins = 40\nbranching = [2, 4, 5]",
    )
    edit(incomes, "epsilon       = 1", "epsilon = 20")
    return incomes


def test_medians_by_place_are_shown_and_written(succeeds, places):
    assert "bins_20" in (said := succeeds("plan", places))
    assert "coarser ranges" not in said  # as the file says which
    succeeds("release", places)
    out, file = places.parent / "out", places.parent / "medians.csv"
    rows = [line.split() for line in succeeds("distribution", out, "--by", "tract").splitlines()]
    shown = {row[1]: row for row in rows if len(row) > 2 and row[2] == "0.5"}
    succeeds("distribution", out, "--by", "tract", "--output", file)
    written = pl.read_csv(file)
    names = ["county", "tract", "quantile", "value", "low", "high", "count", "whole_axis"]
    assert written.columns == names
    table = pl.read_parquet(places.parent / "incomes.parquet").group_by("tract").median()
    for tract, median in table.rows():
        row = written.row(by_predicate=pl.col("tract") == tract, named=True)
        assert row["low"] <= median <= row["high"]
        assert row["high"] - row["low"] <= 30_000
        assert [float(word.replace(",", "")) for word in shown[tract][3:6]] == [
            pytest.approx(row[name], abs=0.5) for name in ("value", "low", "high")
        ]
    empty = written.row(by_predicate=pl.col("tract") == "b2", named=True)
    assert empty["high"] - empty["low"] >= 190_000


def test_other_questions_by_place_and_areas(succeeds, refuses, places):
    succeeds("release", places)
    out, file, areas = (places.parent / name for name in ("out", "told.parquet", "areas.csv"))
    pl.DataFrame({"tract": ["a1", "b1"], "area": ["x", "x"]}).write_csv(areas)
    said = succeeds("distribution", out, "--areas", areas, "--between", "0", "50000", "--cdf")
    assert "From 0 to below 50000:" in said
    assert said.count("\nx ") == 1 + 1 + 20
    truth = pl.read_parquet(places.parent / "incomes.parquet")
    exact = truth.filter(pl.col("tract").is_in(["a1", "b1"]) & (pl.col("income") < 50_000))
    ends = "--between", "0", "50000", "--output", file
    succeeds("distribution", out, "--areas", areas, *ends)
    count, low, high = pl.read_parquet(file).select("count", "low", "high").row(0)
    assert low <= len(exact) <= high
    assert abs(count - len(exact)) < 20
    refuses("exists already", "distribution", out, "--by", "tract", "--output", file)
    file.unlink()
    succeeds("distribution", out, "--by", "county", "--cdf", "--output", file)
    assert pl.read_parquet(file).shape == (80, 6)
    refuses("so places cannot be made of it", "distribution", out, "--by", "bins_20")
    refuses("no numeric axis is called 'place'", "distribution", out, "--axis", "place")
    refuses("give that too", "distribution", out, "--area-column", "area")


def test_the_plan_says_how_bins_are_refined_where_nobody_did(succeeds, refuses, places):
    edit(places, "\nbranching = [2, 4, 5]", "")
    assert "Below coarser ranges the bins of a numeric axis" in succeeds("plan", places)
    edit(places, "bins = 40", "bins = 40\nbranching = [2, 4]")
    refuses("branching factors [2, 4] make 8 leaves", "plan", places)


def test_what_is_no_release_is_refused(refuses, tmp_path):
    refuses("no release directory", "distribution", tmp_path)


@pytest.mark.parametrize("key", ["count", "unit"])
def test_the_numeric_column_cannot_be_the_count_or_the_unit(refuses, incomes, key):
    edit(incomes, "[table]\n", f'[table]\n{key} = "income"\n')
    refuses("already the numeric column", "release", incomes)
    assert not (incomes.parent / "out").exists()


def test_under_rho_running_sums_are_chosen_and_the_file_need_not_say_how(
    succeeds, refuses, incomes
):
    edit(incomes, "bins = 40", "bins = 100", '"discrete-laplace"', '"discrete-gaussian"')
    edit(incomes, "epsilon       = 1 ", 'rho = "1/20" ')
    text = incomes.read_text()
    start = text.index("[estimate]")
    incomes.write_text(text[:start] + text[text.index("[output]") :])
    said = succeeds("plan", incomes)
    assert "on sums × 512" in said
    assert "The count of values below an edge: RMSE" in said
    succeeds("release", incomes)
    succeeds("check", incomes.parent / "out")
    assert "income: 20,000 records" in succeeds("distribution", incomes.parent / "out")
    refuses(
        'by method = "isotonic" alone', "estimate", incomes.parent / "out", "--method", "euclidean"
    )


def test_a_tree_can_be_asked_for_and_another_method_is_refused_for_sums(succeeds, refuses, incomes):
    edit(
        incomes, '"discrete-laplace"', '"discrete-gaussian"', "epsilon       = 1 ", 'rho = "1/20" '
    )
    said = succeeds("plan", incomes)
    assert "on sums" not in said
    edit(incomes, 'measure = "all"', "")  # the method is one for trees
    assert "on sums" not in succeeds("plan", incomes)
    refuses("plans for cumulative ones", "plan", incomes, "--target-mse", "1000")
    edit(incomes, 'method  = "euclidean"', 'measure = "running-sums"\nmethod  = "euclidean"')
    refuses('by method = "isotonic" alone', "release", incomes)
    assert not (incomes.parent / "out").exists()


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_file_says_what_the_tree_is_designed_for(succeeds, incomes, noise):
    """Another objective is another tree, whose error is the least of all for that objective."""
    if noise == "gaussian":
        edit(
            incomes, '"discrete-laplace"', '"discrete-gaussian"',
            "epsilon       = 1 ", 'rho = "1/20" ', 'measure = "all"', "",
        )  # fmt: skip
    edit(incomes, "bins = 40", "bins = 300")
    found, objective = {}, '\nobjective = "cdf"'
    edit(incomes, 'method = "distribution"', 'method = "distribution"' + objective)
    for wanted, design in {
        'objective = "cdf"': hr.Cdf(),
        'objective = "ranges"': hr.AllRanges(),
        'objective = "quantiles"\nquantiles = ["1/2"]': hr.Quantiles(["1/2"]),
    }.items():
        edit(incomes, objective, f"\n{wanted}")
        objective = f"\n{wanted}"
        spec = ReleaseSpec(incomes)
        found[wanted] = plan = spec.plan(spec.tree())
        axis = plan.tree.axes[0]
        best = hr.best_branching(300, mechanism=plan.mechanism, objective=design)
        if plan.measure == hr.All():
            assert [axis.size(k) for k in range(1, axis.depth + 1)] == list(best.sizes)
            assert plan.shares[1:] == best.shares
    assert len({plan.hash for plan in found.values()}) == 3
    succeeds("release", incomes)
    succeeds("check", incomes.parent / "out")
    assert "income: 20,000 records" in succeeds("distribution", incomes.parent / "out")


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ('objective = "released"', 'that of "distribution" is cdf, ranges or quantiles'),
        ('objective = "quantiles"', 'goes with objective = "quantiles", which needs it'),
        ('objective = "quantiles"\nquantiles = [1.5]', "must be in (0, 1), got 1.5"),
        ('objective = "quantiles"\nquantiles = []', "at least one rank"),
        ('objective = "median"', "objective"),
    ],
)
def test_what_no_tree_can_be_designed_for_is_refused(run, incomes, lines, sentence):
    edit(incomes, 'method = "distribution"', f'method = "distribution"\n{lines}')
    code, _, err = run("plan", incomes)
    assert code == 2
    assert sentence in err
    assert err.count("Error") == 1


def test_a_distribution_for_quantiles_is_simulated_under_its_own_name(succeeds, incomes):
    edit(
        incomes,
        'method = "distribution"',
        'method = "distribution"\nobjective = "quantiles"\nquantiles = ["1/4", 0.5]',
    )
    text = '[simulate]\npublic = true\nmeasures = ["all"]\nbaselines = []\n'
    incomes.write_text(incomes.read_text() + text + 'estimators = ["euclidean"]\n')
    said = succeeds("simulate", incomes, "--runs", "3", "--wide")
    assert "distribution quantiles 1/4 0.5, all, euclidean (own)" in said
    assert "RMSE of cumulative counts" in said
