"""Hedgerow: hierarchical count tables under differential privacy.

One file describes the table and the promise; a plan shows the noise and the exact privacy cost
before the data are touched; a release gives non-negative integer counts that add up at every level.
"""

from hedgerow.errors import (
    BudgetError,
    EstimateError,
    HedgerowError,
    MachineError,
    NoiseError,
    PlanError,
    ReleaseError,
    SpecError,
    TableError,
)
from hedgerow.estimate.chebyshev import Chebyshev
from hedgerow.estimate.euclidean import Euclidean
from hedgerow.estimate.intervals import Confidence
from hedgerow.estimate.least_squares import LeastSquares
from hedgerow.estimate.nearest_cdf import Isotonic
from hedgerow.estimate.sparse import Sparse
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from hedgerow.plan.allocation import Shares, Uniform
from hedgerow.plan.branching import AllRanges, Cdf, Quantiles, best_branching
from hedgerow.plan.cheapest import cheapest
from hedgerow.plan.depths import (
    All,
    Invariant,
    Measured,
    Public,
    RunningSums,
    Summed,
    Survivors,
    Unmeasured,
)
from hedgerow.plan.distribution import plan_distribution
from hedgerow.plan.fair_allocation import Fair
from hedgerow.plan.fairness import fairness
from hedgerow.plan.for_distribution import ForDistribution
from hedgerow.plan.forecast import forecast
from hedgerow.plan.importance import PerLevel, Relative
from hedgerow.plan.optimal import Optimal
from hedgerow.plan.plan import Plan, make_plan
from hedgerow.plan.prior import Prior
from hedgerow.privacy.budget import Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.neighbours import AddRemove, Replace
from hedgerow.privacy.profile import Profile, compose
from hedgerow.release.check import check
from hedgerow.release.distribution import CountBetween, Distribution, Quantile, read_distribution
from hedgerow.release.estimate import Estimates, estimate_measurements, reestimate
from hedgerow.release.execution import release
from hedgerow.release.foreign import Measurements
from hedgerow.release.release import Release, read_release
from hedgerow.release.release_distribution import release_distribution
from hedgerow.release.staging import Unfinished
from hedgerow.tables.axis import Axis
from hedgerow.tables.counts import Counts
from hedgerow.tables.ranges import Ranges
from hedgerow.tables.read import Query
from hedgerow.tables.tree import Tree

__version__ = "0.1.0"

__all__ = [
    "AddRemove",
    "All",
    "AllRanges",
    "Axis",
    "BudgetError",
    "Cdf",
    "Chebyshev",
    "Confidence",
    "CountBetween",
    "Counts",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Distribution",
    "Epsilon",
    "EpsilonDelta",
    "EstimateError",
    "Estimates",
    "Euclidean",
    "Fair",
    "ForDistribution",
    "HedgerowError",
    "Invariant",
    "Isotonic",
    "LeastSquares",
    "MachineError",
    "Measured",
    "Measurements",
    "NoiseError",
    "Optimal",
    "PerLevel",
    "Plan",
    "PlanError",
    "Prior",
    "Profile",
    "Public",
    "Quantile",
    "Quantiles",
    "Query",
    "Ranges",
    "Relative",
    "Release",
    "ReleaseError",
    "Replace",
    "Rho",
    "RunningSums",
    "Shares",
    "Sparse",
    "SpecError",
    "Summed",
    "Survivors",
    "TableError",
    "Tree",
    "Unfinished",
    "Uniform",
    "Unmeasured",
    "best_branching",
    "cheapest",
    "check",
    "compose",
    "estimate_measurements",
    "fairness",
    "forecast",
    "make_plan",
    "plan_distribution",
    "read_distribution",
    "read_release",
    "reestimate",
    "release",
    "release_distribution",
]
