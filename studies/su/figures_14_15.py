"""Su et al., Figures 14 and 15: by how much the exact ε is smaller, over δ."""

import numpy as np

from hedgerow.arrays import Float64
from studies.page import Row, Study, drawn, markdown
from studies.showing import PAPER, panels, save
from studies.su.census import LEVELS, both, deltas, gained

DELTAS = ("1e-15", "1e-13", "1e-11", "1e-9", "1e-7", "1e-5", "1e-3")
COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")
TEXT = """The Bureau's ε less the exact one, and that in percent of the Bureau's, for every level
over δ. The paper prints no number in the figures but says that the improvement gets better as δ
becomes larger. From δ = 1e-15 to 1e-3 it does at every level, by the last rows below. It is not
quite steady: at {wavering} the exact curve's kinks (one an atom of the loss) let it fall back for
a moment, by at most {drop:.3f} of ε and {fall:.2f} percentage points.

Percent:

{table}

Difference of ε:

{differences}
"""


def setback(figures: Float64) -> float:
    """By how much figures, listed from the largest δ down, are ever below what they once were."""
    rising = figures[::-1]
    return float((np.maximum.accumulate(rising) - rising).max())


def main() -> Study:
    """Differences and percentages over a grid of δ."""
    at = {}
    setbacks = {}
    more = []
    figure, axes = panels(2, size=(5, 4.2))
    for level, colour in zip(LEVELS, COLOURS, strict=True):
        profile = level.profile()
        rho = float(level.rho)
        exact = np.linspace(profile.epsilon("1e-2"), profile.epsilon("1e-16"), 300)
        delta = deltas(profile, exact)
        dashed = "--" if level.name == "Tract subset group" else "-"
        found = gained(rho + 2 * np.sqrt(-rho * np.log(delta)), exact)
        for one, figures in zip(axes, found, strict=True):
            one.semilogx(delta, figures, dashed, color=colour, label=level.name)
        setbacks[level.name] = [setback(figures) for figures in found]
        at[level.name] = gained(*np.array([both(profile, d) for d in DELTAS]).T)
        more += [
            drawn(f"{level.name}: {what} from δ = 1e-15 to 1e-3", grown[-1] - grown[0],
                  "claimed to grow")
            for what, grown in zip(("growth of the difference of ε", "growth of %"),
                                   at[level.name], strict=True)
        ]  # fmt: skip
    axes[1].plot([1e-11, 1e-11], [8.50, 13.76], label="printed in Section 3.1", **PAPER)
    axes[0].set(xlabel="δ", ylabel="the Bureau's ε - exact ε (Figure 14)")
    axes[1].set(xlabel="δ", ylabel="% of the Bureau's ε (Figure 15)")
    axes[1].legend(fontsize=7)
    rows = [
        Row(f"{name}: % at δ = 1e-11 (Section 3.1)", paper, at[name][1][DELTAS.index("1e-11")])
        for name, paper in (("State", 8.50), ("Block", 13.76))
    ]
    differences, table = (
        markdown(["level", *DELTAS], [[name, *found[k]] for name, found in at.items()])
        for k in (0, 1)
    )
    drop, fall = map(max, zip(*setbacks.values(), strict=True))
    text = TEXT.format(
        wavering=", ".join(name for name, (drop, _) in setbacks.items() if drop > 1e-4),
        drop=drop, fall=fall, table=table, differences=differences,
    )  # fmt: skip
    picture = save(figure, "su-figures_14_15")
    return Study("Su, Figures 14 and 15", "Improvement of ε over δ", text, rows + more, [picture])
