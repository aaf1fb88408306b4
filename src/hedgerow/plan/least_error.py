"""The least squared error that any unbiased estimates can have at a price: a proved lower bound.

Whatever is measured with continuous Gaussian noise, linear in the counts x of N cells, is told by
its information X (N × N): estimates of Qx have the covariance Q X⁻¹ Qᵀ, and one unit costs
max xᵢᵢ (add-remove) or max (eᵢ - eⱼ)ᵀ X (eᵢ - eⱼ) (replace). With G = Σ_c g_c Q_cᵀ Q_c, cuboid c's
counts weighing g_c each, the least total is the value of a convex program, whose dual is

    max over weights of (tr √(√G L √G))²,   L = Σ_j w_j e_j e_jᵀ   or   Σ p_ij (eᵢ-eⱼ)(eᵢ-eⱼ)ᵀ,

weights at least 0 that sum to 1 (Li & Miklau 2013 for equal weights, "the SVD bound"). *Any*
weights give a bound: docs/proofs.md, "The least error of any estimates". A plan over it is never
below 1; on regular trees the best weights are known and the bound is attained.

*Along a tree.* Q_cᵀ Q_c are blocks of ones, so log det(I + LG/t) takes one pass up a tree, and

    tr √M = (1/2π) ∫ log det(I + M/t) t^(-1/2) dt

by the trapezoidal rule in log t, whose relative error with steps of 1 is below 1e-8 for every
eigenvalue, and whose ends are cut off downwards.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from math import prod, sqrt

import numpy as np

from hedgerow.arrays import Float64, Int64, Levels
from hedgerow.errors import PlanError
from hedgerow.kernels import kernel, over_families
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree

BELOW, ABOVE = 60, 32
"""How far the integral goes beyond the largest eigenvalue, in log t, to either side."""
TRAPEZOID = 1e-7
"""What the rule, and rounding where t is small, may be off by, relatively; the bound is less."""
NEAR_ZERO = 1e-14
MOST_FAMILIES = 1 << 21
"""Families of a tree that is walked: some ten seconds."""
WORK = 1 << 26
"""Visits of families that the search for better weights may take."""
MOST_SEARCHES = 20
STEEP = 3.0
"""The power of the derivatives by which weights are multiplied: 2 would do for cells apart."""
CLOSE = 1e-3
"""The relative distance from the best bound at which the search ends."""
MOST_SPACES = 1 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Which neighbours the dual weighs.

    Attributes:
        single: α, the weight of those that come or go.
        moved: the weight of those that move, 1 - α.
    """

    single: float
    moved: float


COME, MOVE = Pairs(single=1.0, moved=0.0), Pairs(single=0.0, moved=1.0)


