# The public names: for type checkers, and for `__init__.py`, which imports each on first use.

from .errors import (
    BudgetError as BudgetError,
    EstimateError as EstimateError,
    HedgerowError as HedgerowError,
    MachineError as MachineError,
    NoiseError as NoiseError,
    PlanError as PlanError,
    ReleaseError as ReleaseError,
    SpecError as SpecError,
    TableError as TableError,
)
from .estimate.families.chebyshev import Chebyshev as Chebyshev
from .estimate.families.euclidean import Euclidean as Euclidean
from .estimate.intervals import Confidence as Confidence
from .estimate.tree.least_squares import LeastSquares as LeastSquares
from .estimate.families.isotonic import Isotonic as Isotonic
from .estimate.families.sparse import Sparse as Sparse
from .noise.mechanisms import (
    DiscreteGaussian as DiscreteGaussian,
    DiscreteLaplace as DiscreteLaplace,
)
from .plan.allocation.allocation import Uniform as Uniform
from .distribution.branching import (
    AllRanges as AllRanges,
    Cdf as Cdf,
    Quantiles as Quantiles,
    best_branching as best_branching,
    numeric_axis as numeric_axis,
)
from .plan.allocation.cheapest import cheapest as cheapest
from .plan.criteria.criterion import (
    Criterion as Criterion,
    OfCount as OfCount,
    OfQuantile as OfQuantile,
    OfRecords as OfRecords,
    OfShare as OfShare,
)
from .plan.criteria.least import least_budget as least_budget
from .plan.criteria.sizes import Sizes as Sizes
from .plan.criteria.verdict import Verdict as Verdict, verdicts as verdicts
from .plan.cuboids import (
    All as All,
    Invariant as Invariant,
    Measured as Measured,
    Public as Public,
    RunningSums as RunningSums,
    Summed as Summed,
    Survivors as Survivors,
    Unmeasured as Unmeasured,
)
from .distribution.plan import plan_distribution as plan_distribution
from .plan.allocation.fair import Fair as Fair
from .plan.allocation.fairness import fairness as fairness
from .distribution.plan import ForDistribution as ForDistribution
from .plan.forecast import forecast as forecast
from .plan.allocation.allocation import PerLevel as PerLevel, Relative as Relative
from .plan.allocation.optimal import Optimal as Optimal
from .plan.allocation.shares import QueryShares as QueryShares
from .plan.allocation.shares import Shares as Shares
from .plan.facts.facts import PublicTable as PublicTable, Zeros as Zeros
from .plan.make import make_plan as make_plan
from .plan.plan import Plan as Plan
from .plan.prior import Prior as Prior
from .plan.workload import Chain as Chain, Cube as Cube, Cuboids as Cuboids
from .privacy.budget import Epsilon as Epsilon, EpsilonDelta as EpsilonDelta, Rho as Rho
from .privacy.neighbours import AddRemove as AddRemove, Replace as Replace
from .privacy.profile import Profile as Profile, compose as compose
from .release.directory.check import check as check
from .release.distribution.cumulative import Quantile as Quantile
from .release.distribution.distribution import (
    CountBetween as CountBetween,
    Distribution as Distribution,
    read_distribution as read_distribution,
)
from .release.reestimate.reestimate import (
    Estimates as Estimates,
    estimate_measurements as estimate_measurements,
    reestimate as reestimate,
)
from .release.execution import release as release
from .release.reestimate.external import Measurements as Measurements
from .release.release import Release as Release, read_release as read_release
from .release.distribution.release import release_distribution as release_distribution
from .release.directory.output import Unfinished as Unfinished
from .export.data_package import DataPackage as DataPackage
from .export.released import export as export
from .export.geoparquet import GeoParquet as GeoParquet
from .export.sdmx import Sdmx as Sdmx
from .export.statistics_file import StatisticsFile as StatisticsFile
from .export.workbook import Workbook as Workbook
from .tables.axis import Axis as Axis
from .tables.codes.rules import Division as Division
from .tables.codes.rules import Parents as Parents
from .tables.codes.rules import Prefix as Prefix
from .tables.counts import Counts as Counts
from .tables.description import Description as Description
from .distribution.ranges import Ranges as Ranges
from .tables.read import Query as Query
from .tables.tree import Tree as Tree

__version__: str
