"""The theorem of `hedgerow.privacy.accountant.domination`, as written there, in 50 digits."""

import math
from fractions import Fraction

import mpmath as mp

SMOOTHINGS = [Fraction(quarters, 4) for quarters in (1, 2, 3, 4, 6, 8, 12, 16)]

Noise = tuple[Fraction, int]
"""σ² and the squared norm Δ² of what one unit changes under it."""


def gaussian_delta(epsilon, mu):
    """δ_μ(ε), with as many digits as cancel (those of a small μ twice) and 60 more."""
    lost = max(0.0, -2 * math.log10(float(mu)))
    with mp.workdps(60 + int(lost)):
        e, m = mp.mpf(epsilon), mp.mpf(mu)
        return mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)


def dominated_delta(noises, epsilon):
    """The least over s² of e^C δ_μ(ε - 2C), 1 at most."""
    with mp.workdps(50):
        found = [mp.mpf(1)]
        for spread in SMOOTHINGS:
            if any(spread >= sigma2 for sigma2, _ in noises):
                break
            q = mp.exp(-2 * mp.pi**2 * mp.mpf(spread.numerator) / spread.denominator)
            eta = 2 * q / (1 - q)
            doubt = sum(squared for _, squared in noises) * mp.log((1 + eta) / (1 - eta))
            square = sum((squared / (sigma2 - spread) for sigma2, squared in noises), Fraction(0))
            mu = mp.sqrt(mp.mpf(square.numerator) / square.denominator)
            found.append(mp.exp(doubt) * gaussian_delta(mp.mpf(epsilon) - 2 * doubt, mu))
        return min(found)
