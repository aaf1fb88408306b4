"""The door through which all noise is drawn: who asks for it, and what it is added to.

A pass asks a mechanism to write noise into an array, adds true counts to the same array, and clips
it before anyone sees it (`hedgerow.release.descent.source.clip`). So between the draw and the clip
the array tells noise and true counts apart.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from hedgerow.noise.bits import ReleaseKey
from hedgerow.noise.mechanisms import MECHANISMS, Mechanism
from hedgerow.release.descent import source

Int64 = NDArray[np.int64]
Place = tuple[int, ...]


@dataclass(eq=False)
class Draw:
    """Noise of one array, and what the array held when it was clipped.

    Attributes:
        place: of the stream: the cuboid's levels, and the job's.
        mechanism: which noise.
        start: the first of the stream's cells.
        noise: int64 (cells).
        true: int64 (cells): what was added to it; none before that is known.
        noisy: int64 (cells): what the pass was given; none before that is known.
    """

    place: Place
    mechanism: Mechanism
    start: int
    noise: Int64
    true: Int64 = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    noisy: Int64 = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def asked(self) -> tuple[Place, str, int, int]:
        """All that is asked for."""
        return self.place, repr(self.mechanism), self.start, len(self.noise)


@dataclass(eq=False)
class Door:
    """All draws of a release.

    Attributes:
        draws: in the order of clipping.
        given: the noisy counts of each place and start, which take the place of those drawn.
    """

    draws: list[Draw]
    given: dict[tuple[Place, int], Int64]

    def __post_init__(self) -> None:
        self.waiting: dict[int, tuple[Int64, Draw]] = {}
        self.places: dict[Any, Place] = {}

    def through(self, noisy: Int64) -> None:
        """Take note of an array that noise was drawn to, and write what was given for it."""
        drawn, draw = self.waiting.pop(id(noisy))
        assert drawn is noisy
        draw.true = noisy - draw.noise
        known = self.given.get((draw.place, draw.start))
        if known is not None and len(known) == len(noisy):  # what was never asked for stays
            noisy[:] = known
        draw.noisy = noisy.copy()
        self.draws.append(draw)

    def noise_of(self, axes: int) -> dict[Place, Int64]:
        """The noise of each cuboid, job by job; a job that draws again draws the same."""
        places: dict[Place, dict[int, Int64]] = defaultdict(dict)
        for draw in self.draws:
            known = places[draw.place].setdefault(draw.start, draw.noise)
            assert np.array_equal(known, draw.noise), "a second draw of one place is another"
        cuboids: dict[Place, list[Int64]] = defaultdict(list)
        for place in sorted(places):
            cuboids[place[:axes]] += [noise for _, noise in sorted(places[place].items())]
        return {levels: np.concatenate(parts) for levels, parts in cuboids.items()}


@contextmanager
def open_door(given: Sequence[Draw] = ()) -> Iterator[Door]:
    """Record all draws of the releases that are made within; replay noisy counts that are given.

    Noise that is drawn and never clipped fails: it would have gone another way.
    """
    door = Door([], {(draw.place, draw.start): draw.noisy for draw in given})
    stream, clip = ReleaseKey.stream, source.clip

    def streamed(key: ReleaseKey, *place: int) -> Any:
        found = stream(key, *place)
        door.places[found] = place
        return found

    def clipped(noisy: Int64) -> None:
        door.through(noisy)
        clip(noisy)

    with ExitStack() as held:
        held.enter_context(mock.patch.object(ReleaseKey, "stream", streamed))
        for module in [each for name, each in sys.modules.items() if name.startswith("hedgerow.")]:
            if getattr(module, "clip", None) is clip:
                held.enter_context(mock.patch.object(module, "clip", clipped))
        for kind in MECHANISMS.values():
            held.enter_context(mock.patch.object(kind, "draw", _recorded(door, kind.draw)))
        yield door
    assert not door.waiting, "noise was drawn that no count was added to"


def _recorded(door: Door, draw: Any) -> Any:
    """The draw of a mechanism, which tells the door."""

    def drawn(mechanism: Mechanism, stream: Any, start: int, out: Int64) -> None:
        draw(mechanism, stream, start, out)
        found = Draw(door.places[stream], mechanism, start, out.copy())
        door.waiting[id(out)] = out, found

    return drawn
