"""Exponentially tilted masses of one privacy loss, and the cumulants that choose the tilt.

A law p of losses L tilted by c is p(l) e^(c l); K(c) = ln E[e^(cL); L < ∞] is its cumulant
generating function. Tilting moves the bulk of the mass to where δ(ε) is decided, so that what is
rare under p is computed with full relative accuracy. Every mass here comes with a proved bound of
its error, counted in the 1-norm over all atoms, those left out included.
"""

import math
from fractions import Fraction

import numpy as np

from hedgerow.arrays import Float64
from hedgerow.declared import frozen
from hedgerow.noise.loss import GaussianLoss, LaplaceLoss, Loss, Losses, PairLoss

ROUND = 2.0**-53
"""The unit round-off u of binary64: a correctly rounded result errs by at most u of itself."""

CUT = 50.0
"""Gaussian atoms below e^-50 ≈ 2e-22 of the highest one are left out; the bound counts them."""

WIDE = Fraction(1, 2)
"""From this σ² on, normalisers are Poisson sums of a few terms; below it, plain sums are."""

BESIDE = np.array([x for x in range(-9, 10) if x != 0])
"""Where the terms of a narrow θ lie, next to the largest: the others are below e^-80 of it."""


@frozen(eq=False)
class TiltedMasses:
    """One loss tilted by c: the atom ``start + i`` has p(l) e^(c l) = e^exponent · masses[i].

    Attributes:
        start: k of the first atom, in steps of the loss above its offset.
        masses: summing to about 1.
        exponent: about K(c); an exact number, so that no rounding hides in it.
        error: at least Σ |masses - exact masses| over all atoms.
    """

    start: int
    masses: Float64
    exponent: Fraction
    error: float


def tilt_masses(loss: Loss, tilt: Fraction) -> TiltedMasses:
    """Return the law of one loss tilted by c, any real number."""
    near = float(cumulant(((loss, 1),), np.array([float(tilt)]))[0])
    exponent = Fraction(round(Fraction(near) * 2**32), 2**32)
    if isinstance(loss, GaussianLoss):
        return _gaussian(loss, tilt, exponent)
    return _ladder(loss, tilt, exponent)


def _gaussian(loss: GaussianLoss, tilt: Fraction, exponent: Fraction) -> TiltedMasses:
    """Return of discrete Gaussian noise.

    p(x) e^(cL(x)) = e^((c+c²)s²/2σ²) · e^(-(x-cs)²/2σ²)/θ(0): the same bell about cs. Atoms
    further than R from the centre are left out. From distance d on, one side has at most
    e^(-d²/2σ²)/(1 - e^(-(2d+1)/2σ²)), because the ratio of neighbours only falls.
    """
    half = float(1 / (2 * loss.sigma2))
    mean = tilt * loss.shift
    centre = round(mean)
    radius = math.ceil(math.sqrt(CUT / half))
    distance = np.arange(-radius, radius + 1) + float(centre - mean)
    falls = half * distance * distance
    lift = float((tilt + tilt * tilt) * loss.offset - exponent)
    height = 1 / normaliser(loss.sigma2)
    masses = height * np.exp(lift - falls)
    nearest = radius + 0.5
    omitted = 2 * math.exp(lift - half * nearest**2) / -math.expm1(-half * (2 * nearest + 1))
    # distance errs by u/2 + u|distance|, its square, the factor and the product by u each
    doubt = ROUND * (8 * falls + half + abs(lift) + 20)
    error = 1.001 * (float(masses @ doubt) + height * omitted) + len(masses) * 1e-300
    return TiltedMasses(centre - radius, masses, exponent, error)


def _ladder(loss: LaplaceLoss | PairLoss, tilt: Fraction, exponent: Fraction) -> TiltedMasses:
    """Return of discrete Laplace noise, or of a pair, which is the ladder of a single rung.

    With x = min(max(X, 0), s): L = (s - 2x)/scale, and P(x) is e^(-x/scale) times 1/(1+q) at both
    ends and (1-q)/(1+q) between them, q = e^(-1/scale). The atoms go up from x = s.
    """
    rate, rungs, finite = _ladder_parts(loss)
    fall = float((1 + 2 * tilt) * rate)
    lift = float(tilt * rungs * rate - exponent)
    slopes = -fall * np.arange(rungs, -1, -1)
    q = math.exp(-rate)
    weights = np.full(rungs + 1, finite * -math.expm1(-rate) / (1 + q))
    weights[[0, -1]] = finite / (1 + q)
    masses = weights * np.exp(slopes + lift)
    doubt = ROUND * (4 * (np.abs(slopes) + abs(lift)) + 20)
    # below e^-700 floating point loses digits, then everything
    return TiltedMasses(0, masses, exponent, 1.001 * float(masses @ doubt) + (rungs + 1) * 1e-300)


