"""How good plans are said to be, beside the least total error by a convex program.

The information X (cells × cells) of what is measured is the variable of a semidefinite program,
solved by Clarabel: min tr(G X⁻¹) where x_ii ≤ 1 for each cell (records come or go), or
x_ii + x_jj - 2 x_ij ≤ 1 for each pair (one moves), or both. No weights and no trace of a root occur
in it, as they do in `hedgerow.plan.efficiency`. Scaled until it keeps its bounds, X shows an error
that can be had; the program's own duals show by how much it may be above the least.

``python -m tests.acceptance.efficiency [workloads] [first]`` prints a table by kind and neighbours.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import NamedTuple

import cvxpy as cp
import numpy as np

import hedgerow as hr
from tests.acceptance.random_plans import RandomShares, every, some
from tests.made import fixed_axis, random_axis

MOST_CELLS = 14
NEIGHBOURS = {
    "come or go": hr.AddRemove,
    "move": hr.Replace,
    "either": lambda units: hr.Replace(units, exactly=False),
}


# --- workloads ----------------------------------------------------------------------------------


def even_axis(rng, name, depth=2):
    sizes = [int(rng.integers(2, 4)) for _ in range(rng.integers(1, depth + 1))]
    columns = [f"{name}_{k}" for k in range(len(sizes))]
    return fixed_axis(name, *sizes, columns=columns)


def uneven_axis(rng, name, depth=3):
    return random_axis(rng, name, int(rng.integers(1, depth + 1)), int(rng.integers(2, 5)))


def small(rng, make):
    """The first tree that has few cells, and several levels."""
    while True:
        tree = make(rng)
        if 3 <= tree.leaves <= MOST_CELLS:
            return tree


def chain_tree(rng):
    first, second = uneven_axis(rng, "a", 2), uneven_axis(rng, "b", 2)
    steps = rng.permutation([0] * first.depth + [1] * second.depth)
    levels = iter(first.levels), iter(second.levels)
    return hr.Tree([first, second], [f"{'ab'[i]}.{next(levels[i])}" for i in steps])


def named(rng, tree):
    cuboids = [*some(rng, every(tree), 1, 5), tuple(axis.depth for axis in tree.axes)]
    return hr.Cuboids(list(dict.fromkeys(map(tree.name_of, cuboids))), chain=False)


Made = tuple[hr.Tree, hr.Chain | hr.Cube | hr.Cuboids]
KINDS: Mapping[str, Callable[[np.random.Generator], Made]] = {
    "chain, even": lambda r: (small(r, lambda s: hr.Tree([even_axis(s, "a", 3)])), hr.Chain()),
    "chain, uneven": lambda r: (small(r, lambda s: hr.Tree([uneven_axis(s, "a")])), hr.Chain()),
    "chain of two axes": lambda r: (small(r, chain_tree), hr.Chain()),
    "cube, even": lambda r: (
        small(r, lambda s: hr.Tree([even_axis(s, "a"), even_axis(s, "b")])), hr.Cube()
    ),
    "cube, one axis uneven": lambda r: (
        small(r, lambda s: hr.Tree([uneven_axis(s, "a", 2), even_axis(s, "b", 1)])), hr.Cube()
    ),
    "cube, two axes uneven": lambda r: (
        small(r, lambda s: hr.Tree([uneven_axis(s, "a", 2), uneven_axis(s, "b", 2)])), hr.Cube()
    ),
    "cube of three axes": lambda r: (
        small(r, lambda s: hr.Tree([even_axis(s, n, 1) for n in "abc"])), hr.Cube()
    ),
    "named": lambda r: (
        tree := small(r, lambda s: hr.Tree([uneven_axis(s, "a", 2), even_axis(s, "b")])),
        named(r, tree),
    ),
}  # fmt: skip


def planned(kind, seed, who):
    """A plan with wide noise: of least errors or any shares, by importances of three kinds."""
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    tree, workload = KINDS[kind](rng)
    names = [tree.name_of(levels) for levels in workload.cuboids(tree)]
    random = {name: float(10 ** rng.uniform(-1, 1)) for name in names}
    units, rule = int(rng.integers(1, 3)), RandomShares(int(rng.integers(1 << 30)))
    options = {"budget": hr.Rho("1/100"), "neighbours": NEIGHBOURS[who](units)}
    options |= {"workload": workload, "measure": hr.All()}
    shared = hr.make_plan(tree, allocation=rule, **options)
    importance = [hr.PerLevel(), None, {n: random[n] for n in map(tree.name_of, shared.measured)}]
    best = hr.Optimal(objective="released", importance=importance[seed // 2 % 3])
    return shared if seed % 2 else hr.make_plan(tree, allocation=best, **options)


# --- the program --------------------------------------------------------------------------------


class Least(NamedTuple):
    """The least total: what an X that keeps its bounds has, and what no X is below.

    Attributes:
        total: tr(G X⁻¹).
        proved: a lower bound of the same by the program's duals.
        covariance: of the estimates of cells, X⁻¹.
    """

    total: float
    proved: float
    covariance: np.ndarray


def cells_of(tree, levels):
    """The sums of a cuboid: 0/1 (cells, leaves)."""
    found = np.ones((1, 1))
    for axis, level in zip(tree.axes, levels, strict=True):
        found = np.kron(found, np.eye(axis.size(level))[axis.ancestors(level)].T)
    return found


def least_of(g, who):
    """The least total at price 1 of errors weighed by G, by a semidefinite program."""
    cells = len(g)
    changes = [] if who == "move" else list(np.eye(cells))
    if who != "come or go":
        changes += [np.eye(cells)[i] - np.eye(cells)[j] for i, j in combinations(range(cells), 2)]
    basis = np.eye(cells)
    if who == "move":  # the total is public: contrasts alone are asked for
        basis = np.linalg.svd(np.ones((1, cells)))[2][1:].T
    seen, inside = np.array(changes) @ basis, basis.T @ g @ basis
    scale = np.trace(inside)
    values, vectors = np.linalg.eigh(inside / scale)
    half = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    size = len(half)
    block = cp.Variable((2 * size, 2 * size), PSD=True)
    x = block[:size, :size]
    costs = cp.sum(cp.multiply(seen @ x, seen), axis=1) <= 1
    error = cp.Minimize(cp.trace(block[size:, size:]))  # X⁻¹ by Schur's complement
    program = cp.Problem(error, [block[:size, size:] == half, costs])
    close = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-9)
    program.solve(solver=cp.CLARABEL, **close)
    found = (x.value + x.value.T) / 2
    found = found / np.einsum("ki,ij,kj->k", seen, found, seen).max()
    inverse = np.linalg.inv(found)
    weights = np.maximum(costs.dual_value, 0)
    laplacian = (seen.T * (weights / weights.sum())) @ seen
    roots = np.sqrt(np.maximum(np.linalg.eigvalsh(half @ laplacian @ half), 0))
    proved = scale * roots.sum() ** 2
    return Least(float(np.trace(inside @ inverse)), proved, basis @ inverse @ basis.T)


class Judged(NamedTuple):
    """What a plan says beside the program.

    Attributes:
        gap: how far the program's own error may be above the least, relatively.
        below: how far the plan's bound is below the program's error, relatively.
        slack: what the plan says of that; None where it does not.
        value: the efficiency that is printed.
        own: the program's error over the plan's own: none above 1.
        cuboids: the largest relative difference of errors where the total is least; None of none.
    """

    gap: float
    below: float
    slack: float | None
    value: float
    own: float
    cuboids: float | None


def judged(kind, seed, who):
    """A plan and the program."""
    plan = planned(kind, seed, who)
    tree, found = plan.tree, plan.efficiency
    assert found.value is not None, found.reason
    weights = {tree.named(name): each for name, each in found.weights.items()}
    sums = {levels: cells_of(tree, levels) for levels in weights}
    g = sum(each / len(sums[k]) * sums[k].T @ sums[k] for k, each in weights.items())
    least = least_of(g, who)
    units = plan.neighbours.contributions
    price = 2 * float(plan.guarantee.rho)
    own = sum(each * plan.design.mean_variance(k) for k, each in weights.items())
    there = least.total * units**2
    apart = []
    for levels, matrix in sums.items():
        _, said = found.errors[tree.name_of(levels)]
        if said is not None:
            mean = np.trace(matrix @ least.covariance @ matrix.T) / len(matrix)
            apart.append(abs(said / np.sqrt(mean * units**2 / price) - 1))
    assert np.isclose(found.value, min(1, found.least / price / own), rtol=1e-12)
    return Judged(
        least.total / least.proved - 1, 1 - found.least / there, found.slack, found.value,
        there / price / own, max(apart, default=None),
    )  # fmt: skip


def faults(each, tolerance=1e-6):
    """What is wrong with what a plan says: nothing, if all is well."""
    if each.gap > tolerance:
        yield f"the program is not solved: {each.gap:.1e}"
    if each.below < -each.gap - tolerance:
        yield f"the bound is above what can be had, by {-each.below:.1e}"
    if each.slack is not None and 1 / (1 - each.below) > (1 + each.slack) * (1 + tolerance):
        yield f"the bound is {each.below:.1e} below, and {each.slack:.1e} is said"
    if each.own > 1 + tolerance:
        yield f"the plan is better than the least, by {each.own - 1:.1e}"


def workloads(number, first=0):
    return [(list(KINDS)[i % len(KINDS)], first + i // len(KINDS)) for i in range(number)]


def main(number=200, first=0):
    """Judge so many workloads under each kind of neighbours; print a table and what is wrong."""
    found, wrong, write = defaultdict(list), 0, sys.stdout.write
    for kind, seed in workloads(number, first):
        for who in NEIGHBOURS:
            each = judged(kind, seed, who)
            found[kind, who].append(each)
            for fault in faults(each):
                wrong += 1
                write(f"{kind}, {who}, seed {seed}: {fault}\n")
    write("| workloads | neighbours | plans | program's gap | bound below: median | worst |")
    write(
        " above | stated slack | efficiency printed | exact | by cuboid |\n" + "|---" * 11 + "|\n"
    )
    for (kind, who), plans in found.items():
        below = [each.below for each in plans]
        slack = [each.slack for each in plans if each.slack is not None]
        cuboids = [each.cuboids for each in plans if each.cuboids is not None]
        write(
            f"| {kind} | {who} | {len(plans)} | {max(each.gap for each in plans):.0e} "
            f"| {np.median(below):.1e} | {max(below):.1e} | {max(0, -min(below)):.0e} "
            f"| {f'{max(slack):.0e} of {len(slack)}' if slack else ''} "
            f"| {min(e.value for e in plans):.3f} to {max(e.value for e in plans):.3f} "
            f"| {min(e.own for e in plans):.3f} to {max(e.own for e in plans):.3f} "
            f"| {f'{np.median(cuboids):.0e}, {max(cuboids):.0e}' if cuboids else ''} |\n"
        )
    write(f"\n{sum(map(len, found.values()))} plans; {wrong} faults.\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
