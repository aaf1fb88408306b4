"""Simulation on public or synthetic tables: the release pass under a seed."""

import hashlib

from hedgerow.noise.bits import ReleaseKey


def seeded_bits(seed: int) -> ReleaseKey:
    """Bits that anyone can draw again: for simulations on public or synthetic tables alone.

    Noise from them hides nothing, so nothing that a simulation makes may be published as a release
    of a confidential table.
    """
    return ReleaseKey(hashlib.sha256(f"hedgerow/simulation/{seed}".encode()).digest())
