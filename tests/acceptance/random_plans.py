"""Random plans of every kind of workload over small trees, each of a seed.

One entry of `KINDS` is a kind; the seed of a plan decides its axes, table, noise, neighbours and
shares. What is no plan (an invariant that leaves nothing to measure, cuboids that cannot be settled
together) is drawn again under the same seed.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
import polars as pl

import hedgerow as hr
from hedgerow.errors import HedgerowError
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.execution import in_memory
from tests.made import random_axis
from tests.oracle.plans import SMALL

MOST_CELLS = 260
"""Leaves of a tree: dense matrices have so many columns."""


@dataclass(frozen=True)
class Drawn:
    """A plan, a table, and what a release of it is made with.

    Attributes:
        kind: of workload.
        seed: of everything.
        counts: the table.
        plan: what is measured.
        allowed: bool (nodes of the first axis, leaves of the attribute with groups): where public
            facts let anybody be; None where there are none.
        grouped: the number of that attribute.
        in_jobs: whether limits are so low that the tree is cut.
    """

    kind: str
    seed: int
    counts: hr.Counts
    plan: hr.Plan
    allowed: np.ndarray | None = None
    grouped: int = 1
    in_jobs: bool = False

    def release(self, bits=None, estimator=None):
        """A release under its seed, or another one."""
        bits = self.seed if bits is None else bits
        usual = estimator or self.plan.design.usual
        return in_memory(self.counts, self.plan, estimator=usual, bits=seeded_bits(bits))

    @contextmanager
    def limits(self):
        """Hold limits under which a small tree is cut into jobs."""
        with ExitStack() as held:
            for place, limit in (SMALL if self.in_jobs else {}).items():
                held.enter_context(mock.patch(place, limit))
            yield


@dataclass(frozen=True)
class RandomShares:
    """Shares that differ by up to a hundred times, some cuboids being left out.

    Attributes:
        seed: of the shares.
        left_out: the chance that a cuboid that need not be measured has no share.
    """

    seed: int
    left_out: float = 0.0
    name = "shares"
    prior = None

    def shares(self, problem):
        rng = np.random.default_rng(self.seed)
        parts = [int(10 ** rng.uniform(1, 3)) for _ in problem.cuboids]
        for i in range(len(parts) - 1):
            if rng.random() < self.left_out:
                parts[i] = 0
        return tuple(Fraction(part, sum(parts)) or None for part in parts)


# --- what a plan is made of ---------------------------------------------------------------------


def small_tree(rng, make):
    """The first tree of some that is small enough and has several cells."""
    while True:
        tree = make(rng)
        if 2 < tree.leaves <= MOST_CELLS:
            return tree


def attribute(rng, name, depth, widest=3):
    """A random axis beside a spine, or one of two levels."""
    made = random_axis(rng, name, depth, widest)
    leaves = made.leaf_frame()
    return hr.Axis.from_frame(
        name, leaves.rename(dict(zip(made.columns, made.levels, strict=True))), made.levels,
        columns=list(made.columns), attribute=True,
    )  # fmt: skip


def table(rng, tree, allowed=None, grouped=1):
    """A heavy-tailed table, of which between a tenth and nearly all leaves hold somebody."""
    sizes = [axis.size(axis.depth) for axis in tree.axes]
    codes = tuple(code.ravel().astype(np.int32) for code in np.indices(sizes))
    there = rng.random(len(codes[0])) < rng.uniform(0.1, 0.95)
    if allowed is not None:
        there &= allowed[codes[0], codes[grouped]]
    values = np.where(there, np.ceil(rng.pareto(1.1, len(there)) * 8).clip(0, 5000), 0)
    return hr.Counts.from_leaves(tree, codes, values.astype(np.int64))


def noise(rng, neighbours=None):
    """Neighbours, a mechanism and a budget: wide noise mostly, little at times."""
    neighbours = neighbours or [
        hr.AddRemove(1), hr.AddRemove(3), hr.Replace(1), hr.Replace(2), hr.Replace(2, exactly=False)
    ][rng.integers(5)]  # fmt: skip
    amount = Fraction(int(10 ** rng.uniform(1, 3.4) * (30 if rng.random() < 0.1 else 1)), 1000)
    if rng.random() < 0.3:
        return neighbours, {"mechanism": hr.DiscreteLaplace, "budget": hr.Epsilon(3 * amount)}
    return neighbours, {"mechanism": hr.DiscreteGaussian, "budget": hr.Rho(amount)}


def planned(rng, kind, seed, tree, workload, measure, **more):
    """A table and a plan."""
    held = {"invariants": more.pop("invariants", ()), "public": more.pop("public", ())}
    own = hr.Replace(int(rng.integers(1, 3))) if held["invariants"] else None
    neighbours, how = noise(rng, own)
    left_out = more.pop("left_out", 0.0)
    rule = more.pop("allocation", None) or RandomShares(int(rng.integers(1 << 30)), left_out)
    given = {"counts": more.pop("counts", None) or table(rng, tree)}
    plan = hr.make_plan(
        tree, neighbours=neighbours, workload=workload, measure=measure, allocation=rule,
        **how, **held,
    )  # fmt: skip
    return Drawn(kind, seed, plan=plan, **given, **more)


# --- chains -------------------------------------------------------------------------------------


def axis_tree(rng):
    """Of one axis."""
    return hr.Tree([random_axis(rng, "a", int(rng.integers(1, 5)), int(rng.integers(2, 6)))])


def axes_tree(rng, axes=2):
    """Of several axes, refined in a random order."""
    most = 3 if axes == 2 else 2
    made = [random_axis(rng, f"a{i}", int(rng.integers(1, most + 1)), 4) for i in range(axes)]
    steps = rng.permutation([i for i, axis in enumerate(made) for _ in axis.levels]).tolist()
    levels = [iter(axis.levels) for axis in made]
    return hr.Tree(made, [f"a{i}.{next(levels[i])}" for i in steps])


def narrow_tree(rng):
    """Of one axis with a level of only children."""
    above = random_axis(rng, "a", int(rng.integers(1, 3)), 4).leaf_frame().rows()
    paths = [(*path, f"{path[-1]}.0", f"{path[-1]}.0.{child}")
             for path in above for child in range(rng.integers(1, 4))]  # fmt: skip
    levels = [f"level{k}" for k in range(1, len(paths[0]) + 1)]
    columns = [f"a_{level}" for level in levels]
    frame = pl.DataFrame(paths, schema=levels, orient="row")
    return hr.Tree([hr.Axis.from_frame("a", frame, levels, columns=columns)])


def chain(rng, kind, seed, make=axis_tree, measure=None, **more):
    tree = small_tree(rng, make)
    in_jobs = rng.random() < 0.25
    return planned(rng, kind, seed, tree, hr.Chain(), measure or hr.All(), in_jobs=in_jobs, **more)


def chain_with_invariant(rng, kind, seed):
    tree = small_tree(rng, lambda r: [axis_tree, axes_tree][r.integers(2)](r))
    first, level = tree.steps[0]
    held = [hr.Invariant(tree.axes[first].name, tree.axes[first].levels[level - 1])]
    return planned(rng, kind, seed, tree, hr.Chain(), hr.All(), invariants=held, left_out=0.2)


def chain_of_survivors(rng, kind, seed):
    make = [axis_tree, axes_tree, narrow_tree][rng.integers(3)]
    return chain(rng, kind, seed, make, hr.Survivors(), left_out=0.2)


# --- cubes --------------------------------------------------------------------------------------


def cube_tree(rng, axes=2, least=1):
    depths = [int(rng.integers(least, 4 if axes == 2 else 3)) for _ in range(axes)]
    return hr.Tree([random_axis(rng, f"a{i}", depth, 3) for i, depth in enumerate(depths)])


def by_axis(rng, tree, zeros=0.0):
    """Random shares by axis, for the levels that are not made of only children."""
    found = {}
    for axis in tree.axes:
        sizes = [axis.size(k) for k in range(axis.depth + 1)]
        kept = [k for k in range(len(sizes)) if k == 0 or sizes[k] > sizes[k - 1]]
        parts = [int(10 ** rng.uniform(1, 2.3)) for _ in kept]
        parts = [p * (rng.random() >= zeros) for p in parts[:-1]] + parts[-1:]
        found[axis.name] = [Fraction(int(part), int(sum(parts))) for part in parts]
    return hr.Shares(found)


def cube(rng, kind, seed, axes=2, measure=None, zeros=0.2, **more):
    tree = small_tree(rng, lambda r: cube_tree(r, axes))
    return planned(
        rng, kind, seed, tree, hr.Cube(), measure or hr.All(),
        allocation=by_axis(rng, tree, zeros), **more,
    )  # fmt: skip


def cube_of_any_shares(rng, kind, seed):
    tree = small_tree(rng, cube_tree)
    return planned(rng, kind, seed, tree, hr.Cube(), hr.All(), left_out=0.2)


def cube_with_invariant(rng, kind, seed):
    tree = small_tree(rng, cube_tree)
    axis = tree.axes[rng.integers(2)]
    held = [hr.Invariant(axis.name, axis.levels[rng.integers(axis.depth)])]
    rule = by_axis(rng, tree) if rng.random() < 0.6 else None
    return planned(rng, kind, seed, tree, hr.Cube(), hr.All(), invariants=held, allocation=rule)


def cube_of_survivors(rng, kind, seed):
    return cube(rng, kind, seed, measure=hr.Survivors(), zeros=0.0)


# --- named cuboids ------------------------------------------------------------------------------


def named(rng, kind, seed, tree, cuboids, *, chained=False, measure=None, **more):
    names = [tree.name_of(each) for each in cuboids]
    workload = hr.Cuboids(names, chain=chained)
    return planned(rng, kind, seed, tree, workload, measure or hr.All(), **more)


def some(rng, cuboids, least=1, most=5):
    """So many of some cuboids."""
    cuboids = list(cuboids)
    number = min(len(cuboids), int(rng.integers(least, most + 1)))
    return [cuboids[i] for i in sorted(rng.choice(len(cuboids), number, replace=False))]


def every(tree):
    """All cuboids but the total."""
    return list(product(*(range(axis.depth + 1) for axis in tree.axes)))[1:]


def flat_axes_tree(rng):
    """One axis of several levels, and one or two of two levels."""
    flat = [random_axis(rng, f"b{i}", 1, 4) for i in range(rng.integers(1, 3))]
    return hr.Tree([random_axis(rng, "a", int(rng.integers(1, 4)), 3), *flat])


def named_along_a_spine(rng, kind, seed):
    tree = small_tree(rng, flat_axes_tree)
    return named(rng, kind, seed, tree, some(rng, every(tree), 1, 6), left_out=0.1)


def named_product(rng, kind, seed):
    """All combinations of some levels of each axis, with shares that are a product."""
    tree = small_tree(rng, cube_tree)
    kept = [sorted({*some(rng, range(1, axis.depth), 0, 2), axis.depth}) for axis in tree.axes]
    factors = [[int(10 ** rng.uniform(1, 2)) for _ in levels] for levels in kept]
    parts = {
        tree.name_of((kept[0][i], kept[1][j])): factors[0][i] * factors[1][j]
        for i, j in product(range(len(kept[0])), range(len(kept[1])))
    }
    shares = {name: Fraction(part, sum(parts.values())) for name, part in parts.items()}
    workload = hr.Cuboids(list(parts), chain=False)
    return planned(rng, kind, seed, tree, workload, hr.All(), allocation=hr.Shares(shares))


def named_general(rng, kind, seed):
    tree = small_tree(rng, lambda r: cube_tree(r, int(r.integers(2, 4)), least=2))
    finest = tuple(axis.depth for axis in tree.axes)
    return named(rng, kind, seed, tree, [*some(rng, every(tree)[:-1], 2, 6), finest])


def named_tables(rng, kind, seed):
    """Two tables, neither of which has all axes."""
    tree = small_tree(rng, lambda r: cube_tree(r, 3))
    depths = [axis.depth for axis in tree.axes]
    first, second = (*depths[:2], 0), (0, *depths[1:])
    if rng.random() < 0.5:
        first, second = (depths[0], depths[1], 0), (depths[0], 0, depths[2])
    coarser = some(rng, every(tree), 0, 4)
    inside = [c for c in coarser if any(all(np.less_equal(c, t)) for t in (first, second))]
    return named(rng, kind, seed, tree, list(dict.fromkeys([*inside, first, second])))


def named_beside_chain(rng, kind, seed):
    """The chain of two axes, and margins off it."""
    tree = small_tree(rng, axes_tree)
    off = [c for c in every(tree) if c not in tree.chain]
    return named(rng, kind, seed, tree, some(rng, off, 1, 3), chained=True)


def named_with_invariant(rng, kind, seed):
    tree = small_tree(rng, flat_axes_tree if rng.random() < 0.5 else cube_tree)
    cuboids = some(rng, every(tree), 2, 5)
    axis = int(rng.integers(len(tree.axes)))
    level = int(rng.integers(1, tree.axes[axis].depth + 1))
    own = tuple(level if a == axis else 0 for a in range(len(tree.axes)))
    held = [hr.Invariant(tree.axes[axis].name, tree.axes[axis].levels[level - 1])]
    return named(rng, kind, seed, tree, list(dict.fromkeys([*cuboids, own])), invariants=held)


def named_survivors(rng, kind, seed):
    tree = small_tree(rng, lambda r: cube_tree(r, int(r.integers(2, 4))))
    finest = tuple(axis.depth for axis in tree.axes)
    cuboids = [*some(rng, every(tree)[:-1], 1, 4), finest]
    return named(rng, kind, seed, tree, cuboids, measure=hr.Survivors())


# --- along a spine ------------------------------------------------------------------------------


def kinds_of_nodes(rng, tree, axis):
    """Which codes of the first level of an attribute each finest node of the spine has."""
    place, person = tree.axes[0], tree.axes[axis]
    nodes, codes = place.labels[-1].to_list(), person.labels[0].to_list()
    has = rng.random((len(nodes), len(codes))) < rng.uniform(0.3, 0.9)
    has[np.arange(len(nodes)), rng.integers(0, len(codes), len(nodes))] = True
    rows = [(nodes[i], codes[j]) for i, j in zip(*np.nonzero(has), strict=True)]
    frame = pl.DataFrame(rows, schema=[place.columns[-1], person.columns[0]], orient="row")
    return frame, has[:, person.ancestors(1)]


def spine_tree(rng, attributes):
    spine = random_axis(rng, "place", int(rng.integers(1, 4)), 3)
    return hr.Tree([spine, *attributes(rng)])


def along_spine(rng, kind, seed, attributes, workload, *, facts):
    tree = small_tree(rng, lambda r: spine_tree(r, attributes))
    more: dict[str, Any] = {"in_jobs": rng.random() < 0.3}
    if facts:
        grouped = int(rng.integers(1, len(tree.axes)))
        kinds, allowed = kinds_of_nodes(rng, tree, grouped)
        more |= {"public": [hr.PublicTable(kinds, zeros="unlisted")], "allowed": allowed}
        more |= {"grouped": grouped, "counts": table(rng, tree, allowed, grouped)}
    cuboids, rule = workload(rng, tree)
    return planned(rng, kind, seed, tree, cuboids, hr.All(), allocation=rule, **more)


def nested(rng, kind, seed, *, facts):
    """A cube of the spine and one attribute tree."""
    return along_spine(
        rng, kind, seed, lambda r: [attribute(r, "person", int(r.integers(1, 4)))],
        lambda r, tree: (hr.Cube(), by_axis(r, tree, 0.2)), facts=facts,
    )  # fmt: skip


def marginals(rng, kind, seed, *, facts):
    """Cuboids of the spine and attributes of two levels, one of which may have more."""

    def attributes(r):
        return [attribute(r, f"b{i}", 1, 4) for i in range(r.integers(1, 3))]

    def cuboids(r, tree):
        chosen = some(r, every(tree)[:-1], 1, 5)
        finest = tuple(axis.depth for axis in tree.axes)
        names = [tree.name_of(each) for each in [*chosen, finest]]
        return hr.Cuboids(names, chain=False), None

    return along_spine(rng, kind, seed, attributes, cuboids, facts=facts)


# --- numeric columns ----------------------------------------------------------------------------


def column(rng, kind, seed, *, sums):
    """Of one numeric axis: running sums of its bins, or a tree."""
    bins = int(rng.integers(2, 90))
    ranges = hr.Ranges.equal_width("income", 0, 10 * bins, bins, out_of_bounds="clamp")
    neighbours, how = noise(rng)
    del how["mechanism"]  # follows from the budget
    if sums:
        how = {"budget": hr.Rho(Fraction(int(10 ** rng.uniform(1, 3.4)), 1000))}
    plan = hr.plan_distribution(
        ranges, neighbours=neighbours, objective=hr.Cdf(),
        measure=hr.RunningSums() if sums else hr.All(), **how,
    )  # fmt: skip
    return Drawn(kind, seed, table(rng, plan.tree), plan)


def rows(rng, kind, seed):
    """Running sums of the bins of areas, whose totals may be public, or only their sum."""
    place, bins = random_axis(rng, "place", int(rng.integers(1, 3)), 3), int(rng.integers(2, 9))
    ranges = hr.Ranges.equal_width("income", 0, 10 * bins, bins, out_of_bounds="clamp")
    axes = [place, hr.numeric_axis(ranges, [bins])]
    tree = hr.Tree(axes, [*(f"place.{level}" for level in place.levels), "income.bin"])
    held = [hr.Invariant("place", place.levels[-1])] if rng.random() < 0.3 else []
    neighbours, _ = noise(rng, hr.Replace(int(rng.integers(1, 3))) if held else None)
    plan = hr.make_plan(
        tree, budget=hr.Rho(Fraction(int(10 ** rng.uniform(1, 3.4)), 1000)),
        neighbours=neighbours, measure=hr.RunningSums(), invariants=held,
    )  # fmt: skip
    return Drawn(kind, seed, table(rng, tree), plan)


# --- every kind ---------------------------------------------------------------------------------

Maker = Callable[[np.random.Generator, str, int], Drawn]
KINDS: Mapping[str, Maker] = {
    "chain, one axis": chain,
    "chain, several axes": lambda r, k, s: chain(
        r, k, s, lambda r: axes_tree(r, int(r.integers(2, 4)))
    ),
    "chain, unmeasured levels": lambda r, k, s: chain(r, k, s, axes_tree, left_out=0.5),
    "chain, only children": lambda r, k, s: chain(r, k, s, narrow_tree, left_out=0.2),
    "chain, an invariant": chain_with_invariant,
    "chain, survivors": chain_of_survivors,
    "cube, two axes": cube,
    "cube, three axes": lambda r, k, s: cube(r, k, s, axes=3),
    "cube, any shares": cube_of_any_shares,
    "cube, an invariant": cube_with_invariant,
    "cube, survivors": cube_of_survivors,
    "named, a spine": named_along_a_spine,
    "named, a product": named_product,
    "named, general": named_general,
    "named, two tables": named_tables,
    "named, chain and margins": named_beside_chain,
    "named, an invariant": named_with_invariant,
    "named, survivors": named_survivors,
    "nested attributes": lambda r, k, s: nested(r, k, s, facts=False),
    "nested attributes, groups": lambda r, k, s: nested(r, k, s, facts=True),
    "marginals": lambda r, k, s: marginals(r, k, s, facts=False),
    "marginals, groups": lambda r, k, s: marginals(r, k, s, facts=True),
    "column, running sums": lambda r, k, s: column(r, k, s, sums=True),
    "column, a tree": lambda r, k, s: column(r, k, s, sums=False),
    "areas, running sums": rows,
}


def is_for_floats(plan):
    """Whether dense matrices of floats can tell: variances are less than 10¹⁰ times one another.

    Beyond they are off themselves: by 3e-8 at 10¹², where 60 digits agreed with the release.
    """
    every = [what.mechanism.noise_variance for what in plan.by_levels.values()
             if isinstance(what, hr.Measured)]  # fmt: skip
    return not every or max(every) < 1e10 * min(every)


def drawn(kind, seed):
    """The plan of a kind and a seed."""
    for attempt in range(200):
        rng = np.random.default_rng([seed, attempt, list(KINDS).index(kind)])
        try:
            found = KINDS[kind](rng, kind, seed)
            found.plan.design.rehearse()
        except HedgerowError:
            continue
        if is_for_floats(found.plan):
            return found
    raise AssertionError(f"no plan of the kind {kind!r} in 200 draws of seed {seed}")
