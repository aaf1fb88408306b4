"""The ledger's promises: nothing over the cap, nothing twice, nothing lost, nothing changed."""

import shutil
import sqlite3
import stat
from collections import defaultdict
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hedgerow.errors import BudgetError
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from hedgerow.privacy.budget import Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.ledger.ledger import Ledger, create_ledger
from hedgerow.privacy.ledger.records import (
    PLANNED_TOGETHER,
    Account,
    Charge,
    Standing,
    charge_row,
    read_charge,
)
from hedgerow.privacy.neighbours import AddRemove, Replace
from hedgerow.privacy.profile import Profile, compose
from hedgerow.privacy.promise import Protection, Restriction
from hedgerow.privacy.use import Use
from hedgerow.text import format_rounded_up
from tests.own_mechanisms import TwoLaplace

PLAN, OTHER_PLAN = "a" * 64, "b" * 64
NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def gaussian(rho):
    """A composition that costs this ρ."""
    return Profile((Use(DiscreteGaussian(1 / (2 * Fraction(rho))), 1, ((1,),)),))


def laplace(epsilon):
    """A composition that costs this pure ε."""
    return Profile((Use(DiscreteLaplace(1 / Fraction(epsilon)), 1, ((1,),)),))


def charge(release_id, profile, **more):
    return Charge(release_id, profile, **{"plan_hash": PLAN, "at": NOON, **more})


@pytest.fixture
def ledger(tmp_path):
    return create_ledger(tmp_path / "ledger.sqlite")


@pytest.fixture
def account(ledger):
    return ledger.open_account("census", Protection(AddRemove()), Rho(1))


@pytest.fixture
def spend(ledger, account):
    """Charge to the account."""
    return lambda release_id, profile: ledger.charge(account, charge(release_id, profile))


def test_numbers_longer_than_a_person_may_type_are_read_back():
    long = 1 + Fraction(1, 10**1500)
    uses = (
        Use(DiscreteGaussian(long), 2, ((1,),)),
        Use(DiscreteLaplace(long), 1, ((1,),)),
        Use(Epsilon(long), 1, ((1,),)),
        Use(EpsilonDelta(long, 1 / (long + 1)), 1, ((1,),)),
    )
    row = charge_row(charge("r", Profile(uses)))
    assert read_charge(*row).profile.uses == uses


def test_a_new_ledger_is_one_file_that_its_owner_alone_reads(tmp_path):
    ledger = create_ledger(tmp_path / "ledger.sqlite")
    ledger.open_account("census", Protection(AddRemove()), Rho(1))
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.sqlite"]
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600


def test_a_charge_is_read_back_as_it_was_made(ledger, account):
    cest = timezone(timedelta(hours=2))
    uses = (
        Use(DiscreteGaussian("1234567890123456789/1000000007"), 7, ((3, -3),)),
        Use(DiscreteLaplace("220/7"), 40, ((1,),)),
    )
    made = charge("r1", Profile(uses), at=NOON.astimezone(cest))
    assert ledger.charge(account, made) == made
    (found,) = Ledger(ledger.path).standing(account).charges
    assert found == made
    assert (found.at, found.at.tzinfo) == (NOON, UTC)
    assert found.profile.uses == uses


def test_a_cap_can_be_spent_to_the_last_and_no_further(ledger, account, spend):
    for n in range(3):
        spend(f"r{n}", gaussian("1/3"))
    assert (ledger.standing(account).spent, ledger.standing(account).left) == (1, 0)
    with pytest.raises(BudgetError, match="more than is left"):
        spend("r3", gaussian(Fraction(1, 10**30)))
    assert len(ledger.standing(account).charges) == 3


def test_what_is_spent_is_exact_to_any_digit(ledger, account, spend):
    crumb = Fraction(1, 10**20)
    spend("r1", gaussian(1 - crumb))
    assert ledger.standing(account).left == crumb
    with pytest.raises(BudgetError, match="more than is left"):
        spend("r2", gaussian(crumb + Fraction(1, 10**30)))
    spend("r3", gaussian(crumb))


def test_a_refusal_says_spent_cost_and_left_and_costs_nothing(ledger, account, spend):
    spend("r1", gaussian("2/3"))
    spend("r2", gaussian("1/3000000"))
    with pytest.raises(BudgetError) as refused:
        spend("r3", gaussian("1/3"))
    assert str(refused.value) == (
        "this release costs ρ = 0.333334, which is more than is left for dataset 'census' "
        "(add-remove, contributions 1): of the cap ρ = 1, 0.666667 is spent and 0.333333 is left; "
        "give it a smaller budget"
    )
    assert [c.release_id for c in ledger.standing(account).charges] == ["r1", "r2"]


