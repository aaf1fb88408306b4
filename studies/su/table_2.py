"""Su et al., Table 2: how far the sum of n discrete Gaussians is from a Gaussian density."""

import math

import numpy as np
from mpmath import mp

from hedgerow.arrays import Float64
from studies.page import Row, Study, markdown

FOLDS = (5, 9, 10, 18, 20, 27, 50, 100)
PRINTED = {
    1: (5e-6, 5e-7, 4e-7, 2e-7, 9e-8, 7e-8, 4e-8, 2e-8),
    5: (3e-32, 1e-36, 3e-37, 2e-39, 8e-40, 2e-40, 2e-41, 6e-42),
    10: (2e-65, 4e-74, 3e-75, 2e-79, 4e-80, 2e-81, 3e-83, 3e-84),
}
ODD = {(100, 5): "23 of 24 figures are this sum rounded up; here it gives 4.6e-42, cause unknown"}
TEXT = """The paper replaces P[S = y], S the scaled sum of n draws, by a Gaussian density on the
lattice, and bounds the residual r(y) by a sum over the characteristic function (Fact C.1). We
evaluate that bound with 300 digits (it is printed rounded up to one), and beside it the residual
itself. With φ(y) the density, q = e^(-2π²σ²) and θ = 1 + 2q + 2q⁴ + …, Poisson summation over all
n draws gives

r(y) = φ(y) [θ^(-n) (1 + Σ_{{j=1}}^{{n-1}} C(n, j) q^(j - j²/n) cos(2πyj/n) + …) - 1],

where what is left out is below q of the whole. For σ² = 1 the sum of n draws was convolved as
well: the two agree to {agree:.1e} of the largest residual.

{found}

The residual is real but smaller than the bound by a factor of {least:.0f} to {most:.0f}. For the
census neither matters (an error of 1e-37 against δ = 1e-10). Hedgerow needs no such replacement:
it convolves the discrete laws themselves and carries a proved bound of the round-off.
"""


def bound(sigma2: int, n: int) -> float:
    """Ω₁ of Appendix C, its main part: the rest is below 1e-100 of 1 where σ² ≥ 5."""
    mp.dps = 300
    sigma = mp.sqrt(sigma2)
    width = mp.pi * mp.sqrt(n * sigma2)
    q = mp.e ** (-2 * mp.pi**2 * sigma2)

    def theta(t: int) -> "mp.mpf":
        grows = 2 * mp.pi * sigma * t / mp.sqrt(n)
        return 1 + 2 * mp.fsum(q ** (k * k) * mp.cosh(k * grows) for k in range(1, 8))

    flat = theta(0)
    terms = [
        mp.e ** (-(mp.mpf(j - 1) ** 2) / 2) * abs((theta(j) / flat) ** n - 1)
        for j in range(1, int(mp.floor(width)) + 1)
    ]
    return float(mp.fsum(terms) / width)


def residuals(sigma2: int, n: int) -> Float64:
    """r(y) at y = 0, 1, … of the unscaled sum, up to eight standard deviations."""
    y = np.arange(8 * math.isqrt(n * sigma2) + 8)
    exponent = 2 * math.pi**2 * sigma2
    q = math.exp(-exponent)
    crossed = sum(
        math.comb(n, j) * math.exp(-exponent * (j - j * j / n)) * np.cos(2 * math.pi * y * j / n)
        for j in range(1, n)
    )
    density = np.exp(-(y**2) / (2 * n * sigma2)) / math.sqrt(2 * math.pi * n * sigma2)
    return np.asarray(density * np.expm1(np.log1p(crossed) - n * math.log1p(2 * q + 2 * q**4)))


def convolved(n: int) -> Float64:
    """r(y) for σ² = 1 by convolving n laws: good to 1e-16 absolutely."""
    one = np.exp(-(np.arange(-12, 13) ** 2) / 2)
    one /= one.sum()
    law = np.ones(1)
    for _ in range(n):
        law = np.convolve(law, one)
    y = np.arange(min(len(residuals(1, n)), 12 * n))
    return np.asarray(law[12 * n + y] - (np.exp(-(y**2) / (2 * n)) / math.sqrt(2 * math.pi * n)))


def rounded_up(value: float) -> float:
    """One digit, as bounds are printed."""
    unit = 10.0 ** math.floor(math.log10(value))
    return float(f"{math.ceil(value / unit) * unit:.0e}")


def main() -> Study:
    """The bound of the paper, and the residual itself."""
    rows = []
    lines = []
    ratios = []
    for sigma2, printed in PRINTED.items():
        for n, shown in zip(FOLDS, printed, strict=True):
            ours = bound(sigma2, n)
            largest = np.abs(residuals(sigma2, n)).max()
            what = f"bound, n = {n}, σ² = {sigma2}"
            rows.append(Row(what, shown, rounded_up(ours), reason=ODD.get((n, sigma2), "")))
            lines.append([n, sigma2, shown, ours, largest])
            ratios.append(ours / largest)
    for n in FOLDS:
        ours = bound(16, n)
        rows.append(Row(f"bound, n = {n}, σ² = 16", 1e-100, ours, reason="printed: ≪ 1e-100"))
        lines.append([n, 16, "≪ 1e-100", ours, np.abs(residuals(16, n)).max()])
    rows += [
        Row("the same, n = 10, σ² = 5 (Fact C.1)", 2.57e-37, bound(5, 10),
            reason="an upper bound of the sum in the paper; ours is the sum"),
        Row("tail beyond 20 deviations, e^-200", 1.4e-87, math.exp(-200), reason="two digits, up"),
    ]  # fmt: skip
    gaps = []
    for n in FOLDS:
        law = convolved(n)
        own = residuals(1, n)
        gaps.append(np.abs(law - own[: len(law)]).max() / np.abs(own).max())
    text = TEXT.format(
        agree=max(gaps),
        found=markdown(
            "n | σ² | bound, paper | bound, ours | the residual itself", lines, " |  | .0e | .2e"
        ),
        least=min(ratios),
        most=max(ratios),
    )
    return Study("Su, Table 2", "The residual of the lattice approximation", text, rows)
