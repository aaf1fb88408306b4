"""The least squared error that any unbiased estimates can have at a price: a proved lower bound.

Whatever is measured with continuous Gaussian noise, linear in the counts x of N cells, is told by
its information X (N × N): estimates of Qx have the covariance Q X⁻¹ Qᵀ, and one unit costs
max xᵢᵢ (add-remove) or max (eᵢ - eⱼ)ᵀ X (eᵢ - eⱼ) (replace). With G = Σ_c g_c Q_cᵀ Q_c, cuboid c's
counts weighing g_c each, the least total is the value of a convex program, whose dual is

    max over weights of (tr √(√G L √G))²,   L = Σ_j w_j e_j e_jᵀ   or   Σ p_ij (eᵢ-eⱼ)(eᵢ-eⱼ)ᵀ,

weights at least 0 that sum to 1 (Li & Miklau 2013 for equal weights, "the SVD bound"). *Any*
weights give a bound: docs/proofs/least-error.md, "The least error of any estimates". Where all
families of each level have one size the best weights are found (`hedgerow.plan.efficiency.even`).
Elsewhere those of add-remove are searched for, and how far the best may be above is proved; those
of replace are pairs that differ at the top of every axis, or are equal. Beside a semidefinite
program (``tests/acceptance/efficiency.py``) these bounds are up to 4 % low along chains, and up to
18 % for cubes of axes of two or three nodes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from itertools import islice, product
from math import prod, sqrt

import numpy as np

from hedgerow.arrays import Float64, Int64, IntArrays, Levels, OfCuboids, OtherCuboids, int64
from hedgerow.declared import frozen
from hedgerow.errors import PlanError
from hedgerow.limits import MOST_SPACES
from hedgerow.plan.efficiency.even import Even
from hedgerow.plan.efficiency.traces import COME, Branches, Pairs, Root, check_families, root_of
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree, nodes_along

WORK = 1 << 26
"""Visits of nodes that the search for better weights may take."""
MOST_SEARCHES = 20
STEEP = 3.0
"""The power of the derivatives by which weights are multiplied: 2 would do for cells apart."""
CLOSE = 1e-3
"""The relative distance from the best bound at which the search ends."""
DERIVATIVES = 1e-6
"""What derivatives by level may be off by, relatively."""


@frozen(eq=False)
class LeastTotal:
    """The least squared error of any unbiased estimates whose noise has the price 1.

    Attributes:
        total: Σ_c g_c Σ (squared errors of c's counts), records²: none is below it.
        by_cuboid: that of each cuboid's counts, summed, where the weights of the bound are best;
            empty where no weights are known to be near these.
        slack: how much larger the least possible total can be, relatively; None where that is not
            known.
    """

    total: float
    by_cuboid: OfCuboids
    slack: float | None = None


def least_total(tree: Tree, importance: OfCuboids, pairs: Sequence[Pairs]) -> LeastTotal:
    """Return a lower bound of the importance-weighted squared error, for neighbours of one record.

    The price is max xᵢᵢ where neighbours come or go, max (eᵢ - eⱼ)ᵀ X (eᵢ - eⱼ) where they move,
    and the larger of both where they may do either.

    Args:
        tree: the public domain.
        importance: of a squared error of one count, for each cuboid that is released.
        pairs: what to weigh; the largest bound is returned.

    Raises:
        PlanError: no bound is known, or it would take too long.
    """
    if all(map(_is_even, tree.axes)):
        single, moved = (any(getattr(each, of) for each in pairs) for of in ("single", "moved"))
        return LeastTotal(*Even.of(tree, importance).least(single=single, moved=moved))
    bounds = []
    refusal = PlanError("no bound is known")
    for made in _problems(tree, importance):
        try:
            problem = made()
            bounds += [problem.bound(each) for each in pairs]
        except PlanError as error:
            refusal = error
    if not bounds:
        raise refusal
    best = max(bounds, key=lambda each: each.total)
    # Of several, the best weights are of all together: one's slack is not theirs, nor its errors,
    # as a total that nobody changes who moves would have none.
    return best if len(pairs) == 1 else replace(best, by_cuboid={}, slack=None)


def _problems(
    tree: Tree, importance: OfCuboids
) -> Iterator[Callable[[], "_AxisProblem | _Products"]]:
    """Yield what bounds are had of: all cuboids, or some, as the others' errors are not below 0."""
    chain = {levels: (t,) for t, levels in enumerate(tree.chain)}
    uneven = [a for a, axis in enumerate(tree.axes) if not _is_even(axis)]
    nested = {levels: chain[levels] for levels in importance if levels in chain}
    is_nested = len(nested) == len(importance)
    if is_nested or (nested and len(uneven) > 1):
        yield lambda: _AxisProblem.of(_families_of_chain(tree), (), importance, nested)
    if is_nested:
        return
    for first in uneven:
        yield partial(_AxisProblem.along, tree, importance, first)
    if len(uneven) > 1:
        yield partial(_Products.of, tree, importance)


@dataclass(frozen=True, eq=False)
class _AxisProblem:
    """One axis, or a chain over several, whose families may differ, beside axes where they do not.

    The weights are those of the leaves of the first, equally divided among the cells beside each.
    On each space of contrasts of the others the importances of the first one's levels are numbers.

    Attributes:
        branches: of the first.
        other_sizes: the sizes of the levels of each other axis.
        importance: float64 (levels of the first, levels of each other axis).
        places: for each cuboid where it stands there; none where some are left out.
    """

    branches: Branches
    other_sizes: IntArrays
    importance: Float64
    places: OtherCuboids

    @classmethod
    def of(
        cls,
        families: Sequence[Int64],
        other_sizes: IntArrays,
        importance: OfCuboids,
        places: OtherCuboids,
    ) -> "_AxisProblem":
        """Return the problem of one axis, by its families, beside others."""
        if (spaces := prod(map(len, other_sizes))) > MOST_SPACES:
            raise PlanError(f"{spaces:,} combinations of levels beside one axis take too long")
        dense = np.zeros((len(families) + 1, *map(len, other_sizes)))
        for levels, place in places.items():
            dense[place] = importance[levels]
        complete = places if len(places) == len(importance) else {}
        return cls(Branches.of(families), other_sizes, dense, complete)

    @classmethod
    def along(cls, tree: Tree, importance: OfCuboids, first: int) -> "_AxisProblem":
        """Return the problem along an axis; of others whose families differ, total and leaves."""
        others = [a for a in range(len(tree.axes)) if a != first]
        kept = {a: _alike(tree.axes[a]) for a in others}
        other_sizes = tuple(np.array([tree.axes[a].size(k) for k in kept[a]]) for a in others)
        places = {
            levels: (levels[first], *(kept[a].index(levels[a]) for a in others))
            for levels in importance
            if all(levels[a] in kept[a] for a in others)
        }
        return cls.of(_families_of_axis(tree.axes[first]), other_sizes, importance, places)

    @cached_property
    def spaces(self) -> list["_Space"]:
        """The spaces of contrasts of the other axes."""
        spaces = []
        for at in product(*map(range, self.importance.shape[1:])):
            levels = list(zip(self.other_sizes, at, strict=True))
            gains = reduce(np.multiply.outer, [s[-1] / s[b:] for s, b in levels], np.ones(()))
            times = prod(int(s[b] - (s[b - 1] if b else 0)) for s, b in levels)
            opposed = prod(_opposed(s, b) for s, b in levels)
            kept = tuple(slice(b, None) for b in at)
            if times:
                spaces.append(_Space(kept, np.asarray(gains), times, opposed))
        return spaces

    @cached_property
    def weight(self) -> Float64:
        """The best weights that a search finds: float64 (families)."""
        return self._sought[0]

    @property
    def slack(self) -> float:
        """How much larger the best bound can be, relatively, for neighbours that come or go."""
        return self._sought[1]

    @cached_property
    def _sought(self) -> tuple[Float64, float]:
        """The weights, for neighbours that come or go, and how far the best bound may be above.

        By w ← w (∂/∂w)^STEEP, scaled (after Silvey, Titterington & Torsney 1978; the best are
        kept). tr √M is concave in w, and Σ w ∂/∂w its half, so that no weights have more than
        tr √M / 2 + max ∂/∂w.
        """
        branches = self.branches
        best = 0.0
        weight = self.branches.even
        chosen = weight
        most = np.inf
        kinds = len({g.tobytes() for _, _, g in self.weighed})
        for _ in range(min(MOST_SEARCHES, 1 + WORK // (branches.visits * kinds))):
            root = self.root(weight, COME)
            slope = 2 * root.by_family / root.value  # at most 1 where no weights are better
            most = min(most, root.value * (1 + float(slope.max())) / 2)
            if root.value > best:
                best = root.value
                chosen = weight
            if (most / best) ** 2 < 1 + CLOSE:
                break
            weight = weight * slope**STEEP
            weight = weight / (branches.leaves @ weight)
        return chosen, (most / best) ** 2 - 1

    @cached_property
    def weighed(self) -> list[tuple["_Space", float, Float64]]:
        """The spaces that are weighed, with the largest importance there, and all over that one.

        Where importances are products these are the same everywhere.
        """
        cells = prod(int(sizes[-1]) for sizes in self.other_sizes)
        weighed = []
        for space in self.spaces:
            here = self.importance[slice(None), *space.kept] * space.gains / cells
            g = here.reshape(len(here), -1).sum(axis=1)
            if g.any():
                weighed.append((space, float(g.max()), _rounded(g / g.max())))
        return weighed

    def root(self, weight: Float64, pairs: Pairs) -> Root:
        """Return tr √(√G L √G); its derivatives by level are of the shape of ``importance``."""
        cells = prod(int(sizes[-1]) for sizes in self.other_sizes)
        value = 0.0
        by_family = np.zeros(len(weight))
        by_level = np.zeros(self.importance.shape)
        roots = {}
        for space, largest, g in self.weighed:
            key = g.tobytes(), space.opposed if pairs.moved else 1.0
            if key not in roots:
                roots[key] = root_of(self.branches, g, weight, pairs, key[1])
            root = roots[key]
            scale = sqrt(largest)
            value += space.times * scale * root.value
            by_family += space.times * scale * root.by_family
            each = np.multiply.outer(root.by_level / scale, space.gains)
            by_level[slice(None), *space.kept] += each * space.times / cells
        return Root(value, by_level, by_family)

    def bound(self, pairs: Pairs) -> LeastTotal:
        """Return the bound for some neighbours: of the weights that were found, or of equal ones.

        The weights are sought for neighbours that come or go, and are near the best for others.
        """
        sought = [self.weight]
        if pairs.moved and self.branches.visits * len(self.spaces) <= WORK:
            sought.append(self.branches.even)
        tries = (self.root(weight, pairs) for weight in sought)
        root = max(tries, key=lambda each: each.value)
        errors = {c: 2 * root.value * float(root.by_level[at]) for c, at in self.places.items()}
        is_tight = pairs == COME and self.places
        return LeastTotal(root.value**2, errors, self.slack if is_tight else None)


def _rounded(numbers: Float64) -> Float64:
    """Return numbers without their last digits, each of its own size: none becomes much larger."""
    mantissa, exponent = np.frexp(numbers)
    return np.ldexp(np.round(mantissa, 13), exponent)


@frozen(eq=False)
class _Space:
    """Contrasts of the axes beside the first: one level of each, less what is coarser.

    Attributes:
        kept: the levels of each axis whose cuboids see them.
        gains: of these cuboids, the cells below each count beside.
        times: its dimension.
        opposed: θ of pairs that differ at the top of all axes.
    """

    kept: tuple[slice, ...]
    gains: Float64
    times: int
    opposed: float


@dataclass(frozen=True, eq=False)
class _Products:
    """Several axes whose families differ: the bound of importances that are products, or less.

    With h a product, M = √D H √D and S = Σ_c √(g_c h_c) tr(Q_c √D M^(-1/2) √D Q_cᵀ) the bound is
    S², by tr(W X⁻¹ Wᵀ) ≥ 2 tr(WZ) - tr(Zᵀ X Z) for all Z, here with Z Zᵀ = S² D. The traces are
    products over the axes. Where g is a product so is h, and S = tr √M.

    Attributes:
        axes: each by itself, with its h.
        importance: g, by the levels of these axes.
        names: for each cuboid its levels of these axes.
    """

    axes: tuple[_AxisProblem, ...]
    importance: OfCuboids
    names: OtherCuboids

    @classmethod
    def of(cls, tree: Tree, importance: OfCuboids) -> "_Products":
        several = [a for a, axis in enumerate(tree.axes) if axis.leaves > 1]
        names = {levels: tuple(levels[a] for a in several) for levels in importance}
        given = defaultdict[Levels, float](float)
        axes = []
        for levels, each in importance.items():
            given[names[levels]] += each
        for place, axis in enumerate(tree.axes[a] for a in several):
            sums: dict[Levels, float] = dict.fromkeys(((k,) for k in range(axis.depth + 1)), 0.0)
            for levels, each in importance.items():
                k = names[levels][place]
                sums[k,] += each * tree.cells(levels) / axis.size(k)
            axes.append(_AxisProblem.of(_families_of_axis(axis), (), sums, {k: k for k in sums}))
        return cls(tuple(axes), given, names)

    def bound(self, pairs: Pairs) -> LeastTotal:
        """Return the bound for some neighbours.

        For those that move, each cell for any other: L = 2 (D - wwᵀ) / (1 - Σw²), which takes from
        tr √M its largest eigenvalue at most (interlacing).
        """
        roots = [axis.root(axis.weight, COME) for axis in self.axes]
        total, traces = 0.0, {}
        for levels, g in self.importance.items():
            own = list(zip(self.axes, roots, levels, strict=True))
            traces[levels] = prod(2 * float(root.by_level[k]) for _, root, k in own)
            total += sqrt(g * prod(axis.importance[k] for axis, _, k in own)) * traces[levels]
        total *= 1 - DERIVATIVES
        if pairs.moved == 0:
            errors = self._errors(total, traces)
            slack = prod(1 + axis.slack for axis in self.axes) - 1
            return LeastTotal(total**2, errors, slack if errors else None)
        heaviest = [axis.branches.heaviest(axis.weight) for axis in self.axes]
        largest = sum(
            g * prod(own[k] for own, k in zip(heaviest, levels, strict=True))
            for levels, g in self.importance.items()
        )
        alike = prod(float(axis.branches.leaves @ axis.weight**2) for axis in self.axes)
        return LeastTotal(2 / (1 - alike) * max(total - sqrt(largest), 0.0) ** 2, {})

    def _errors(self, total: float, traces: OfCuboids) -> OfCuboids:
        """Return the squared errors by cuboid where g is a product, and none elsewhere."""
        ratios = [
            g / prod(axis.importance[k] for axis, k in zip(self.axes, levels, strict=True))
            for levels, g in self.importance.items()
        ]
        if max(ratios) > min(ratios) * (1 + 1e-9):
            return {}
        whole = sum(g * traces[levels] for levels, g in self.importance.items())
        return {c: total**2 / whole * traces[k] for c, k in self.names.items()}


def _opposed(sizes: Int64, level: int) -> float:
    """Return what contrasts of a level see of pairs that differ at the top: 1, -1/(k - 1) or 0."""
    top = next((t for t, size in enumerate(sizes) if size > 1), None)
    if top is None or level == 0:
        return 1.0
    return -1 / float(sizes[top] - 1) if level == top else 0.0


def _families_of_axis(axis: Axis) -> list[Int64]:
    """Return the number of children of each node, for each level but the last."""
    return [int64(np.diff(start)) for start in axis.child_start]


def _is_even(axis: Axis) -> bool:
    """Return whether all families of each level have one size."""
    return all(sizes.min() == sizes.max() for sizes in _families_of_axis(axis))


def _alike(axis: Axis) -> list[int]:
    """Return levels of an axis between which all families have one size."""
    return list(range(axis.depth + 1)) if _is_even(axis) else [0, axis.depth]


def _families_of_chain(tree: Tree) -> list[Int64]:
    """Return the number of children of each node of a chain, nodes in order of their parents."""
    families = []
    for _, own in islice(nodes_along(tree), tree.depth):
        families.append(own)
        if len(families) < tree.depth:
            check_families(sum(map(len, families)) + int(own.sum()))
    return families
