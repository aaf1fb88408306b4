"""How a numeric column is distributed within the places of a page: quartiles, and how sure."""

from dataclasses import dataclass

import numpy as np

from hedgerow.arrays import Int64, Levels, int64
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import ReleaseError
from hedgerow.pages.catalogue import Catalogue
from hedgerow.pages.markup import shown
from hedgerow.release.answers.sums import Sums
from hedgerow.release.directory.cuboid_errors import USUAL
from hedgerow.release.directory.stored import Content
from hedgerow.release.distribution.cumulative import Cumulative
from hedgerow.release.distribution.places import Distributions
from hedgerow.release.page.carried import OTHERS, Block, block, folded, varints

RANKS = (0.25, 0.5, 0.75)
SURE = tuple(sorted((USUAL, *OTHERS), key=lambda each: each.coverage))
"""The intervals that a reader can choose, the narrowest first."""
ROUND_OFF = 1e-6
"""Steps: of edges in floating point."""


@dataclass(frozen=True, eq=False)
class Quartiles:
    """The quartiles of a numeric column in cells of the other axes, in whole steps of its values.

    Attributes:
        name: of the column.
        decimals: a step is one of so many decimals.
        value: int64 (3, cells): where released counts reach a quarter, a half and three quarters.
        low, high: int64 (3, 3, cells): by rank and confidence where the true ones are, rounded
            outwards.
    """

    name: str
    decimals: int
    value: Int64
    low: Int64
    high: Int64

    @classmethod
    def of(cls, cumulative: Cumulative, ranges: Ranges, places: Int64) -> "Quartiles":
        """Return those of some places.

        Args:
            cumulative: the counts of many places before each edge.
            ranges: the bins.
            places: int64 (cells): which of these, by number; none is empty.
        """
        each = [[cumulative.quantiles(rank, sure) for sure in SURE] for rank in RANKS]
        steps = 10**ranges.decimals * np.array(each)[..., places]
        value = np.rint(steps[:, 0, 0])
        low = steps[:, :, 1]
        high = steps[:, :, 2]
        ends = np.floor(low + ROUND_OFF), np.ceil(high - ROUND_OFF)
        return cls(ranges.name, ranges.decimals, *(int64(x) for x in (value, *ends)))

    def block(self, levels: Levels) -> Block:
        """Return the block of a cuboid: by rank values, and how far from these intervals reach."""
        parts = []
        for value, low, high in zip(self.value, self.low, self.high, strict=True):
            ends = (each for pair in zip(value - low, high - value, strict=True) for each in pair)
            parts += [varints(folded(each)) for each in (value, *ends)]
        return f"quartiles-{'-'.join(map(str, levels))}", block(parts)

    def sentence(self, say: Catalogue, cell: int, rank: int) -> tuple[str, str]:
        """Return a quartile and its usual interval in words: HTML."""
        usual = SURE.index(USUAL)
        ends = self.low[rank, usual, cell], self.high[rank, usual, cell]
        low, high = (self._value(say, end) for end in ends)
        return self._value(say, self.value[rank, cell]), say("script.from_to", low=low, high=high)

    def median(self, say: Catalogue, cell: int) -> str:
        """Return the median of a cell, and its interval in small type: HTML."""
        return "{}<small>{}</small>".format(*self.sentence(say, cell, RANKS.index(0.5)))

    def _value(self, say: Catalogue, steps: int) -> str:
        return say.numeral(f"{steps / 10**self.decimals:,.{self.decimals}f}")

    def terms(self, say: Catalogue) -> str:
        """Return the quartiles of the first cell as a list of terms: HTML."""
        names = (
            say("release.script.median_of", name=shown(self.name)),
            *(say(f"release.script.{key}") for key in ("lower", "upper")),
        )
        each = (self.sentence(say, 0, rank) for rank in (1, 0, 2))
        lines = "\n".join(
            f"<div><dt>{name}</dt><dd><strong>{value}</strong> {between}</dd></div>"
            for name, (value, between) in zip(names, each, strict=True)
        )
        sure = say("release.script.quartiles_sure", sure=round(100 * USUAL.coverage))
        return f'<dl class="beside">{lines}\n<div><dd>{sure}</dd></div></dl>'


def distributions_of(release: Content, numeric: int, levels: Levels) -> Cumulative | None:
    """Return the distributions of a column in the cells of a cuboid that sums over it.

    None where their errors are not known, or take too long.
    """
    try:
        return Distributions(release, numeric, Sums.of(release.plan, levels)).cumulative
    except ReleaseError:
        return None
