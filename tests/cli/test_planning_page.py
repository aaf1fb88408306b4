"""`hedgerow plan --page`: what it writes, and what it never says."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from hedgerow import cli
from hedgerow.errors import BudgetError
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.records import Charge
from hedgerow.spec.release_spec import ReleaseSpec

FILE = """
[table]
source = "secret-source.csv"
count = "people"
[[axis]]
name = "place"
areas = "areas.csv"
levels = ["region", "town"]
[privacy]
neighbours = "add-remove"
epsilon = "1"
delta = "1e-8"
[output]
directory = "out"
"""
LEDGER = """
[ledger]
database = "ledger.sqlite"
dataset = "register"
"""


pytestmark = pytest.mark.usefixtures("few_budgets")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [(f"r{i}", f"r{i}t{j}") for i in range(4) for j in range(3 + i)]
    areas = pl.DataFrame(rows, schema=["region", "town"], orient="row")
    areas.write_csv("areas.csv")
    (tmp_path / "release.toml").write_text(FILE, encoding="utf-8")
    return tmp_path


def facts_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="facts">(.*?)</script>', text, re.DOTALL)[1])


def test_the_page_is_made_of_public_facts_and_the_table_need_not_be_there(folder, capsys):
    assert cli.run(["plan", "release.toml", "--page", "plan.html"]) == 0
    assert "Page: plan.html" in capsys.readouterr().out
    text = (folder / "plan.html").read_text(encoding="utf-8")
    assert "secret" not in text
    assert facts_of(folder / "plan.html")["ledger"] is None
    assert "Internal" not in text


def test_lines_of_the_page_plan_with_the_hash_that_stands_beside_them(folder, capsys):
    assert cli.run(["plan", "release.toml", "--page", "plan.html"]) == 0
    points = facts_of(folder / "plan.html")["points"]
    capsys.readouterr()
    for way in points["divisions"]:
        for place, signed in enumerate(way["hashes"]):
            if signed is None or (way["key"] == "own" and place % 7):
                continue
            text = FILE.replace('epsilon = "1"', f'epsilon = "{points["texts"][place]}"')
            if way["lines"] is not None:
                text += f"[allocation]\n{way['lines']}\n"
            (folder / "other.toml").write_text(text, encoding="utf-8")
            assert cli.run(["plan", "other.toml", "--json"]) == 0
            assert json.loads(capsys.readouterr().out)["sha256"] == signed


def test_with_a_ledger_the_page_is_marked_internal(folder, capsys):
    (folder / "release.toml").write_text(FILE + LEDGER, encoding="utf-8")
    assert cli.run(["ledger", "open", "release.toml", "--rho", "1/2"]) == 0
    assert cli.run(["plan", "release.toml", "--page", "plan.html", "--ledger"]) == 0
    assert "Internal: " in (folder / "plan.html").read_text(encoding="utf-8")
    ledger = facts_of(folder / "plan.html")["ledger"]
    assert (ledger["cap"], ledger["spent"], ledger["symbol"]) == (0.5, 0.0, "ρ")
    capsys.readouterr()


def test_the_page_says_nothing_of_where_the_table_lies_or_how_it_is_read(folder, capsys):
    place = "postgresql://clerk:pa55word@vault.example/registry"
    source = f'source = "{place}"\nquery = "SELECT town FROM vault_b"'
    text = FILE.replace('source = "secret-source.csv"', source).replace('count = "people"\n', "")
    (folder / "release.toml").write_text(text, encoding="utf-8")
    assert cli.run(["plan", "release.toml", "--page", "plan.html"]) == 0
    page = (folder / "plan.html").read_text(encoding="utf-8")
    for word in ("clerk", "pa55word", "vault", "registry", "SELECT", str(folder), "areas.csv"):
        assert word not in page, word
    capsys.readouterr()


def test_as_many_releases_fit_as_the_page_says_and_not_one_more(folder, capsys):
    """Against charges to a real ledger, until it refuses one."""
    text = FILE.replace('epsilon = "1"\ndelta = "1e-8"', 'rho = "1/70"') + LEDGER
    (folder / "release.toml").write_text(text, encoding="utf-8")
    assert cli.run(["ledger", "open", "release.toml", "--rho", "4/70"]) == 0
    spec = ReleaseSpec(Path("release.toml"))
    plan, ledger = spec.plan(spec.tree()), Ledger(spec.ledger_path)
    account = ledger.account(spec.dataset, plan.protection)
    for made in range(5):
        if made in {1, 4}:
            page = f"plan{made}.html"
            assert cli.run(["plan", "release.toml", "--page", page, "--ledger"]) == 0
            facts = facts_of(folder / page)
            assert facts["ledger"]["times"][str(facts["points"]["own"])] == 4 - made
        charge = Charge(f"{made:032x}", plan.guarantee, plan.hash, datetime.now(UTC))
        if made < 4:
            ledger.charge(account, charge)
    with pytest.raises(BudgetError):
        ledger.charge(account, charge)
    capsys.readouterr()


@pytest.mark.parametrize(
    ("privacy", "more", "said"),
    [
        ('neighbours = "add-remove"', "", "with or without any one record."),
        ('neighbours = "replace"', "", "the number of records is public."),
        ('neighbours = "replace"\ncontributions = 3\nexactly = false', "", "up to 3."),
        (
            'neighbours = "replace"',
            '[[invariant]]\naxis = "place"\nlevel = "region"\n',
            "agree on the counts of place.region, which are published exactly",
        ),
    ],
)
def test_what_an_attacker_learns_stands_beside_who_is_protected(
    folder, capsys, privacy, more, said
):
    text = FILE.replace('neighbours = "add-remove"', privacy) + more
    (folder / "release.toml").write_text(text, encoding="utf-8")
    assert cli.run(["plan", "release.toml", "--page", "plan.html"]) == 0
    page = (folder / "plan.html").read_text(encoding="utf-8")
    assert said in re.search(r'id="promise">(.*?)</p>', page, re.DOTALL)[1]
    one = "one unit of up to 3 records" if "contributions" in privacy else "one record"
    assert facts_of(folder / "plan.html")["one"] == one
    assert f"What the release could tell about {one}</h2>" in page
    capsys.readouterr()


def test_a_list_of_areas_from_the_table_itself_is_said(folder, capsys):
    table = pl.read_csv("areas.csv").with_columns(people=pl.lit(1))
    table.write_csv("secret-source.csv")
    assert cli.run(["plan", "release.toml", "--page", "before.html"]) == 0
    text = FILE.replace('areas = "areas.csv"', 'areas = "table"')
    (folder / "release.toml").write_text(text, encoding="utf-8")
    assert cli.run(["plan", "release.toml", "--page", "plan.html"]) == 0
    pages = [(folder / f"{name}.html").read_text(encoding="utf-8") for name in ("before", "plan")]
    heads = [re.search(r'<p class="kicker">(.*?)</p>', page)[1] for page in pages]
    assert ["the table was not opened" in head for head in heads] == [True, False]
    assert "its list of areas was read" in heads[1]
    assert "taken from the table itself and declared public" in pages[1]
    capsys.readouterr()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--ledger"], "--ledger goes with --page"),
        (["--page", "plan.pdf"], "must end in .html"),
        (["--page", "areas.csv"], "must end in .html"),
    ],
)
def test_options_that_do_not_fit_are_refused(folder, capsys, options, said):
    del folder
    assert cli.run(["plan", "release.toml", *options]) == 2
    assert said in capsys.readouterr().err
