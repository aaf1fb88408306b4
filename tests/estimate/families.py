"""Random families for the estimators, and the ways to hand them over."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hedgerow.estimate.estimator import Estimator


@dataclass(frozen=True)
class Given:
    """An estimator that is given integers as real values, variances, or both."""

    name: str
    estimator: Estimator
    variance: float | str | None = None
    real: bool = False

    def project(
        self,
        noisy,
        family_start,
        totals,
    ):
        variance: Any = self.variance
        if variance == "unequal":
            variance = 1.0 / (1 + noisy % 7).astype(np.float64)
        values: Any = noisy.astype(np.float64) if self.real and noisy.dtype == np.int64 else noisy
        return self.estimator.project(values, family_start, totals, variance)


def one_family(estimator, x, c, **more):
    """The estimate of a single family, as a list."""
    structure = (np.array([0, len(x)]), np.array([c]))
    y: list[int] = estimator.project(np.asarray(x), *structure, **more).tolist()
    return y


def small_families(rng, families, cells=4, total=7, spread=6):
    """Lists of small integers and a total: ties, negatives, single cells and zero totals abound."""
    for _ in range(families):
        x = rng.integers(-spread, spread + 1, rng.integers(1, cells + 1)).tolist()
        yield x, int(rng.integers(0, total + 1))


def sparse_table(rng, families, widest):
    """(noisy, family_start, totals) as in a release: most true counts 0, noise of sd 10."""
    start = np.concatenate([[0], np.cumsum(rng.integers(0, widest + 1, families))])
    cells = int(start[-1])
    true = np.where(rng.random(cells) < 0.05, rng.geometric(0.2, cells), 0)
    totals = np.diff(np.concatenate([[0], np.cumsum(true)])[start])
    return true + np.rint(rng.normal(0, 10, cells)).astype(np.int64), start, totals


def any_variances(rng, cells, kind):
    """Variances that differ a little, a lot, or take few values."""
    if kind == "mild":
        return rng.uniform(0.5, 2, cells)
    if kind == "wild":
        return 10 ** rng.uniform(-6, 6, cells)
    return rng.choice([0.25, 1.0, 3.0, 4.0], cells)


counts = st.one_of(
    st.integers(-20, 20), st.integers(-(2**39), 2**39), st.sampled_from([-(2**40), 0, 2**40])
)
family = st.lists(counts, min_size=1, max_size=12)
total = st.one_of(st.integers(0, 30), st.integers(0, 2**40))
