"""Synthetic lists of areas: who lies in whom, and what they are called."""

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray


def parents_of(
    rng: np.random.Generator, parents: int, children: int, spread: float
) -> NDArray[np.int64]:
    """The parent of each child, in order: every parent has one, and families are uneven."""
    return families_by(rng, rng.lognormal(sigma=spread, size=parents), children)


def families_by(
    rng: np.random.Generator, pull: NDArray[np.float64], children: int
) -> NDArray[np.int64]:
    """The parent of each child, in order: one for each parent, the rest in proportion to pulls."""
    parents = len(pull)
    family = 1 + rng.multinomial(children - parents, pull / pull.sum())
    return np.repeat(np.arange(parents), family)


def place_in_family(parent_of: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, 2, … within each family."""
    first = np.searchsorted(parent_of, np.arange(parent_of[-1] + 1))
    return np.arange(len(parent_of)) - first[parent_of]


def codes_of(name: str, numbers: NDArray[np.int64], width: int) -> pl.Series:
    """Numbers as text with leading zeros."""
    return pl.Series(name, numbers).cast(pl.String).str.zfill(width)


def dictionary(codes: pl.Series) -> tuple[NDArray[np.int32], pa.Array]:
    """Each row's place among the different codes, which are text: for long tables of few codes."""
    places = codes.rle_id().cast(pl.Int32).to_numpy()
    return places, codes.filter(codes.rle_id().diff().fill_null(1) > 0).to_arrow().cast(pa.string())
