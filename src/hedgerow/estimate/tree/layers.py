"""A tree laid out by depth: what was measured there, what is estimated, and how families lie."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from hedgerow.errors import EstimateError
from hedgerow.estimate.estimator import check_vector
from hedgerow.estimate.tree.two_passes import Column, Float64, Int64, Noisy, decreases


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """One depth of a tree, in tree order.

    Attributes:
        noisy: int64 or float64 (nodes), records; None where the depth is unmeasured.
        variance: of the noisy counts, one float or float64 (nodes), records²: 0 holds a count
            exactly, infinity leaves it unmeasured; infinite where noisy is None.
        family_start: int64 (nodes of the depth above + 1): where the children of each of those
            begin, and the end. None for the root, a family of one below nothing.

    Raises:
        EstimateError: arrays that do not fit together; a measurement that is not finite; a variance
            that is negative or not a number.
    """

    noisy: Noisy | None
    variance: float | Float64 = inf
    family_start: Int64 | None = None

    def __post_init__(self) -> None:
        if self.family_start is not None:
            family_count(self.family_start)
        variance, _ = column("variance", self.variance, self.nodes)
        if not (variance >= 0).all():
            raise EstimateError("variances must not be negative; at least one is, or is no number")
        if self.noisy is None:
            if not (variance == inf).all():
                raise EstimateError("a depth with a finite variance needs its noisy counts")
            return
        check_vector("noisy", self.noisy, np.int64, np.float64)
        check_length("noisy", self.noisy, self.nodes)
        if not (np.isfinite(self.noisy) | (variance == inf)).all():
            raise EstimateError("noisy counts must be finite; give unmeasured ones variance inf")

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return 1 if self.family_start is None else int(self.family_start[-1])


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """The estimates of one depth.

    Attributes:
        estimate: float64 (nodes), records.
        variance: float64 (nodes), records²; infinite for a node that is not identified.
    """

    estimate: Float64
    variance: Float64


def check_layers(layers: Sequence[Layer]) -> None:
    """Refuse layers that are no tree.

    Raises:
        EstimateError: see `least_squares`.
    """
    if not layers or layers[0].nodes != 1 or len(start_of(layers[0])) != 2:
        raise EstimateError("layers must begin with the root, one node")
    for depth in range(1, len(layers)):
        families = len(start_of(layers[depth])) - 1
        if families != layers[depth - 1].nodes:
            raise EstimateError(
                f"depth {depth} must have one family for each node above "
                f"({layers[depth - 1].nodes}), got {families}"
            )


def start_of(layer: Layer) -> Int64:
    """Where the families of a layer begin, and the end; the root is a family of one."""
    return np.array([0, 1]) if layer.family_start is None else layer.family_start


def column(name: str, values: float | Float64, length: int) -> Column:
    """The values and the step from one entry to the next: 0 where one value stands for all."""
    if isinstance(values, np.ndarray) and values.ndim:
        check_vector(name, values, np.float64)
        check_length(name, values, length)
        return values, 1
    return np.array([values], dtype=np.float64), 0


def check_length(name: str, values: Noisy, length: int) -> None:
    """Refuse any other length."""
    if len(values) != length:
        raise EstimateError(f"{name} must have {length} entries, one a node, got {len(values)}")


def family_count(family_start: Int64, cells: int | None = None) -> int:
    """The number of families, once they are known to partition the cells."""
    check_vector("family_start", family_start, np.int64)
    if not len(family_start) or family_start[0] != 0 or decreases(family_start):
        raise EstimateError("family_start must begin with 0 and not decrease")
    if cells is not None and family_start[-1] != cells:
        raise EstimateError(
            f"family_start must end with the number of children, {cells}, got {family_start[-1]}"
        )
    return len(family_start) - 1
