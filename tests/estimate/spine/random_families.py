"""Random families of a spine with groups and residuals, and the dense matrices behind them."""

from dataclasses import dataclass

import numpy as np

from hedgerow.estimate.cube.residuals import Residuals, part, turn
from hedgerow.estimate.spine.fit.fit import fit_family
from hedgerow.estimate.spine.fit.rounding import metric_of, round_family


@dataclass
class Family:
    """One family; shapes as in `hedgerow.estimate.spine.fit.fit.fit_family`."""

    residuals: Residuals
    groups: int
    row_start: np.ndarray
    slot: np.ndarray
    z: np.ndarray
    blocks: list
    above: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def turned(self, table):
        """The coordinates of rows of cells."""
        rows = np.array(table, dtype=float).reshape(len(table), *self.residuals.sizes)
        return turn(rows).reshape(len(table), -1)

    @property
    def covariance(self):
        return np.concatenate([block.ravel() for block in self.blocks])

    def precision(self, child):
        """P of one child, dense, over its rows' cells: (rows · W, rows · W)."""
        here = self.residuals
        turned = self.turned(np.eye(here.width)).reshape(-1, *here.sizes)
        m, w = self.blocks[child].shape[1], here.width
        found = np.zeros((m * w, m * w))
        for r, residual in enumerate(here.every):
            own = part(turned, residual).reshape(w, -1)
            found += np.kron(np.linalg.inv(self.blocks[child][r]), own @ own.T)
        return found

    def objective(self, x):
        """Σ_c (x_c - z_c)ᵀ P_c (x_c - z_c) of cells (rows, W)."""
        apart, total = x - self.z, 0.0
        for c in range(len(self.blocks)):
            own = apart[self.row_start[c] : self.row_start[c + 1]].ravel()
            total += own @ self.precision(c) @ own
        return total


def random_family(rng, sizes=None, children=None, groups=None, scale=None, *, bounded=True):
    """A family whose bounds some counts meet, with cells that are 0 and noise of any scale."""
    sizes = sizes or [(), (2,), (3,), (2, 2), (2, 3), (2, 2, 3)][rng.integers(6)]
    here = Residuals(tuple(range(len(sizes))), tuple(sizes))
    groups = groups or int(rng.integers(1, 4))
    children = children or int(rng.integers(1, 6))
    has = rng.random((children, groups)) < 0.7
    has[rng.integers(children, size=groups), np.arange(groups)] = True
    row_start = np.concatenate(([0], has.sum(axis=1).cumsum()))
    slot = np.nonzero(has)[1]
    allowed = rng.random((groups, here.width)) < 0.8
    mean = rng.choice([0.3, 3, 40]) * rng.random((len(slot), here.width))
    truth = rng.poisson(mean) * allowed[slot] * (rng.random((len(slot), 1)) < 0.8)
    above = np.zeros((groups, here.width), dtype=np.int64)
    np.add.at(above, slot, truth)
    sums = truth.sum(axis=1)
    slack = rng.integers(0, 3, size=len(slot))
    bound = bounded & (rng.random(len(slot)) < 0.5)
    low = np.where(bound, np.maximum(sums - slack, 0), 0)
    high = np.where(bound, sums + rng.integers(0, 3, size=len(slot)), 1 << 53)
    scale = scale or rng.choice([0.3, 2.0, 15.0])
    blocks = []
    for m in np.diff(row_start):
        factors = rng.normal(size=(len(here.every), m, m + 1)) * scale
        spread = rng.uniform(0.1, 1.5, size=(len(here.every), 1, 1))
        eye = 0.1 * scale**2 * np.eye(m)
        blocks.append(spread * (factors @ factors.transpose(0, 2, 1) + eye))
    z = truth + scale * rng.normal(size=truth.shape)
    return Family(here, groups, row_start, slot, z, blocks, above, low, high)


def fit(family, tolerance=1e-9, most=200_000, root=None):
    """The fit of a family whose groups have one level above them, or of a root: a total, or NaN."""
    here, y = family.residuals, np.zeros_like(family.z)
    above = family.above if root is None else family.above > 0
    limits = (each.astype(float) for each in (above, family.low, family.high))
    fit_family(
        (here.extents, here.runs), (family.row_start, family.slot),
        (family.turned(family.z), family.covariance),
        (*limits, (True, 0.0) if root is None else (False, root)), (tolerance, most), y,
    )  # fmt: skip
    return y


def rounded(family, tolerance=1e-3, most=2000):
    """The fit, and its whole counts, whose sums, signs and bounds are exact."""
    y, out = fit(family, tolerance, most), np.zeros(family.z.shape, dtype=np.int64)
    rows = family.row_start, family.slot
    round_family(metric(family, y), rows, (family.above, family.low, family.high), y, out)
    sums = np.zeros_like(family.above)
    np.add.at(sums, family.slot, out)
    assert (sums == family.above).all()
    check_rows(family, out)
    return y, out


def check_rows(family, out):
    """Counts are not negative, and within the bounds of their rows."""
    assert (out >= 0).all()
    assert (out.sum(axis=1) >= family.low).all()
    assert (out.sum(axis=1) <= family.high).all()


def metric(family, fit):
    """What groups weigh, alone and together; where nothing is beside them, in their own metric."""
    near = 1 + np.eye(family.groups) if family.residuals.sizes else np.zeros((0, 0))
    groups = np.arange(family.groups, dtype=np.int32)
    rows, place = (family.row_start, family.slot), family.residuals.sum_place
    given = family.turned(family.z), family.covariance
    return place, *metric_of((near, groups), rows, given, fit, int(place[-1, -1]) + 1)


def marginals(family, table):
    """Every marginal of each row and then of each child: a list of (rows or children, cells)."""
    here, found = family.residuals, []
    children = np.repeat(np.arange(len(family.blocks)), np.diff(family.row_start))
    whole = np.zeros((len(family.blocks), here.width))
    np.add.at(whole, children, table)
    for each in (table, whole):
        shaped = each.reshape(-1, *here.sizes)
        for marginal in here.every:
            away = [1 + a for a, is_kept in enumerate(marginal) if not is_kept]
            found.append(shaped.sum(axis=tuple(away)).reshape(len(each), -1))
    return found


def distance(family, y, out):
    if not family.residuals.sizes:
        return family.objective(out)
    return sum((each**2).sum() for each in marginals(family, out - y))