@dataclass(frozen=True, eq=False)
class Branches:
    """A tree of at least two levels below its root, the leaves of a family being alike.

    Attributes:
        parent: int64 (nodes of the levels 1..T-1, one behind the other): the place of the parent;
            that of level 1 is not looked at.
        start: where each level's nodes begin, for 1..T-1, and the end.
        leaves: int64 (nodes of level T-1): how many each has.
        top: int64 (nodes of level T-1): the node of level 1 above.
        merged: for each level of the tree that was given the one that stands for it here.
    """

    parent: Int64
    start: Int64
    leaves: Int64
    top: Int64
    merged: tuple[int, ...]

    @classmethod
    def of(cls, families: Sequence[Int64]) -> "Branches":
        """Return the tree whose nodes of level t have so many children each, in order.

        Levels of one node are its root; where the root's children are the leaves, each is a family
        of its own.
        """
        single = next((t for t, sizes in enumerate(families) if sizes.sum() > 1), None)
        if single is None:
            raise PlanError(
                "of a table of one cell nothing is estimated better than it is measured"
            )
        if (many := sum(map(len, families))) > MOST_FAMILIES:
            raise PlanError(f"{many:,} families take too long")
        kept, levels = list(families[single:]), len(families) + 1
        merged = tuple(max(0, t - single) for t in range(levels))
        if len(kept) == 1:
            kept.append(np.ones(int(kept[0][0]), np.int64))
            merged = tuple(2 if t else 0 for t in merged)
        start = np.cumsum([0, *map(len, kept[1:])])
        parents = [
            np.repeat(np.arange(len(sizes)), sizes) + (start[t - 1] if t else 0)
            for t, sizes in enumerate(kept[:-1])
        ]
        top = np.arange(int(kept[0][0]))
        for sizes in kept[1:-1]:
            top = np.repeat(top, sizes)
        return cls(np.concatenate(parents), start, kept[-1], top, merged)

    @property
    def even(self) -> Float64:
        """Equal weights of all leaves, of which the families hold one each: float64 (families)."""
        return np.full(len(self.leaves), 1 / self.leaves.sum())

    def importance(self, given: Float64) -> Float64:
        """Return importances by level, of the levels here: float64 (T + 1)."""
        found = np.zeros(len(self.start) + 1)
        np.add.at(found, list(self.merged), given)
        return found

    def largest(self, importance: Float64, weight: Float64) -> float:
        """Return an upper bound of the largest eigenvalue of √G L √G: the largest row of LG."""
        below, rows = self.leaves * weight, importance[-1] * weight
        for t in range(len(self.start) - 1, 0, -1):
            here = slice(self.start[t - 1], self.start[t])
            rows = rows + importance[t] * below
            if t == 1:
                return float(importance[0] * below.sum() + rows.max())
            parent = self.parent[here] - self.start[t - 2]
            size = int(self.start[t - 1] - self.start[t - 2])
            above, most = np.zeros(size), np.zeros(size)
            np.add.at(above, parent, below)
            np.maximum.at(most, parent, rows)
            below, rows = above, most
        raise AssertionError


@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """tr √(√G L √G), and its derivatives.

    Attributes:
        value: what it is at least.
        by_level: by the importance of each level of the tree that was given.
        by_family: by the weight of a leaf of each family; for neighbours that come or go alone.
    """

    value: float
    by_level: Float64
    by_family: Float64


def root_of(
    tree: Branches, importance: Float64, weight: Float64, pairs: Pairs, opposed: float = 1.0
) -> Root:
    """Return tr √(√G L √G) of a tree.

    Neighbours that move leave one node of level 1 for another: L = D - θ Σ_{R ≠ S} w_R w_Sᵀ over
    the blocks w_R of the weights, with D its row sums for θ = 1.

    Args:
        tree: the branches.
        importance: float64 (levels): of a squared error, for each level that was given, root first.
        weight: float64 (families): of each leaf of a family; those of all leaves sum to 1.
        pairs: which neighbours are weighed.
        opposed: θ, which is 1 but for contrasts of other axes, from -1 to 1.
    """
    g = tree.importance(importance)
    blocks = np.bincount(tree.top, tree.leaves * weight).astype(np.float64)
    moved = 2 * pairs.moved / (1 - float(blocks @ blocks))
    held: Float64 = moved * (1 - blocks) + pairs.single  # κ: D is κ_R w within block R
    own = weight * held[tree.top]
    largest = np.log(tree.largest(g, own) * 2)
    points = np.arange(np.floor(largest) - BELOW, np.ceil(largest) + ABOVE)
    values = np.zeros(len(points))
    by_level = np.zeros((len(points), len(g)))
    by_family = list[Float64]()

    def run(first: int, last: int) -> None:
        found = np.zeros(len(own))
        _log_determinants(
            (first, last), points, (tree.parent, tree.start, tree.leaves),
            (own, blocks, held, g), (pairs.single, moved, opposed), (values, by_level, found),
        )  # fmt: skip
        by_family.append(found)

    over_families(run, np.arange(len(points) + 1) * (len(tree.parent) + 1))
    levels = by_level.sum(axis=0)[list(tree.merged)]
    return Root(float(values.sum()) * (1 - TRAPEZOID), levels, np.sum(by_family, axis=0))


