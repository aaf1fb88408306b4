"""One question about ratios, however it is asked: shares, ratios of areas, and rates."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from hedgerow.declared import frozen
from hedgerow.errors import ReleaseError
from hedgerow.estimate.intervals import Confidence
from hedgerow.release.answers.denominators import Denominators
from hedgerow.release.answers.questions import cuboid_of, sums_of
from hedgerow.release.answers.ratios import area_numbers, pairs_of_areas, pairs_of_levels
from hedgerow.release.answers.sums import Sums
from hedgerow.release.descent.jobs import OnFraction, tell_nobody
from hedgerow.release.directory.stored import Content
from hedgerow.release.naming import label_columns
from hedgerow.tables.lists.lookup import Lookup
from hedgerow.text import TextByName


@frozen(eq=False)
class RatioQuestion:
    """What is divided by what.

    Attributes:
        by: axis = level of the counts, or beside the areas.
        denominator: axis = level of cells that contain those; with areas the code of one, or None
            for all of the axis; or a data frame or file of public numbers.
        areas: areas of a user's own, if the counts are sums over these.
        area: with areas the code of the one that is the numerator, None for each.
    """

    by: TextByName
    denominator: Any
    areas: Lookup | None = None
    area: object = None

    @property
    def is_rate(self) -> bool:
        """Whether the denominator is public numbers."""
        return self.denominator is not None and not isinstance(self.denominator, Mapping | str)

    def answered(
        self,
        content: Content,
        confidence: Confidence,
        on_fraction: OnFraction = tell_nobody,
        *,
        all_cells: bool = False,
    ) -> pl.DataFrame:
        """Return the table that `hedgerow.release.release.Release.ratio` describes.

        Raises:
            TableError: no public number for a row.
            ReleaseError: there is no such ratio, or no errors of it are known.
        """
        if self.is_rate:
            return self._rates(content, confidence, on_fraction)
        if self.areas is not None:
            numbers = area_numbers(self.areas, _area_code(self.area), _area_code(self.denominator))
            pairs = pairs_of_areas(content, self.by, self.areas, numbers, on_fraction)
        elif isinstance(self.denominator, Mapping):
            pairs = pairs_of_levels(
                content, self.by, self.denominator, on_fraction, all_cells=all_cells
            )
        else:
            raise ReleaseError(
                'name the levels of the denominator, {"place": "county"} or {} for all '
                "records, or give a table of public numbers"
            )
        return pairs.ratios(confidence)

    def _rates(
        self, content: Content, confidence: Confidence, on_fraction: OnFraction
    ) -> pl.DataFrame:
        codes = label_columns(content.plan, self.by)
        if self.areas is None:
            public = Denominators.of(codes, self.denominator)
            return public.rates(cuboid_of(content, self.by, confidence, on_fraction), codes)
        codes = [self.areas.areas.name, *codes]
        public = Denominators.of(codes, self.denominator)
        sums = Sums(content.plan, self.by, self.areas)
        return public.rates(sums_of(content, sums, confidence, on_fraction), codes)


def _area_code(named: object) -> str | None:
    """Return the code of an area that a ratio names, if it names one.

    Raises:
        ReleaseError: levels are named beside areas.
    """
    if named is None or isinstance(named, str):
        return named
    raise ReleaseError(
        "beside areas, numerator and denominator are codes of areas; name levels of the "
        'other axes with by={"age": "band"}'
    )
