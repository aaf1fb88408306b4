"""The planning page in a real browser: what it says, how fast, and what it refuses to run."""

import re
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from hedgerow.plan.allocation.allocation import Uniform
from hedgerow.plan.allocation.optimal import Optimal
from hedgerow.plan.allocation.shares import Shares
from hedgerow.plan.cuboids import All, Survivors
from hedgerow.plan.forecast import forecast
from hedgerow.plan.make import make_plan
from hedgerow.plan.page import points
from hedgerow.plan.page.page import Simulated, planning_page
from hedgerow.plan.page.points import Budgets
from hedgerow.plan.prior import Prior
from hedgerow.plan.workload import Cube
from hedgerow.privacy.budget import EpsilonDelta, Rho
from hedgerow.privacy.neighbours import AddRemove
from hedgerow.tables.axis import Axis
from hedgerow.tables.counts import Counts
from hedgerow.tables.description import Description
from hedgerow.tables.tree import Tree
from tests.parts import CHROMIUM
from tests.plan.page.test_solver import CHAIN

pytestmark = [CHROMIUM.needed, pytest.mark.xdist_group("browser")]

MOST_NODES = 12 * 20 + 120
"""That a move makes: a dozen for each of 20 cuboids, and those of the curve."""

EVIL = "</script><img src=x onerror=document.title='evil'>"


def a_page(folder, plan, **options):
    path = folder / "plan.html"
    path.write_text(planning_page(plan, "1", **options), encoding="utf-8")
    return path


def opened(browser, path, width=1280):
    tab = browser.new_page(viewport={"width": width, "height": 900})
    tab.complaints = []
    tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.on("console", lambda said: tab.complaints.append(said.text))
    tab.on("request", lambda asked: tab.complaints.append(asked.url))
    tab.goto(path.as_uri())
    tab.complaints.remove(path.as_uri())
    return tab


