"""What a plan says of one depth: three types, so that nothing unmeasured passes for exact."""

from dataclasses import dataclass
from fractions import Fraction

from hedgerow.noise.mechanisms import Mechanism


@dataclass(frozen=True, slots=True)
class Measured:
    """A depth whose counts are measured: each gets noise of ``mechanism``, drawn anew.

    Attributes:
        mechanism: the noise of one count.
        share: of the budget, above 0; relative to the other depths' (see `Plan.price_of_a_share`).
    """

    mechanism: Mechanism
    share: Fraction

    kind = "measured"


@dataclass(frozen=True, slots=True)
class Summed:
    """A depth of which weighted running sums are measured: each gets noise, drawn anew.

    Attributes:
        mechanism: the noise of one sum, in units of the sums.
        share: of the budget, above 0; relative to the other depths' (see `Plan.price_of_a_share`).
        scale: of the weights, public: a sum in records is one of these divided by it.
    """

    mechanism: Mechanism
    share: Fraction
    scale: int

    kind = "summed"


@dataclass(frozen=True, slots=True)
class Public:
    """A depth on whose counts all neighbours agree, so that they are released as they are."""

    kind = "public"


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A depth without a measurement of its own: its counts follow from other depths."""

    kind = "unmeasured"


@dataclass(frozen=True, slots=True)
class Invariant:
    """Counts of one level that are public and held exactly (replace neighbours only).

    Attributes:
        axis: the axis.
        level: its level; all other axes at their root.
    """

    axis: str
    level: str


@dataclass(frozen=True, slots=True)
class Survivors:
    """Measure the children of nodes that were released as positive, depth by depth.

    Nothing depends on the number of possible cells. What survives depends on its own noise, so
    sums of survivors are biased and depths are not combined.
    """

    name = "survivors"


@dataclass(frozen=True, slots=True)
class All:
    """Measure every node of every measured depth, which combining depths needs."""

    name = "all"


@dataclass(frozen=True, slots=True)
class RunningSums:
    """Measure weighted running sums of the bins of one numeric axis, not the bins themselves.

    For cumulative counts under Gaussian noise: see `hedgerow.estimate.running_sums`.
    """

    name = "running-sums"


DepthPlan = Measured | Summed | Public | Unmeasured
Measure = Survivors | All | RunningSums
MEASURES: dict[str, Measure] = {kind.name: kind for kind in (Survivors(), All(), RunningSums())}
"""By the name that a release file and a manifest give them."""
