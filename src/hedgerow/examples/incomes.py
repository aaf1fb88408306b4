"""A synthetic numeric column to try the release of a distribution on: incomes of households."""

from pathlib import Path

import numpy as np
import polars as pl

from hedgerow.examples.files import SEED, free, size_of, write_release_file

INCOME_SIZES = {"small": 20_000, "national": 10_000_000}
"""Households."""

_INCOMES = """\
[table]
source = "incomes.parquet"      # the confidential table: one row a household

[[axis]]
name = "income"                 # the column of numbers
low  = 0                        # public bounds, chosen without looking at the table
high = 200000
bins = 1000                     # of equal width; the tree over them is designed by itself
out_of_bounds = "clamp"         # move values outside to the nearest bound; or "refuse"

[privacy]
neighbours    = "replace"       # protects what a household earns; their number is public
contributions = 1               # a household is in one row
mechanism     = "discrete-laplace"
epsilon       = 1               # the promise: smaller is more private and less precise
"""

_CHOICES = """\
[allocation]
method = "distribution"         # the shares that suit cumulative counts best

[estimate]
method  = "euclidean"           # how noisy counts become counts that add up
measure = "all"                 # every bin and every group of bins, to combine them
"""


def write_incomes(directory: Path, size: str = "small") -> Path:
    """Return the path of ``release.toml``, written beside synthetic incomes.

    Files: ``incomes.parquet`` (household, income: one row a household, whole euros a year; some
    have none, a few have more than the bounds of the release).
    """
    households = size_of(INCOME_SIZES, size)
    file, table = free(directory, "release.toml", "incomes.parquet")
    rng = np.random.default_rng(SEED)
    earned = rng.lognormal(np.log(34_000), 0.65, households)
    income = np.where(rng.random(households) < 0.02, 0.0, earned).astype(np.int64)
    pl.DataFrame({"household": np.arange(1, households + 1), "income": income}).write_parquet(table)
    write_release_file(file, "Incomes of households, their distribution", _INCOMES, _CHOICES)
    return file
