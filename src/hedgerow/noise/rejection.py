"""Exact rejection for wide laws: blocks by inversion, a uniform offset, a certain test.

A *round* of a cell takes three words: a block [bw, bw + w), w = 2**s, drawn exactly by inversion;
an offset in it and a sign; and a uniform V. The proposal x is accepted if V < exp(-E), with E =
exponent(|x|) - exponent(bw) (von Neumann 1951). The test in floats is certain beyond a distance of
2⁻⁵⁰; the rest is settled in exact arithmetic, so floats decide how fast a draw is made, never what
it is. Round r reads branch r of the stream. Proof: `docs/proofs/noise.md`, "Exact rejection".
"""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Int64, UInt64
from hedgerow.declared import frozen
from hedgerow.errors import NoiseError
from hedgerow.kernels import core_count, kernel
from hedgerow.noise.bits import ReleaseKey, Stream
from hedgerow.noise.inversion import WORD_BITS, Inversion, Law, exp_bounds, inversion, locate

ACCEPTED, REJECTED, UNDECIDED = 0, 1, 2
WORDS_A_ROUND = 3
SIGN_BIT = 63
MARGIN = 2.0**-50
BLOCKS = 1 << 12  # at least this many blocks before the weight falls below 2⁻⁶⁴
NEGLIGIBLE = 45  # exp(-45) < 2⁻⁶⁴
BLOCK_REST, TEST_REST = 0, 1  # an undecided draw's further words: branch(cell, one of them)


@kernel
def taylor_exp(exponent: float) -> float:
    """Return exp(-exponent) for 0 <= exponent <= 1/16, with an error below 2⁻⁵¹."""
    value = 1.0
    # Horner's scheme, the smallest terms first; the ninth term is below 2⁻⁵⁴.
    for k in range(8, 0, -1):
        value = 1.0 - exponent * (1.0 / k) * value
    return value


@kernel
def propose(
    words: UInt64,
    cells: Int64,
    blocks: tuple[UInt64, NDArray[np.uint32], np.uint64],
    shape: tuple[np.uint64, float, float],
    out: Int64,
    verdicts: NDArray[np.uint8],
) -> None:
    """Run one round: write a proposal for each cell to ``out``, and a verdict on it.

    Args:
        words: uint64 (3 words a cell, from cell ``cells[0]`` on).
        cells: int64: the places in ``out`` that still want a draw, rising.
        blocks: thresholds, guide and shift of the blocks' inversion.
        shape: s, where blocks are 2**s wide; the law's first; half its step.
        out: int64 (cells).
        verdicts: uint8 (len(cells)): accepted, rejected or undecided.
    """
    # Three words a cell: the block, sign (top bit) and offset (low bits), and the uniform V. All
    # integers are below 2⁶³; floats below decide only what is further than MARGIN from exp(-E).
    thresholds, guide, shift = blocks
    width_bits, first, half_step = shape
    mask = (np.uint64(1) << width_bits) - np.uint64(1)
    for i in range(len(cells)):
        at = 3 * (cells[i] - cells[0])
        block = locate(words[at], thresholds, guide, shift)
        negative = np.int64(words[at + 1] >> np.uint64(SIGN_BIT))
        offset = np.int64(words[at + 1] & mask) + negative
        block_start = np.int64(block << width_bits)
        out[cells[i]] = (block_start + offset) * (1 - 2 * negative)
        exponent = offset * (first + half_step * (2 * block_start + offset - 1))
        uniform = np.float64(words[at + 2] >> np.uint64(11)) * 2.0**-53
        distance = uniform - taylor_exp(exponent)
        if exponent > 1 / 16 or abs(distance) <= MARGIN or thresholds[block] == words[at]:
            verdicts[i] = UNDECIDED
        else:
            verdicts[i] = REJECTED if distance > 0 else ACCEPTED


