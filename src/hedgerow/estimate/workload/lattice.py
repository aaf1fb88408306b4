"""Which cuboids a workload's counts are settled at, from coarse to fine."""

from collections.abc import Iterable

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import Cuboid

MOST_CUBOIDS = 512
"""Cuboids that a closure may have: each is a table that is estimated and settled."""


def closure(cuboids: Iterable[Cuboid]) -> tuple[Cuboid, ...]:
    """Return the smallest set with these cuboids and the total that has all common coarsenings.

    The common coarsening of two cuboids is their componentwise minimum.

    Returns:
        The cuboids by the sum of their levels, then by their levels: coarse before fine.

    Raises:
        EstimateError: no cuboid, cuboids of different axes, or a closure of more than
            `MOST_CUBOIDS`.
    """
    named = sorted(set(cuboids))
    if not named or len({len(cuboid) for cuboid in named}) > 1:
        raise EstimateError("a closure needs at least one cuboid, and all must have the same axes")
    found: set[Cuboid] = {(0,) * len(named[0])}
    for cuboid in named:
        found |= {cuboid} | {meet(cuboid, other) for other in found}
        if len(found) > MOST_CUBOIDS:
            raise EstimateError(
                f"the cuboids have more than {MOST_CUBOIDS} common coarsenings; name fewer cuboids"
            )
    return tuple(sorted(found, key=fineness))


def meet(cuboid: Cuboid, other: Cuboid) -> Cuboid:
    """Return the common coarsening of two cuboids: their componentwise minimum."""
    return tuple(map(min, cuboid, other))


def fineness(cuboid: Cuboid) -> tuple[int, Cuboid]:
    """Return the key by which cuboids are sorted: each after all that are coarser."""
    return sum(cuboid), cuboid
