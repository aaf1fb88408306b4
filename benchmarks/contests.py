"""Expected errors of plans beside those that peers published, and the least that are possible.

With W the N queries by the cells, any weights w of the cells (Σw = 1) bound the RMSE of unbiased
estimates from linear measurements with Gaussian noise of price 1: ‖W√w‖∗/√N, the sum of singular
values (Li & Miklau 2013, for even weights). The bound is largest, and attained, where w is in
proportion to the diagonal of (√w WᵀW √w)^½; so w is replaced by that diagonal again and again.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from math import prod, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

import hedgerow as hr
from benchmarks.page import Benchmark
from hedgerow.arrays import Float64, Int64, Levels
from hedgerow.distribution.plan import mean_cut_variance
from hedgerow.plan.allocation.allocation import rounded_shares
from studies.page import markdown

UNITS: dict[str, Any] = {"budget": hr.Rho("1/200"), "neighbours": hr.AddRemove()}
SCALE = 10.0
"""By how much our plans' errors exceed those of price 1: theirs is a hundredth, so that noise is
wide and its discreteness not felt."""

# github.com/dpcomp-org/hdmm at 5aa9df9, experiments/journal/hderror.csv: census, workloads 1 and 2,
# and cps, workload 1; approximate privacy, the best of three (kron).
TABLES = {"SF1": 2.3519, "SF1+": 2.6120, "CPS, all marginals": 1.8585}
# oned.csv beside it: prefixes, 1,024 bins; and its bound, that of even weights.
PREFIXES = {"HB": 6.4338, "wavelet": 3.6674, "HDMM": 3.0653}
EVEN_BOUND = 2.9096
# github.com/dkifer/ResidualPlanner at ef9c170, residual_planner/selection_only: how many values the
# attributes have (workload.py), and what its optimum for the sum of variances is at pcost = 1 for
# all marginals of one, two and three of them (exp_large_dataset.py, loss_RMSE).
MARGINALS = {
    "CPS": ((50, 100, 7, 4, 2), (1.7439, 2.0346, 2.0477)),
    "Adult": ((100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2), (3.0468, 6.3587, 10.5153)),
    "Loans": ((101, 101, 101, 101, 3, 8, 36, 6, 51, 4, 5, 15), (2.8753, 5.6343, 8.7019)),
}

SF1 = """
both both anyone all
both both anyone all
both both anyone all
both both anyone all
both both anyone all
both both seven all
both both seventy all
both each anyone all
both each anyone all
both each seven all
both margins anyone all
both other seventy all
both both seventy adults
both both anyone adults
both both anyone adults
both each anyone adults
both other seventy adults
each both anyone bands
margins both anyone all
each both seven bands
margins both seven all
each hispanic anyone bands
margins hispanic anyone all
each other white bands
margins other white all
each both anyone years
margins both anyone all
each both seven years
margins both seven all
each hispanic anyone years
margins hispanic anyone all
each other seven years
margins other seven all
"""
"""The queries of each of its tables of persons: by sex, Hispanic origin, race and age."""

TEXT = """Expected RMSE of unbiased estimates over all queries of a workload, a query that is asked
twice counting twice, at price 1: ρ = 1/2, one record more or less. The peer's is published (sources
in `benchmarks/contests.py`), ours is that of Hedgerow's own plans, and nothing is released. *Least*
is a bound for all mechanisms that add Gaussian noise to linear measurements.

{table}

**SF1** are the 4,151 counts of persons of the census's Summary File 1 (P1, P3 to P5, P8 to P12A–I,
PCT12, PCT12A–O) over sex, Hispanic origin, 64 sets of races and age (2 × 2 × 64 × 115; ages from
100 on matter in three groups alone); SF1+ asks each for the nation and 51 states. HDMM's is a
product of strategies, one an axis, as is our cube, whose shares were sought for these queries. The
{named} are those that have queries, with `Optimal` by how many; over states their errors have
bounds alone, so SF1+ has a cube. What is still lost: shares are sought as if nodes of a level were
alike, and a cuboid measures all of its cells, where many queries are of one race or origin.

**Marginals.** For *all* marginals HDMM and our cube reach the least. For those of some attributes
ResidualPlanner does: it measures *residuals*, what a marginal tells beyond those below it, each
with a noise of its own. Cuboids cannot: **we lose {loss} %**. Of three attributes Hedgerow plans
those of CPS with their common table beside them, at next to no share, and none of Adult and Loans,
whose common table is too large: without it no whole counts may keep all margins of three tables.