@kernel
def _log_determinants(  # noqa: C901, PLR0912, PLR0915 - one walk up a tree and down again
    span: tuple[int, int],
    points: Float64,
    tree: tuple[Int64, Int64, Int64],
    problem: tuple[Float64, Float64, Float64, Float64],
    pairs: tuple[float, float, float],
    out: tuple[Float64, Float64, Float64],
) -> None:
    """Add up log det(I + LG/t) and its derivatives at some points t, weighted for the integral."""
    # Up: F of a subtree is 1ᵀ(D⁻¹ + G/t)⁻¹1 over its leaves, r the sum of the children's, and a
    # node adds log(1 + γ r), γ = g/t. At the root the k blocks R meet, with φ = F/κ and
    # n = (W - φ)/κ: L adds Π(1 + θn) · (1 - θ Σ n/(1 + θn)), and the root's own γ the factor
    # 1 + γh, h = ΣF + θ(φᵀy - Σφ Σy), y = (φ + θnΣy)/(1 + θn). Down: derivatives by F.
    parent, start, leaves = tree
    own, blocks, held, g = problem
    single, moved, contrast = pairs
    opposed = moved * contrast
    values, by_level, by_family = out
    levels, nodes, k = len(start), len(parent), len(blocks)
    last = start[levels - 2]  # where the families begin
    r, back = np.empty(nodes), np.empty(nodes)
    phi, n, y, at_top = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    for p in range(span[0], span[1]):
        t = np.exp(points[p])
        scale = np.exp(points[p] / 2) / (2 * np.pi)
        found = 0.0
        gamma = g[levels] / t
        for i in range(last):
            r[i] = 0.0
        for i in range(len(leaves)):
            found += leaves[i] * np.log1p(own[i] * gamma)
            r[last + i] = leaves[i] * own[i] / (1 + own[i] * gamma)
        for level in range(levels - 1, 0, -1):
            gamma = g[level] / t
            for i in range(start[level - 1], start[level]):
                found += np.log1p(gamma * r[i])
                if level > 1:
                    r[parent[i]] += r[i] / (1 + gamma * r[i])
        gamma, root = g[1] / t, g[0] / t
        rest = total = sum_y = sum_phi = 0.0  # rest: 1 - θ Σ n/(1 + θn), likewise
        for i in range(k):
            f = r[i] / (1 + gamma * r[i])
            total += f
            phi[i] = f / held[i]
            n[i] = (blocks[i] - phi[i]) / held[i]
            inside = single + moved * (1 - blocks[i] * (1 - contrast) - contrast * phi[i])
            inside /= held[i]  # 1 + θn, without the cancellation
            if abs(inside) < NEAR_ZERO:  # of a t so small that it hardly counts
                inside = NEAR_ZERO
            at_top[i] = inside
            apart = moved * (1 - blocks[i])
            kept = blocks[i] * (single + apart * (1 - contrast)) + contrast * apart * phi[i]
            rest += kept / (held[i] * inside)
            sum_y += phi[i] / inside
            sum_phi += phi[i]
            found += np.log(abs(inside))
        found += np.log(max(abs(rest), 1e-300))  # where one is below 0, so is the other
        sum_y /= rest
        h = total - opposed * sum_phi * sum_y
        for i in range(k):
            y[i] = (phi[i] + opposed * n[i] * sum_y) / at_top[i]
            h += opposed * phi[i] * y[i]
        h = max(h, 0.0)
        found += np.log1p(root * h)
        values[p] = scale * found
        scale /= t
        by_level[p, 0] = scale * h / (1 + root * h)
        for i in range(k):
            # A = C(I + nC)⁻¹ at (i, i), and what the root's own measurement takes.
            inside = at_top[i]
            over = 1 / (inside * rest)
            a = opposed * ((1 + opposed * n[i] * over) / inside - over)
            share = 1 + opposed * (y[i] - sum_y) / held[i]
            f_back = root * share * share / (1 + root * h) - a / (held[i] * held[i])
            back[i] = f_back
        for level in range(1, levels):
            gamma = g[level] / t
            for i in range(start[level - 1], start[level]):
                f_back = back[i] if level == 1 else back[parent[i]]
                inside = 1 + gamma * r[i]
                f = r[i] / inside
                by_level[p, level] += scale * (f - f_back * f * f)
                back[i] = gamma / inside + f_back / (inside * inside)
        gamma = g[levels] / t
        for i in range(len(leaves)):
            inside = 1 + own[i] * gamma
            f = own[i] / inside
            f_back = back[last + i]
            by_level[p, levels] += scale * leaves[i] * (f - f_back * f * f)
            by_family[i] += scale * t * (gamma / inside + f_back / (inside * inside))


