"""The command `funds`."""

import numpy as np
import polars as pl
import pytest
import typer
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow.cli.funds import funds
from hedgerow.errors import HedgerowError
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.execution import in_memory
from tests.made import all_leaves, fixed_axis, plain_plan

app = typer.Typer()
app.command()(funds)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    tree = hr.Tree([fixed_axis("geo", 50, 2, columns=["county", "tract"])])
    values = np.arange(1, 101, dtype=np.int64) * 30
    counts = all_leaves(tree, values)
    plan = plain_plan(tree, budget=hr.Rho("1/50"))
    folder = tmp_path_factory.mktemp("funds") / "out"
    in_memory(counts, plan, estimator=hr.Chebyshev(), bits=seeded_bits(3)).write(folder)
    return folder


def asked(out, *options):
    return CliRunner().invoke(app, [str(out), *options])


def test_a_table_shows_shares_and_intervals(out):
    found = asked(out, "--level", "level1", "--amount", "1000000")
    assert found.exit_code == 0, found.output
    assert "proportional; 95% intervals" in found.output
    assert "10 more areas" in found.output


@pytest.mark.parametrize("rule", ["logarithmic", "quadratic", "seats"])
def test_all_rules_can_be_asked_for(out, rule):
    found = asked(out, "--level", "level1", "--amount", "200", "--rule", rule)
    assert found.exit_code == 0, found.output
    assert rule in found.output


@pytest.mark.parametrize("rule", ["above", "above-equally"])
def test_a_threshold_makes_some_eligible(out, rule, tmp_path):
    file = tmp_path / "found.parquet"
    found = asked(
        out, "--level", "level1", "--amount", "100", "--rule", rule,
        "--threshold", "3000", "--output", str(file), "--confidence", "0.5",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    table = pl.read_parquet(file)
    assert ((table["amount"] > 0) == (table["count"] > 3000)).all()
    shares = table.filter(pl.col("amount") > 0)["amount"].n_unique()
    assert (shares == 1) == (rule == "above-equally")


@pytest.mark.parametrize("name", ["found.csv", "found.parquet"])
def test_a_file_holds_every_area(out, tmp_path, name):
    file = tmp_path / name
    found = asked(out, "--level", "level1", "--amount", "1000", "--output", str(file))
    assert found.exit_code == 0, found.output
    read = pl.read_csv if name.endswith("csv") else pl.read_parquet
    table = read(file)
    assert table.columns == [
        "county", "count", "estimate", "share", "amount", "low", "high", "contradicted"
    ]  # fmt: skip
    assert len(table) == 50
    assert table["amount"].sum() == pytest.approx(1000)
    assert ((table["low"] <= table["amount"]) & (table["amount"] <= table["high"])).mean() > 0.8


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--level", "ward", "--amount", "1"], "no level is called 'ward'"),
        (["--level", "level1", "--amount", "-1"], "above 0"),
        (["--level", "level1", "--amount", "1", "--rule", "above"], "needs --threshold"),
        (["--level", "level1", "--amount", "1", "--threshold", "3"], "is for --rule above"),
        (["--level", "level1", "--amount", "1.5", "--rule", "seats"], "whole"),
        (["--level", "level1", "--amount", "1", "--confidence", "1"], "a confidence must be in"),
        (["--level", "level1", "--amount", "1", "--output", "found.xlsx"], r"\.csv or \.parquet"),
    ],
    ids=["level", "amount", "above", "threshold", "seats", "confidence", "output"],
)
def test_bad_input_is_one_sentence(out, options, words):
    found = asked(out, *options)
    assert isinstance(found.exception, HedgerowError)
    assert found.exception.exit_code == 2
    with pytest.raises(HedgerowError, match=words):
        raise found.exception


def test_a_file_that_cannot_be_written_is_the_machines_failure_and_not_there(
    out, tmp_path, monkeypatch
):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_csv", full)
    place = str(tmp_path / "found.csv")
    found = asked(out, "--level", "level1", "--amount", "1", "--output", place)
    assert isinstance(found.exception, HedgerowError)
    assert found.exception.exit_code == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["nowhere/found.csv", "taken.csv", "out/found.csv"])
def test_a_place_that_is_taken_or_cannot_be_is_refused(out, tmp_path, place):
    (tmp_path / "taken.csv").write_text("mine")
    (tmp_path / "out").symlink_to(out)
    before = sorted(out.rglob("*"))
    found = asked(out, "--level", "level1", "--amount", "1", "--output", str(tmp_path / place))
    assert isinstance(found.exception, HedgerowError)
    assert found.exception.exit_code == 2
    assert "--output" in str(found.exception)
    assert (tmp_path / "taken.csv").read_text() == "mine"
    assert sorted(out.rglob("*")) == before
