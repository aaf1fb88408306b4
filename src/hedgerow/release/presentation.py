"""How a table of counts is shown: rounded, or without counts that are too uncertain to quote.

Neither changes a release, nor adds to its protection, which needs neither. Offices round and
leave out so that nobody quotes digits that mean nothing.
"""

from math import inf
from typing import Annotated

import polars as pl

from hedgerow.declared import Real, Whole, check_fields, frozen
from hedgerow.errors import ReleaseError
from hedgerow.release.directory.measurements import COUNT, ESTIMATE, HIGH, LOW

ROUNDED_TO, SUPPRESSED = "rounded_to", "suppressed"
MULTIPLE = Whole("--round", 2, 10**15, ReleaseError, "5 is usual", ends="[]")
WIDTH = Real("--suppress-wider", 0, inf, ReleaseError, "it is a share of the count", ends="()")


@frozen
class Presentation:
    """What is done to counts before they are shown.

    Attributes:
        round_to: counts are given as the nearest multiple of this number, halves upwards.
        suppress_wider: counts whose interval is wider than this share of them are left out, and
            those that have none.

    Raises:
        ReleaseError: no whole number from 2 up, or no share above 0.

    Example:
        >>> import polars as pl
        >>> counts = pl.DataFrame({"count": [7, 40], "estimate": [6.1, 40.0]})
        >>> counts = counts.with_columns(low=pl.Series([0, 35]), high=pl.Series([14, 45]))
        >>> Presentation(5, 0.5).applied(counts)["count"].to_list()
        [None, 40]
    """

    round_to: Annotated[int | None, MULTIPLE] = None
    suppress_wider: Annotated[float | None, WIDTH] = None

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def changes(self) -> bool:
        """Whether anything is done at all."""
        return self.round_to is not None or self.suppress_wider is not None

    def applied(self, counts: pl.DataFrame) -> pl.DataFrame:
        """Return a table as it is shown, with columns that say what was done.

        Left out are count and estimate; the interval stays, and shows why. Which counts are left
        out is decided before they are rounded. Estimates and intervals are not rounded.

        Args:
            counts: with ``count``; to leave counts out also ``low`` and ``high``.

        Returns:
            The same rows; with ``suppressed`` and ``rounded_to`` behind the other columns where
            that was asked for.
        """
        shown = counts
        count = pl.col(COUNT)
        if self.suppress_wider is not None:
            wide = (pl.col(HIGH) - pl.col(LOW)) > self.suppress_wider * count
            wide = wide.fill_null(value=True)
            left_out = [name for name in (COUNT, ESTIMATE) if name in counts.columns]
            shown = shown.with_columns(wide.alias(SUPPRESSED))
            shown = shown.with_columns(
                pl.when(SUPPRESSED).then(None).otherwise(pl.col(name)).alias(name)
                for name in left_out
            )
        if self.round_to is not None:
            to = self.round_to
            multiple = (count // to + (count % to * 2 >= to).cast(pl.Int64)) * to
            shown = shown.with_columns(multiple, pl.lit(to, pl.Int64).alias(ROUNDED_TO))
        return shown

    def sentences(self, shown: pl.DataFrame) -> list[str]:
        """Return what was done to a table, to be said below it."""
        said = []
        if self.suppress_wider is not None:
            many = int(shown[SUPPRESSED].sum())
            said.append(
                f"{many:,} of {len(shown):,} counts are left out ([u], suppressed): their interval "
                f"is wider than {self.suppress_wider:g} times the count."
            )
        if self.round_to is not None:
            said.append(
                f"Counts are rounded to multiples of {self.round_to:,}, so they need not add up; "
                f"the release itself is unchanged."
            )
        return said
