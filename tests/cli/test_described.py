"""What the publisher says of a table, and names of areas, in what the commands print."""

import polars as pl
import pytest

import hedgerow as hr
from hedgerow.cli.terminal import show_levels
from tests.made import plain_plan
from tests.release.test_described import DESCRIBE, FILE


@pytest.fixture
def release_file(tmp_path, monkeypatch):
    """Write a release file with some more lines, and its public list and table."""
    monkeypatch.chdir(tmp_path)
    areas = pl.DataFrame({"state": ["1", "1", "2"], "sa2": ["101", "102", "201"]})
    areas.with_columns(sa2_name=pl.Series(["Goulburn", "[bold]Yass", None])).write_csv("areas.csv")
    flows = {"h_sa2": ["101", "102", "201"], "w_sa2": ["102", "102", "201"], "people": [900, 70, 8]}
    pl.DataFrame(flows).write_csv("flows.csv")

    def write(lines):
        named = FILE.replace('areas = "areas.csv"', 'areas = "areas.csv"\nnames = "sa2_name"')
        (tmp_path / "release.toml").write_text(named + lines)
        return "release.toml"

    return write


HEADING = "Journeys to work, 2021 (counts of workers, 10 August 2021)"


def test_plan_says_what_the_table_is_and_what_its_levels_are_called(succeeds, release_file):
    said = succeeds("plan", release_file(DESCRIBE))
    lines = said.strip().splitlines()
    assert lines[0] == HEADING
    assert "  home.state  State of residence" in lines
    assert "  home.sa2    Place of residence: Statistical area" in lines
    assert "  work.state  State of work" in lines
    rows = [line for line in lines if line.split()[1:2] == ["home.state"]]
    assert rows, "machine names stay, to be typed"


def test_the_cheapest_plan_says_it_too(run, release_file):
    file = release_file('[allocation]\nmethod = "optimal"' + DESCRIBE)
    code, said, err = run("plan", file, "--target-mse", "500")
    assert (code, said.strip().splitlines()[:1]) == (0, [HEADING]), err


def test_without_a_description_nothing_is_added(succeeds, release_file):
    said = succeeds("plan", release_file(""))
    assert said.split("depth  cuboid")[0].split() == []
    assert "State of" not in said


def test_levels_that_are_called_as_they_are_typed_are_left_out(capsys):
    areas = {"state": ["1", "2"], "sa2": ["11", "21"]}
    tree = hr.Tree([hr.Axis.from_frame("home", areas, ["state", "sa2"])])
    plan = plain_plan(tree, budget=hr.Rho(1))
    show_levels(plan.described(hr.Description(levels={"state": "State"})), wide=False)
    said = capsys.readouterr().out
    assert "  state  State" in said
    assert "sa2" not in said


def test_tables_and_comparisons_say_what_they_are(run, succeeds, release_file):
    file = release_file(DESCRIBE)
    succeeds("release", file)
    said = succeeds("table", "out", "--by", "home=sa2", "--wide")
    lines = said.strip().splitlines()
    assert lines[0] == HEADING
    assert lines[2].split()[:3] == ["h_state", "h_sa2", "h_sa2_name"]
    assert "[bold]Yass" in said
    assert "  h_state  State of residence" in lines
    assert not any(line.startswith("  w_state") for line in lines)
    assert HEADING not in succeeds("table", "out", "--by", "home=sa2", "--output", "t.csv")
    assert pl.read_csv("t.csv").columns[:3] == ["h_state", "h_sa2", "count"]
    assert succeeds("table", "out", "--noisy", "--level", "home.state").startswith(HEADING)
    code, said, _ = run("compare", file)
    assert (code, said.startswith(HEADING)) == (0, True)
    assert "  work.state  State of work" in said.splitlines()


@pytest.mark.usefixtures("few_draws")
def test_funds_names_areas_beside_their_codes(succeeds, release_file):
    succeeds("release", release_file(""))
    said = succeeds(
        "funds", "out", "--by", "home=sa2", "--by", "work=sa2", "--amount", "1000", "--wide"
    )
    assert "1 101 Goulburn 1 102 [bold]Yass" in said
    words = ("--by", "home=sa2", "--by", "work=sa2", "--amount", "1000")
    succeeds("funds", "out", *words, "--output", "funds.csv")
    assert "h_sa2_name" not in pl.read_csv("funds.csv").columns
