"""The plans of the oracle: one of every kind of workload, and each way of measuring it.

One entry is a name and what makes its `Case`: a public tree, a table over it, and a plan of which
every argument is given. A new engine, workload or model joins by one entry. The audit by record and
replay goes over the same list (`tests/audit/test_replay.py`).
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import polars as pl

import hedgerow as hr
from hedgerow.estimate.estimator import Estimator
from tests.oracle.made import axis, keeping, kinds_of_nodes, table

TIES = "a solver of dense matrices, whose last digits differ by processor, decides between units"
"""So it is for workloads without a closed form: the units of several cells cost the same."""
SMALL = {
    "hedgerow.plan.chain.UNCUT_LEAVES": 0,
    "hedgerow.plan.chain.UNCUT_LEAVES_OF_ALL": 0,
    "hedgerow.plan.chain.MIN_JOBS": 8,
    "hedgerow.plan.spine.UNCUT": 0,
    "hedgerow.plan.spine.MOST_ABOVE_THE_CUT": 300,
    "hedgerow.plan.spine.WORTH_A_JOB": 40,
    "hedgerow.plan.tables.LEAST_SAVED": 0,
}
"""Limits under which a small tree is cut into jobs as a large one is."""


COUNTED = ("counts", "contradicted", "file counts", "file report.html", "area", "sum")
"""Digests of what holds whole counts, as `tests.oracle.recording` calls them."""
LISTED = ("estimate", "standard_error", "intervals", "file measurements")
"""What there is of listed cells alone, where survivors are measured."""


@dataclass(frozen=True, eq=False)
class Case:
    """A table and how it is released.

    Attributes:
        counts: the table.
        plan: what is measured.
        estimator: of the release.
        in_jobs: whether limits are `SMALL`, so that the tree is cut.
        sums: axis = level or column, for each sum that is asked for beside the plan's cuboids.
        areas: an axis's level whose nodes make areas that overlap, and what stands beside them.
        ties: why whole counts are not the same on every machine; empty where they are.
    """

    counts: hr.Counts
    plan: hr.Plan
    estimator: Estimator = field(default_factory=hr.Euclidean)
    in_jobs: bool = False
    sums: tuple[Mapping[str, str], ...] = ()
    areas: tuple[str, Mapping[str, str]] | None = None
    ties: str = ""

    @contextmanager
    def limits(self):
        """Hold the limits of the case."""
        with ExitStack() as held:
            for place, limit in (SMALL if self.in_jobs else {}).items():
                held.enter_context(mock.patch(place, limit))
            yield

    @property
    def left_out(self):
        """How the quantities begin that hang on ties; none where there are none."""
        if not self.ties:
            return ()
        plan = self.plan
        below = [plan.tree.name_of(levels) for levels in plan.levels if not plan.is_whole(levels)]
        drawn = [f"{what} {name}" for name in below for what in ("noise", "noisy counts")]
        return (*COUNTED, *(LISTED if below else ()), *drawn)

    def lookup(self):
        """Areas of three kinds by turns, and one of the first five nodes, beside the others."""
        column, _ = self.areas
        own = next(a for a in self.plan.tree.axes if column in a.columns)
        codes = own.keys(own.columns.index(column) + 1)[column]
        turns = [f"area {i % 3}" for i in range(len(codes))]
        few = pl.DataFrame({column: codes[:5], "area": ["the first"] * min(5, len(codes))})
        return pl.concat([pl.DataFrame({column: codes, "area": turns}), few])


ONE, MANY = hr.AddRemove(1), hr.AddRemove(3)
MOVED, MOVED_TWICE, LOOSE = hr.Replace(1), hr.Replace(2), hr.Replace(2, exactly=False)
GAUSS, LAPLACE = hr.DiscreteGaussian, hr.DiscreteLaplace
RHO, PURE, NARROW = hr.Rho("1/4"), hr.Epsilon("3/2"), hr.Rho(9)  # the last: σ² below 1
SURVIVORS, ALL, CHAIN, CUBE = hr.Survivors(), hr.All(), hr.Chain(), hr.Cube()
CHEBYSHEV, SPARSE = hr.Chebyshev(), hr.Sparse(penalty=0.5)


def place():
    """Three uneven levels."""
    return axis("place", (5,), (4, 2, 6), (9, 3, 14, 1))


def narrow():
    """A level of which no family has a second child."""
    return axis("place", (9,), (1,), (8, 3, 17))


def case(tree, name, neighbours, budget, shares, workload, measure, **more):
    """A case; what is more are the plan's facts, the table's size, and what a `Case` has."""
    asked = {k: more.pop(k) for k in ("estimator", "in_jobs", "sums", "areas", "ties") if k in more}
    facts = {k: more.pop(k, ()) for k in ("invariants", "public", "accept")}
    usual = LAPLACE if isinstance(budget, hr.Epsilon) else GAUSS
    mechanism = more.pop("mechanism", usual)
    counts = more.pop("counts", None) or table(tree, name, **more)
    plan = hr.make_plan(
        tree,
        budget=budget,
        neighbours=neighbours,
        mechanism=mechanism,
        allocation=hr.Shares(shares),
        workload=workload,
        measure=measure,
        **facts,
    )
    return Case(counts, plan, **asked)


# --- chains -------------------------------------------------------------------------------------

OWN_AREAS: dict[str, Any] = {"areas": ("place_level3", {})}


def chain(neighbours, budget, measure, shares, **more):
    """Of one axis."""
    tree = hr.Tree([more.pop("axis", place)()])
    areas = {} if measure is SURVIVORS else OWN_AREAS
    return case(tree, "chain", neighbours, budget, shares, CHAIN, measure, **areas, **more)


BY_TURNS = ["from.level1", "to.level1", "from.level2", "to.level2"]
FROM_FIRST = ["from.level1", "from.level2", "to.level1", "to.level2"]


def flows(neighbours, budget, measure, shares, refine=BY_TURNS, **more):
    """Of two axes."""
    there = axis("to", (4,), (4, 1, 5))
    tree = hr.Tree([axis("from", (5,), (3, 2, 6)), there], refine=refine)
    areas = {} if measure is SURVIVORS else {"areas": ("from_level2", {"to": "level1"})}
    sums = {"sums": ({"to": "level1"}, {"from": "level2"})}
    return case(
        tree,
        "flows",
        neighbours,
        budget,
        shares,
        CHAIN,
        measure,
        **areas,
        **sums,
        filled=30,
        **more,
    )


FROM_1 = hr.Invariant("from", "level1")
PLACE_1, PLACE_2 = hr.Invariant("place", "level1"), hr.Invariant("place", "level2")
QUARTERS, TENTHS = ["1/4"] * 4, ["0.1", "0.2", "0.3", "0.4"]
CHAINS: dict[str, Callable[[], Case]] = {
    "chain, survivors": lambda: chain(ONE, RHO, SURVIVORS, QUARTERS),
    "chain, all": lambda: chain(MOVED, RHO, ALL, ["1/5", "3/10", "1/2"]),
    "chain, all, ε and δ": lambda: chain(
        ONE, hr.EpsilonDelta("1", "1e-8"), ALL, ["0.1", "0.2", "0.3", "0.4"]
    ),
    "chain, survivors, Laplace": lambda: chain(MANY, PURE, SURVIVORS, QUARTERS),
    "chain, all, Laplace": lambda: chain(LOOSE, PURE, ALL, QUARTERS),
    "chain, survivors, a gap": lambda: chain(MOVED_TWICE, RHO, SURVIVORS, ["1/2", "0", "1/2"]),
    "chain, all, gaps": lambda: chain(ONE, RHO, ALL, ["0", "1/3", "0", "2/3"]),
    "chain, survivors, an invariant": lambda: chain(
        MOVED, RHO, SURVIVORS, ["1/3", "2/3"], invariants=[PLACE_1]
    ),
    "chain, all, an invariant": lambda: chain(MOVED, PURE, ALL, ["1"], invariants=[PLACE_2]),
    "chain, survivors, only children": lambda: chain(
        LOOSE, RHO, SURVIVORS, ["1/6", "1/3", "1/2"], axis=narrow
    ),
    "chain, all, only children": lambda: chain(ONE, PURE, ALL, ["1/6", "1/3", "1/2"], axis=narrow),
    "chain, survivors, little noise": lambda: chain(
        MOVED, NARROW, SURVIVORS, ["1/6", "1/3", "1/2"]
    ),
    "chain, all, little noise": lambda: chain(ONE, NARROW, ALL, ["0.1", "0.2", "0.3", "0.4"]),
    "chain, survivors, in jobs": lambda: chain(ONE, RHO, SURVIVORS, QUARTERS, in_jobs=True),
    "chain, all, in jobs": lambda: chain(MOVED, RHO, ALL, ["1/5", "3/10", "1/2"], in_jobs=True),
    "chain, survivors, Chebyshev": lambda: chain(
        ONE, RHO, SURVIVORS, QUARTERS, estimator=CHEBYSHEV
    ),
    "chain, all, Chebyshev": lambda: chain(ONE, RHO, ALL, QUARTERS, estimator=CHEBYSHEV),
    "chain, survivors, sparse": lambda: chain(
        MOVED, RHO, SURVIVORS, ["1/6", "1/3", "1/2"], estimator=SPARSE, filled=20
    ),
    "chain, all, sparse": lambda: chain(
        MOVED, RHO, ALL, ["1/6", "1/3", "1/2"], estimator=SPARSE, filled=20
    ),
    "flows, survivors": lambda: flows(MOVED, RHO, SURVIVORS, TENTHS),
    "flows, survivors, a gap, in jobs": lambda: flows(
        MANY, RHO, SURVIVORS, ["0.1", "0.2", "0.3", "0", "0.4"], in_jobs=True
    ),
    "flows, survivors, in jobs of several depths": lambda: flows(
        ONE, RHO, SURVIVORS, ["0.1", "0.2", "0.2", "0.2", "0.3"], FROM_FIRST, in_jobs=True
    ),
    "flows, all, a gap": lambda: flows(ONE, PURE, ALL, ["0.1", "0.2", "0", "0.3", "0.4"]),
    "flows, all, an invariant, in jobs": lambda: flows(
        MOVED, RHO, ALL, ["0.2", "0.3", "0.5"], FROM_FIRST, invariants=[FROM_1], in_jobs=True
    ),
}  # fmt: skip

# --- cubes --------------------------------------------------------------------------------------

BESIDE = ({"kind": "level1"}, {"place": "level1"})


def cube(neighbours, budget, measure, shares, **more):
    """Of two axes, or of three where shares name a third."""
    axes = [axis("place", (4,), (6, 3, 9)), axis("kind", (5,), (2, 1, 4))]
    if "age" in shares:
        axes = [axes[0], axis("kind", (3,)), axis("age", (2,), (2, 3))]
    areas = {} if measure is SURVIVORS else {"areas": ("place_level2", {"kind": "level1"})}
    tree = hr.Tree(axes)
    return case(
        tree, "cube", neighbours, budget, shares, CUBE, measure, sums=BESIDE, **areas, **more
    )


EVEN = {"place": ["1/4", "1/4", "1/2"], "kind": ["1/4", "1/2", "1/4"]}
GAPS = {"place": ["0", "1/3", "2/3"], "kind": ["1/4", "0", "3/4"]}
THREE = {"place": ["1/4", "1/4", "1/2"], "kind": ["1/3", "2/3"], "age": ["1/5", "1/5", "3/5"]}
NO_PRODUCT = {
    "kind.level1": "0.1", "place.level1": "0.2", "kind.level2": "0.1", "place.level2": "0.1",
    "place.level1 × kind.level1": "0.2", "place.level2 × kind.level2": "0.3",
}  # fmt: skip
CUBES: dict[str, Callable[[], Case]] = {
    "cube, all": lambda: cube(MOVED, RHO, ALL, EVEN),
    "cube, all, in jobs": lambda: cube(ONE, RHO, ALL, EVEN, in_jobs=True),
    "cube, all, Laplace": lambda: cube(MANY, PURE, ALL, EVEN),
    "cube, all, no product": lambda: cube(MOVED_TWICE, RHO, ALL, NO_PRODUCT, ties=TIES),
    "cube, all, gaps": lambda: cube(LOOSE, RHO, ALL, GAPS),
    "cube, all, little noise": lambda: cube(ONE, hr.Rho(30), ALL, EVEN),
    "cube, all, an invariant": lambda: cube(MOVED, RHO, ALL, EVEN, invariants=[PLACE_1]),
    "cube, survivors": lambda: cube(ONE, RHO, SURVIVORS, EVEN, filled=30),
    "cube, survivors, Laplace": lambda: cube(MOVED, PURE, SURVIVORS, EVEN, filled=30),
    "cube, survivors, an invariant": lambda: cube(
        MOVED_TWICE, RHO, SURVIVORS, EVEN, invariants=[PLACE_1], filled=30
    ),
    "three axes, all": lambda: cube(MOVED, RHO, ALL, THREE),
    "three axes, all, Laplace": lambda: cube(LOOSE, PURE, ALL, THREE),
}

# --- named cuboids ------------------------------------------------------------------------------


def named(names, neighbours, budget, measure, shares, *, chain=False, **more):
    """Of an uneven axis and two of two levels, or of the axes that are given."""
    axes = more.pop("axes", None) or [
        axis("place", (4,), (6, 3, 9)),
        axis("kind", (5,)),
        axis("age", (3,)),
    ]
    tree, workload = hr.Tree(axes), hr.Cuboids(names, chain=chain)
    shares = dict(zip(more.pop("shared", names), shares, strict=True))
    return case(tree, "named", neighbours, budget, shares, workload, measure, **more)


ALONG = ["place.level1 × kind.level1", "place.level2 × age.level1", "kind.level1 × age.level1",
         "place.level2 × kind.level1 × age.level1"]  # fmt: skip
TWO_TABLES = ["place.level2 × kind.level1", "place.level2 × age.level1"]
PRODUCT = ["place.level1 × kind.level1", "place.level1 × kind.level2",
           "place.level2 × kind.level1", "place.level2 × kind.level2"]  # fmt: skip
MARGINS = ["place.level2 × age.level1", "kind.level1 × age.level1",
           "place.level2 × kind.level1 × age.level1"]  # fmt: skip
UNEVEN = ["place.level2 × kind.level1", "place.level1 × kind.level2", "place.level2 × kind.level2"]


def two_trees():
    """Two axes of two uneven levels."""
    return [axis("place", (4,), (6, 3, 9)), axis("kind", (5,), (2, 1, 4))]


PLACE_BY_KIND = {"areas": ("place_level2", {"kind": "level1"})}
NAMED: dict[str, Callable[[], Case]] = {
    "named, a spine": lambda: named(
        ALONG, MOVED, RHO, ALL, ["0.1", "0.2", "0.3", "0.4"], sums=({"age": "level1"},),
        **PLACE_BY_KIND,
    ),
    "named, a spine, Laplace": lambda: named(
        ALONG, MANY, PURE, ALL, ["0.1", "0.2", "0.3", "0.4"], **PLACE_BY_KIND
    ),
    "named, two tables": lambda: named(
        TWO_TABLES, LOOSE, RHO, ALL, ["1/3", "2/3"], sums=({"place": "level1"},), **PLACE_BY_KIND
    ),
    "named, two tables, an invariant": lambda: named(
        [*TWO_TABLES, "place.level1"], MOVED, RHO, ALL, ["1/3", "2/3"], shared=TWO_TABLES,
        invariants=[PLACE_1], **PLACE_BY_KIND,
    ),
    "named, a product": lambda: named(
        PRODUCT, ONE, RHO, ALL, ["2/15", "1/15", "8/15", "4/15"], axes=two_trees(),
        sums=BESIDE, **PLACE_BY_KIND,
    ),
    "named, general": lambda: named(
        UNEVEN, MOVED, RHO, ALL, ["1/3", "1/6", "1/2"], axes=two_trees(), sums=BESIDE,
        ties=TIES, **PLACE_BY_KIND,
    ),
    "named, a chain and a margin": lambda: named(
        ["kind.level2"], ONE, RHO, ALL, ["0.1", "0.1", "0.1", "0.2", "0.2", "0.3"],
        axes=two_trees(), chain=True, ties=TIES, **PLACE_BY_KIND,
        shared=["total", "place.level1", "kind.level2", "place.level1 × kind.level1",
                "place.level2 × kind.level1", "place.level2 × kind.level2"],
    ),
    "named, survivors": lambda: named(
        MARGINS, MOVED, RHO, SURVIVORS, ["0.2", "0.3", "0.5"], filled=30
    ),
    "named, general, survivors": lambda: named(
        UNEVEN, MOVED, RHO, SURVIVORS, ["1/3", "1/6", "1/2"], axes=two_trees(), filled=30,
        ties=TIES,
    ),
    "named, survivors, Laplace": lambda: named(
        MARGINS, MANY, PURE, SURVIVORS, ["0.2", "0.3", "0.5"], filled=30
    ),
}  # fmt: skip

# --- along a spine ------------------------------------------------------------------------------


def nested(neighbours, budget, shares, *, facts=False, **more):
    """A cube of a spine and one attribute tree."""
    person = axis("person", (3,), (1, 2), (3, 1, 2), attribute=True)
    tree = hr.Tree([axis("place", (3,), (3, 2, 4), (5, 2, 4)), person])
    if facts:
        kinds = kinds_of_nodes(tree, column="person_level1")
        more["counts"] = keeping(tree, table(tree, "nested"), kinds)
        more["public"] = [hr.PublicTable(kinds, zeros="unlisted", at_least="least")]
    return case(
        tree, "nested", neighbours, budget, shares, CUBE, ALL,
        areas=("place_level3", {"person": "level1"}), sums=({"person": "level2"},), **more,
    )  # fmt: skip


def marginals(neighbours, budget, shares, *, facts=False, **more):
    """Named cuboids of a spine and attributes of two levels, one of them a product of columns."""
    quarters = {"kind": ["home", "nursing", "college"]}
    person = [{"age": ["minor", "adult"]}, {"race": ["1", "2", "3"], "group": ["a", "b", "b"]}]
    kind = hr.Axis.from_frame("kind", quarters, ["kind"], attribute=True)
    people = hr.Axis.from_product("people", person, ["age × group × race"], attribute=True)
    tree = hr.Tree([axis("place", (3,), (3, 2), (4, 2, 5)), kind, people])
    people = f"people.{tree.axes[2].levels[-1]}"
    names = [f"place.level1 × {people}", "place.level2 × kind.kind", f"kind.kind × {people}",
             f"place.level3 × kind.kind × {people}"]  # fmt: skip
    if facts:
        kinds = kinds_of_nodes(tree, column="kind")
        rule = {"kind": "nursing", "age": "minor"}
        more["counts"] = keeping(tree, table(tree, "marginals"), kinds, [rule])
        zeros = hr.Zeros({column: [code] for column, code in rule.items()})
        more["public"] = [zeros, hr.PublicTable(kinds, zeros="unlisted", at_least="least")]
    shares = dict(zip(names, shares, strict=True))
    return case(
        tree, "marginals", neighbours, budget, shares, hr.Cuboids(names, chain=False), ALL,
        areas=("place_level3", {"kind": "kind"}),
        sums=({"people": "group"}, {"place": "level1", "people": "age"}), **more,
    )  # fmt: skip


BY_AXIS = {"place": TENTHS, "person": ["0.4", "0.1", "0.2", "0.3"]}
SPINES: dict[str, Callable[[], Case]] = {
    "nested": lambda: nested(MOVED, RHO, BY_AXIS),
    "nested, Laplace": lambda: nested(MANY, PURE, BY_AXIS),
    "nested, public facts": lambda: nested(MOVED, RHO, BY_AXIS, facts=True),
    "nested, public facts, in jobs": lambda: nested(LOOSE, RHO, BY_AXIS, facts=True, in_jobs=True),
    "nested, little noise": lambda: nested(ONE, hr.Rho(40), BY_AXIS, facts=True),
    "marginals": lambda: marginals(MOVED_TWICE, RHO, TENTHS),
    "marginals, Laplace, in jobs": lambda: marginals(ONE, PURE, TENTHS, in_jobs=True),
    "marginals, public facts": lambda: marginals(MOVED, RHO, TENTHS, facts=True),
    "marginals, public facts, in jobs": lambda: marginals(
        LOOSE, RHO, TENTHS, facts=True, in_jobs=True
    ),
}

# --- numeric columns ----------------------------------------------------------------------------


def column(neighbours, budget, measure, bins):
    """Of one numeric axis, in bins."""
    ranges = hr.Ranges.equal_width("income", 0, 1000, bins, out_of_bounds="clamp")
    plan = hr.plan_distribution(
        ranges, budget=budget, neighbours=neighbours, objective=hr.Cdf(), measure=measure
    )
    sums = isinstance(measure, hr.RunningSums)
    return Case(
        table(plan.tree, "column", filled=80),
        plan,
        hr.Isotonic() if sums else hr.Euclidean(),
    )


def rows(neighbours, **more):
    """Running sums of the bins of each area of two levels."""
    bins = hr.numeric_axis(hr.Ranges.equal_width("income", 0, 1000, 20), [20])
    order = ["place.level1", "place.level2", "income.bin"]
    tree = hr.Tree([axis("place", (5,), (4, 2, 6)), bins], refine=order)
    return case(
        tree, "rows", neighbours, RHO, {"place.level2 × income.bin": 1}, CHAIN, hr.RunningSums(),
        areas=("place_level2", {"income": "bin"}), sums=({"place": "level1", "income": "bin"},),
        estimator=hr.Isotonic(), filled=60, **more,
    )  # fmt: skip


COLUMNS: dict[str, Callable[[], Case]] = {
    "column, running sums": lambda: column(MOVED, RHO, hr.RunningSums(), 64),
    "column, running sums, total measured": lambda: column(MANY, RHO, hr.RunningSums(), 50),
    "areas, running sums": lambda: rows(MOVED_TWICE),
    "areas, running sums, total measured": lambda: rows(MANY),
    "areas, running sums, their totals public": lambda: rows(MOVED, invariants=[PLACE_2]),
    "column, a tree": lambda: column(ONE, RHO, ALL, 60),
    "column, a tree, Laplace": lambda: column(MOVED_TWICE, PURE, ALL, 60),
}

CASES: dict[str, Callable[[], Case]] = {**CHAINS, **CUBES, **NAMED, **SPINES, **COLUMNS}
