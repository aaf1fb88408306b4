"""Su et al., Figure 4: the trade-off functions of the eight levels."""

import numpy as np

from studies.page import Study, drawn, markdown, timed
from studies.showing import save
from studies.su.census import LEVELS, bureau_tradeoff, crossing, exact_tradeoff
from studies.su.showing import ABOVE, BUREAU, EXACT, REDUCED, level_panels

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
    profiles = {level: (level.profile(), level.profile(level.factor)) for level in LEVELS}
    seconds, curves = timed(
        lambda: {level: [*map(exact_tradeoff, both)] for level, both in profiles.items()}
    )
    figure, axes = level_panels("type I error α", "type II error T(α)")
    alphas = np.linspace(0, 1, 301)
    rows = []
    lines = []
    for level, both in profiles.items():
        stated = bureau_tradeoff(level.rho, alphas)
        panel = axes[level]
        bureau = np.interp(ALPHA, alphas, stated)
        tradeoffs = [profile.tradeoff(ALPHA) for profile in both]
        gaps = [np.interp(alphas, *curve) - stated for curve in curves[level]]
        near = crossing(level.rho, both[1])[1]
        rows += [
            drawn(f"{level.name}: T(0.05), {noise} noise, above the Bureau's", found - bureau,
                  "claimed to be above 0")
            for noise, found in zip(("same", "reduced"), tradeoffs, strict=True)
        ]  # fmt: skip
        least = gaps[0][1:-1].min(), gaps[1][(alphas > near) & (stated > near)].min()
        lines.append([level.name, bureau, *tradeoffs[::-1], *least, near])
        panel.plot(alphas, stated, label="Bureau", **BUREAU)
        panel.plot(*curves[level][0], label="exact, same noise", **EXACT)
        panel.plot(*curves[level][1], label="exact, reduced noise (Table 1)", **REDUCED)
        panel.set(xlim=(0, 1), ylim=(0, 1))
    heads = (
        "level | T(0.05), Bureau | exact, reduced noise | exact, same noise | "
        "least gap, same noise | least gap, reduced, but for the ends | ends: α below"
    )
    table = markdown(heads, lines, " |  |  |  | .1e")
    text = TEXT.format(table=table, seconds=seconds)
    picture = save(figure, "su-figure_4", **ABOVE)
    return Study("Su, Figure 4", "Trade-off functions of each level", text, rows, [picture])
