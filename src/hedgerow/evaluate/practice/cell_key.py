"""Cell keys: noise that is looked up in a table of perturbation by a cell's count and key.

Tables are those of R's ptable: Enderle, "ptable: Generation of Perturbation Tables for the
Cell-Key Method" (CRAN, 1.0.0). `pt_export` writes them for TauArgus or SAS.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from hedgerow.arrays import Float64, Int64, UInt64, float64, int64
from hedgerow.declared import frozen
from hedgerow.errors import SpecError
from hedgerow.evaluate.practice.practice import Practice
from hedgerow.evaluate.practice.rounding import unit_keys
from hedgerow.machine import read_small_file

COLUMNS = ("i", "j", "p", "v", "p_int_ub")
CLOSE = 1e-6
"""Probabilities are written with eight digits."""
MOST_BYTES = 1 << 24
MOST = 1 << 20
"""No office adds more records to a cell."""


@frozen(eq=False)
class PerturbationTable:
    """A table of perturbation for counts.

    Attributes:
        count: int64 (rows), ascending from 0: the count that a row is for; the last one's rows are
            for all that are larger, too.
        noise: int64 (rows), records: what is added.
        chance: float64 (rows): of that.
        until: float64 (rows): a row is for the keys below it that no row before has.
    """

    count: Int64
    noise: Int64
    chance: Float64
    until: Float64

    @classmethod
    def read(cls, path: Path) -> "PerturbationTable":
        """Return the table of a file as ptable exports it: columns by semicolons, under names.

        Raises:
            SpecError: the file cannot be read, or is no table of perturbation for counts.
        """
        content = read_small_file(path, MOST_BYTES, repr(path.name), SpecError)
        try:
            text = pl.read_csv(content.decode().encode(), separator=";", infer_schema=False)
            text = text.rename(str.strip).with_columns(pl.all().str.strip_chars())
        except (UnicodeDecodeError, pl.exceptions.PolarsError) as error:
            kind = type(error).__name__
            raise SpecError(f"{path.name!r} is no file of columns by semicolons: {kind}") from error
        missing = [name for name in COLUMNS if name not in text.columns]
        if missing:
            raise SpecError(
                f"{path.name!r} has no column {missing[0]!r}; a table of perturbation that ptable "
                f"exports has {', '.join(COLUMNS)}, by semicolons"
            )
        if "type" in text.columns and not (text["type"] == "all").all():
            raise SpecError(f"{path.name!r} is a table for magnitudes; name one for counts")
        numbers = text.select(pl.col(COLUMNS).cast(pl.Float64, strict=False))
        array = numbers.to_numpy()
        if not len(array) or not np.isfinite(float64(array)).all():
            raise SpecError(f"{path.name!r} has a row without five numbers, or no row")
        count, result, chance, noise, until = array.T
        fault = next(_faults(count, result, chance, noise, until), None)
        if fault is not None:
            raise SpecError(f"{path.name!r} is no table of perturbation for counts: {fault}")
        # written with eight digits: each count's bounds go up, and the last one is 1
        until = np.maximum.accumulate(count + np.minimum(until, 1)) - count
        until[np.flatnonzero(np.diff(count, append=np.inf))] = 1.0
        return cls(int64(count), int64(noise), chance, until)

    def added(self, counts: Int64, keys: Float64) -> Int64:
        """Return the noise of cells by their counts and keys in [0, 1): int64 (cells)."""
        row = np.minimum(counts, self.count[-1])
        # rows of a count lie between it and the next one, so one search finds count and key
        below_one = np.minimum(keys, 1 - 2.0**-30)  # so that no sum rounds up to the next count
        place = np.searchsorted(self.count + self.until, row + below_one, side="right")
        return np.asarray(self.noise[np.minimum(place, len(self.noise) - 1)])

    @property
    def bound(self) -> int:
        """The largest noise, records."""
        return int(np.abs(self.noise).max())

    def moments(self) -> pl.DataFrame:
        """Return one row a count: ``count``, and of its noise ``mean``, ``variance``, ``kept``.

        The first two in records and records²; ``kept`` is the chance that a count stays as it is.
        """
        chance = pl.col("chance")
        noise = pl.col("noise")
        table = pl.DataFrame({"count": self.count, "noise": self.noise, "chance": self.chance})
        mean = (chance * noise).sum()
        return table.group_by("count", maintain_order=True).agg(
            mean=mean,
            variance=(chance * noise**2).sum() - mean**2,
            kept=chance.filter(noise == 0).sum(),
        )


def _faults(
    count: Float64, result: Float64, chance: Float64, noise: Float64, until: Float64
) -> Iterator[str]:
    """Yield what is wrong with the columns of a file; what comes first may explain the others."""
    whole = np.stack([count, result, noise])
    if (whole != np.round(whole)).any() or (np.abs(whole) > MOST).any():
        yield "i, j and v must be whole numbers"
    steps = np.diff(count, prepend=-1)
    if steps[0] != 1 or not np.isin(steps, (0, 1)).all():
        yield "i must go up from 0 without a gap"
    if (result != count + noise).any() or (result < 0).any():
        yield "j must be i + v, and at least 0"
    if noise[count == 0].any():
        yield "it changes cells of 0, which have no records and so no key"
    if ((chance < 0) | (chance > 1)).any():
        yield "p must be a probability"
    first = np.flatnonzero(steps)
    last = np.flatnonzero(np.diff(count, append=np.inf))
    before = np.append(0, np.cumsum(chance))[first]
    if (np.abs(np.cumsum(chance) - before[int64(count)] - until) > CLOSE).any():
        yield "p_int_ub must be p, added up within each i"
    if (np.abs(until[last] - 1) > CLOSE).any():
        yield "the probabilities of each i must add up to 1"


@frozen(eq=False, kw_only=True)
class CellKey(Practice):
    """Counts with the noise that their keys find in a table.

    Attributes:
        table: the table of perturbation.
    """

    table: PerturbationTable

    @property
    def about(self) -> str:
        """What the table does to large counts."""
        last = self.table.moments().row(-1, named=True)
        return (
            f"{self.name} changes counts by at most {self.table.bound:,}; from {last['count']:,} "
            f"on with a variance of {last['variance']:.3g}, and {last['kept']:.0%} stay as they "
            f"are."
        )

    def answered(self, counts: Int64, keys: UInt64) -> Int64:
        """Return the counts with their noise."""
        return counts + self.table.added(counts, unit_keys(keys))
