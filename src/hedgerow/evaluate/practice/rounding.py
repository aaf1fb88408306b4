"""Rounding to a base: every cell of every cuboid for itself."""

import numpy as np

from hedgerow.arrays import Float64, Int64, UInt64
from hedgerow.declared import frozen
from hedgerow.evaluate.practice.practice import Practice


@frozen(eq=False, kw_only=True)
class Rounding(Practice):
    """The nearest multiple of a base, halves up; or a neighbouring one at random.

    At random a count x goes up with the chance (x mod base) / base, so its mean is x. The cell's
    key is what decides, so that the same records always get the same number.

    Attributes:
        base: what counts become multiples of.
        at_random: whether chance decides, without bias.
    """

    base: int
    at_random: bool = False

    def answered(self, counts: Int64, keys: UInt64) -> Int64:
        """Return the multiples of the base."""
        rest = counts % self.base
        up = 2 * rest >= self.base
        if self.at_random:
            up = unit_keys(keys) * self.base < rest
        return counts - rest + self.base * up


def unit_keys(keys: UInt64) -> Float64:
    """Return keys as numbers in [0, 1): float64 (cells), whole multiples of 2⁻⁵³."""
    return np.asarray((keys >> 11) * 2.0**-53, dtype=np.float64)
