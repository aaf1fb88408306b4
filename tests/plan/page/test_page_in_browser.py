"""The planning page in a real browser: what it says, how fast, and what it refuses to run."""

import re
from fractions import Fraction

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
from hedgerow.plan.page.points import Budgets, Division
from hedgerow.plan.prior import Prior
from hedgerow.plan.workload import Cube
from hedgerow.privacy.budget import EpsilonDelta, Rho
from hedgerow.privacy.neighbours import AddRemove, Replace
from hedgerow.tables.axis import Axis
from hedgerow.tables.counts import Counts
from hedgerow.tables.description import Description
from hedgerow.tables.tree import Tree
from tests.browser import barriers
from tests.parts import CHROMIUM
from tests.plan.page.test_solver import CHAIN

pytestmark = [CHROMIUM.needed, pytest.mark.xdist_group("browser")]

MOST_NODES = 12 * 20 + 120
"""That a move makes: a dozen for each of 20 cuboids, and those of the head and of the foot."""

USUAL = ("0.1", "3")
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


def told(tab, selector="#shown"):
    return tab.locator(selector).inner_text().replace("\u00a0", " ")


def statistics(tab):
    """Open what is folded, and wait until it is drawn."""
    tab.locator("#statistics summary").click()
    tab.locator("#errors tr").first.wait_for()
    return tab.locator("#statistics")


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    plan = make_plan(CHAIN, budget=EpsilonDelta("1", "1e-8"), measure=Survivors())
    plan = plan.described(Description(title="Residents of Valmara", unit="residents"))
    quick = [each for each in points._others() if each[0] != "fair"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(points, "MANTISSAS", ("1", "3"))  # of three times as many by default
        patch.setitem(points.USUAL, EpsilonDelta, USUAL)  # narrow noise takes long
        patch.setattr(points, "_others", lambda: quick)
        return plan, a_page(tmp_path_factory.mktemp("page"), plan)


def steps(plan):
    """The budgets of the page of a chain."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(points.USUAL, EpsilonDelta, USUAL)
        return Budgets.around(plan.budget, ("1", "3")).values


def test_at_the_file_s_own_budget_the_page_shows_the_plan_s_errors_and_hash(browser, chain):
    plan, path = chain
    tab = opened(browser, path)
    assert tab.title() == "Before you sign: Residents of Valmara"
    assert tab.locator("#hash").inner_text().replace(" ", "") == plan.hash
    half = 1.96 * forecast(plan)["rmse"][-1]
    for said in (told(tab, "#counts > div >> nth=2"), told(tab, ".row .outcome >> nth=-1")):
        low, high = re.search(r"(\d+) to (\d+)", said).groups()
        assert int(low) == pytest.approx(max(0, 50 - half), abs=1)
        assert int(high) == pytest.approx(50 + half, abs=1)
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
@pytest.mark.parametrize(("workload", "allocation"), [(None, Uniform()), (Cube(), None)])
def test_the_efficiency_is_the_plan_s_and_follows_the_division(
    browser, tmp_path, monkeypatch, workload, allocation
):
    monkeypatch.setitem(points.USUAL, Rho, ("0.01", "5"))
    plan = make_plan(
        CHAIN, budget=Rho("1/10"), measure=All(), workload=workload, allocation=allocation
    )
    tab = opened(browser, a_page(tmp_path, plan))
    said = tab.locator("#efficient")
    shown = float(re.match(r"Efficiency ([\d.]+) %:", said.inner_text())[1])
    assert 0 <= 100 * plan.efficiency.value - shown <= 0.2, "rounded down"
    moved(tab, "input[aria-label^=Share] >> nth=0", 900)
    assert float(re.match(r"Efficiency ([\d.]+) %:", said.inner_text())[1]) < shown
    moved(tab, "#value", 99)  # where noise is narrow
    assert not said.is_visible()
    assert tab.complaints == []


@pytest.mark.usefixtures("few_budgets")
def test_what_was_chosen_by_default_is_said_of_the_division_that_is_drawn(browser, tmp_path):
    plan = make_plan(CHAIN, budget=Rho("1/10"))
    tab = opened(browser, a_page(tmp_path, plan))
    said = statistics(tab).locator("#chosen")
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


def test_the_first_step_that_keeps_an_accuracy_reaches_it_and_the_one_before_does_not(
    browser, chain
):
    plan, path = chain
    tab = opened(browser, path)
    tab.locator("#count").fill("1000")
    tab.locator("#within").fill("5")
    tab.locator("#use").click()
    values = steps(plan)
    needed = values.index(Fraction(told(tab).removeprefix("ε = ")))
    for value, reached in ((values[needed], True), (values[needed - 1], False)):
        made = make_plan(CHAIN, budget=EpsilonDelta(value, "1e-8"), measure=Survivors())
        assert (1.96 * forecast(made)["rmse"][-1] <= 50) == reached
    assert tab.complaints == []


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_nothing_stands_beyond_the_window_and_nothing_bars_anybody(browser, chain, width):
    """Folded or not."""
    tab = opened(browser, chain[1], width)
    for open_first in (lambda _: None, statistics):
        open_first(tab)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert barriers(tab) == []


def test_what_is_signed_fits_three_sheets_with_what_is_folded_left_out(browser, chain):
    tab = opened(browser, chain[1])
    statistics(tab).locator("summary").click()
    assert 1 <= len(re.findall(rb"/Type */Page[^s]", tab.pdf(prefer_css_page_size=True))) <= 3


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
        dial.value = 0;
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
    assert told(tab) == "ε = 3"
    tab.locator(".row input >> nth=1").focus()
    before = tab.locator(".row output").nth(1).inner_text()
    tab.keyboard.press("ArrowRight")
    assert tab.locator(".row output").nth(1).inner_text() != before
    assert "/1000" in tab.locator("#lines").inner_text()
    said = tab.locator(".row input >> nth=1").get_attribute("aria-valuetext")
    assert said == tab.locator(".row output").nth(1).inner_text()


@pytest.mark.usefixtures("few_budgets")
def test_an_earlier_table_s_trials_tell_how_sparse_counts_come_out(browser, tmp_path):
    counts = Counts.from_frame(CHAIN, few_of(CHAIN), count="people")
    prior = Prior(counts, public=True)
    allocation = Optimal(prior=prior, objective="cells")
    plan = make_plan(CHAIN, budget=EpsilonDelta("1", "1e-8"), allocation=allocation)
    own, twice = dict.fromkeys(plan.cuboids, (0.5, 0.25)), dict.fromkeys(plan.cuboids, (0.2, 0.1))
    trials = Simulated((Fraction(1), Fraction(2)), (own, twice), 3)
    tab = opened(browser, a_page(tmp_path, plan, simulated=trials))
    assert "an earlier, public table" in tab.locator("#worth").inner_text()
    assert "Of the earlier table’s counts above 0, " in told(tab, ".row .outcome >> nth=-1")
    said = statistics(tab)
    assert said.locator("#errors td").last.inner_text() == "0.25"
    forecasted = forecast(plan)["rmse"][-1] / 0.5
    assert f"{forecasted:.2g} times" in said.inner_text()
    assert "often 6 to 30 times" in said.inner_text()
    moved(tab, "#value", 0)
    assert not said.locator("#tried").is_visible()  # nobody tried there
    moved(tab, "#value", 1)
    assert said.locator("#tried").is_visible()
    tab.get_by_role("button", name="Equal").click()
    assert not said.locator("#tried").is_visible()


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


@pytest.mark.parametrize("way", ["keys", "buttons", "buttons in reach"])
def test_each_key_and_each_button_is_one_step_and_each_step_a_plan(browser, chain, way):
    plan, path = chain
    tab = opened(browser, path)
    buttons = tab.locator(".dial [data-step]" if way == "buttons" else ".dock [data-step]")

    def step(by):
        if way == "keys":
            tab.keyboard.press("ArrowRight" if by > 0 else "ArrowLeft")
        else:
            buttons.nth(0 if by < 0 else 1).click(force=True)
        return told(tab), told(tab, "#hash").replace(" ", "")

    division = Division("own", plan, None, keeps=True)
    values = steps(plan)
    wanted = [(f"ε = {float(value):g}", division.at(value).hash) for value in values]
    tab.locator("#value").focus()
    tab.keyboard.press("Home")
    up = [step(1) for _ in values]
    assert up == [*wanted[1:], wanted[-1]], "at its end it stays"
    assert [step(-1) for _ in values] == [*wanted[-2::-1], wanted[0]]
    assert tab.complaints == []


@pytest.mark.usefixtures("few_budgets", "own_division_alone")
@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize(
    "neighbours",
    [AddRemove(), Replace(), AddRemove(3), Replace(3, unit="household"), Replace(2, exactly=False)],
)
def test_a_page_has_one_word_for_what_is_counted_and_no_plus_or_minus(
    browser, tmp_path, language, neighbours
):
    plan = make_plan(CHAIN, budget=Rho("1/100"), neighbours=neighbours, measure=All())
    plan = plan.described(Description(title="T", unit="foals", language=language))
    tab = opened(browser, a_page(tmp_path, plan))
    statistics(tab)
    said = tab.locator("body").inner_text()
    assert "foals" in said
    for word in ("record", "enregistrement", "±", "{", "undefined", "NaN"):
        assert word not in said, word
    assert tab.complaints == []


@pytest.mark.usefixtures("few_budgets", "own_division_alone")
@pytest.mark.sweep(2)
@pytest.mark.parametrize(("language", "words"), [("en", "ε = at most "), ("fr", "ε = au plus ")])
def test_an_epsilon_that_is_but_a_bound_is_said_to_be_one(browser, tmp_path, language, words):
    """Noise so narrow that the page rounds its loss to a lattice; the plan's own is certified."""
    plan = make_plan(CHAIN, budget=Rho(20)).described(Description(language=language))
    tab = opened(browser, a_page(tmp_path, plan))
    statistics(tab)
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
