"""The whole release keeps its promise as far as anyone can see; see `tests.audit.method`."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.distribution.plan import plan_distribution
from hedgerow.distribution.ranges import Ranges
from hedgerow.estimate.families.isotonic import Isotonic
from hedgerow.noise import rejection as draws
from hedgerow.noise.bits import ReleaseKey
from hedgerow.plan import chain as planned_chain
from hedgerow.plan.cuboids import RunningSums
from hedgerow.release.descent.steps import Families
from hedgerow.release.distribution.release import distribution_in_memory
from hedgerow.release.execution import in_memory
from tests.audit import method
from tests.audit.method import excess
from tests.audit.releases import Pair
from tests.made import fixed_axis, plain_plan

FULL = np.array([40, 40, 40, 40])  # every node survives
SPARSE = np.array([1, 0, 2, 0])  # what survives is chance
MOVED = np.array([-1, 0, 0, 1])  # to another branch: every depth but the total changes twice
ADDED = np.array([0, 0, 0, 1])
RHO, PURE = hr.Rho("1/2"), hr.Epsilon(1)
REPLACE, ADD_REMOVE = hr.Replace(), hr.AddRemove()


def in_a_line(change, start=FULL, estimator=None, **options):
    """One axis of two levels, two children each."""
    plan = plain_plan(hr.Tree([fixed_axis("geo", 2, 2)]), **options)
    return pair(plan, start, start + change, estimator)


def trips(change, start, **options):
    """Origins and destinations of two levels, two children each, refined in turns."""
    axes = [fixed_axis(n, 2, 2, columns=[f"{n}1", f"{n}2"]) for n in ("origin", "destination")]
    plan = plain_plan(hr.Tree(axes), **options)
    before = np.full((4, 4), start)
    after = before.copy()
    for place, by in change.items():
        after[place] += by
    return pair(plan, before, after)


def trips_cubed(change, start, **options):
    """The same with every combination of levels measured."""
    options = {"budget": RHO, **options}
    found = trips(change, start, workload=hr.Cube(), **options)
    return replace(found, release=with_estimator(hr.Euclidean()))


def trips_named(names, change, start, **options):
    """The same with the cuboids measured that are named: two tables, or margins and leaves."""
    options = {"budget": RHO, **options}
    found = trips(change, start, workload=hr.Cuboids(names), **options)
    return replace(found, release=with_estimator(hr.Euclidean()))


def incomes(budget, neighbours, release, measure=None):
    """A numeric column in eight bins."""
    ranges = Ranges.equal_width("income", 0, 8, 8)
    plan = plan_distribution(ranges, budget=budget, neighbours=neighbours, measure=measure)
    before, after = np.array([2, 3, 0, 5, 1, 0, 0, 1]), np.array([3, 3, 0, 5, 1, 0, 0, 1])
    after[-1] -= neighbours.total_is_public
    return Pair(plan, before, after, release)


def pair(plan, first, second, estimator=None):
    return Pair(plan, first, second, with_estimator(estimator or hr.Chebyshev()))


def with_estimator(chosen):
    return lambda counts, plan, bits: in_memory(counts, plan, estimator=chosen, bits=bits)


def of_column(counts, plan, bits):
    return distribution_in_memory(counts, plan, bits=bits).release


OUT, BACK = (0, 0), (3, 3)
ASIDE = (3, 1)  # at another place of each cuboid, so that shared noise does not cancel out
TABLES = ["origin.level2 × destination.level1", "origin.level1 × destination.level2"]
MARGINS = ["origin.level2", "destination.level2", "origin.level2 × destination.level2"]
LAPLACE = {"budget": PURE, "mechanism": hr.DiscreteLaplace}
GAUSS = {"budget": RHO}

PAIRS = {
    "moved": in_a_line(MOVED, neighbours=REPLACE, **GAUSS),
    "moved, sparse": in_a_line(MOVED, SPARSE, neighbours=REPLACE, **GAUSS),
    "moved, sparse, all": in_a_line(MOVED, SPARSE, neighbours=REPLACE, measure=hr.All(), **GAUSS),
    "moved, Laplace": in_a_line(MOVED, neighbours=REPLACE, **LAPLACE),
    "moved, Laplace, sparse, all": in_a_line(
        MOVED, SPARSE, hr.Euclidean(), neighbours=REPLACE, measure=hr.All(), **LAPLACE
    ),
    "added": in_a_line(ADDED, neighbours=ADD_REMOVE, **GAUSS),
    "added, sparse": in_a_line(ADDED, SPARSE, neighbours=ADD_REMOVE, **GAUSS),
    "added, all": in_a_line(ADDED, neighbours=ADD_REMOVE, measure=hr.All(), **GAUSS),
    "added, Laplace": in_a_line(ADDED, neighbours=ADD_REMOVE, **LAPLACE),
    "added, Laplace, sparse, all": in_a_line(
        ADDED, SPARSE, neighbours=ADD_REMOVE, measure=hr.All(), **LAPLACE
    ),
    "two added": in_a_line(2 * ADDED, neighbours=hr.AddRemove(2), **GAUSS),
    "moved, total measured": in_a_line(MOVED, neighbours=hr.Replace(exactly=False), **GAUSS),
    "cube, moved": trips_cubed({OUT: -1, BACK: 1}, 30, neighbours=REPLACE, measure=hr.All()),
    "cube, moved, sparse": trips_cubed(
        {OUT: -1, BACK: 1}, 1, neighbours=REPLACE, measure=hr.Survivors()
    ),
    "cube, added": trips_cubed({BACK: 1}, 1, neighbours=ADD_REMOVE, measure=hr.All()),
    "two tables, moved": trips_named(
        TABLES, {OUT: -1, ASIDE: 1}, 1, neighbours=REPLACE, measure=hr.All()
    ),
    "margins and leaves, moved, sparse": trips_named(
        MARGINS, {OUT: -1, ASIDE: 1}, 1, neighbours=REPLACE, measure=hr.Survivors()
    ),
    "trips moved": trips({OUT: -1, BACK: 1}, 30, neighbours=REPLACE, **GAUSS),
    "a trip added": trips({BACK: 1}, 1, neighbours=ADD_REMOVE, **GAUSS),
    "incomes": incomes(hr.Epsilon(2), REPLACE, of_column),
    "sums of incomes": incomes(RHO, REPLACE, of_column, RunningSums()),
    "sums of incomes, added": incomes(RHO, ADD_REMOVE, of_column, RunningSums()),
    "sums, counts alone": incomes(RHO, REPLACE, with_estimator(Isotonic()), RunningSums()),
    "copies of incomes": incomes(PURE, REPLACE, with_estimator(hr.Euclidean())),
    "copies of Gaussian incomes": incomes(RHO, REPLACE, with_estimator(hr.Euclidean()), hr.All()),
}


@dataclass(frozen=True)
class Audit:
    """Which pair is released how often, and whether its whole budget shows."""

    pair: str
    releases: int = 400
    side_by_side: bool = False
    whole: bool = False

    def __str__(self):
        return f"{self.pair}, {'side by side' if self.side_by_side else 'one by one'}"

    def run(self, **changes):
        found = replace(PAIRS[self.pair], seed=str(self), **changes)
        return (found.side_by_side if self.side_by_side else found.one_by_one)(self.releases)


def copies(name, *, whole=True):
    return Audit(name, COPIES, side_by_side=True, whole=whole)


COPIES = 100_000
TRUE_CODE = [
    copies("moved"),
    copies("moved, sparse", whole=False),
    copies("moved, sparse, all"),
    copies("moved, Laplace"),
    copies("moved, Laplace, sparse, all"),
    copies("added"),
    copies("added, all"),
    copies("added, Laplace"),
    copies("trips moved"),
    copies("copies of incomes"),
    copies("copies of Gaussian incomes"),
    Audit("moved"),
    Audit("added"),
    Audit("added, sparse"),
    Audit("added, Laplace, sparse, all"),
    Audit("two added"),
    Audit("moved, total measured"),
    Audit("a trip added"),
    Audit("incomes"),
    Audit("cube, moved"),
    Audit("cube, moved, sparse"),
    Audit("cube, added"),
    Audit("two tables, moved"),
    Audit("margins and leaves, moved, sparse"),
    Audit("sums of incomes"),
    Audit("sums of incomes, added"),
    Audit("sums, counts alone", 4_000),
]
ON_DISK, IN_JOBS = copies("moved"), [copies("moved"), copies("moved, sparse, all")]
IN_JOBS = [replace(audit, releases=2_000) for audit in IN_JOBS]
MISSED = 0.015
"""By how much an audit of 100,000 copies may stay below a promise that is spent to the full."""


@pytest.mark.parametrize("audit", TRUE_CODE, ids=str)
@pytest.mark.sweep(3)
def test_no_test_tells_neighbours_apart_better_than_promised(audit):
    plan, events = audit.run()
    found = excess(events, plan.guarantee)
    assert found <= 0, "a contradiction of the promise"
    for delta in (1e-2, 1e-6):
        assert max(event.epsilon(delta) for event in events) <= plan.guarantee.epsilon(delta)
    if audit.whole:
        assert found > -MISSED, "the best test is as good as promised: nothing was added in vain"


def test_what_lies_in_the_directory_tells_no_more_than_promised(tmp_path):
    """The release as users make it, under a fresh key, read back from its files."""

    def to_directory(counts, plan, _bits):
        return hr.release(counts, plan, directory=tmp_path / f"{len(list(tmp_path.iterdir()))}")

    plan, events = ON_DISK.run(release=to_directory)
    assert -MISSED < excess(events, plan.guarantee) <= 0


@pytest.mark.parametrize("audit", IN_JOBS, ids=str)
def test_a_tree_that_is_cut_into_jobs_keeps_the_same_promise(audit, monkeypatch):
    for name in ("UNCUT_LEAVES", "UNCUT_LEAVES_OF_ALL"):
        monkeypatch.setattr(planned_chain, name, 0)
    monkeypatch.setattr(planned_chain, "MIN_JOBS", audit.releases + 1)
    plan, events = audit.run()
    assert plan.design.cut > plan.public_depth
    assert excess(events, plan.guarantee) <= 0


def test_all_audits_share_the_chance_of_a_false_alarm():
    assert len(TRUE_CODE) + len([ON_DISK]) + len(IN_JOBS) <= method.AUDITS
    _, events = Audit("moved", 8).run()
    bounds = 2 * len(events) * method.AUDITS
    assert bounds * method.LEVEL == pytest.approx(method.ALPHA)
    # no error in n runs: Clopper and Pearson's bound solves (1 - p)^n = level
    assert (1 - method.upper_bound(0, 50)) ** 50 == pytest.approx(method.LEVEL)
    assert method.upper_bound(50, 50) == 1


def less_noise(monkeypatch, kind, factor):
    """Draws have the parameter that the plan says times a factor."""

    def draw(mechanism, stream, start, out):
        draws.draw(kind(mechanism.parameter * factor).law, stream, start, out)

    monkeypatch.setattr(kind, "draw", draw)


@pytest.mark.parametrize(
    ("audit", "kind", "factor"),
    [
        (copies("moved"), hr.DiscreteGaussian, Fraction(1, 2)),
        (copies("moved, Laplace"), hr.DiscreteLaplace, Fraction(7, 10)),
        (copies("copies of incomes"), hr.DiscreteLaplace, Fraction(7, 10)),
        (Audit("sums, counts alone", 4_000), hr.DiscreteGaussian, Fraction(1, 2)),
        (replace(copies("added"), releases=300_000), hr.DiscreteGaussian, Fraction(9, 10)),
    ],
    ids=["Gauss", "Laplace", "Laplace in bins", "half in sums", "nine tenths"],
)
def test_too_little_noise_is_found(monkeypatch, audit, kind, factor):
    less_noise(monkeypatch, kind, factor)
    plan, events = audit.run()
    assert excess(events, plan.guarantee) > 0


def test_too_much_noise_is_found(monkeypatch):
    less_noise(monkeypatch, hr.DiscreteGaussian, Fraction(12, 10))
    plan, events = copies("moved").run()
    assert excess(events, plan.guarantee) < -MISSED


def test_a_replaced_record_that_is_priced_as_one_shift_is_found(monkeypatch):
    """The noise is the true plan's; what it is said to cost is half."""
    right = PAIRS["moved"].plan
    monkeypatch.setattr(hr.Replace, "changes", lambda _, depth: ((1,) if depth else (),))
    cheap = plain_plan(right.tree, budget=hr.Rho("1/4"), neighbours=REPLACE)
    assert cheap.depths == right.depths
    plan, events = copies("moved").run(plan=cheap)
    assert excess(events, plan.guarantee) > 0


