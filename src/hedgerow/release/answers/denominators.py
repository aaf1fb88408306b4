"""Public numbers that counts are divided by: rates."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from hedgerow.declared import frozen
from hedgerow.errors import TableError, shorten
from hedgerow.release.answers.pairs import BOUNDED, OF, RATIO, check_names
from hedgerow.release.directory.measurements import CONTRADICTED, COUNT, HIGH, LOW
from hedgerow.tables.sources.source import describe_source, read_areas
from hedgerow.text import visible


@frozen(eq=False)
class Denominators:
    """Public numbers that counts are divided by.

    Attributes:
        subject: what messages call them.
        keys: their columns of codes.
        numbers: one row a code: the keys, and `OF`.
    """

    subject: str
    keys: list[str]
    numbers: pl.DataFrame

    @classmethod
    def of(cls, codes: Sequence[str], source: Any) -> "Denominators":
        """Read them.

        Args:
            codes: the columns of codes or areas of the counts.
            source: a data frame or file: some of these columns, and one of numbers above 0.

        Raises:
            TableError: no such column, several of numbers, or a code twice.
        """
        subject = describe_source(source, "the table of denominators")

        def number_of(headers: Sequence[str]) -> list[str]:
            return [header for header in headers if header not in codes]

        public = read_areas(source, None, numbers=number_of, role="the table of denominators")
        keys = [name for name in codes if name in public.columns]
        numbers = number_of(public.columns)
        if not keys or len(numbers) != 1:
            raise TableError(
                f"{subject} needs a column of {' or '.join(codes) or 'codes'} and one of numbers, "
                f"and has {', '.join(public.columns)}"
            )
        if public.select(keys).is_duplicated().any():
            raise TableError(f"{subject} has several rows for one {' and '.join(keys)}")
        number = pl.col(numbers[0]).cast(pl.Float64, strict=False)
        is_number = (number > 0) & number.is_finite()
        return cls(subject, keys, public.select(*keys, pl.when(is_number).then(number).alias(OF)))

    def rates(self, frame: pl.DataFrame, codes: Sequence[str]) -> pl.DataFrame:
        """Return counts with their intervals divided by the numbers.

        Raises:
            TableError: a row has no number above 0.
        """
        check_names(codes, [OF, RATIO, BOUNDED])
        joined = frame.join(self.numbers, on=self.keys, how="left", maintain_order="left")
        if (missing := joined.filter(pl.col(OF).is_null())).height:
            first = shorten(visible(str(missing[self.keys[-1]][0])))
            raise TableError(
                f"{self.subject} has no number above 0 for {len(missing):,} of {len(joined):,} "
                f"rows, such as that of {first}"
            )
        by_number = {RATIO: COUNT, LOW: LOW, HIGH: HIGH}
        return joined.select(
            *codes, COUNT, OF,
            *((pl.col(given) / pl.col(OF)).alias(name) for name, given in by_number.items()),
            pl.lit(True).alias(BOUNDED), CONTRADICTED,
        )  # fmt: skip
