"""What estimates along a spine: the protocol of a model, which the pass and the plan work with.

A model knows which cuboids are measured with what noise, and turns the noisy tables of one part of
the spine after the other into estimates and whole counts. Parts below a level of the spine are
asked first what they say of their roots (`Upward.told`); these tables, one behind the other in the
order of the nodes, are what the top is told of its last level; and what the top settles there is
what each part below is given.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from hedgerow.arrays import Float64, Int32, Int64, Levels
from hedgerow.estimate.spine.cells import Cells
from hedgerow.estimate.spine.part import Part
from hedgerow.estimate.spine.support import Support


class Upward(Protocol):
    """What the noisy tables of a part say, level by level from its deepest up.

    Attributes:
        told: float64 (`Model.told_size`): all that the part says of its roots, node by node, so
            that tables of neighbouring parts may be put one behind the other; empty for the top.
    """

    @property
    def told(self) -> Float64:
        """All that the part says of its roots."""


class Forms(Protocol):
    """The variances of sums of detail cells, at every node: quadratic forms of each node's own."""

    def at(self, level: int, nodes: Int64, sums: Int64) -> Float64:
        """Return the variance of each pair of a node and a sum: float64 (pairs), records²."""

    def over(self, level: int, nodes: Int64) -> Float64:
        """Return the variance of each sum over some nodes together: float64 (sums), records².

        Args:
            level: of the spine.
            nodes: int64 (nodes), ascending, each once.
        """

    def mean(self, level: int) -> float:
        """Return the mean over all pairs of a node and a sum that has a cell there, records²."""

    def largest(self, level: int) -> float:
        """Return the largest over all pairs of a node and a sum that has a cell there, records²."""


class Model(Protocol):
    """Best linear unbiased estimates and whole counts along a spine.

    Attributes:
        support: which nodes have which groups, and the detail layout.
        measured: the noise variance of each measured cuboid, records².
    """

    @property
    def support(self) -> Support:
        """Which nodes have which groups."""

    @property
    def measured(self) -> Mapping[Levels, float]:
        """The noise variance of each measured cuboid, records²."""

    def cells(self, key: Levels) -> Cells:
        """Return the cells of a cuboid, measured or not."""

    def told_size(self, part: Part) -> int:
        """Return the length of what a part says of its roots."""

    def up(
        self, part: Part, noisy: Mapping[Levels, Float64], below: Float64 | None = None
    ) -> Upward:
        """Return what the noisy tables of a part say.

        Args:
            part: a part of the spine.
            noisy: for each measured cuboid of the part's levels float64 (cells of `Cells.start`).
            below: for a part that does not reach the deepest level what the parts below it say of
                the nodes of its last level.
        """

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
        """

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
        """

    def variances(self, labels: Int32) -> Forms:
        """Return the variances of the estimates of sums of detail cells.

        Args:
            labels: int32 (detail cells of all groups): the number of the sum that each detail cell
                belongs to, -1 for none; any partial partition.
        """