def test_a_cuboid_that_is_not_charged_is_found(monkeypatch):
    """The leaves have four fifths of the budget, and are left out of the composition."""
    part = {"origin": ["0.05", "0.05", "0.9"], "destination": ["0.05", "0.05", "0.9"]}
    options = {"neighbours": REPLACE, "measure": hr.All(), "allocation": hr.Shares(part)}
    options["budget"] = hr.Rho(4)
    right = trips_cubed({OUT: -1, BACK: 1}, 30, **options).plan
    find_uncharged(monkeypatch, replace(PAIRS["cube, moved"], plan=right))


def test_a_named_table_that_is_not_charged_is_found(monkeypatch):
    """One of two tables has four fifths of the budget, and is left out of the composition."""
    shares = hr.Shares(dict(zip(TABLES, ("0.8", "0.2"), strict=True)))
    options = {"neighbours": REPLACE, "measure": hr.All(), "allocation": shares}
    options["budget"] = hr.Rho(8)
    find_uncharged(monkeypatch, trips_named(TABLES, {OUT: -1, BACK: 1}, 30, **options))


def find_uncharged(monkeypatch, pair):
    """Find the use of a pair's last cuboid, which is not charged."""
    right = pair.plan
    monkeypatch.setitem(PAIRS, "uncharged", pair)
    _, events = Audit("uncharged").run()
    assert excess(events, right.guarantee) <= 0
    left_out = replace(right.guarantee, uses=right.guarantee.uses[:-1])
    assert excess(events, left_out) > 0


