"""Compositions of discrete Gaussians by dp-accounting (Google)."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce

from dp_accounting.pld.privacy_loss_distribution import (
    PrivacyLossDistribution,
    from_discrete_gaussian_mechanism,
)


def peer(
    folds: Sequence[tuple[Fraction, int]], interval: float = 1e-4, *, pessimistic: bool = True
) -> PrivacyLossDistribution:
    """The composition on a grid, from above by its closest method, or from below.

    "Connect the dots" (Doroshenko et al. 2022) is from above alone; the older method is 60 times
    further away.

    Args:
        folds: σ² of each mechanism, and how often it is used.
        interval: of the grid.
        pessimistic: whether from above.
    """
    parts = (
        from_discrete_gaussian_mechanism(
            math.sqrt(sigma2),
            pessimistic_estimate=pessimistic,
            value_discretization_interval=interval,
            use_connect_dots=pessimistic,
        ).self_compose(times)
        for sigma2, times in folds
    )
    return reduce(PrivacyLossDistribution.compose, parts)


def peer_epsilon(
    folds: Sequence[tuple[Fraction, int]], delta: str, interval: float = 1e-4
) -> float:
    """ε at δ, from above."""
    return float(peer(folds, interval).get_epsilon_for_delta(float(delta)))
