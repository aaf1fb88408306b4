"""How far a pass is, told to whoever wants to know."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """Whom to tell how far the pass is.

    Attributes:
        on_cells: called with the number of cells just measured.
        on_fraction: called with the finished share of the pass, 0 to 1.
        on_depth: called with each result of a depth: its number of measured cells and of survivors
            and the seconds of work in it. These are confidential until the release appears, and
            the seconds for ever.
    """

    on_cells: Callable[[int], None] = lambda _cells: None
    on_fraction: Callable[[float], None] = lambda _fraction: None
    on_depth: Callable[[int, int, int, float], None] = lambda _depth, _cells, _kept, _seconds: None