@pytest.mark.parametrize("name", ["two tables, moved", "margins and leaves, moved, sparse"])
@pytest.mark.sweep(2)
def test_noise_that_two_named_cuboids_share_is_found(monkeypatch, name):
    """All cuboids draw from one stream."""
    stream = ReleaseKey.stream
    monkeypatch.setattr(ReleaseKey, "stream", lambda key, *_: stream(key, 0))
    plan, events = Audit(name).run()
    assert excess(events, plan.guarantee) > 0


@pytest.mark.parametrize(
    "name", ["moved", "added", "a trip added", "cube, moved", "cube, moved, sparse", "cube, added"]
)
@pytest.mark.sweep(3)
def test_noise_that_is_reused_between_cuboids_is_found(monkeypatch, name):
    """The place of a stream lacks one level."""
    stream = ReleaseKey.stream
    monkeypatch.setattr(ReleaseKey, "stream", lambda key, *place: stream(key, *place[:-1]))
    plan, events = Audit(name).run()
    assert excess(events, plan.guarantee) > 0


def test_a_total_that_is_leaked_under_add_remove_is_found(monkeypatch):
    monkeypatch.setattr(hr.AddRemove, "total_is_public", property(lambda _: True))
    tree = PAIRS["added"].plan.tree
    leaking = plain_plan(tree, budget=RHO, neighbours=ADD_REMOVE)
    plan, events = Audit("added").run(plan=leaking)
    assert excess(events, plan.guarantee) > 0


@pytest.mark.parametrize(
    "audit", [copies("moved, sparse", whole=False), Audit("added, sparse", 600)], ids=str
)
def test_a_domain_that_is_taken_from_the_data_is_found(monkeypatch, audit):
    """Cells that the table does not hold get no noise: they are as good as not there."""

    add = Families.add

    def of_the_table(families, noisy, counts):
        noise = noisy.copy()
        noisy[:] = 0
        add(families, noisy, counts)
        noisy[noisy > 0] += noise[noisy > 0]

    monkeypatch.setattr(Families, "add", of_the_table)
    plan, events = audit.run()
    assert excess(events, plan.guarantee) > 0
