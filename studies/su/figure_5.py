"""Su et al., Figure 5: (ε, δ) with reduced noise beside the Bureau's with all of it."""

import numpy as np

from studies.page import Row, Study, markdown
from studies.showing import save
from studies.su.census import bureau_delta, crossing, deltas
from studies.su.showing import ABOVE, BUREAU, REDUCED, level_panels

MATCHED = 1e-11
DELTAS = ("1e-11", "1e-5", "1e-20")
KINKS = "the exact δ(ε) has a kink at each atom of the loss and meets the Bureau's several times"
TEXT = """δ against ε: the Bureau's conversion for its own noise, and the exact curve for the
reduced noise of [Table 1](su-table_1.md). (The caption speaks of trade-off functions; text and
axes are (ε, δ).) The paper says that each pair crosses at δ = 1e-11, and that above it the exact ε
is the smaller. At the US, county and block levels it does. At the other five the exact curve has
visible kinks, one at each atom of the loss (a step of 1/σ²), and meets the Bureau's several times,
up to δ = {highest:.1e} at the state level; ε is never more than {excess:.4f} above the Bureau's
there, so nothing of substance changes. Below δ = 1e-11 the reduced noise costs more than the
Bureau states, as the paper says: at δ = 1e-20 by the figure in the last column.

{table}
"""


def main() -> Study:
    """The curves, and where they cross."""
    figure, axes = level_panels("ε", "δ")
    rows = []
    lines = []
    excess = []
    for level, panel in axes.items():
        full = level.profile()
        reduced = level.profile(level.factor)
        delta, _ = crossing(level.rho, reduced)
        pairs = [(full.bureau_epsilon(d), reduced.epsilon(d)) for d in DELTAS]
        over = pairs[-1][1] / pairs[-1][0] - 1
        lines.append([level.name, *pairs[0], *pairs[1], f"{100 * over:.1f} %"])
        kinked = delta > 1.01 * MATCHED
        what = f"{level.name}: the reduced noise is worse than stated from which δ downwards"
        rows.append(Row(what, MATCHED, delta, reason=KINKS if kinked else ""))
        if kinked:
            above = np.geomspace(MATCHED, 3 * MATCHED, 9).tolist()
            excess += [reduced.epsilon(d) - full.bureau_epsilon(d) for d in above]
        epsilon = np.linspace(0, pairs[-1][0], 120)
        exact = deltas(reduced, epsilon)
        panel.semilogy(epsilon, bureau_delta(level.rho, epsilon), label="Bureau", **BUREAU)
        panel.semilogy(epsilon, exact, label="exact, reduced noise (paper's; ours)", **REDUCED)
        panel.axhline(MATCHED, color="grey", linewidth=0.6, label="δ = 1e-11")
        panel.set_ylim(float(DELTAS[-1]), 3)
    columns = [f"ε at {d}, {who}" for d in DELTAS[:2] for who in ("Bureau", "reduced")]
    text = TEXT.format(
        table=markdown(["level", *columns, "ε at 1e-20 above"], lines),
        highest=max(row.ours for row in rows),
        excess=max(excess),
    )
    picture = save(figure, "su-figure_5", **ABOVE)
    return Study("Su, Figure 5", "(ε, δ) with reduced noise", text, rows, [picture])
