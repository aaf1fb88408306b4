"""Su et al., Figure 4: the trade-off functions of the eight levels."""

import time

import numpy as np
from matplotlib.axes import Axes

from studies.page import Row, Study, markdown
from studies.showing import save
from studies.su.census import LEVELS, Level, bureau_tradeoff, crossing, exact_tradeoff
from studies.su.showing import BUREAU, EXACT, REDUCED, eight_panels

ALPHA = 0.05
TEXT = """The least type II error T(α) of any test that tells two neighbouring censuses apart from
one level's ten queries: the curve implied by the Bureau's (ε, δ), the exact curve of the same
noise, and that of the reduced noise of Table 1. The exact curve is the polygon through its knots,
one for each atom of the privacy loss.

The paper prints no number here. Its claims: exact above the Bureau's everywhere, and with reduced
noise above it too except in very small regions near the ends. Both are true. The regions are α
below the figure in the last column (and, the curve being symmetric, T below it): no test of
practical size is affected.

{table}

All 16 exact curves took {seconds:.2f} s; `Profile.tradeoff` gives single points with a proved
bound.
"""


def main() -> Study:
    """The curves, T(0.05), and where reduced noise goes below the Bureau's curve."""
    reduced = {level: level.profile(level.factor) for level in LEVELS}
    drawn = time.perf_counter()
    same = {level: exact_tradeoff(level.profile()) for level in LEVELS}
    less = {level: exact_tradeoff(profile) for level, profile in reduced.items()}
    drawn = time.perf_counter() - drawn
    alphas = np.linspace(0, 1, 301)
    stated = {level: bureau_tradeoff(level.rho, alphas) for level in LEVELS}
    rows, lines = [], []
    for level in LEVELS:
        name = level.name
        bureau = float(bureau_tradeoff(level.rho, np.array([ALPHA]))[0])
        exact, lower = level.profile().tradeoff(ALPHA), reduced[level].tradeoff(ALPHA)
        gap = (np.interp(alphas, *same[level]) - stated[level])[1:-1].min()
        near = crossing(level.rho, reduced[level])[1]
        inside = (alphas > near) & (stated[level] > near)
        kept = (np.interp(alphas, *less[level]) - stated[level])[inside].min()
        rows += [
            Row(
                f"{name}: T(0.05), same noise, above the Bureau's",
                None,
                exact - bureau,
                reason="curve, no number printed: claimed to be above 0",
            ),
            Row(
                f"{name}: T(0.05), reduced noise, above the Bureau's",
                None,
                lower - bureau,
                reason="curve, no number printed: claimed to be above 0",
            ),
        ]
        lines.append([name, bureau, lower, exact, f"{gap:.1e}", f"{kept:.1e}", f"{near:.1e}"])

    def draw(axes: Axes, level: Level) -> None:
        axes.plot(alphas, stated[level], label="Bureau", **BUREAU)
        axes.plot(*same[level], label="exact, same noise", **EXACT)
        axes.plot(*less[level], label="exact, reduced noise (Table 1)", **REDUCED)
        axes.set(xlim=(0, 1), ylim=(0, 1))

    table = markdown(
        [
            "level",
            "T(0.05), Bureau",
            "exact, reduced noise",
            "exact, same noise",
            "least gap, same noise",
            "least gap, reduced, but for the ends",
            "ends: α below",
        ],
        lines,
    )
    picture = save(eight_panels(draw, "type I error α", "type II error T(α)"), "su-figure_4")
    text = TEXT.format(table=table, seconds=drawn)
    return Study("Su, Figure 4", "Trade-off functions of each level", text, tuple(rows), (picture,))