def test_the_same_release_again_is_not_charged_again(ledger, account, spend):
    first = spend("r1", gaussian("2/3"))
    later = charge("r1", gaussian("2/3"), at=NOON + timedelta(days=1))
    assert ledger.charge(account, later) == first
    assert ledger.standing(account).charges == (first,)


@pytest.mark.parametrize(
    "other",
    [
        {"profile": gaussian("1/4")},
        {"profile": Profile((Use(DiscreteGaussian(2), 2, ((1,),)),))},
        {"plan_hash": OTHER_PLAN},
    ],
    ids=["less noise", "same cost by other noise", "another plan"],
)
def test_one_release_is_never_two(ledger, account, spend, other):
    first = spend("r1", gaussian("1/2"))
    with pytest.raises(BudgetError, match=r"'r1' was charged at 2026-05-04 12:00 UTC for another"):
        ledger.charge(account, replace(first, **other))
    assert ledger.standing(account).charges == (first,)


REGIONS = Restriction("home", "region", "1a" * 32)
OTHER_REGIONS = Restriction("home", "region", "2b" * 32)
DISTRICTS = Restriction("home", "district", "1a" * 32)
LIST = Restriction("home", None, "1a" * 32)
PROTECTIONS = [
    Protection(AddRemove()),
    Protection(AddRemove(2)),
    Protection(AddRemove(unit="person")),
    Protection(AddRemove(unit="household")),
    Protection(Replace()),
    Protection(Replace(exactly=False)),
    Protection(Replace(2)),
    *(
        Protection(Replace(), restrictions)
        for restrictions in [(REGIONS,), (OTHER_REGIONS,), (DISTRICTS,), (LIST,), (LIST, REGIONS)]
    ),
]


def test_each_dataset_neighbours_and_restrictions_have_an_account_of_their_own(ledger):
    wanted = [(name, who) for who in PROTECTIONS for name in ("census", "census 2021")]
    for n, (dataset, protection) in enumerate(wanted, start=1):
        account = ledger.open_account(dataset, protection, Rho(n))
        ledger.charge(account, charge("r", gaussian(n)))
    assert [(a.dataset, a.protection) for a in ledger.accounts()] == wanted
    for n, (dataset, protection) in enumerate(wanted, start=1):
        standing = ledger.standing(ledger.account(dataset, protection))
        assert (standing.account.cap, standing.spent) == (Rho(n), n)


def test_the_order_of_restrictions_makes_no_other_account(ledger):
    both = ledger.open_account("census", Protection(Replace(), (LIST, REGIONS, LIST)), Rho(1))
    assert ledger.account("census", Protection(Replace(), (REGIONS, LIST))) == both
    assert len(ledger.accounts()) == 1


EXACT = "the counts of home.region by list {} are published exactly"
SAYS_NOT, HOLDS_ONLY = "does not say that " + EXACT, "holds only where " + EXACT
ONE, TWO = "1a" * 6, "2b" * 6


@pytest.mark.parametrize(
    ("there", "wanted", "lack"),
    [
        ((), (REGIONS,), SAYS_NOT.format(ONE)),
        ((), (LIST,), f"does not say that the list of home, {ONE}, was taken from the table"),
        ((REGIONS,), (), HOLDS_ONLY.format(ONE)),
        ((REGIONS,), (OTHER_REGIONS,), f"{SAYS_NOT.format(TWO)} and {HOLDS_ONLY.format(ONE)}"),
    ],
    ids=["exact counts", "list", "none", "another list"],
)
def test_a_release_is_charged_to_no_account_that_does_not_say_what_is_public(
    ledger, there, wanted, lack
):
    """Else the sum of the account would be promised to a record that is seen to move."""
    account = ledger.open_account("census", Protection(Replace(), there), Rho(1))
    asked = replace(account, protection=Protection(Replace(), wanted))
    for ask in (
        lambda: ledger.account("census", asked.protection),
        lambda: ledger.charge(asked, charge("r", gaussian("1/2"))),
    ):
        with pytest.raises(BudgetError) as refused:
            ask()
        message = f"; the promise of its account {lack}; open one, with its cap"
        assert message in str(refused.value)
    assert ledger.standing(account).charges == ()


