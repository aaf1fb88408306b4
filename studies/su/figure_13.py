"""Su et al., Figure 13: the county level's trade-off functions, near the end."""

import math
from fractions import Fraction

import numpy as np

from studies.page import Study, drawn
from studies.showing import panels, save
from studies.su.census import LEVEL, bureau_delta, crossing, deltas, power
from studies.su.showing import BUREAU, EXACT, PEER, REDUCED

DEPTH = 150.0
TEXT = """The trade-off functions of the county level where they cross: drawn is 1 - T(α), how
often the best test of type I error α finds a person, over what the Bureau's curve allows. (The
paper draws T(α) itself on small windows, and prints no number.) Below 1 is the better guarantee.

With the reduced noise of Table 1 ({percent:.2f} % less), the exact curve is better than the
Bureau's for every α above {near:.1e}, where the best test finds {finds:.1e}; below, it is worse:
the reversal that the paper points at. The caption says that the noise is reduced by 8.59 % (the
figure of all levels together, while the text speaks of Table 1). With that, the reversal is at α =
{far:.0e}: too small to draw.
"""


def main() -> Study:
    """Where the curves cross, and a picture of it."""
    county = LEVEL["County"]
    small = Fraction(859, 10_000)
    rho = county.rho
    factor = county.factor
    _, near = crossing(rho, county.profile(factor))
    _, far = crossing(rho, county.profile(1 - small), DEPTH)
    alphas = np.geomspace(1e-16, 1e-1, 150)
    epsilon = np.linspace(0, 40, 6000)
    exactly = np.linspace(-2, 14, 1500)
    stated = power(epsilon, bureau_delta(rho, epsilon), alphas)
    figure, (axes,) = panels(size=(6, 4.2))
    axes.semilogx(alphas, np.ones_like(alphas), label="Bureau", **BUREAU)
    for name, (cut, style) in {
        "same noise": (Fraction(0), EXACT),
        "8.59 % less (caption)": (small, PEER),
        "17.58 % less (Table 1)": (1 - factor, REDUCED),
    }.items():
        found = power(exactly, deltas(county.profile(1 - cut), exactly), alphas)
        axes.semilogx(alphas, found / stated, label=f"exact, {name}", **style)
    axes.axvline(near, color="grey", linewidth=0.6)
    axes.set(xlabel="type I error α", ylabel="1 - T(α), over the Bureau's")
    rows = [
        drawn("County: reduced noise of Table 1 is worse than the Bureau's below α", near,
              "claimed to be a very small region near the ends"),
        drawn("County: noise reduced by 8.59 % is worse than the Bureau's below α", far,
              "the caption's reduction, too small a region to draw"),
    ]  # fmt: skip
    finds = math.exp(np.interp(math.log(near), np.log(alphas), np.log(stated)))
    text = TEXT.format(percent=100 * float(1 - factor), near=near, finds=finds, far=far)
    picture = save(figure, "su-figure_13")
    return Study("Su, Figure 13", "Trade-off of the county level, ends", text, rows, [picture])
