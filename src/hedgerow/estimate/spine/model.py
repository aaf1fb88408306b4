"""What estimates along a spine: the protocol of a model, which the pass and the plan work with.

A model knows which cuboids are measured with what noise, and turns the noisy tables of one part of
the spine after the other into estimates and whole counts. Parts below a level of the spine are
asked first what they say of their roots (`Upward.told`); these tables, one behind the other in the
order of the nodes, are what the top is told of its last level; and what the top settles there is
what each part below is given.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from hedgerow.arrays import Float64, Int32, Int64, Levels
from hedgerow.errors import EstimateError
from hedgerow.estimate.spine.cells import Cells
from hedgerow.estimate.spine.forms import Forms
from hedgerow.estimate.spine.support import Part, Support


class Upward(Protocol):
    """What the noisy tables of a part say, level by level from its deepest up.

    Attributes:
        told: float64: all that the part says of its roots, node by node, so that tables of
            neighbouring parts may be put one behind the other; empty for the top.
    """

    @property
    def told(self) -> Float64:
        """All that the part says of its roots."""


@dataclass(frozen=True, eq=False)
class Model(ABC):
    """Best linear unbiased estimates and whole counts along a spine.

    Attributes:
        support: which nodes have which groups, and the detail layout.
        measured: the noise variance of each measured cuboid, records².
        total_known: whether the number of records at the root is public.
    """

    support: Support
    measured: Mapping[Levels, float]
    total_known: bool

    @property
    @abstractmethod
    def leaves(self) -> Int32:
        """Of each detail cell the attribute leaf, all attributes row by row: int32."""

    def cells(self, key: Levels) -> Cells:
        """Return the cells of a cuboid, measured or not."""
        if key not in self._known:
            self._known[key] = self._made_cells(key)
        return self._known[key]

    @cached_property
    def _known(self) -> dict[Levels, Cells]:
        return {}

    @abstractmethod
    def _made_cells(self, key: Levels) -> Cells:
        """Return the cells of a cuboid."""

    @abstractmethod
    def up(
        self, part: Part, noisy: Mapping[Levels, Float64], below: Float64 | None = None
    ) -> Upward:
        """Return what the noisy tables of a part say.

        Args:
            part: a part of the spine.
            noisy: for each measured cuboid of the part's levels float64 (cells of `Cells.start`).
            below: for a part that does not reach the deepest level what the parts below it say of
                the nodes of its last level.

        Raises:
            EstimateError: a table is missing, of another type or length, or (where an attribute has
                a tree) not finite.
        """

    @abstractmethod
    def estimates(
        self, part: Part, upward: Any, above: Float64 | None, total: float | None = None
    ) -> dict[int, Float64]:
        """Return the best linear unbiased estimates of every level of a part.

        Args:
            part: a part of the spine.
            upward: what its noisy tables say, as `up` of the same model returned it.
            above: the estimates of its roots, detail layout; None for the top.
            total: for the top the number of records, where it is public.

        Returns:
            For each level float64, detail layout, records.

        Raises:
            EstimateError: the estimates of the roots are missing or of another length; a total is
                given that is not known, or not given although it is.
        """

    @abstractmethod
    def settle(
        self, part: Part, upward: Any, above: Int64 | None, total: int | None = None
    ) -> dict[int, Int64]:
        """Return whole counts of every level of a part.

        Args:
            part: a part of the spine.
            upward: what its noisy tables say, as `up` of the same model returned it.
            above: the counts of its roots, int64, detail layout; None for the top.
            total: for the top the number of records, where it is public.

        Returns:
            For each level int64, detail layout, records: every cell's sum over the children is the
            parent's, every group is within its bounds.

        Raises:
            EstimateError: as `estimates`; counts or a total outside public bounds.
        """

    @abstractmethod
    def variances(self, labels: Int32) -> Forms:
        """Return the variances of the estimates of sums of detail cells.

        Args:
            labels: int32 (detail cells of all groups): the number of the sum that each detail cell
                belongs to, -1 for none; any partial partition.

        Returns:
            Exact variances where the noise has the variances that are the weights; else upper
            bounds, larger by a factor of at most the spread of their ratios.

        Raises:
            EstimateError: another number of labels, or none from 0 on.
        """

    def check_labels(self, labels: Int32) -> None:
        """Raise unless there is a label for each detail cell, and one that is no -1."""
        if len(labels) != (cells := int(self.support.widths.sum())) or not (labels >= 0).any():
            raise EstimateError(f"each of {cells} detail cells needs a label, one from 0")

    def check_total(self, part: Part, total: float | None) -> None:
        """Raise unless a total is given exactly where it is known, for the top."""
        if part.is_top and (total is not None) != self.total_known:
            raise EstimateError("a total must be given where, and only where, it is public")

    def table(self, key: Levels, nodes: range, noisy: Mapping[Levels, Float64]) -> Float64:
        """Return the noisy table of a cuboid at some nodes.

        Raises:
            EstimateError: it is missing, or of another type or length.
        """
        size, table = self.cells(key).count(nodes), noisy.get(key)
        if table is None or table.shape != (size,) or table.dtype != np.float64:
            raise EstimateError(
                f"cuboid {key} needs a float64 table of {size} cells, got "
                f"{'none' if table is None else f'{table.dtype} of the shape {table.shape}'}"
            )
        return table
