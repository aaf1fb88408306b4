"""What a director takes from the planning page: pasted into the file, it plans just that."""

import json
import re

import polars as pl
import pytest

from hedgerow import cli
from tests.parts import CHROMIUM
from tests.plan.page.test_page_in_browser import moved, opened, statistics

pytestmark = [CHROMIUM.needed, pytest.mark.xdist_group("browser")]

AXIS = '[[axis]]\nname = "{0}"\nareas = "areas.csv"\nlevels = ["region", "town"]\ncolumns = {1}\n'
PLACE = AXIS.format("place", '["region", "town"]')
PAIR = "".join(AXIS.format(end, f'["{end}_region", "{end}_town"]') for end in ("from", "to"))
WORKLOADS = {
    "chain": PLACE,
    "cube": PAIR + '[workload]\ncuboids = "cube"\n',
    "named": PAIR + '[workload]\ncuboids = ["from.town", "to.town", "from.region × to.region"]\n',
}
REST = """[table]
source = "secret.csv"
{workload}[privacy]
neighbours = "replace"
{budget}
[allocation]
method = "uniform"
[estimate]
measure = "all"
[output]
directory = "out"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [(f"r{i}", f"r{i}t{j}") for i in range(4) for j in range(3 + i)]
    pl.DataFrame(rows, schema=["region", "town"], orient="row").write_csv("areas.csv")
    return tmp_path


def pasted(text, lines):
    """A release file with the page's lines in it, as the page says: no other budget stays."""
    privacy, _, rest = lines.partition("\n\n")
    budget = "\n".join(privacy.splitlines()[1:])
    text = re.sub(r"^(epsilon|delta|rho) .*\n", "", text, flags=re.MULTILINE)
    text = text.replace('neighbours = "replace"\n', f'neighbours = "replace"\n{budget}\n')
    if "[allocation]  #" in rest:
        text = re.sub(r"\[allocation\]\n[^\[]*", rest + "\n", text)
    return text


def planned(folder, capsys, text):
    (folder / "signed.toml").write_text(text, encoding="utf-8")
    capsys.readouterr()
    assert cli.run(["plan", "signed.toml", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("few_budgets")
@pytest.mark.sweep(2)
@pytest.mark.parametrize("budget", ['epsilon = "1"\ndelta = "1e-8"\n', 'rho = "1/30"\n'])
@pytest.mark.parametrize("kind", WORKLOADS)
def test_lines_of_the_page_give_the_hash_that_stands_beside_them(
    browser, folder, capsys, kind, budget
):
    text = REST.format(workload=WORKLOADS[kind], budget=budget)
    (folder / "release.toml").write_text(text, encoding="utf-8")
    assert cli.run(["plan", "release.toml", "--page", "plan.html"]) == 0
    tab = opened(browser, folder / "plan.html")
    statistics(tab)
    presets = tab.locator("#presets button").all()
    last = int(tab.locator("#value").get_attribute("max"))
    for button in presets:
        button.click()
        for step in (0, last):
            moved(tab, "#value", step)
            plan = planned(folder, capsys, pasted(text, tab.locator("#lines").inner_text()))
            assert tab.locator("#hash").inner_text().replace(" ", "") == plan["sha256"]
            assert_same_errors(tab, plan)
    assert tab.complaints == []


PRIOR = """method = "optimal"
objective = "cells"
prior = {source = "earlier.csv", count = "people", public = true}
"""


@pytest.mark.usefixtures("few_budgets", "own_division_alone")
def test_lines_of_a_division_that_follows_a_prior_give_their_hash(browser, folder, capsys):
    """At the file's own budget its lines stay; elsewhere the shares are written out."""
    areas = pl.read_csv(folder / "areas.csv")
    areas.with_columns(people=pl.int_range(1, len(areas) + 1)).write_csv(folder / "earlier.csv")
    text = REST.format(workload=WORKLOADS["chain"], budget='epsilon = "1"\ndelta = "1e-8"\n')
    text = text.replace('method = "uniform"\n', PRIOR)
    (folder / "release.toml").write_text(text, encoding="utf-8")
    assert cli.run(["plan", "release.toml", "--page", "plan.html"]) == 0
    tab = opened(browser, folder / "plan.html")
    own = tab.locator("#value").input_value()
    for step in (own, "0"):
        moved(tab, "#value", step)
        lines = tab.locator("#lines").inner_text()
        assert ("shares" in lines) == (step != own)
        plan = planned(folder, capsys, pasted(text, lines))
        assert tab.locator("#hash").inner_text().replace(" ", "") == plan["sha256"]


@pytest.mark.usefixtures("few_budgets", "own_division_alone")
@pytest.mark.parametrize("kind", ["chain", "cube"])
def test_lines_of_one_s_own_division_plan_what_the_page_shows(browser, folder, capsys, kind):
    text = REST.format(workload=WORKLOADS[kind], budget='epsilon = "1"\ndelta = "1e-8"\n')
    (folder / "release.toml").write_text(text, encoding="utf-8")
    assert cli.run(["plan", "release.toml", "--page", "plan.html"]) == 0
    tab = opened(browser, folder / "plan.html")
    moved(tab, ".share input, .lever input >> nth=0", 700)
    moved(tab, "#value", 0)
    statistics(tab)
    assert tab.locator("#hash").inner_text() == "hedgerow plan FILE"
    plan = planned(folder, capsys, pasted(text, tab.locator("#lines").inner_text()))
    assert_same_errors(tab, plan)
    shown = float(re.search(r"ρ = ([\d.]+\d)", tab.locator("#condition").inner_text())[1])
    cost = float(re.search(r"ρ = ([\d.]+)", plan["promise"])[1])
    assert cost <= shown <= 1.002 * cost


def assert_same_errors(tab, plan):
    """As they are shown for statisticians, to three digits."""
    shown = tab.locator("#errors td:nth-child(2)").all_inner_texts()
    errors = [row["rmse"] for row in plan["forecast"]]
    assert [float(text.replace(",", "")) for text in shown] == pytest.approx(errors, rel=0.01)
