"""The trapezoidal sum over chosen nodes of a contour, with a bound of its round-off."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hedgerow.privacy.accountant.contour_kernel import Folded, Smoothed
from hedgerow.privacy.accountant.contour_sieve import Nodes
from hedgerow.privacy.accountant.cumulant import UNIT_ROUNDOFF, Array, TiltedLoss

_CHUNK = 1 << 14
# What stands for an error that no float holds: such bounds are far too wide to be reported.
HOPELESS = 1e300
# 2π in two parts, so that an angle loses nothing beyond its own rounding when turns are taken off.
_TURN_REST = 2.4492935982947064e-16


@dataclass(frozen=True, slots=True)
class Product:
    """Π φ_i(t · step_i)^times_i e^(it·lag): the transform on the line, 1 at t = 0.

    Attributes:
        factors: each tilted loss with its times.
        lag: the loss where all X = 0, less the point at which δ is asked.
    """

    factors: tuple[tuple[TiltedLoss, int], ...]
    lag: Fraction


def weighted_sums(
    product: Product,
    kernel: Folded | Smoothed,
    tilt: float,
    spacing: float,
    nodes: Nodes,
) -> tuple[Array, float]:
    """(h/2π) Σ over ±nodes of the product times each weight of the kernel, and its round-off.

    Returns:
        The sums (3), and a bound of the absolute error of each.
    """
    sums: list[list[float]] = []
    errors: list[float] = []
    for start in range(0, nodes.size, _CHUNK):
        chunk = nodes[start : start + _CHUNK]
        height = np.asarray(chunk * spacing, dtype=np.float64)
        share = np.where(chunk == 0, 1.0, 2.0) * (spacing / math.tau)
        with np.errstate(over="ignore", invalid="ignore"):
            modulus, angle, error = _polar(product, height)
        values = (modulus * np.exp(1j * angle) * kernel.weights(tilt, height)).real * share
        sums.append([math.fsum(row) for row in values])
        # A weight is right to 200 units (sums and products of a few elementary functions).
        bound = kernel.envelope(tilt, height) * share * (error + 200 * UNIT_ROUNDOFF * modulus)
        errors.append(math.fsum(np.fmin(bound, HOPELESS)))
    total = np.array([math.fsum(column) for column in zip(*sums, strict=True)])
    return total, math.fsum(errors) * (1 + 1e-6)


def _polar(product: Product, height: Array) -> tuple[Array, Array, Array]:
    """Modulus and angle of the product at each height, and a bound of its absolute error.

    With u the unit round-off, the angle t · step, less its turns, is right to 7u|t · step|. It
    enters φ by its centre (an angle) and by φ₀, whose error adds up to q relative to |φ₀|; the
    power times of (1+q), less 1, is the relative error of the modulus. Sums of k terms err by at
    most k + 10 units of the sum of their moduli.
    """
    lag = float(product.lag)
    log_sum = np.zeros(height.shape, dtype=np.complex128)
    angle, turned = height * lag, np.abs(height * lag)
    blurred, inflated, logs = np.zeros_like(height), np.zeros_like(height), np.zeros_like(height)
    for factor, times in product.factors:
        full = height * factor.step
        reduced = _reduced(full)
        doubt = 7 * UNIT_ROUNDOFF * np.abs(full)
        log_factor = factor.log_characteristic(reduced)
        log_sum += times * log_factor
        logs += times * np.abs(log_factor)
        angle += times * factor.centre * reduced
        turned += times * abs(factor.centre) * np.abs(reduced)
        blurred += times * abs(factor.centre) * doubt
        error = factor.error * UNIT_ROUNDOFF + factor.spread * doubt
        inflated += times * np.log1p(error * np.exp(-log_factor.real))
    modulus = np.exp(log_sum.real)
    units = (len(product.factors) + 10) * (turned + logs) + 10
    blurred += units * UNIT_ROUNDOFF
    error = modulus * (np.expm1(inflated) + np.exp(inflated) * blurred)
    return modulus, angle + log_sum.imag, error


def _reduced(angle: Array) -> Array:
    """The angle less the nearest multiple of 2π."""
    turns = np.rint(angle / math.tau)
    return np.asarray((angle - turns * math.tau) - turns * _TURN_REST)
