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
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from hedgerow.plan.allocation import Shares, Uniform
from hedgerow.plan.depths import All, Invariant, Measured, Public, Survivors, Unmeasured
from hedgerow.plan.plan import Plan, make_plan
from hedgerow.privacy.budget import Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.neighbours import AddRemove, Replace
from hedgerow.privacy.profile import Profile, compose
from hedgerow.release.check import check
from hedgerow.release.release import Release, read_release, release
from hedgerow.release.staging import Unfinished
from hedgerow.tables.axis import Axis
from hedgerow.tables.counts import Counts
from hedgerow.tables.read import Query
from hedgerow.tables.tree import Tree

__version__ = "0.1.0"

__all__ = [
    "AddRemove",
    "All",
    "Axis",
    "BudgetError",
    "Chebyshev",
    "Counts",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Epsilon",
    "EpsilonDelta",
    "EstimateError",
    "Euclidean",
    "HedgerowError",
    "Invariant",
    "MachineError",
    "Measured",
    "NoiseError",
    "Plan",
    "PlanError",
    "Profile",
    "Public",
    "Query",
    "Release",
    "ReleaseError",
    "Replace",
    "Rho",
    "Shares",
    "SpecError",
    "Survivors",
    "TableError",
    "Tree",
    "Unfinished",
    "Uniform",
    "Unmeasured",
    "check",
    "compose",
    "make_plan",
    "read_release",
    "release",
]
