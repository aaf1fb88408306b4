"""Random plans of every kind of workload over uneven trees, beside those of the oracle's list."""

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl

import hedgerow as hr
from tests.made import plain_plan, random_axis, random_counts, random_tree
from tests.oracle.plans import Case
from tests.release.spine.made_spines import kinds_of_blocks, people, spine_tree

WHO = [hr.AddRemove(), hr.Replace(), hr.Replace(exactly=False)]


def budget_of(is_pure):
    """A budget with its noise: pure, or zero-concentrated."""
    if is_pure:
        return {"budget": hr.Epsilon(2), "mechanism": hr.DiscreteLaplace}
    return {"budget": hr.Rho(1), "mechanism": hr.DiscreteGaussian}


def random_chain(seed):
    """Of one to three axes, sparse or full."""
    rng = np.random.default_rng(100 + seed)
    tree = random_tree(rng, axes=1 + seed % 3, depth=3 - seed % 3 // 2, widest=3)
    counts = random_counts(rng, tree, filled=[0.02, 0.9][seed % 2])
    measure = [hr.Survivors(), hr.All()][seed // 2 % 2]
    plan = plain_plan(tree, budget=hr.Rho("1/2"), neighbours=WHO[seed % 2], measure=measure)
    return Case(counts, plan, [hr.Chebyshev(), hr.Euclidean()][seed // 4 % 2])


def random_cube(seed):
    """Of two to four axes: equal shares, or any; nothing public, the total, or a level."""
    rng = np.random.default_rng(seed)
    trees = (random_tree(rng, axes=2 + seed % 3, depth=2 - (seed % 3 > 1), widest=3) for _ in WHO)
    tree = next(t for t in trees if any(axis.size(axis.depth) > 1 for axis in t.axes[1:]))
    public = [], [], [hr.Invariant("a0", "level1")]
    plan = plain_plan(
        tree, workload=hr.Cube(), measure=hr.All(), **budget_of(seed % 2),
        neighbours=hr.AddRemove() if seed % 4 == 0 else hr.Replace(),
        invariants=public[seed % 3] if seed % 4 else [],
    )  # fmt: skip
    if seed % 5 > 2:
        plan = any_shares(rng, plan, some=seed % 5 == 3)
    return Case(random_counts(rng, tree, filled=[0.5, 2.0][seed % 2]), plan)


def any_shares(rng, plan, *, some=False):
    """The plan with random shares, of some of the cuboids alone if that is wanted."""
    *others, finest = plan.measured
    kept = {finest, *(levels for levels in others if not some or rng.random() < 0.6)}
    drawn = {levels: int(rng.integers(1, 20)) for levels in plan.levels if levels in kept}
    total = sum(drawn.values())
    shares = [Fraction(drawn[k], total) if k in drawn else None for k in plan.levels]
    return replace(plan, shares=tuple(shares))


def random_spine(seed):
    """Of a spine and one attribute tree, with public facts."""
    rng = np.random.default_rng(seed)
    tree = spine_tree(rng)
    kinds = kinds_of_blocks(rng, tree)
    facts = [hr.PublicTable(kinds, zeros="unlisted", at_least="least")]
    who = hr.Replace() if seed % 3 else hr.AddRemove()
    plan = plain_plan(tree, budget=hr.Rho(1), neighbours=who, workload=hr.Cube(), public=facts)
    return Case(people(rng, tree, kinds), plan)


def random_marginals(seed):
    """Of a spine and two attributes in either order, of which facts leave cells out."""
    rng = np.random.default_rng(seed)
    kinds = pl.DataFrame({"band": ["x", "x", "y"], "kind": ["home", "nursing", "college"]})
    kind = hr.Axis.from_frame("kind", kinds, ["band", "kind"], attribute=True)
    age = hr.Axis.from_frame("age", {"age": ["adult", "minor"]}, ["age"], attribute=True)
    place = random_axis(rng, "place", depth=2, widest=3)
    tree = hr.Tree([place, age, kind] if seed % 2 else [place, kind, age])
    blocks = place.labels[-1].to_list()
    pairs = [(b, k) for b in blocks for k in kinds["kind"] if k == "home" or rng.random() < 0.4]
    there = pl.DataFrame(pairs, schema=[place.columns[-1], "kind"], orient="row")
    finest = tree.name_of(tuple(axis.depth for axis in tree.axes))
    plan = plain_plan(
        tree, budget=hr.Rho("1/2"), neighbours=WHO[seed % 3],
        workload=hr.Cuboids(["place.level1 × kind.band", "age.age", "kind.kind", finest]),
        public=[hr.PublicTable(there, zeros="unlisted")],
    )  # fmt: skip
    every = there.join(place.leaf_frame(), on=place.columns[-1]).join(
        pl.DataFrame({"age": ["adult", "minor"]}), how="cross"
    )
    people = every.with_columns(n=pl.Series(rng.integers(0, 60, len(every))))
    sums = [{"kind": "band", "age": "age"}, {"place": "level1", "age": "age"}]
    return Case(hr.Counts.from_frame(tree, people, count="n"), plan, sums=tuple(sums))


def names_of(tree, rng):
    """One to four cuboids of a tree, by name."""
    every = [c for c in product(*(range(axis.depth + 1) for axis in tree.axes)) if any(c)]
    some = rng.choice(len(every), size=min(len(every), int(rng.integers(1, 5))), replace=False)
    return [tree.name_of(every[i]) for i in some]


def spelled_otherwise(tree, workload, rng):
    """The same cuboids: in another order, with another sign, and the chain's by name."""
    names = list(workload.given)
    if workload.chain:
        chain = [tree.name_of(levels) for levels in tree.chain]
        names = [*names, *(name for name in chain if name not in names)]
    sign = "x*"[rng.integers(2)]
    return hr.Cuboids([names[i].replace("×", sign) for i in rng.permutation(len(names))])


def random_workload(seed):
    """A plan of random cuboids over one to three uneven axes, and the same plan spelled otherwise.

    Drawn again where the cuboids cannot be released together, are a chain or a cube, or nothing is
    left to measure; over several axes, for two seeds of three, until there are several tables.
    """
    rng = np.random.default_rng(seed)
    for _ in range(50):
        axes = 1 + seed % 3
        tree = random_tree(rng, axes=axes, depth=(4, 3, 2)[axes - 1], widest=3)
        names, exact = names_of(tree, rng), []
        who = WHO[rng.integers(3)]
        if who == hr.Replace() and rng.random() < 0.5:
            axis = tree.axes[rng.integers(axes)]
            exact = [hr.Invariant(axis.name, axis.levels[0])]
            names.append(tree.name_of(tuple(int(other is axis) for other in tree.axes)))
        workload = hr.Cuboids([*dict.fromkeys(names)], chain=bool(rng.random() < 0.3))
        options = budget_of(rng.random() < 0.3) | {
            "neighbours": who,
            "measure": hr.Survivors() if axes > 1 and rng.random() < 0.5 else hr.All(),
            "invariants": exact,
        }
        with suppress(hr.PlanError):
            plan = plain_plan(tree, workload=workload, **options)
            tables_wanted = 2 if axes > 1 and seed % 9 < 6 else 1
            if isinstance(plan.workload, hr.Cuboids) and tables_wanted <= len(plan.tables):
                other = spelled_otherwise(tree, workload, rng)
                return plan, plain_plan(tree, workload=other, **options)
    raise AssertionError(f"seed {seed}: no workload that can be released")


def random_named(seed):
    """Of the cuboids of `random_workload`."""
    plan, _ = random_workload(seed)
    rng = np.random.default_rng(1000 + seed)
    return Case(random_counts(rng, plan.tree, filled=(0.2, 0.6, 2.0)[seed % 3]), plan)


RANDOM = {
    "random chain": (random_chain, 12),
    "random cube": (random_cube, 12),
    "random named": (random_named, 24),
    "random spine": (random_spine, 6),
    "random marginals": (random_marginals, 6),
}
"""What makes a case of a seed, and how many seeds there are."""
