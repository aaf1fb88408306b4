"""Which exact sampler a law gets, and how it fills long arrays: in chunks, on all cores."""

from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import NoiseError
from hedgerow.kernels import core_count
from hedgerow.noise.bits import ReleaseKey, Stream
from hedgerow.noise.exact import Law
from hedgerow.noise.inversion import inversion
from hedgerow.noise.rejection import NEGLIGIBLE, rejection

WIDEST_TABLE = 1 << 16  # values on either side (sigma2 about 4.7e7, scale about 1456): 1 MiB
CHUNK = 1 << 14  # cells: 128 KiB of words and as much noise stay in the second-level cache
CELLS_WORTH_THREADS = 1 << 20


class Sampler(Protocol):
    """Exact draws of one law as a function of stream and cell."""

    def fill(self, stream: Stream, start: int, out: NDArray[np.int64]) -> None:
        """Write the draws of cells ``start .. start + len(out) - 1`` of a stream to ``out``."""
        ...


def sampler(law: Law) -> Sampler:
    """Inversion where the table stays in the cache, else rejection. Both are exact.

    The choice is part of the meaning of a stream (a resumed run must repeat it), so it is made in
    exact arithmetic: a table is narrow enough where exp(-exponent) < 2⁻⁶⁴ at its widest.
    """
    if law.exponent(WIDEST_TABLE) >= NEGLIGIBLE:
        return inversion(law)
    return rejection(law)


def sample(law: Law, n: int) -> NDArray[np.int64]:
    """Draws under a fresh key of the operating system: int64 (n)."""
    if n < 0:
        raise NoiseError(f"the number of draws cannot be below 0, got {n}")
    out = np.empty(n, dtype=np.int64)
    draw(law, ReleaseKey.fresh().stream(), 0, out)
    return out


def draw(law: Law, stream: Stream, start: int, out: NDArray[np.int64]) -> None:
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