def moved(tab, selector, value):
    tab.locator(selector).evaluate(
        "(input, value) => { input.value = value; input.dispatchEvent(new Event('input')); }", value
    )


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    plan = make_plan(CHAIN, budget=EpsilonDelta("1", "1e-8"), measure=Survivors())
    plan = plan.described(Description(title="Residents of Valmara", unit="residents"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(points, "CERTIFIED", {"1"})  # of three times as many by default
        return plan, a_page(tmp_path_factory.mktemp("page"), plan)


def test_at_the_file_s_own_budget_the_page_shows_the_plan_s_errors_and_hash(browser, chain):
    plan, path = chain
    tab = opened(browser, path)
    assert tab.title() == "Before you sign: Residents of Valmara"
    assert tab.locator("#hash").inner_text().replace(" ", "") == plan.hash
    town = forecast(plan)["rmse"][-1]
    said = tab.locator(".row .outcome").last.inner_text()
    low, high = re.search(r"1,000: ([\d,]+) to ([\d,]+)", said).groups()
    half = 1.96 * town
    assert int(low.replace(",", "")) == pytest.approx(1000 - half, abs=1)
    assert int(high.replace(",", "")) == pytest.approx(1000 + half, abs=1)
    assert tab.complaints == []


def test_a_move_of_a_share_changes_figures_and_lines_and_takes_the_hash_away(browser, chain):
    _, path = chain
    tab = opened(browser, path)
    before = tab.locator(".row .outcome").last.inner_text()
    moved(tab, ".row input >> nth=3", 700)
    assert tab.locator(".row .outcome").last.inner_text() != before
    assert '"700/1000"' in tab.locator("#lines").inner_text()
    assert "hedgerow plan" in tab.locator("#hash").inner_text()
    shares = re.findall(r'"(\d+)/1000"', tab.locator("#lines").inner_text())
    assert sum(map(int, shares)) == 1000
    tab.get_by_role("button", name="As in the file").click()
    assert tab.locator(".row .outcome").last.inner_text() == before


@pytest.mark.usefixtures("few_budgets", "own_division_alone")
@pytest.mark.parametrize("workload", [None, Cube()])
@pytest.mark.parametrize("allocation", [None, Uniform()])
def test_the_efficiency_is_the_plan_s_and_follows_the_division(
    browser, tmp_path, workload, allocation
):
    plan = make_plan(
        CHAIN, budget=Rho("1/10"), measure=All(), workload=workload, allocation=allocation
    )
    tab = opened(browser, a_page(tmp_path, plan))
    said = tab.locator("#efficiency")
    shown = re.match(r"Efficiency ([\d.]+):", said.inner_text())[1]
    assert float(shown) == pytest.approx(plan.efficiency.value, abs=0.001)
    moved(tab, "input[aria-label^=Share] >> nth=0", 900)
    assert float(re.match(r"Efficiency ([\d.]+):", said.inner_text())[1]) < float(shown)
    moved(tab, "#value", 240)  # where noise is narrow
    assert not said.is_visible()
    assert tab.complaints == []


@pytest.mark.usefixtures("few_budgets")
def test_what_was_chosen_by_default_is_said_of_the_division_that_is_drawn(browser, tmp_path):
    plan = make_plan(CHAIN, budget=Rho("1/10"))
    tab = opened(browser, a_page(tmp_path, plan))
    said = tab.locator("#chosen")
    assert said.inner_text() == " ".join(plan.choices.values())
    tab.get_by_role("button", name="Optimal").click()
    assert "coarse levels may be less precise than with equal shares" in said.inner_text()
    assert plan.choices["measure_few"] in said.inner_text()
    moved(tab, "input[aria-label^=Share] >> nth=0", 900)
    assert said.inner_text() == plan.choices["measure_few"]
    assert tab.complaints == []


def test_a_plan_of_survivors_has_no_efficiency(browser, chain):
    tab = opened(browser, chain[1])
    assert not tab.locator("#efficiency").is_visible()


def test_the_least_budget_for_an_accuracy_reaches_it_and_a_smaller_one_does_not(browser, chain):
    _, path = chain
    tab = opened(browser, path)
    tab.locator("#count").fill("1000")
    tab.locator("#within").fill("5")
    tab.locator("#use").click()
    needed = float(tab.locator("#shown").inner_text().removeprefix("ε = "))
    for value, reached in ((needed, True), (needed * 0.99, False)):
        plan = make_plan(CHAIN, budget=EpsilonDelta(str(value), "1e-8"), measure=Survivors())
        assert (1.96 * forecast(plan)["rmse"][-1] <= 50) == reached


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_nothing_stands_beyond_the_window(browser, chain, width):
    _, path = chain
    tab = opened(browser, path, width)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.usefixtures("few_budgets", "own_division_alone")
def test_hostile_names_stay_text(browser, tmp_path):
    rows = [(f"{EVIL}{i}", f"{EVIL}{i}-{j}") for i in range(3) for j in range(4)]
    frame = pl.DataFrame(rows, schema=["region", "town"], orient="row")
    tree = Tree([Axis.from_frame("place", frame, frame.columns)])
    plan = make_plan(
        tree, budget=EpsilonDelta("1", "1e-8"), neighbours=AddRemove(unit=EVIL)
    ).described(
        Description(
            title=EVIL, unit=EVIL, publisher=EVIL, axes={"place": EVIL}, levels={"town": EVIL}
        )
    )
    trial = Simulated((Fraction(1),), (dict.fromkeys(plan.cuboids, (2.0, 1.0)),), 3)
    tab = opened(browser, a_page(tmp_path, plan, simulated=trial))
    assert tab.title() == f"Before you sign: {EVIL}"
    assert tab.locator("img").count() == 0
    assert EVIL in tab.locator("#rows").inner_text()
    assert tab.complaints == []


def test_no_script_runs_that_is_not_the_page_s_own(browser, chain, tmp_path):
    _, path = chain
    text = path.read_text(encoding="utf-8")
    changed = text.replace("<main>", "<main><script>document.title = 'evil'</script>")
    (tmp_path / "changed.html").write_text(changed, encoding="utf-8")
    tab = opened(browser, tmp_path / "changed.html")
    assert tab.title() != "evil"
    assert any("Content Security Policy" in said for said in tab.complaints)


def chain_of(levels, name):
    """An axis of so many levels, two or three children a node."""
    codes, columns = [""], {}
    for level in range(levels):
        codes = [f"{code}{i}" for n, code in enumerate(codes) for i in range(2 + n % 2)]
        columns[f"{name}{level}"] = len(codes[0])
    frame = pl.DataFrame({key: [code[:n] for code in codes] for key, n in columns.items()})
    return Axis.from_frame(name, frame, list(columns))


@pytest.mark.usefixtures("few_budgets", "own_division_alone")
def test_a_move_of_a_slider_redraws_little(browser, tmp_path):
    """What a move takes in milliseconds is measured by ``benchmarks/planning.py``."""
    tree = Tree([chain_of(n, name) for n, name in zip((3, 4), "ab", strict=True)])
    plan = make_plan(tree, budget=EpsilonDelta("1", "1e-8"), workload=Cube(), measure=All())
    assert len(plan.levels) == 20
    path = a_page(tmp_path, plan)
    assert path.stat().st_size < 150_000
    tab = opened(browser, path)
    moved(tab, "#levers input >> nth=2", 400)  # somebody's own division costs the most to compute
    assert '"400/1000"' in tab.locator("#lines").inner_text()
    made = tab.evaluate(
        """() => {
        const watch = new MutationObserver(() => {}), dial = document.getElementById("value");
        watch.observe(document.body, { childList: true, subtree: true });
        dial.value = 60;
        dial.dispatchEvent(new Event("input"));
        return watch.takeRecords().reduce((sum, { addedNodes }) => sum + addedNodes.length, 0); }"""
    )
    assert 0 < made < MOST_NODES
    assert tab.complaints == []


def test_shares_and_the_budget_are_moved_with_the_keyboard_alone(browser, chain):
    _, path = chain
    tab = opened(browser, path)
    tab.locator("#value").focus()
    tab.keyboard.press("End")
    assert tab.locator("#shown").inner_text() == "ε = 10"
    tab.locator(".row input >> nth=1").focus()
    before = tab.locator(".row output").nth(1).inner_text()
    tab.keyboard.press("ArrowRight")
    assert tab.locator(".row output").nth(1).inner_text() != before
    assert "/1000" in tab.locator("#lines").inner_text()
    told = tab.locator(".row input >> nth=1").get_attribute("aria-valuetext")
    assert told == tab.locator(".row output").nth(1).inner_text()


@pytest.mark.usefixtures("few_budgets")
def test_an_earlier_table_s_trials_tell_how_sparse_counts_come_out(browser, tmp_path):
    counts = Counts.from_frame(CHAIN, few_of(CHAIN), count="people")
    prior = Prior(counts, public=True)
    allocation = Optimal(prior=prior, objective="cells")
    plan = make_plan(CHAIN, budget=EpsilonDelta("1", "1e-8"), allocation=allocation)
    own, twice = dict.fromkeys(plan.cuboids, (0.5, 0.25)), dict.fromkeys(plan.cuboids, (0.2, 0.1))
    trials = Simulated((Fraction(1), Fraction(2)), (own, twice), 3)
    tab = opened(browser, a_page(tmp_path, plan, simulated=trials))
    said = tab.locator(".row .outcome").last
    assert "In trial releases of the earlier table: off by 0.25." in said.inner_text()
    forecasted = forecast(plan)["rmse"][-1] / 0.5
    assert f"{forecasted:.2g} times" in tab.locator("table").inner_text()
    assert "often 6 to 30 times" in tab.locator("table").inner_text()
    moved(tab, "#value", 0)
    assert "trial" not in said.inner_text()  # nobody tried there
    tab.get_by_role("button", name="Equal").click()
    assert "trial" not in said.inner_text()


def few_of(tree):
    towns = tree.axes[0].leaf_frame()
    people = pl.Series("people", np.arange(len(towns)) % 5 == 0).cast(pl.Int64)
    return towns.with_columns(people).filter(pl.col("people") > 0)


@pytest.mark.usefixtures("few_budgets", "own_division_alone")
def test_texts_follow_the_language_of_the_file(browser, tmp_path):
    plan = make_plan(CHAIN, budget=EpsilonDelta("1", "1e-8")).described(
        Description(title="Habitants", language="fr")
    )
    tab = opened(browser, a_page(tmp_path, plan))
    assert tab.locator("h1").inner_text().startswith("Avant de signer")
    assert tab.locator("html").get_attribute("lang") == "fr"
    assert tab.complaints == []


def test_each_arrow_key_is_a_step_of_the_budget(browser, chain):
    """Also back again: on the way down each value stands where it stood on the way up."""
    _, path = chain
    tab = opened(browser, path)
    keys = """([key, times]) => {
      const dial = document.getElementById("value"), seen = [];
      for (let k = 0; k < times; k++) {
        if (key === "ArrowRight") dial.stepUp(); else dial.stepDown();
        dial.dispatchEvent(new Event("input"));
        seen.push(Number(document.getElementById("shown").textContent.slice(4)));
      }
      return seen; }"""
    tab.locator("#value").focus()
    tab.keyboard.press("Home")
    ends = [float(value) for value in Budgets.around(chain[0].budget).values]
    up = tab.evaluate(keys, ["ArrowRight", 60])
    down = tab.evaluate(keys, ["ArrowLeft", 60])
    assert all(a < b for a, b in pairwise([ends[0], *up]))
    assert down == [*up[-2::-1], ends[0]]
    assert {value for value in ends[1:] if value < up[-1]} <= set(up)
    before = tab.locator("#shown").inner_text()
    tab.keyboard.press("ArrowRight")
    assert tab.locator("#shown").inner_text() != before
    assert tab.complaints == []


@pytest.mark.usefixtures("few_budgets", "own_division_alone")
@pytest.mark.sweep(2)
@pytest.mark.parametrize(("language", "words"), [("en", "ε = at most "), ("fr", "ε = au plus ")])
def test_an_epsilon_that_is_but_a_bound_is_said_to_be_one(browser, tmp_path, language, words):
    """Noise so narrow that the page rounds its loss to a lattice; the plan's own is certified."""
    plan = make_plan(CHAIN, budget=Rho(20)).described(Description(language=language))
    tab = opened(browser, a_page(tmp_path, plan))
    assert words not in tab.locator("#condition").inner_text()
    moved(tab, ".row input >> nth=3", 300)
    said = tab.locator("#condition").inner_text()
    assert words in said
    shown = float(re.search(words + r"([\d.,]+\d)", said)[1].replace(",", "."))
    parts = re.findall(r'"(\d+)/1000"', tab.locator("#lines").inner_text())
    shares = [Fraction(int(part), 1000) for part in parts]
    made = make_plan(CHAIN, budget=Rho(20), allocation=Shares(shares))
    assert made.guarantee.epsilon("1e-8") <= shown <= 1.01 * made.guarantee.epsilon("1e-8")
    assert tab.complaints == []