**Prefixes** of 1,024 bins: running sums are the Toeplitz root that `plan_distribution` chooses, the
tree is the best of its trees. HDMM searches for a strategy, and ours is a fixed form: **we lose
{behind:.1f} %**. The bound published with it, {published:.4f}, is that of even weights, {even:.4f}
here; other weights of the bins give a higher one."""

Table = Sequence[Float64]
"""Queries that are a product: for each axis float64 (queries, cells)."""
Axes = Mapping[str, Sequence[Int64]]
"""For each axis and level, coarse to fine, the nodes of the cells, in order."""


class Contest(NamedTuple):
    """A peer's error beside ours (None: no plan), and the least; RMSE at price 1."""

    queries: str
    peer: str
    theirs: float
    plan: str
    ours: float | None
    least: float


def least(tables: Sequence[Table], groups: Sequence[Int64], rounds: int = 7) -> list[float]:
    """Bounds of the RMSE of queries, round by round, the first of even weights.

    Args:
        tables: the queries.
        groups: for each axis those of cells that the set of queries does not tell apart.
        rounds: how many bounds.
    """
    kinds = [
        [
            (times, at, np.array([basis.T @ (own[axis].T @ own[axis]) @ basis for own in tables]))
            for times, at, basis in symmetric(labels)
        ]
        for axis, labels in enumerate(groups)
    ]
    sizes = reduce(np.multiply.outer, [np.bincount(own) for own in groups]).astype(np.float64)
    weights = sizes / sizes.sum()
    found = []
    for _ in range(rounds):
        diagonal = np.zeros_like(weights)
        for blocks in product(*kinds):
            times, places, grams = zip(*blocks, strict=True)
            at = np.ix_(*places)
            root = np.sqrt((weights / sizes)[at].ravel())
            values, vectors = np.linalg.eigh(root[:, None] * reduce(products, grams).sum(0) * root)
            own = vectors**2 @ np.sqrt(np.maximum(values, 0.0))
            diagonal[at] += prod(times) * own.reshape(diagonal[at].shape)
        found.append(float(diagonal.sum()) / sqrt(sum(prod(map(len, own)) for own in tables)))
        weights = diagonal / diagonal.sum()
    return found


def products(one: Float64, other: Float64) -> Float64:
    """The Kronecker products of two lists of matrices, one by one."""
    found = one[:, :, None, :, None] * other[:, None, :, None, :]
    return found.reshape(len(one), *np.multiply(one.shape[1:], other.shape[1:]))


def symmetric(labels: Int64) -> Iterator[tuple[int, Int64, Float64]]:
    """Bases that queries do not mix: of sums of groups, and one for all contrasts within each.

    Yields:
        How many are alike; the groups of the columns; float64 (cells, columns).
    """
    each = nodes(labels)
    yield 1, np.arange(len(each)), (each / np.sqrt(each.sum(1, keepdims=True))).T
    for group, own in enumerate(each):
        first, *others = np.flatnonzero(own)
        if others:
            contrast = np.zeros((len(own), 1))
            contrast[[first, others[0]], 0] = sqrt(0.5), -sqrt(0.5)
            yield len(others), np.array([group]), contrast


def nodes(labels: Int64) -> Float64:
    """The cells of each node: float64 (nodes, cells)."""
    return np.equal.outer(np.unique(labels), labels).astype(np.float64)


def levels_of(axes: Axes) -> list[list[Float64]]:
    """The nodes of each level of each axis, the total included."""
    return [[np.ones((1, len(own[-1]))), *map(nodes, own)] for own in axes.values()]


def tree_of(axes: Axes) -> hr.Tree:
    """The tree of axes."""
    own = {
        name: {f"{name}{k}": [f"{n:04d}" for n in nodes] for k, nodes in enumerate(levels)}
        for name, levels in axes.items()
    }
    return hr.Tree([hr.Axis.from_frame(name, codes, [*codes]) for name, codes in own.items()])


def planned(tree: hr.Tree, workload: Any, shares: Any) -> hr.Plan:
    """A plan that measures all cells."""
    return hr.make_plan(tree, workload=workload, measure=hr.All(), allocation=shares, **UNITS)


def planned_by(tree: hr.Tree, importance: Mapping[str, float]) -> hr.Plan:
    """The plan of the cuboids that have an importance of each cell's squared error."""
    shares = hr.Optimal(objective="released", importance=importance)
    return planned(tree, hr.Cuboids([*importance]), shares)


def shares_by_axis(axes: Axes, tables: Sequence[Table]) -> dict[str, list[Fraction]]:
    """The shares of the axes' levels at which queries have the least error, by descent."""
    squares = [[own.T @ own for own in levels] for levels in levels_of(axes)]
    asked = [np.array([own.T @ own for own in queries]) for queries in zip(*tables, strict=True)]
    ends = np.cumsum(list(map(len, squares)))

    def logarithm(logs: Float64) -> float:
        each = np.ones(len(tables))
        for own, queries, part in zip(squares, asked, np.split(logs, ends[:-1]), strict=True):
            each *= np.tensordot(queries, np.linalg.inv(np.tensordot(softmax(part), own, 1)), 2)
        return float(np.log(each.sum()))

    found = minimize(logarithm, np.zeros(ends[-1]), bounds=[(-12.0, 3.0)] * ends[-1]).x
    parts = zip(axes, map(softmax, np.split(found, ends[:-1])), strict=True)
    return {name: [share or Fraction(0) for share in rounded_shares(s)] for name, s in parts}


