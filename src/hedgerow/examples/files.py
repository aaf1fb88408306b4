"""The files of an example: where they go, and what writes the release file and long tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl
from numpy.random import Generator

from hedgerow.arrays import Float64, Int64, int64, runs
from hedgerow.declared import either
from hedgerow.errors import SpecError
from hedgerow.release.directory.manifest import check_outside


def parents_of(rng: Generator, parents: int, children: int, sigma: float) -> Int64:
    """Return the parent of each child, in order: every parent has one, and families are uneven."""
    return families_by(rng, rng.lognormal(sigma=sigma, size=parents), children)


def families_by(rng: Generator, pull: Float64, children: int, most: int | None = None) -> Int64:
    """Return the parent of each child, in order: one each, the rest in proportion to ``pull``.

    In families of at most ``most``, where that is said.
    """
    sizes = 1 + rng.multinomial(children - len(pull), pull / pull.sum())
    while most is not None and (over := int(np.maximum(sizes - most, 0).sum())) > 0:
        free = np.where(sizes < most, pull, 0.0)
        sizes = np.minimum(sizes, most) + rng.multinomial(over, free / free.sum())
    return np.repeat(np.arange(len(pull)), sizes)


def place_in_family(parent_of: Int64) -> Int64:
    """Return 0, 1, 2, … within each family."""
    return runs(0, np.bincount(parent_of))


def codes_of(name: str, numbers: Int64, width: int) -> pl.Series:
    """Return numbers as text with leading zeros."""
    return pl.Series(name, numbers).cast(pl.String).str.zfill(width)


def nested_codes(
    name: str, numbers: Int64, digits: int, *below: tuple[str, Int64, int, int, int]
) -> pl.DataFrame:
    """Return codes of areas and of those that they lie in, where a code goes on with more digits.

    Args:
        name: of the coarsest level.
        numbers: its codes.
        digits: that they have.
        below: of each finer level its name, the parent of each area, the digits of its codes, and
            the numbers of the first and the second child of a parent.
    """
    columns = [codes_of(name, numbers, digits)]
    for level, parent_of, longer, first, second in below:
        place = first + (second - first) * place_in_family(parent_of)
        numbers, digits = numbers[parent_of] * 10 ** (longer - digits) + place, longer
        columns = [column[parent_of] for column in columns] + [codes_of(level, numbers, digits)]
    return pl.DataFrame(columns)


Size = TypeVar("Size")

SEED = 20_110_828

_START = """\
# {title}, released under differential privacy.
#
#     hedgerow plan {name}       what will be measured, with how much noise; opens no table
#     hedgerow release {name}    makes the release
#
# Paths are relative to this file.
"""

_USUAL = """\
[allocation]
method = "uniform"              # every measured depth gets the same share of the budget

[estimate]
method  = "euclidean"           # how noisy counts become counts that add up
measure = "survivors"           # of children of positive counts; "all": every possible cell
"""

_END = """\
[output]
directory = "{directory}"               # appears when the release is complete; must not exist
"""


def size_of(sizes: Mapping[str, Size], size: str) -> Size:
    """Return the size of a name."""
    if size not in sizes:
        raise SpecError(f'the size of an example is {either([*sizes])}, got "{size}"')
    return sizes[size]


def free(directory: Path, *names: str) -> list[Path]:
    """Return the paths of the files to write, none of which is there yet."""
    if directory.exists() and not directory.is_dir():
        raise SpecError(f"{directory} must be a directory, but is a file; choose another name")
    paths = [directory / name for name in names]
    for path in paths:
        if path.exists():
            raise SpecError(f"{path} exists and is not overwritten; choose another directory")
        check_outside(path, "the file")
    directory.mkdir(parents=True, exist_ok=True)
    return paths


def write_release_file(
    path: Path, title: str, table: str, choices: str = _USUAL, *, output: str = "out"
) -> None:
    """Write a release file, whose release goes to a directory of the name ``output``."""
    start = _START.format(title=title, name=path.name)
    text = "\n".join([start, table, choices, _END.format(directory=output)])
    path.write_text(text, encoding="utf-8")


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
    income = int64(np.where(rng.random(households) < 0.02, 0.0, earned))
    pl.DataFrame({"household": np.arange(1, households + 1), "income": income}).write_parquet(table)
    write_release_file(file, "Incomes of households, their distribution", _INCOMES, _CHOICES)
    return file