def test_a_restriction_is_never_cut(ledger):
    """A note of 500 letters once held it, and two lists with long names lost its end."""
    name = "n" * 200
    long = Restriction(name, "level", "1a" * 32), Restriction("z" * 200, "level", "2b" * 32)
    standing = ledger.standing(ledger.open_account("census", Protection(Replace(), long), Rho(1)))
    assert all(str(restriction) in standing.describe() for restriction in long)
    assert "does not hide anything that these counts give away." in standing.statement("1e-6")
    for bad in ("x" * 501, "a\nb"):
        wrong = Protection(Replace(), (Restriction("home", bad, "1a" * 32),))
        with pytest.raises(BudgetError, match="restriction is one printable line"):
            ledger.open_account("census", wrong, Rho(1))


def test_all_together_is_promised_to_the_neighbours_of_the_account(ledger):
    account = ledger.open_account("census", Protection(Replace(), (REGIONS,)), Rho(1))
    nobody = (
        "Between tables that agree on the counts of home.region, everything charged here can "
        "differ only so much whatever any one record says; the number of records is public."
    )
    restricted = (
        "The guarantee holds between tables that agree on the counts of home.region, which are "
        "published exactly; it does not hide anything that these counts give away."
    )
    none = ledger.standing(account).statement("1e-6")
    assert none == f"Nothing is charged yet. {nobody} {restricted}"
    ledger.charge(account, charge("r1", gaussian("1/4")))
    ledger.charge(account, charge("r2", gaussian("1/4")))
    figure = format_rounded_up(compose([(DiscreteGaussian(2), 2)]).epsilon("1e-6"))
    assert ledger.standing(account).statement("1e-6") == (
        f"{nobody} Between these, everything charged here satisfies ρ = 0.5 zero-concentrated "
        f"differential privacy and ε = {figure} at δ = 1e-06. {restricted} {PLANNED_TOGETHER}"
    )


def test_an_account_that_was_not_opened_is_not_there(ledger):
    ledger.open_account("census", Protection(AddRemove()), Rho(1))
    with pytest.raises(BudgetError, match=r"no account of dataset 'census' \(replace, contribu"):
        ledger.account("census", Protection(Replace()))
    elsewhere = Account("trips", Protection(AddRemove()), Rho(100))
    for ask in (ledger.standing, lambda a: ledger.charge(a, charge("r", gaussian(1)))):
        with pytest.raises(BudgetError, match="no account of dataset 'trips'"):
            ask(elsewhere)


def test_a_cap_is_fixed_when_the_account_is_opened(ledger, account):
    assert ledger.open_account("census", Protection(AddRemove()), Rho("1.0")) == account
    for cap in (Rho(2), Rho("0.999"), Epsilon(1)):
        with pytest.raises(BudgetError, match="has the cap ρ = 1, and a cap is fixed"):
            ledger.open_account("census", Protection(AddRemove()), cap)
    assert ledger.accounts() == (account,)


def test_the_cap_that_counts_is_the_ledgers_own(ledger, account):
    with pytest.raises(BudgetError, match="of the cap ρ = 1"):
        ledger.charge(replace(account, cap=Rho(100)), charge("r", gaussian(2)))


def test_a_pure_account_adds_epsilon_and_takes_nothing_without_one(ledger):
    pure = ledger.open_account("census", Protection(AddRemove()), Epsilon(1))
    ledger.charge(pure, charge("r1", laplace("2/3")))
    with pytest.raises(BudgetError, match="this release has none"):
        ledger.charge(pure, charge("r2", gaussian("1/1000000")))
    with pytest.raises(BudgetError, match=r"costs ε = 0\.333334"):
        ledger.charge(pure, charge("r3", laplace(Fraction(1, 3) + Fraction(1, 10**20))))
    ledger.charge(pure, charge("r4", laplace("1/3")))
    assert ledger.standing(pure).left == 0


def test_an_account_in_rho_takes_laplace_noise_at_its_rho(ledger, account, spend):
    spend("r1", laplace(1))
    assert ledger.standing(account).spent == Fraction(1, 2)


def test_a_release_without_rho_is_not_charged_to_an_account_in_rho(ledger, account, spend):
    guarantee = compose([(EpsilonDelta(1, "1e-10"), 1)])
    with pytest.raises(BudgetError, match="kept in ρ, and this release has none: mere"):
        spend("r", guarantee)
    ledger.charge(account, charge("r", compose([(Epsilon(1), 1)])))
    assert ledger.standing(account).left == Fraction(1, 2)


def test_one_profile_that_is_not_proved_to_be_the_worst_makes_all_so(ledger, account, spend):
    spend("r1", gaussian("1/4"))
    assert ledger.standing(account).together.is_worst
    spend("r2", replace(gaussian("1/4"), is_worst=False))
    spend("r3", gaussian("1/4"))
    assert not ledger.standing(account).together.is_worst