@dataclass(frozen=True, slots=True, eq=False)
class LeastError:
    """The least squared error of any unbiased estimates whose noise has the price 1.

    Attributes:
        total: Σ_c g_c Σ (squared errors of c's counts), records²: none is below it.
        by_cuboid: that of each cuboid's counts, summed, where the weights of the bound are best;
            empty where no weights are known to be near these.
        slack: how much larger the least possible total can be, relatively; None where that is not
            known.
    """

    total: float
    by_cuboid: Mapping[Levels, float]
    slack: float | None = None


def least_error(
    tree: Tree, importance: Mapping[Levels, float], pairs: Sequence[Pairs]
) -> LeastError:
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
    found = [problem.bound(each) for problem in _problems(tree, dict(importance)) for each in pairs]
    return max(found, key=lambda each: each.total)


def _problems(tree: Tree, importance: Mapping[Levels, float]) -> Iterator["_Beside | _Products"]:
    """Yield what bounds are had of: all cuboids, or some, as the others' errors are not below 0."""
    chain = {levels: (t,) for t, levels in enumerate(tree.chain)}
    uneven = [a for a, axis in enumerate(tree.axes) if not _is_even(axis)]
    nested = {levels: chain[levels] for levels in importance if levels in chain}
    if len(nested) == len(importance) or (nested and len(uneven) > 1):
        yield _Beside.of(_families_of_chain(tree), (), importance, nested)
    if len(nested) == len(importance):
        return
    deepest = max(range(len(tree.axes)), key=lambda a: tree.axes[a].depth)
    for first in uneven or [deepest]:
        yield _Beside.along(tree, importance, first)
    if len(uneven) > 1:
        yield _Products.of(tree, importance)


