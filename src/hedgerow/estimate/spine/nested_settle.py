"""Whole counts of a census along its spine."""

from typing import Any

from hedgerow.arrays import Int64


def settle_part(*given: Any) -> dict[int, Int64]:
    """Raise: to come."""
    raise NotImplementedError
