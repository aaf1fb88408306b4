"""The exact price against dp-accounting: time, bracket, and what it cannot do.

dp-accounting bounds δ(ε) from above (pessimistic) or below (optimistic) on a grid of losses; two
runs make a bracket. Ours is certified by itself.
"""

import json
import math
import platform
import random
import time
from fractions import Fraction

from dp_accounting.pld.privacy_loss_distribution import (
    PrivacyLossDistribution,
    from_discrete_gaussian_mechanism,
)

import hedgerow as hr
from hedgerow.kernels import core_count

Folds = list[tuple[Fraction, int]]

SHARES = (20, 274, 85, 131, 238, 118, 3)
CENSUS: Folds = [
    (10 / (2 * Fraction(a, 1000) * Fraction(365, 100)), n)
    for a, n in zip(SHARES, (10, 10, 10, 20, 10, 10, 10), strict=True)
]


def mixture(seed: int) -> Folds:
    """140 queries with 14 rational variances that have no coarse unit in common."""
    rng = random.Random(seed)  # noqa: S311 - a choice of examples
    return [(Fraction(rng.randint(2_000, 60_000), rng.randint(300, 1_000)), 10) for _ in range(14)]


def peer(folds: Folds, epsilon: float, interval: float, *, pessimistic: bool) -> float:
    """δ(ε) by dp-accounting."""
    whole: PrivacyLossDistribution | None = None
    for sigma2, times in folds:
        part = from_discrete_gaussian_mechanism(
            math.sqrt(sigma2),
            pessimistic_estimate=pessimistic,
            value_discretization_interval=interval,
        ).self_compose(times)
        whole = part if whole is None else whole.compose(part)
    assert whole is not None
    return float(whole.get_delta_for_epsilon(epsilon))


def timed(profile: hr.Profile, epsilon: float) -> tuple[float, float, float]:
    """The least seconds of five runs, and the bounds of δ(ε)."""
    best = math.inf
    for _ in range(5):
        begun = time.perf_counter()
        low, high = profile.delta_bounds(epsilon)
        best = min(best, time.perf_counter() - begun)
    return best, low, high


def main() -> None:
    """Print a line a case, and all of it as JSON."""
    cases = {
        "census 2020, 80 queries": (CENSUS, 20.3247),
        "census, state level": ([(CENSUS[1][0], 10)], 10.1),
        "1890 equal folds": ([(Fraction(10_000), 1890)], 3.0),
        "140 queries, 14 variances": (mixture(1), 15.0),
        "delta near 1e-30": (CENSUS, 34.0),
    }
    figures: dict[str, dict[str, float]] = {}
    for name, (folds, epsilon) in cases.items():
        profile = hr.compose([(hr.DiscreteGaussian(s), n) for s, n in folds])
        seconds, low, high = timed(profile, epsilon)
        print(f"{name}: δ({epsilon}) in [{low:.12g}, {high:.12g}], {seconds * 1e3:.1f} ms")
        figures[name] = {"seconds": seconds, "relative_width": (high - low) / high}
        for interval in (1e-3, 1e-4):
            begun = time.perf_counter()
            lower = peer(folds, epsilon, interval, pessimistic=False)
            upper = peer(folds, epsilon, interval, pessimistic=True)
            spent = time.perf_counter() - begun
            inside = lower * (1 - 1e-9) <= low and high <= upper * (1 + 1e-9)
            width = (upper - lower) / high
            print(
                f"    dp-accounting at {interval:g}: [{lower:.6g}, {upper:.6g}], width "
                f"{width:.1e} (ours {(high - low) / high:.1e}), {spent * 1e3:.0f} ms, "
                f"{'brackets ours' if inside else 'does NOT bracket ours'}"
            )
            figures[name][f"peer_seconds_{interval:g}"] = spent
            figures[name][f"peer_width_{interval:g}"] = width
    machine = {"machine": platform.machine(), "cores": core_count(), "hedgerow": hr.__version__}
    print(json.dumps({**machine, "cases": figures}))


if __name__ == "__main__":
    main()