@frozen(eq=False)
class Rejection:
    """The exact rejection sampler of a two-sided law.

    Attributes:
        law: the law of the draws.
        width_bits: s, where blocks are 2**s wide.
        blocks: the sampler of block numbers.
    """

    law: Law
    width_bits: int
    blocks: Inversion

    def fill(self, stream: Stream, start: int, out: Int64) -> None:
        """Write the draws of cells ``start .. start + len(out) - 1`` of a stream to ``out``."""
        table = (self.blocks.thresholds, self.blocks.guide, self.blocks.shift)
        shape = (np.uint64(self.width_bits), float(self.law.first), float(self.law.step / 2))
        cells = np.arange(len(out))
        turn = 0
        while len(cells):
            source = stream.branch(turn)
            first = start + int(cells[0])
            count = int(cells[-1] - cells[0]) + 1
            words = source.words(WORDS_A_ROUND * first, WORDS_A_ROUND * count)
            verdicts = np.empty(len(cells), dtype=np.uint8)
            propose(words, cells, table, shape, out, verdicts)
            for i in np.flatnonzero(verdicts == UNDECIDED).tolist():
                at = int(cells[i] - cells[0])
                settled = self._settle(words[3 * at : 3 * at + 3].tolist(), source, first + at)
                out[cells[i]] = settled or 0
                verdicts[i] = REJECTED if settled is None else ACCEPTED
            cells = cells[verdicts == REJECTED]
            turn += 1

    def _settle(self, words: list[int], source: Stream, cell: int) -> int | None:
        """Return the proposal of three words if it is accepted, in exact arithmetic; else None."""
        block = self.blocks.value(words[0], source.branch(cell, BLOCK_REST))
        block_start = block << self.width_bits
        negative = words[1] >> SIGN_BIT
        magnitude = block_start + (words[1] & ((1 << self.width_bits) - 1)) + negative
        exponent = self.law.exponent(magnitude) - self.law.exponent(block_start)
        stands = is_below_exp(exponent, words[2], source.branch(cell, TEST_REST))
        return (-magnitude if negative else magnitude) if stands else None


def is_below_exp(exponent: Fraction, word: int, rest: Stream) -> bool:
    """Return whether V < exp(-exponent), given V's first 64 digits and a stream of the others."""
    if exponent == 0:
        return True
    digits = word
    count = WORD_BITS
    more = 0
    while True:
        lower, upper = exp_bounds(exponent, count + WORD_BITS)
        if (digits + 1) << WORD_BITS <= lower:
            return True
        if digits << WORD_BITS >= upper:
            return False
        digits = digits << WORD_BITS | int(rest.words(more, 1)[0])
        count, more = count + WORD_BITS, more + 1


@lru_cache(maxsize=64)
def rejection(law: Law) -> Rejection:
    """Return the sampler of a law, with the narrowest blocks of which at most 2 · BLOCKS matter."""
    width_bits = 0
    while law.exponent((2 * BLOCKS) << width_bits) < NEGLIGIBLE:
        width_bits += 1
    return Rejection(law, width_bits, inversion(law.blocks(1 << width_bits)))


# Which exact sampler a law gets, and how it fills long arrays: in chunks, on all cores.

WIDEST_TABLE = 1 << 16  # values on either side (sigma2 about 4.7e7, scale about 1456): 1 MiB
CHUNK = 1 << 14  # cells: 128 KiB of words and as much noise stay in the second-level cache
CELLS_WORTH_THREADS = 1 << 20


@lru_cache(maxsize=64)
def sampler(law: Law) -> Inversion | Rejection:
    """Return inversion where the table stays in the cache, else rejection; both are exact.

    The choice is part of the meaning of a stream (a resumed run must repeat it), so it is made in
    exact arithmetic: a table is narrow enough where exp(-exponent) < 2⁻⁶⁴ at its widest.
    """
    if law.exponent(WIDEST_TABLE) >= NEGLIGIBLE:
        return inversion(law)
    return rejection(law)


def sample(law: Law, n: int) -> Int64:
    """Return draws under a fresh key of the operating system: int64 (n)."""
    if n < 0:
        raise NoiseError(f"the number of draws cannot be below 0, got {n}")
    out = np.empty(n, dtype=np.int64)
    draw(law, ReleaseKey.fresh().stream(), 0, out)
    return out


def draw(law: Law, stream: Stream, start: int, out: Int64) -> None:
    """Write the draws of cells ``start .. start + len(out) - 1`` of a stream to ``out``.

    Long arrays are drawn on threads of their own, not on those of `hedgerow.kernels`: a task there
    that drew noise would wait for a thread that it occupies itself.
    """
    if out.dtype != np.int64 or out.ndim != 1 or start < 0:
        raise NoiseError(
            "noise is drawn for cells from 0 on into one row of int64, "
            f"got start={start} and {out.dtype} of shape {out.shape}"
        )
    chosen = sampler(law)

    def fill(first: int, last: int) -> None:
        for a in range(first, last, CHUNK):
            chosen.fill(stream, start + a, out[a : min(a + CHUNK, last)])

    cores = core_count()
    if len(out) < CELLS_WORTH_THREADS or cores == 1:
        fill(0, len(out))
        return
    cuts = [len(out) * core // cores for core in range(cores + 1)]
    with ThreadPoolExecutor(cores, thread_name_prefix="hedgerow-noise") as pool:
        list(pool.map(fill, cuts[:-1], cuts[1:]))
