"""Su et al., Figure 2: the (ε, δ) curves of the eight levels, the Bureau's and the exact ones."""

import numpy as np

from studies.dp_accounting_peer import peer
from studies.page import Study, drawn, markdown, timed
from studies.showing import save
from studies.su.census import LEVELS, bureau_delta, deltas, uses
from studies.su.showing import ABOVE, BUREAU, EXACT, PEER, level_panels

SMALLEST = 1e-30
POINTS = 120
TEXT = """δ against ε for the ten queries of each level: the Bureau's conversion of ρ and the
exact curve, and dp-accounting (connect the dots, grid 1e-3) in the same picture. The paper prints
no number in this figure; what it claims is that the exact ε is below the Bureau's for every δ, and
that the exact δ is below 1 at ε = 0.

Both hold at every level, down to δ = {smallest:g} at which we looked. {lines} values of δ(ε), each
with proved bounds, took {ours:.2f} s. dp-accounting's eight compositions took {theirs:.2f} s: its
ε at δ = 1e-11 is {best:.2g} to {worst:.2g} above the exact one, and its curves end near δ = 1e-15,
where it cuts off tails.

{table}
"""


def main() -> Study:
    """All curves, the smallest gap, and δ at ε = 0."""
    profiles = {level: level.profile() for level in LEVELS}
    grids = {
        level: np.linspace(0, profile.bureau_epsilon(str(SMALLEST)), POINTS)
        for level, profile in profiles.items()
    }
    ours, curves = timed(lambda: {level: deltas(profiles[level], grids[level]) for level in LEVELS})
    theirs, peers = timed(lambda: {level: peer(uses(levels=[level]), 1e-3) for level in LEVELS})
    figure, axes = level_panels("ε", "δ")
    claim = "the paper claims that it is below 1"
    rows = []
    lines = []
    ratios = []
    for level, delta in curves.items():
        profile = profiles[level]
        epsilon = grids[level]
        panel = axes[level]
        bureau = bureau_delta(level.rho, epsilon)
        above = peers[level].get_epsilon_for_delta(1e-11)
        ratios.append((delta / bureau).max())
        rows.append(drawn(f"{level.name}: δ at ε = 0", delta[0], claim))
        lines.append((level.name, profile.bureau_epsilon("1e-11"), above, profile.epsilon("1e-11")))
        panel.semilogy(epsilon, bureau, label="Bureau", **BUREAU)
        panel.semilogy(epsilon, delta, label="exact (paper's blue; ours)", **EXACT)
        shown = np.maximum(peers[level].get_delta_for_epsilon(epsilon), SMALLEST)
        panel.semilogy(epsilon, shown, label="dp-accounting", **PEER)
        panel.set_ylim(SMALLEST, 3)
    assert max(ratios) < 1
    what = "largest ratio of the exact δ to the Bureau's, all levels and ε"
    rows.append(drawn(what, max(ratios), claim))
    gaps = [above - exact for *_, above, exact in lines]
    text = TEXT.format(
        smallest=SMALLEST,
        lines=len(LEVELS) * POINTS,
        ours=ours,
        theirs=theirs,
        best=min(gaps),
        worst=max(gaps),
        table=markdown("level | ε at 1e-11, Bureau | dp-accounting | exact", lines),
    )
    picture = save(figure, "su-figure_2", **ABOVE)
    return Study("Su, Figure 2", "(ε, δ) of each level", text, rows, [picture])