def by_cuboid(axes: Axes, tables: Sequence[Table]) -> Iterator[tuple[Levels, bool, list[Float64]]]:
    """Queries by the coarsest cuboid that they are sums of cells of.

    Yields:
        Its levels; whether each query is one cell; for each axis weights (queries, nodes).
    """
    for table in tables:
        each: list[dict[tuple[int, bool], list[Float64]]] = []
        for queries, levels in zip(table, levels_of(axes), strict=True):
            each.append({})
            for query in queries:
                inside = [own @ query / own.sum(1) for own in levels]
                level = min(k for k, own in enumerate(inside) if np.isin(own, (0, 1)).all())
                each[-1].setdefault((level, inside[level].sum() == 1), []).append(inside[level])
        for keys in product(*each):
            cuboid, alone = zip(*keys, strict=True)
            weights = [np.array(own[key]) for own, key in zip(each, keys, strict=True)]
            yield cuboid, all(alone), weights


def error_of(plan: hr.Plan, axes: Axes, tables: Sequence[Table]) -> float:
    """The RMSE of queries under a plan, at price 1."""
    design: Any = plan.design
    total = 0.0
    for cuboid, alone, weights in by_cuboid(axes, tables):
        if alone:
            times = reduce(np.multiply.outer, [own.sum(0) for own in weights])
            total += design.cell_variances(cuboid).ravel() @ times.ravel()
            continue
        variances = design.variances_of(design.shape.given(cuboid))
        for rows in product(*weights):
            query = list(zip(cuboid, rows, strict=True))
            total += variances.covariance(query, query)
    return sqrt(total / sum(prod(map(len, own)) for own in tables)) / SCALE


def census() -> tuple[dict[str, list[Int64]], list[Table], list[Int64]]:
    """SF1: its axes, its queries, and the groups of cells that these do not tell apart."""
    sets = np.arange(64)
    years = np.arange(103)
    races = np.repeat([1, 2, 3, 4, 5, 6, 0], [6, 15, 20, 15, 6, 1, 1])  # how many a set has
    alone = races == 1
    number = np.where(races, 4 + races, 11)
    starts = [*range(0, 20, 5), 18, 20, 21, 22, *range(25, 65, 5), 62, 65, 67, *range(70, 90, 5)]
    bands = np.searchsorted(np.sort(starts), years, side="right") - 1
    by_race = [1 - alone, np.minimum(sets, 6), np.where(alone, sets, number), sets]
    axes = {"sex": [np.arange(2)], "hispanic": [np.arange(2)], "race": by_race}
    axes["age"] = [(years >= 18).astype(int), bands, years]
    bins = {  # of each axis, by what one asks of it
        "both": np.ones((1, 2)), "each": np.eye(2), "margins": np.vstack([np.ones(2), np.eye(2)]),
        "hispanic": np.eye(2)[:1], "other": np.eye(2)[1:],
        "anyone": np.ones((1, 64)), "seven": nodes(by_race[1]), "white": np.eye(64)[:1],
        "seventy": np.vstack([np.eye(64)[:63], nodes(races)[1:], [races > 1]]),
        "all": np.ones((1, 103)), "adults": np.ones((1, 103)) * (years >= 18),
        "bands": nodes(bands), "years": np.eye(103),
    }  # fmt: skip
    tables: list[Table] = [
        tuple(bins[word] for word in query.split()) for query in SF1.strip().splitlines()
    ]
    alike = np.where(alone, np.minimum(sets, 1), number - 4)
    return axes, tables, [np.zeros(2, int), np.arange(2), alike, bands]


def of_census() -> Iterator[Contest]:
    """SF1 and SF1+."""
    axes, tables, groups = census()
    bound = least(tables, groups)[-1]
    shares = shares_by_axis(axes, tables)
    cube = of_cube("SF1", axes, tables, shares, bound)
    tree = tree_of(axes)
    importance: dict[str, float] = {}  # a cell's: the queries of its cuboid over its cells
    for cuboid, _, weights in by_cuboid(axes, tables):
        name = tree.name_of(cuboid)
        each = prod(map(len, weights)) / tree.cells(cuboid)
        importance[name] = importance.get(name, 0.0) + each
    ours = error_of(planned_by(tree, importance), axes, tables)
    yield from (cube, cube._replace(plan=f"{len(importance)} cuboids", ours=ours))
    # One more factor of all queries: one more of what is least, with shares of its own.
    states = {"state": [np.arange(51)]}
    nation = np.vstack([np.ones((1, 51)), np.eye(51)])
    shares |= shares_by_axis(states, [(nation,)])
    bound *= least([(nation,)], [np.zeros(51, int)])[-1]
    yield of_cube("SF1+", axes | states, [(*own, nation) for own in tables], shares, bound)


