"""The estimators by the name that a manifest and a release file give them."""

from collections.abc import Callable

from hedgerow.estimate.chebyshev import Chebyshev
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.euclidean import Euclidean

ESTIMATORS: dict[str, Callable[[], Estimator]] = {"chebyshev": Chebyshev, "euclidean": Euclidean}