def test_the_exact_profile_of_all_charges_is_that_of_their_uses_together(ledger, account, spend):
    assert ledger.standing(account).together is None
    first, second = gaussian("1/4"), laplace("1/2")
    spend("r1", first)
    spend("r2", second)
    together = ledger.standing(account).together
    assert together == Profile((*first.uses, *second.uses))
    assert together.rho == ledger.standing(account).spent
    assert "planned together" in PLANNED_TOGETHER


def test_where_an_account_stands_is_one_sentence(ledger):
    account = ledger.open_account("trips", Protection(Replace(2, unit="person")), Rho("22/7"))
    ledger.charge(account, charge("r1", gaussian("1/7")))
    assert ledger.standing(account).describe() == (
        "dataset 'trips' (replace, contributions 2, unit 'person', total public): "
        "of the cap ρ = 3.14285, 0.142858 is spent and 3 is left"
    )


@pytest.mark.parametrize("kind", [Rho, Epsilon])
@pytest.mark.parametrize("cap", [0, -1, "-1/2", 0.1, float("nan"), "inf", True])
def test_no_cap_is_a_float_or_nothing_or_less(kind, cap):
    with pytest.raises(BudgetError):
        kind(cap)


@pytest.mark.parametrize("cap", [1, 0.5, "1", Fraction(1), EpsilonDelta(1, "1e-10"), None])
def test_a_cap_is_rho_or_epsilon(ledger, cap):
    with pytest.raises(BudgetError, match="must be Rho"):
        ledger.open_account("census", Protection(AddRemove()), cap)
    assert ledger.accounts() == ()


def test_what_is_too_long_to_write_down_is_refused(ledger, account):
    tiny = Fraction(1, 10**5000)
    with pytest.raises(BudgetError, match="cap has too many digits"):
        ledger.open_account("trips", Protection(AddRemove()), Rho(1 + tiny))
    with pytest.raises(BudgetError, match="profile has too many digits"):
        ledger.charge(account, charge("r", compose([(DiscreteGaussian(1 + tiny), 1)])))
    assert ledger.accounts() == (account,)
    assert ledger.standing(account).charges == ()


@pytest.mark.parametrize(
    "text", ["", " ", " a", "a\n", "a\tb", "a\0b", "\ud800", "x" * 501, 7, None]
)
def test_names_are_one_printable_line(ledger, text):
    with pytest.raises(BudgetError, match="dataset is one printable line"):
        ledger.open_account(text, Protection(AddRemove()), Rho(1))
    with pytest.raises(BudgetError, match="release id is one printable line"):
        charge(text, gaussian(1))
    if text is not None:
        with pytest.raises(BudgetError, match=r"unit (is one printable line|must |has at most)"):
            ledger.open_account("census", Protection(AddRemove(unit=text)), Rho(1))


@pytest.mark.parametrize("plan_hash", ["", "a" * 63, "a" * 65, "A" * 64, "g" * 64, None])
def test_a_plan_is_named_by_its_sha256(plan_hash):
    with pytest.raises(BudgetError, match="64 hexadecimal digits"):
        charge("r", gaussian(1), plan_hash=plan_hash)


@pytest.mark.parametrize("at", [datetime(2026, 5, 4), "2026-05-04", 0, None])  # noqa: DTZ001
def test_a_time_without_a_place_is_no_time(at):
    with pytest.raises(BudgetError, match="offset from UTC"):
        charge("r", gaussian(1), at=at)


def test_a_mechanism_that_cannot_be_read_back_is_not_charged(ledger, account):
    unknown: Any = TwoLaplace(3)  # whose name is in no table of mechanisms
    with pytest.raises(BudgetError, match="cannot write this release's mechanisms down"):
        ledger.charge(account, charge("r", Profile((Use(unknown, 1, ((1,),)),))))
    assert ledger.standing(account).charges == ()


parameters = st.fractions(min_value=Fraction(1, 10**6), max_value=10**12)
mechanisms = st.builds(DiscreteGaussian, parameters) | st.builds(DiscreteLaplace, parameters)
guarantees = st.builds(
    Epsilon, st.fractions(min_value=Fraction(1, 10**6), max_value=10)
) | st.builds(
    EpsilonDelta,
    st.fractions(min_value=Fraction(1, 10**6), max_value=10),
    st.fractions(min_value=Fraction(1, 10**30), max_value=Fraction(1, 2)),
)
shifts = st.lists(st.integers(-9, 9).filter(bool), min_size=1, max_size=3).map(tuple)
times = st.integers(1, 10**9)


