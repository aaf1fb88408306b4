"""The estimators by the name that a manifest and a release file give them."""

from collections.abc import Callable

from hedgerow.errors import EstimateError, did_you_mean
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.families.chebyshev import Chebyshev
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.families.isotonic import Isotonic
from hedgerow.estimate.families.sparse import Sparse
from hedgerow.estimate.tree.least_squares import LeastSquares
from hedgerow.text import Json

ESTIMATORS: dict[str, Callable[..., Estimator]] = {
    "chebyshev": Chebyshev,
    "euclidean": Euclidean,
    "sparse": Sparse,
    "least-squares": LeastSquares,
    "isotonic": Isotonic,
}
"""Name → type; every parameter of a type has a default."""


def read_estimator(described: Json) -> Estimator:
    """Return the estimator whose `Estimator.to_dict` this is."""
    parameters = dict(described)
    method = parameters.pop("method", None)
    if not isinstance(method, str) or method not in ESTIMATORS:
        methods = ", ".join(f'"{name}"' for name in ESTIMATORS)
        raise EstimateError(
            f"an estimator's method must be one of {methods}, got {method!r}"
            f"{did_you_mean(method, ESTIMATORS)}"
        )
    try:
        return ESTIMATORS[method](**parameters)
    except TypeError as error:
        given = ", ".join(map(str, parameters))
        raise EstimateError(
            f'the estimator "{method}" does not take these parameters: {given}; '
            "leave out those that are not its own"
        ) from error