def _ladder_parts(loss: LaplaceLoss | PairLoss) -> tuple[Fraction, int, float]:
    """Return 1/scale, the number of rungs s, and P[L < ∞]."""
    if isinstance(loss, LaplaceLoss):
        return 1 / loss.scale, loss.shift, 1.0
    return loss.epsilon, 1, float(1 - loss.delta)


def normaliser(sigma2: Fraction) -> float:
    """Return θ(0) = Σ_x e^(-x²/2σ²) over the integers, to a relative error below 8u.

    By Poisson summation it is also √(2πσ²) Σ_j e^(-2π²σ²j²). In either form, on its side of
    σ² = 1/2, the terms left out are below e^-80 of the sum.
    """
    if sigma2 >= WIDE:
        rate = 2 * math.pi**2 * float(sigma2)
        ripple = math.fsum(math.exp(-rate * j * j) for j in range(1, 4))
        return math.sqrt(2 * math.pi * float(sigma2)) * (1 + 2 * ripple)
    half = float(1 / (2 * sigma2))
    return 1 + 2 * math.fsum(math.exp(-half * x * x) for x in range(1, 9))


def cumulant(losses: Losses, tilts: Float64) -> Float64:
    """Return K(c) of a composition at many c, from above and to about 1e-12 of the largest |K(c)|.

    For wide Gaussians the value is (c+c²)s²/2σ², which is an upper bound, θ(cs) ≤ θ(0) (all terms
    of its Poisson sum are positive at 0), and within e^-9 of exact.
    """
    quadratic = Fraction(0)
    total = np.zeros_like(tilts)
    for loss, times in losses:
        if isinstance(loss, GaussianLoss):
            quadratic += times * loss.offset
            if loss.sigma2 < WIDE:
                total += times * _narrowing(loss, tilts)
        else:
            total += times * _ladder_cumulant(loss, tilts)
    return total + float(quadratic) * (tilts + tilts * tilts)


def _narrowing(loss: GaussianLoss, tilts: Float64) -> Float64:
    """Return ln θ(cs)/θ(0), θ(m) = Σ_x e^(-(x-m)²/2σ²): never above 0."""
    half = float(1 / (2 * loss.sigma2))
    means = tilts * loss.shift
    away = (means - np.rint(means))[:, np.newaxis]
    nearest = -half * away**2  # of all terms the largest; the others relative to it
    others = np.exp(-half * (BESIDE - away) ** 2 - nearest).sum(axis=1)
    narrowing: Float64 = nearest[:, 0] + np.log1p(others) - math.log(normaliser(loss.sigma2))
    return narrowing


def _ladder_cumulant(loss: LaplaceLoss | PairLoss, tilts: Float64) -> Float64:
    """Return the sum of the masses in `_ladder`, the rungs between its ends as a geometric series.

    By the symmetry of the noise K(c) = K(-1-c), so c ≥ -1/2 may be assumed.
    """
    rate, rungs, finite = _ladder_parts(loss)
    above = np.maximum(tilts, -1 - tilts)
    fall = np.maximum((1 + 2 * above) * float(rate), 1e-300)
    between = np.exp(-fall) * np.expm1(-(rungs - 1) * fall) / np.expm1(-fall)
    inside = np.log1p(np.exp(-rungs * fall) - math.expm1(-rate) * between)
    head = math.log(finite) - math.log1p(math.exp(-rate))
    logarithms: Float64 = head + above * float(rungs * rate) + inside
    return logarithms


def largest(losses: Losses) -> Fraction | None:
    """Return the largest finite loss; None with Gaussian noise. The smallest is its negative."""
    total = Fraction(0)
    for loss, times in losses:
        if isinstance(loss, GaussianLoss):
            return None
        total -= times * loss.offset
    return total


def infinite(losses: Losses) -> float:
    """Return P[L = ∞] = 1 - Π (1 - δ_i)^times, to a relative error below 16u."""
    return 0.0 - math.expm1(
        math.fsum(
            times * _log_complement(loss.delta)
            for loss, times in losses
            if isinstance(loss, PairLoss)
        )
    )


def _log_complement(delta: Fraction) -> float:
    return math.log1p(-float(delta)) if 2 * delta < 1 else math.log(1 - delta)