def uses_in(cases):
    """Uses whose changes depend on so many cases, and guarantees."""
    each = st.tuples(*[shifts if case == 0 else shifts | st.just(()) for case in range(cases)])
    single = st.just(((1,),))
    return st.builds(Use, mechanisms, times, each) | st.builds(Use, guarantees, times, single)


profiles = st.integers(1, 3).flatmap(
    lambda cases: st.builds(
        Profile, st.lists(uses_in(cases), min_size=1, max_size=4).map(tuple), st.booleans()
    )
)


@pytest.mark.slow
@given(profile=profiles, at=st.datetimes(timezones=st.timezones()))
def test_every_composition_is_written_down_exactly(profile, at):
    made = charge("r", profile, at=at)
    row = charge_row(made)
    assert all(type(text) is str for text in row)
    assert read_charge(*row) == made


STEPS = st.tuples(
    st.sampled_from(["pure", "rho"]),
    st.integers(0, 7),  # the release
    st.sampled_from(["1/2", "1/3", "1/7", "1/100"]),
    st.sampled_from([gaussian, laplace]),
    st.sampled_from([PLAN, PLAN, OTHER_PLAN]),
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(STEPS, min_size=5, max_size=25))
def test_a_ledger_does_what_a_dictionary_would(tmp_path_factory, steps):
    ledger = create_ledger(tmp_path_factory.mktemp("model") / "ledger.sqlite")
    accounts = {
        "rho": ledger.open_account("census", Protection(AddRemove()), Rho(1)),
        "pure": ledger.open_account("census", Protection(Replace()), Epsilon(1)),
    }
    model: defaultdict[str, dict[str, Charge]] = defaultdict(dict)
    for name, release, amount, noise, plan in steps:
        made = charge(f"r{release}", noise(amount), plan_hash=plan)
        entries = model[name]
        prices = [
            c.profile.rho if name == "rho" else c.profile.pure_epsilon
            for c in [*entries.values(), made]
        ]
        if made.release_id in entries:
            fits = entries[made.release_id] == made
        else:
            fits = None not in prices and sum(prices, Fraction(0)) <= 1
        if fits:
            entries.setdefault(made.release_id, made)
            assert ledger.charge(accounts[name], made) == made
        else:
            with pytest.raises(BudgetError):
                ledger.charge(accounts[name], made)
    for name, account in accounts.items():
        assert ledger.standing(account).charges == tuple(model[name].values())


def test_a_standing_can_be_asked_before_anything_is_charged():
    standing = Standing(Account("census", Protection(AddRemove()), Rho(1)), (), "")
    standing.check(gaussian(1))
    with pytest.raises(BudgetError, match="0 is spent and 1 is left"):
        standing.check(gaussian("1.000001"))


def test_each_charge_seals_those_before_it(ledger, account, tmp_path):
    other = Ledger(shutil.copy(ledger.path, tmp_path / "other.sqlite"))
    digests = []
    for each, amount in ((ledger, "1/4"), (other, "1/5")):
        each.open_account("census", Protection(AddRemove()), Rho(1))
        seen = [each.standing(account).digest]
        for made in (charge("r1", gaussian(amount)), charge("r2", gaussian("1/2"))):
            each.charge(account, made)
            seen.append(each.standing(account).digest)
        digests.append(seen)
    assert digests[0][0] == digests[1][0]
    assert len({*digests[0], *digests[1]}) == 5
    unlike = create_ledger(tmp_path / "unlike.sqlite")
    unlike.open_account("census", Protection(AddRemove()), Rho(1))
    assert unlike.standing(account).digest != digests[0][0], "entries are of their ledger alone"


def test_nothing_in_the_file_depends_on_a_table(ledger):
    """The columns, so that a new one is asked what it gives away."""
    with closing(sqlite3.connect(ledger.path)) as connection:
        columns = {
            table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            for table in ("identity", "account", "charge")
        }
    assert columns == {
        "identity": ["one", "id"],
        "account": ["id", "dataset", "protection", "measure", "cap", "digest"],
        "charge": [
            *("account", "number", "release_id", "charged_at", "plan_hash", "profile", "digest"),
        ],
    }


def test_a_path_is_taken_as_it_is(tmp_path):
    path: Path = tmp_path / "a ?mode=ro#%20 ledger.sqlite"
    create_ledger(path).open_account("census", Protection(AddRemove()), Rho(1))
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
