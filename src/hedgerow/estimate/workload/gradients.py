"""Conjugate gradients for K λ = d - B x where K is too large to be factored."""

import numpy as np

from hedgerow.arrays import Float64
from hedgerow.errors import EstimateError
from hedgerow.estimate.workload.dual import Dual

RESIDUAL = 1e-9
"""The residual of the system, relative to its right side, at which gradients stop."""

MOST_STEPS = 1_000
"""Steps after which gradients are given up."""


def conjugate_gradients(dual: Dual, gaps: Float64, most: int) -> Float64:
    """Return λ of K λ = gaps.

    Each step goes over the cells of all cuboids but the tables. Both sides are divided by the
    roots of (nearly) K's diagonal, so that rows of all units count alike. No row follows
    from others, so the residual falls as far as is asked, however large the counts are whose
    differences the right side is.

    Args:
        dual: the system.
        gaps: the right side, float64 (rows).
        most: steps at most, such as `MOST_STEPS`.

    Raises:
        EstimateError: the residual is not reached.
    """
    scale = 1 / np.sqrt(dual.diagonal())
    found, residual = np.zeros(len(gaps)), gaps * scale
    direction, squared = residual.copy(), float(residual @ residual)
    enough = RESIDUAL**2 * squared
    for _ in range(most):
        if squared <= enough:
            return found * scale
        image = dual.times((direction * scale)[:, None])[:, 0] * scale
        length = squared / float(direction @ image)
        found += length * direction
        residual -= length * image
        before, squared = squared, float(residual @ residual)
        direction *= squared / before
        direction += residual
    raise EstimateError(
        f"the estimates of this workload do not settle within {most:,} steps; "
        "variances that are less far apart, or fewer cuboids, help"
    )
