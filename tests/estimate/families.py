"""Random families for the estimators, and the ways to hand them over."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from hedgerow.estimate.euclidean import Euclidean


@dataclass(frozen=True)
class Weighted:
    """Euclidean with weights that differ from cell to cell, as an estimator without weights."""

    name: str = "weighted euclidean"

    def project(
        self,
        noisy: NDArray[np.int64],
        family_start: NDArray[np.int64],
        totals: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        weights = (1 + noisy % 7).astype(np.float64)
        return Euclidean().project(noisy, family_start, totals, weights)


def one_family(estimator: Any, x: Any, c: int, **more: Any) -> list[int]:
    """The estimate of a single family, as a list."""
    structure = (np.array([0, len(x)]), np.array([c]))
    y: list[int] = estimator.project(np.asarray(x), *structure, **more).tolist()
    return y


def small_families(
    rng: np.random.Generator, families: int, cells: int = 4, total: int = 7, spread: int = 6
) -> Iterator[tuple[list[int], int]]:
    """Lists of small integers and a total: ties, negatives, single cells and zero totals abound."""
    for _ in range(families):
        x = rng.integers(-spread, spread + 1, rng.integers(1, cells + 1)).tolist()
        yield x, int(rng.integers(0, total + 1))


def sparse_table(
    rng: np.random.Generator, families: int, widest: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(noisy, family_start, totals) as in a release: most true counts 0, noise of sd 10."""
    start = np.concatenate([[0], np.cumsum(rng.integers(0, widest + 1, families))])
    cells = int(start[-1])
    true = np.where(rng.random(cells) < 0.05, rng.geometric(0.2, cells), 0)
    totals = np.diff(np.concatenate([[0], np.cumsum(true)])[start])
    return true + np.rint(rng.normal(0, 10, cells)).astype(np.int64), start, totals


counts = st.one_of(
    st.integers(-20, 20), st.integers(-(2**39), 2**39), st.sampled_from([-(2**40), 0, 2**40])
)
family = st.lists(counts, min_size=1, max_size=12)
total = st.one_of(st.integers(0, 30), st.integers(0, 2**40))
