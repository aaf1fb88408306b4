"""No guarantee is printed without its neighbours and what it does not hide, and none unverified."""

import json
import re
import shutil
from fractions import Fraction
from html import unescape

import polars as pl
import pytest

import hedgerow as hr
from hedgerow.cli.commands import app
from hedgerow.cli.privacy import ledgers
from hedgerow.plan.describe import plan_hash
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.promise import Promise, Protection
from hedgerow.release.directory.stored import stated_plan
from hedgerow.spec.release_spec import ReleaseSpec
from hedgerow.text import format_percent
from tests.made import plain_plan

RELEASE = """
[table]
source = "trips.csv"
count  = "trips"

[[axis]]
name   = "home"
levels = ["region", "town"]
areas  = "homes.csv"

[[axis]]
name   = "work"
levels = ["office"]
areas  = "table"

[tree]
refine = ["home", "work"]

[[invariant]]
axis  = "home"
level = "region"

[privacy]
neighbours = "replace"
epsilon    = 1
delta      = 1e-8

[ledger]
database = "ledger.sqlite"
dataset  = "trips"

[simulate]
public       = true
estimators   = ["euclidean"]
measures     = ["survivors"]
allocations  = ["uniform"]
baselines    = []

[output]
directory = "out"
"""
WHO = "can differ only so much whatever any one record says; the number of records is public."
EXACT = (
    "The guarantee holds between tables that agree on the counts of home.region, which are "
    "published exactly; it does not hide anything that these counts give away."
)
LISTED = (
    "The list of areas of work was taken from the table itself and declared public; the guarantee "
    "does not hide which codes the table holds."
)
LABEL = re.compile(
    "replace, contributions 1, total public; the counts of home.region by list [0-9a-f]{12} are "
    "published exactly; the list of work, [0-9a-f]{12}, was taken from the table"
)
GUARANTEE = re.compile(r"satisf(?:y|ies)\b|[ερ] = [0-9]|\((?:epsilon|rho) = [0-9]")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A release file with an invariant and a list from the table, and its release."""
    folder = tmp_path_factory.mktemp("trips")
    homes = pl.DataFrame({"region": ["N", "N", "S", "S"], "town": ["n1", "n2", "s1", "s2"]})
    homes.write_csv(folder / "homes.csv")
    table = homes.join(pl.DataFrame({"office": ["a", "b", "c"]}), how="cross")
    table.with_columns(trips=pl.int_range(pl.len()) * 7 + 40).write_csv(folder / "trips.csv")
    (folder / "release.toml").write_text(RELEASE)
    spec = ReleaseSpec(folder / "release.toml")
    tree = spec.tree()
    hr.release(spec.table.counts(tree), spec.plan(tree), directory=folder / "out")
    return folder


@pytest.fixture
def trips(made, tmp_path):
    return shutil.copytree(made, tmp_path / "trips")


def whole(text):
    """Whether neighbours and restrictions stand in the text: in sentences, or in short."""
    words = " ".join(unescape(re.sub("<[^>]*>", " ", text)).split())
    return all(said in words for said in (WHO, EXACT, LISTED)) or bool(LABEL.search(words))


def test_no_command_prints_a_guarantee_without_neighbours_and_restrictions(run, trips):
    """Every command there is, so that a new one must be put in; with the files that they write."""
    file, out, ledger = trips / "release.toml", trips / "out", trips / "ledger.sqlite"
    published = trips / "published"
    commands = {
        "new": [(trips / "trips.csv", trips / "new.toml", "--count", "trips")],
        "example": [("census", trips / "example")],
        "ledger open": [(file, "--rho", "0.03")],
        "plan": [(file,), (file, "--json"), (file, "--fairness", "--records", 1000)],
        "release": [(file,), (file,)],  # the second does not fit into the account
        "check": [(published,)],
        "table": [(published, "--level", "home.region")],
        "distribution": [(published,)],
        "funds": [(published, "--level", "home.region", "--amount", 100)],
        "report": [(published,)],
        "export": [(published, "--as", "datapackage", "--output", trips / "package")],
        "estimate": [(published,)],
        "compare": [(file,)],
        "simulate": [(file, "--runs", 3)],
        "account": [(published,), (published / "manifest.json", "--delta", "1e-6")],
        "ledger show": [(ledger,)],
    }
    listed = {command.callback.__name__ for command in app.registered_commands}
    assert {*listed, "ledger open", "ledger show"} == set(commands)
    assert {command.name for command in ledgers.registered_commands} == {"open", "show"}
    printing, codes = set(), {}
    shutil.rmtree(out)
    for name, calls in commands.items():
        for arguments in calls:
            code, said, err = run(*name.split(), *arguments)
            codes[name] = [*codes.get(name, []), code]
            if name == "release" and code == 0:
                out.rename(published)
            for shown in (said, err):
                if GUARANTEE.search(shown):
                    printing.add(name)
                    assert whole(shown), (name, shown)
        if name == "estimate":
            published.rename(out)  # where `compare` looks for it
            commands["account"] = [(out, *rest) for _, *rest in commands["account"]]
    assert printing == {"plan", "release", "account", "ledger open", "ledger show"}
    refusals = {name: given for name, given in codes.items() if any(given)}
    assert refusals == {"release": [0, 2], "distribution": [2]}, "it has two axes"


def test_neither_does_python_or_a_file_of_the_release(made):
    plan = stated_plan(made / "out", json.loads((made / "out" / "manifest.json").read_text()))
    released = hr.read_release(made / "out")
    shown = {
        "repr": repr(plan),
        "str": str(plan),
        "notebook": plan._repr_html_(),
        "promise": str(plan.promise),
        "at a δ": plan.promise.statement("1e-6"),
        "label": plan.promise.label,
        "manifest": json.loads((made / "out" / "manifest.json").read_text())["promise"],
    }
    for name, text in shown.items():
        assert GUARANTEE.search(text), name
        assert whole(text), name
    assert not GUARANTEE.search(repr(released))


def test_each_part_of_the_page_that_states_a_guarantee_states_all_of_it(made):
    page = (made / "out" / "report.html").read_text()
    parts = re.findall(r"<(p|dd|blockquote)[^>]*>(.*?)</\1>", page, re.DOTALL)
    stating = [text for _, text in parts if re.search(r"satisf(?:y|ies)\b", text)]
    assert len(stating) == 2, "exact figures, and how to cite it"
    assert all(whole(text) for text in stating)


PROMISING = re.compile(
    r"can differ only so much|satisfies|notices|noticed in at most|misses at least|"
    r"ne peut différer que|satisfait|remarque|remarquée|manque au moins"
)
RESTRICTED = re.compile(
    r"Between tables that agree on the counts of home\.region and the list of (areas of )?work, |"
    r"Between these, |Entre ceux-ci, |"
    r"Entre tableaux qui s’accordent sur les effectifs de home\.region et la liste de work, "
)


def promising(text):
    """The sentences that promise something."""
    words = " ".join(unescape(re.sub("<[^>]*>", " ", text)).split())
    sentences = re.split(r"(?<=[.%]) (?=[A-Z])", words)
    return [sentence for sentence in sentences if PROMISING.search(sentence)]


@pytest.mark.usefixtures("few_budgets")
@pytest.mark.parametrize("language", ["en", "fr"])
def test_every_sentence_that_promises_says_between_which_tables(succeeds, made, language, tmp_path):
    """On pages, the terminal, in the manifest and a notebook: an invariant, a list of the table."""
    file = shutil.copytree(made, tmp_path / "trips") / "release.toml"
    shutil.rmtree(tmp_path / "trips" / "out")
    described = RELEASE + f'[describe]\nlanguage = "{language}"\n'
    file.write_text(
        described.replace('[ledger]\ndatabase = "ledger.sqlite"\ndataset  = "trips"\n', "")
    )
    page = tmp_path / "plan.html"
    planned = succeeds("plan", file, "--page", page)
    succeeds("release", file)
    out = file.parent / "out"
    plan = ReleaseSpec(file).plan(ReleaseSpec(file).tree())
    facts = json.loads(re.search(r'id="facts">(.*?)</script>', page.read_text(), re.DOTALL)[1])
    report = (out / "report.html").read_text()
    account = succeeds("account", out)
    assert RESTRICTED.match(account.splitlines()[0]), "the answer, which no later line restricts"
    shown = {
        "plan": (planned, 3),
        "account": (account, 3),
        "manifest": (json.loads((out / "manifest.json").read_text())["promise"], 2),
        "str": (str(plan), 2),
        "notebook": (plan._repr_html_(), 2),
        "planning page": (re.search(r'id="promise">(.*?)</p>', page.read_text(), re.DOTALL)[1], 1),
        "learn": (facts["words"]["learn"], 1),
        "privacy": (re.search(r'<p class="big">(.*?)</p>', report, re.DOTALL)[1], 1),
        "who": (re.search(r"<dd>(.*?)</dd>", report.split('id="promise"')[1])[1], 1),
        "exact": (next(p for p in re.findall(r"<p>(.*?)</p>", report) if "satisf" in p), 2),
        "curve": (re.search(r'<title id="test-text">(.*?)</title>', report)[1], 1),
        "cited": (re.search(r"<blockquote[^>]*>(.*?)</blockquote>", report, re.DOTALL)[1], 2),
    }
    for name, (text, least) in shown.items():
        found = promising(text)
        assert len(found) >= least, (name, found)
        assert all(RESTRICTED.search(sentence) for sentence in found), (name, found)


@pytest.mark.usefixtures("few_budgets", "own_division_alone")
@pytest.mark.parametrize(
    ("privacy", "delta"),
    [
        ("epsilon = 1\ndelta = 1e-8", "1e-08"),
        ("epsilon = 0.3\ndelta = 3e-7", "3e-07"),
        ("rho = 0.01", None),
        ('epsilon = 2\nmechanism = "discrete-laplace"', None),
        ("epsilon = 2\ndelta = 1e-8\ncontributions = 3\nexactly = true", "1e-08"),
    ],
)
@pytest.mark.sweep(3)
def test_one_attacker_figure_and_the_epsilon_that_was_asked_for_stand_everywhere(
    succeeds, made, privacy, delta, tmp_path
):
    file = shutil.copytree(made, tmp_path / "trips") / "release.toml"
    out = file.parent / "out"
    shutil.rmtree(out)
    text = RELEASE.replace("epsilon    = 1\ndelta      = 1e-8", privacy)
    file.write_text(text.replace('[ledger]\ndatabase = "ledger.sqlite"\ndataset  = "trips"\n', ""))
    if "contributions" in privacy:
        table = pl.read_csv(file.parent / "trips.csv").with_columns(trips=pl.lit(3))
        table.write_csv(file.parent / "trips.csv")
    page = tmp_path / "plan.html"
    planned = succeeds("plan", file, "--page", page)
    succeeds("release", file)
    plan = ReleaseSpec(file).plan(ReleaseSpec(file).tree())
    told = format_percent(plan.guarantee.power())
    points = json.loads(re.search(r'id="facts">(.*?)</script>', page.read_text(), re.DOTALL)[1])[
        "points"
    ]
    assert points["divisions"][0]["hashes"][points["own"]] == plan.hash
    assert points["divisions"][0]["found"][points["own"]] == float(told)
    account = succeeds("account", out)
    asked = f"{float(plan.budget.epsilon):g}" if hasattr(plan.budget, "epsilon") else ""
    answer = f"ε = {asked}{f' at δ = {delta}' if delta else ''} (" if asked else "ρ = 0.01, ε = "
    assert answer in account.splitlines()[0]
    report = (out / "report.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    for shown in (planned, account, report):
        figures = re.findall(
            r"(?:notices|notices a true difference in|noticed in) at most ([\d.]+) %", shown
        )
        assert figures, shown
        assert set(figures) == {told}
    if delta is not None:
        assert plan.guarantee.epsilon(plan.budget.delta) <= plan.budget.epsilon
        manifest = json.loads((out / "manifest.json").read_text())["promise"]
        for shown in (planned, account, manifest):
            assert f"ε = {asked} at δ = {delta}." in shown
        rows = [
            row.split() for row in account.splitlines() if row.strip().startswith(("1e-", "3e-"))
        ]
        assert rows[0][:2] == [delta, asked], "the δ of the plan comes first"
        assert [
            row[:2] for row in (line.split() for line in planned.splitlines()) if row[:1] == [delta]
        ] == [[delta, asked]]
    else:
        assert rows_of(account)[0] == "1e-05"


def rows_of(account):
    """The δ of the table of prices, in its order."""
    return [row.split()[0] for row in account.splitlines() if re.match(r"\s*\de-\d+ ", row)]


def test_an_epsilon_above_the_one_asked_for_is_printed_as_it_is():
    """At another δ, or where the noise keeps more than was asked, nothing is rounded down."""
    profile = hr.compose([(hr.DiscreteGaussian("100"), 4)])
    exact = profile.epsilon("1e-6")
    protection = Protection(hr.AddRemove())
    for asked, stated in ((exact * 0.999, exact), (exact, Fraction(exact)), (exact * 2, exact * 2)):
        promise = Promise(protection, profile, hr.EpsilonDelta(Fraction(asked), "1e-6"))
        assert promise.epsilon("1e-6") == stated
        assert promise.epsilon("1e-7") == profile.epsilon("1e-7")


def test_a_picture_of_a_release_s_price_carries_its_promise(succeeds, made, tmp_path):
    drawn = tmp_path / "price.svg"
    succeeds("account", made / "out", "--picture", drawn)
    assert "<!-- " in drawn.read_text()
    comments = " ".join(re.findall("<!-- (.*?) -->", drawn.read_text(), re.DOTALL))
    assert whole(comments)


def test_a_promise_that_hides_all_but_its_neighbours_says_no_more():
    areas = hr.Axis.from_frame("home", {"town": ["a", "b"]}, ["town"])
    plan = plain_plan(hr.Tree([areas]), budget=hr.Rho("1/2"))
    assert str(plan.promise) == (
        "The release can differ only so much with or without any one record. The release satisfies "
        "ρ = 0.5 zero-concentrated differential privacy."
    )
    assert plan.protection.restriction is None


def test_of_invariants_of_one_axis_the_finest_is_the_restriction():
    rows = [("x", "p", "a"), ("x", "q", "b"), ("y", "r", "c"), ("y", "r", "d")]
    areas = pl.DataFrame(rows, ["land", "region", "town"], orient="row")
    axis = hr.Axis.from_frame("home", areas, ["land", "region", "town"])
    tree = hr.Tree([axis])

    def protection(*levels):
        plan = plain_plan(
            tree,
            budget=hr.Rho(1),
            neighbours=hr.Replace(),
            invariants=[hr.Invariant("home", level) for level in levels],
        )
        return plan.protection

    assert protection("region", "land") == protection("land", "region") == protection("region")
    assert len({protection(), protection("land"), protection("region")}) == 3
    assert protection("region").restrictions[0].digest == axis.digest


@pytest.mark.parametrize("taken_away", ["[[invariant]]", 'areas  = "table"'])
def test_a_release_is_never_charged_to_an_account_that_says_less(run, succeeds, trips, taken_away):
    """An account opened without the restriction; the release then is refused and costs nothing."""
    shutil.rmtree(trips / "out")
    file, plain = trips / "release.toml", trips / "plain.toml"
    pl.DataFrame({"office": ["a", "b", "c"]}).write_csv(trips / "offices.csv")
    instead = {
        "[[invariant]]": ('[[invariant]]\naxis  = "home"\nlevel = "region"\n', ""),
        'areas  = "table"': ('areas  = "table"', 'areas  = "offices.csv"'),
    }[taken_away]
    plain.write_text(RELEASE.replace(*instead))
    succeeds("ledger", "open", plain, "--rho", "1")
    code, out, err = run("release", file)
    assert (code, out) == (2, "")
    said = {
        "[[invariant]]": "does not say that the counts of home.region by list",
        'areas  = "table"': "does not say that the list of work,",
    }[taken_away]
    assert said in err
    assert "open one, with its cap: hedgerow ledger open FILE --rho" in err
    ledger = Ledger(trips / "ledger.sqlite")
    (account,) = ledger.accounts()
    assert ledger.standing(account).charges == ()
    assert not (trips / "out").exists()
    assert not (trips / "out.staging").exists()


def test_accounts_of_one_dataset_under_other_restrictions_are_said_not_to_limit_each_other(
    run, trips
):
    shutil.rmtree(trips / "out")
    file, plain = trips / "release.toml", trips / "plain.toml"
    plain.write_text(RELEASE.replace('[[invariant]]\naxis  = "home"\nlevel = "region"\n', ""))
    note = "'trips' has several accounts (other neighbours, or other public facts); they do not"
    assert note not in run("ledger", "open", plain, "--rho", "1")[2]
    code, out, err = run("ledger", "open", file, "--rho", "1")
    assert (code, note in err) == (0, True)
    assert whole(out)
    assert note in run("release", file)[2]
    shown = run("ledger", "show", trips / "ledger.sqlite")
    assert note in shown[2]
    accounts = shown[1].split("dataset 'trips'")[1:]
    restricted = ["home.region" in account for account in accounts]
    unspent = [" 0 is spent" in account for account in accounts]
    assert (restricted, unspent) == ([False, True], [True, False])


def test_the_account_of_a_release_names_the_plan_to_compare(run, succeeds, made):
    out = succeeds("account", made / "out")
    stated = json.loads((made / "out" / "manifest.json").read_text())["plan_sha256"]
    assert f"plan {stated}\n" in out
    assert "compare its hash" in out
    assert run("account", made / "out" / "manifest.json")[:2] == (0, out)


def more_noise(manifest, *, parameters=True):
    """σ² and all that follows from it times 10⁸: the release looks 10⁸ times cheaper in ρ."""
    plan = manifest["plan"]
    for use in plan["guarantee"]["uses"]:
        use["sigma2"] += "00000000" if "/" not in use["sigma2"] else ""
        use["sigma2"] = re.sub("^([0-9]+)/", r"\g<1>00000000/", use["sigma2"])
    if parameters:
        uses = iter(plan["guarantee"]["uses"])
        for depth in plan["cuboids"]:
            if depth["kind"] == "measured":
                depth["parameter"] = next(uses)["sigma2"]


def not_worst(manifest):
    manifest["plan"]["guarantee"]["is_worst"] = False


def no_invariant(manifest):
    manifest["plan"]["invariants"] = []


def listed_by_hand(manifest):
    manifest["plan"]["tree"]["axes"][1]["from_table"] = False


def smaller_budget(manifest):
    manifest["plan"]["budget"]["epsilon"] = "1/1000"


def fewer_records(manifest):
    manifest["plan"]["neighbours"]["contributions"] = 1000


def cut_promise(manifest):
    manifest["promise"] = manifest["promise"].replace(EXACT, "").strip()


def no_restriction(manifest):
    manifest["restriction"] = None


DAMAGE = [
    lambda m: m.pop("plan"),
    lambda m: m["plan"].pop("guarantee"),
    lambda m: m.update(plan=[1]),
    lambda m: m["plan"].update(guarantee="none"),
    lambda m: m["plan"]["guarantee"].update(uses=7),
    lambda m: m["plan"]["guarantee"].update(uses=["x"]),
    lambda m: m["plan"]["guarantee"]["uses"][0].update(shifts=3),
    lambda m: m["plan"]["guarantee"]["uses"][0].update(times=10**23),
    lambda m: m["plan"]["guarantee"].update(rho="0"),
    lambda m: m["plan"]["guarantee"].update(rho="1e999999999"),
    lambda m: m.pop("promise"),
    lambda m: m.update(estimator={"method": "magic"}),
]
TAMPERED = [
    more_noise, not_worst, no_invariant, listed_by_hand, smaller_budget, fewer_records,
]  # fmt: skip


def tampered(folder, change, *, rehash):
    path = folder / "out" / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    if rehash and "plan" in manifest:
        manifest["plan_sha256"] = plan_hash(manifest["plan"])
    path.write_text(json.dumps(manifest))
    return folder / "out"


def refused(run, *arguments):
    code, out, err = run(*arguments)
    assert (code, out, err.count("Error: "), "internal" in err) == (2, "", 1, False), (out, err)
    return err


@pytest.mark.parametrize("change", TAMPERED)
def test_the_price_of_a_plan_that_was_rewritten_is_not_told(run, trips, change):
    out = tampered(trips, change, rehash=False)
    for place in (out, out / "manifest.json"):
        assert "not the one that was hashed" in refused(run, "account", place)


@pytest.mark.parametrize(
    "change", [*TAMPERED, lambda m: more_noise(m, parameters=False), cut_promise, no_restriction]
)
def test_nor_where_its_hash_was_computed_again(run, trips, change):
    """The noise is not that of its budget, the list not that of its domain, and so on."""
    said = refused(run, "account", tampered(trips, change, rehash=True))
    assert "is not verified: " in said
    assert "run hedgerow check" in said


@pytest.mark.parametrize("rehash", [False, True])
@pytest.mark.parametrize("change", DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_manifest_is_not_accounted(run, trips, change, rehash):
    refused(run, "account", tampered(trips, change, rehash=rehash))


def test_a_domain_of_other_codes_or_none_is_not_accounted(run, trips):
    place = trips / "out" / "domain" / "home.parquet"
    homes = pl.read_parquet(place)
    homes.with_columns(pl.col("town").replace("n2", "n3")).write_parquet(place)
    said = refused(run, "account", trips / "out")
    assert "the lists of areas in domain/ are not those of the plan" in said
    place.unlink()
    refused(run, "account", trips / "out" / "manifest.json")


def test_a_manifest_by_another_name_is_not_the_one_beside_it(run, trips):
    shutil.copy(trips / "out" / "manifest.json", trips / "out" / "other.json")
    assert "or the manifest.json in it" in refused(run, "account", trips / "out" / "other.json")


def test_whoever_rewrites_a_plan_whole_cannot_keep_its_hash(run, succeeds, trips):
    """Nothing in a file can tell a forgery that is consistent; the hash that was signed can."""
    out = trips / "out"
    manifest = json.loads((out / "manifest.json").read_text())
    signed = manifest["plan_sha256"]
    plan = stated_plan(out, manifest)
    forged = plain_plan(
        plan.tree,
        budget=hr.EpsilonDelta("1/1000", "1e-8"),
        neighbours=plan.neighbours,
        invariants=plan.invariants,
    )
    manifest |= {
        "plan": forged.to_dict(), "plan_sha256": forged.hash, "promise": str(forged.promise),
    }  # fmt: skip
    (out / "manifest.json").write_text(json.dumps(manifest))
    said = succeeds("account", out)
    assert f"plan {forged.hash}\n" in said
    assert signed not in said
    assert run("check", out)[0] == 2, "the counts were not made with this noise"