def of_cube(
    name: str, axes: Axes, tables: list[Table], shares: dict[str, list[Fraction]], bound: float
) -> Contest:
    """A cube of shares by axis, beside HDMM."""
    ours = error_of(planned(tree_of(axes), hr.Cube(), hr.Shares(shares)), axes, tables)
    return Contest(name, "HDMM", TABLES[name], "cube, shares by axis", ours, bound)


def axes_of(sizes: Sequence[int]) -> Axes:
    """Axes of so many cells, each of one level."""
    return {f"a{number}": [np.arange(n)] for number, n in enumerate(sizes)}


def marginals(sizes: Sequence[int], ways: int) -> tuple[list[Table], float]:
    """All marginals of so many attributes, and the least RMSE of them."""
    queries = [(np.ones((1, n)), np.eye(n)) for n in sizes]
    tables: list[Table] = [
        [own[k] for own, k in zip(queries, levels, strict=True)]
        for levels in product((0, 1), repeat=len(sizes))
        if sum(levels) == ways
    ]
    return tables, least(tables, [np.zeros(n, int) for n in sizes], 1)[0]


def error_of_marginals(
    sizes: Sequence[int], ways: int, tables: Sequence[Table], *, beside: bool = False
) -> float:
    """Ours, if marginals of fewer attributes are measured too, and perhaps that of all beside."""
    tree = tree_of(axes_of(sizes))
    every = product((0, 1), repeat=len(sizes))
    measured = [own for own in every if sum(own) <= ways or (beside and all(own))]
    importance = {tree.name_of(own): float(sum(own) == ways) for own in measured}
    return error_of(planned_by(tree, importance), axes_of(sizes), tables)


def of_marginals() -> Iterator[Contest]:
    """All marginals; those of one, two and three attributes."""
    sizes = MARGINALS["CPS"][0]
    tables: list[Table] = [tuple(np.vstack([np.ones((1, n)), np.eye(n)]) for n in sizes)]
    whole = least(tables, [np.zeros(n, int) for n in sizes])[-1]
    shares = shares_by_axis(axes_of(sizes), tables)
    yield of_cube("CPS, all marginals", axes_of(sizes), tables, shares, whole)
    for name, (sizes, figures) in MARGINALS.items():
        for ways, theirs in enumerate(figures, start=1):
            ours, beside = None, ways == 3
            tables, bound = marginals(sizes, ways)
            if not beside or name == "CPS":
                ours = error_of_marginals(sizes, ways, tables, beside=beside)
            plan = "none" if ours is None else "marginals" + ", their table" * beside
            yield Contest(f"{name}, {ways}-way", "ResidualPlanner", theirs, plan, ours, bound)


def of_prefixes(bins: int = 1024) -> tuple[list[Contest], float]:
    """Prefixes, and the bound of even weights."""
    ranges = hr.Ranges.equal_width("value", 0, bins, bins)
    ours = {}
    for name, measure in (("tree", hr.All()), ("running sums", hr.RunningSums())):
        plan = hr.plan_distribution(ranges, **UNITS, measure=measure)
        ours[name] = sqrt(mean_cut_variance(plan)) / SCALE
    bounds = least([(np.tri(bins),)], [np.arange(bins)])
    return [
        Contest("prefixes", peer, theirs, plan, ours[plan], bounds[-1])
        for (peer, theirs), plan in zip(PREFIXES.items(), (*ours, "running sums"), strict=True)
    ], bounds[0]


def measured() -> Benchmark:
    """All contests."""
    of_sums, even = of_prefixes()
    found = [*of_census(), *of_marginals(), *of_sums]
    rows = [(*o[:4], o.ours or "", o.least, o.ours / o.least if o.ours else "") for o in found]
    lost = [100 * (one.ours / one.theirs - 1) for one in found[4:] if one.ours]
    heads = "queries | peer | the peer's | our plan | ours | least | ours over least"
    text = TEXT.format(
        table=markdown(heads, rows, " |  | .3f |  | .3f"),
        named=found[1].plan,
        loss=f"{min(lost[:-3]):.1f} to {max(lost[:-3]):.1f}",
        behind=lost[-1],
        published=EVEN_BOUND,
        even=even,
    )
    figures = {f"{one.queries}, {one.plan}, {one.peer}": one._asdict() for one in found}
    return Benchmark("Expected errors that peers published", text, figures=figures)
