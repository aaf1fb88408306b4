"""What a pass finds: the survivors and noisy counts of a depth, and those of all depths."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.source import Noisy


@dataclass(frozen=True, slots=True)
class DepthResult:
    """What a pass or a job of it found at one depth, in tree order.

    Attributes:
        depth: the depth.
        nodes: the survivors with their released counts and unbiased estimates.
        noisy: int64 (measured cells): the noisy counts, families end to end, of surviving parents
            or (`All`) of all; None where nothing was measured.
        seconds: of work; confidential, for the terminal alone. 0 where the result had been kept.
    """

    depth: int
    nodes: Nodes
    noisy: Noisy | None
    seconds: float = 0.0


def joined(parts: Sequence[DepthResult]) -> DepthResult:
    """The results of one depth from chunks or jobs that follow each other."""
    noisy = [part.noisy for part in parts if part.noisy is not None]
    nodes = Nodes.joined([part.nodes for part in parts])
    seconds = sum(part.seconds for part in parts)
    return DepthResult(parts[0].depth, nodes, _end_to_end(noisy) if noisy else None, seconds)


def _end_to_end(parts: list[Noisy]) -> Noisy:
    return parts[0] if len(parts) == 1 else cast("Noisy", np.concatenate(parts))


def gathered(results: Iterable[DepthResult]) -> tuple[dict[int, Nodes], dict[int, Noisy]]:
    """All survivors and all noisy counts by depth.

    The survivors come without their slices of the table: how many leaves they have is confidential.
    """
    nodes: dict[int, list[Nodes]] = {}
    noisy: dict[int, list[Noisy]] = {}
    for found in results:
        nodes.setdefault(found.depth, []).append(found.nodes)
        if found.noisy is not None:
            noisy.setdefault(found.depth, []).append(found.noisy)
    whole = {t: Nodes.joined(parts).without_slices() for t, parts in nodes.items()}
    return whole, {t: _end_to_end(parts) for t, parts in noisy.items()}