@dataclass(frozen=True, eq=False)
class _Beside:
    """One axis, or a chain over several, whose families may differ, beside axes where they do not.

    The weights are those of the leaves of the first, equally divided among the cells beside each.
    On each space of contrasts of the others the importances of the first one's levels are numbers.

    Attributes:
        branches: of the first.
        beside: the sizes of the levels of each other axis.
        importance: float64 (levels of the first, levels of each other axis).
        places: for each cuboid where it stands there; none where some are left out.
    """

    branches: Branches
    beside: tuple[Int64, ...]
    importance: Float64
    places: Mapping[Levels, Levels]

    @classmethod
    def of(
        cls,
        families: Sequence[Int64],
        beside: tuple[Int64, ...],
        importance: Mapping[Levels, float],
        places: Mapping[Levels, Levels],
    ) -> "_Beside":
        """Return the problem of one axis, by its families, beside others."""
        if (spaces := prod(map(len, beside))) > MOST_SPACES:
            raise PlanError(f"{spaces:,} combinations of levels beside one axis take too long")
        dense = np.zeros((len(families) + 1, *map(len, beside)))
        for levels, place in places.items():
            dense[place] = importance[levels]
        complete = places if len(places) == len(importance) else {}
        return cls(Branches.of(families), beside, dense, complete)

    @classmethod
    def along(cls, tree: Tree, importance: Mapping[Levels, float], first: int) -> "_Beside":
        """Return the problem along an axis; of others whose families differ, total and leaves."""
        others = [a for a in range(len(tree.axes)) if a != first]
        kept = {a: _alike(tree.axes[a]) for a in others}
        beside = tuple(np.array([tree.axes[a].size(k) for k in kept[a]]) for a in others)
        places = {
            levels: (levels[first], *(kept[a].index(levels[a]) for a in others))
            for levels in importance
            if all(levels[a] in kept[a] for a in others)
        }
        return cls.of(_families_of_axis(tree.axes[first]), beside, importance, places)

    @cached_property
    def spaces(self) -> list["_Space"]:
        """The spaces of contrasts of the other axes."""
        found = []
        for at in product(*map(range, self.importance.shape[1:])):
            levels = list(zip(self.beside, at, strict=True))
            gains = reduce(np.multiply.outer, [s[-1] / s[b:] for s, b in levels], np.ones(()))
            times = prod(int(s[b] - (s[b - 1] if b else 0)) for s, b in levels)
            opposed = prod(_opposed(s, b) for s, b in levels)
            kept = tuple(slice(b, None) for b in at)
            if times:
                found.append(_Space(kept, np.asarray(gains), times, opposed))
        return found

    @cached_property
    def heaviest(self) -> Float64:
        """The largest weight of a node of each level that was given: float64 (levels)."""
        branches = self.branches
        below: Float64 = branches.leaves * self.weight
        found = [float(self.weight.max())]
        for t in range(len(branches.start) - 1, 0, -1):
            found.append(float(below.max()))
            if t > 1:
                parent = branches.parent[branches.start[t - 1] : branches.start[t]]
                below = np.bincount(parent - branches.start[t - 2], below).astype(np.float64)
        return np.array([1.0, *found[::-1]])[list(branches.merged)]

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
        branches, best, weight = self.branches, 0.0, self.branches.even
        chosen, most = weight, np.inf
        kinds = len({g.tobytes() for _, _, g in self.weighed})
        visits = (len(branches.parent) + 1) * kinds * (BELOW + ABOVE)
        for _ in range(min(MOST_SEARCHES, 1 + WORK // visits)):
            root = self.root(weight, COME)
            slope = 2 * root.by_family / root.value  # at most 1 where no weights are better
            most = min(most, root.value * (1 + float(slope.max())) / 2)
            if root.value > best:
                best, chosen = root.value, weight
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
        cells, found = prod(int(sizes[-1]) for sizes in self.beside), []
        for space in self.spaces:
            here = self.importance[slice(None), *space.kept] * space.gains / cells
            g = here.reshape(len(here), -1).sum(axis=1)
            if g.any():
                found.append((space, float(g.max()), np.round(g / g.max(), 13)))
        return found

    def root(self, weight: Float64, pairs: Pairs) -> Root:
        """Return tr √(√G L √G); its derivatives by level are of the shape of ``importance``."""
        cells = prod(int(sizes[-1]) for sizes in self.beside)
        value, by_family = 0.0, np.zeros(len(weight))
        by_level, known = np.zeros(self.importance.shape), dict[tuple[bytes, float], Root]()
        for space, largest, g in self.weighed:
            key = g.tobytes(), space.opposed if pairs.moved else 1.0
            if key not in known:
                known[key] = root_of(self.branches, g, weight, pairs, key[1])
            root, scale = known[key], sqrt(largest)
            value += space.times * scale * root.value
            by_family += space.times * scale * root.by_family
            each = np.multiply.outer(root.by_level / scale, space.gains)
            by_level[slice(None), *space.kept] += each * space.times / cells
        return Root(value, by_level, by_family)

    def bound(self, pairs: Pairs) -> LeastError:
        """Return the bound for some neighbours: of the weights that were found, and of equal ones.

        The weights are sought for neighbours that come or go, and are near the best for others.
        """
        sought = (self.weight, self.branches.even) if pairs.moved else (self.weight,)
        tries = (self.root(weight, pairs) for weight in sought)
        root = max(tries, key=lambda each: each.value)
        errors = {c: 2 * root.value * float(root.by_level[at]) for c, at in self.places.items()}
        is_tight = pairs == COME and self.places
        return LeastError(root.value**2, errors, self.slack if is_tight else None)


@dataclass(frozen=True, slots=True, eq=False)
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

    axes: tuple[_Beside, ...]
    importance: Mapping[Levels, float]
    names: Mapping[Levels, Levels]

    @classmethod
    def of(cls, tree: Tree, importance: Mapping[Levels, float]) -> "_Products":
        several = [a for a, axis in enumerate(tree.axes) if axis.size(axis.depth) > 1]
        names = {levels: tuple(levels[a] for a in several) for levels in importance}
        given, axes = defaultdict[Levels, float](float), list[_Beside]()
        for levels, each in importance.items():
            given[names[levels]] += each
        for place, axis in enumerate(tree.axes[a] for a in several):
            sums: dict[Levels, float] = dict.fromkeys(((k,) for k in range(axis.depth + 1)), 0.0)
            for levels, each in importance.items():
                k = names[levels][place]
                sums[k,] += each * tree.cells(levels) / axis.size(k)
            axes.append(_Beside.of(_families_of_axis(axis), (), sums, {k: k for k in sums}))
        return cls(tuple(axes), given, names)

    def bound(self, pairs: Pairs) -> LeastError:
        """Return the bound for some neighbours.

        For those that move, each cell for any other: L = 2 (D - wwᵀ) / (1 - Σw²), which takes from
        tr √M its largest eigenvalue at most (interlacing).
        """
        roots = [axis.root(axis.weight, COME) for axis in self.axes]
        total, traces = 0.0, dict[Levels, float]()
        for levels, g in self.importance.items():
            own = list(zip(self.axes, roots, levels, strict=True))
            traces[levels] = prod(2 * float(root.by_level[k]) for _, root, k in own)
            total += sqrt(g * prod(axis.importance[k] for axis, _, k in own)) * traces[levels]
        total *= 1 - 1e-6  # beyond what derivatives by level may be off by
        if pairs.moved == 0:
            errors = self._errors(total, traces)
            slack = prod(1 + axis.slack for axis in self.axes) - 1
            return LeastError(total**2, errors, slack if errors else None)
        largest = sum(
            g * prod(axis.heaviest[k] for axis, k in zip(self.axes, levels, strict=True))
            for levels, g in self.importance.items()
        )
        alike = prod(float(axis.branches.leaves @ axis.weight**2) for axis in self.axes)
        return LeastError(2 / (1 - alike) * max(total - sqrt(largest), 0.0) ** 2, {})

    def _errors(self, total: float, traces: Mapping[Levels, float]) -> dict[Levels, float]:
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
    return [np.diff(start).astype(np.int64) for start in axis.child_start]


def _is_even(axis: Axis) -> bool:
    """Return whether all families of each level have one size."""
    return all(sizes.min() == sizes.max() for sizes in _families_of_axis(axis))


def _alike(axis: Axis) -> list[int]:
    """Return levels of an axis between which all families have one size."""
    return list(range(axis.depth + 1)) if _is_even(axis) else [0, axis.depth]


def _families_of_chain(tree: Tree) -> list[Int64]:
    """Return the number of children of each node of a chain, nodes in order of their parents."""
    sizes = [_families_of_axis(axis) for axis in tree.axes]
    at, found = [np.zeros(1, np.int64) for _ in tree.axes], list[Int64]()
    for axis, level in tree.steps:
        own = sizes[axis][level - 1][at[axis]]
        found.append(own)
        if len(found) == tree.depth:
            break
        if sum(map(len, found)) + own.sum() > MOST_FAMILIES:
            raise PlanError(f"the tree has more than {MOST_FAMILIES:,} families")
        first = tree.axes[axis].child_start[level - 1][at[axis]]
        within = np.arange(int(own.sum())) - np.repeat(np.cumsum(own) - own, own)
        at = [np.repeat(codes, own) for codes in at]
        at[axis] = np.repeat(first, own) + within
    return found
