"""A sum over records that tells two tables apart, however their rows are ordered or shared out.

Each record adds a fixed word of its leaf, so the sums of the parts of a table add up to that of the
whole: `Σ count(leaf) · word(leaf)` modulo 2⁶⁴, twice with different words. A table that changed
between two readings keeps both sums with probability 2⁻¹²⁸; nothing here resists someone who makes
tables on purpose. Confidential, as a digest of the table.
"""

import numpy as np
from numpy.typing import NDArray

from hedgerow.tables.order import Codes

UInt64 = NDArray[np.uint64]
SEEDS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)


def record_words(codes: Codes, values: NDArray[np.int64]) -> tuple[UInt64, ...]:
    """What each leaf adds to the sums: two uint64 arrays (leaves).

    Args:
        codes: one int32 array (leaves) an axis.
        values: int64 (leaves), records.
    """
    return tuple(_word(codes, np.uint64(seed)) * values.astype(np.uint64) for seed in SEEDS)


def _word(codes: Codes, seed: np.uint64) -> UInt64:
    word = np.full(len(codes[0]), seed)
    for code in codes:
        word = _mixed(word ^ code.astype(np.uint64)) + seed
    return word


def _mixed(word: UInt64) -> UInt64:
    """The finaliser of SplitMix64 (Steele, Lea & Flood 2014): a bijection that spreads each bit."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
