"""A picture of a profile: δ(ε) and the trade-off curve, beside the loose figures."""

import math
import textwrap
from pathlib import Path

import numpy as np

from hedgerow.errors import BudgetError
from hedgerow.picture import BLUE, RED, figure_for, open_axes
from hedgerow.privacy.profile import Profile

EXACT, LOOSE = BLUE, RED
LETTERS_A_LINE = 150


def epsilon_grid(profile: Profile, points: int = 60) -> list[float]:
    """ε from 0 to where δ(ε) is below 1e-15, for tables and pictures."""
    last = profile.epsilon("1e-15")
    if not math.isfinite(last):
        last = 2 * profile.epsilon("0.5") + 10
    return [float(epsilon) for epsilon in np.linspace(0, max(last, 1e-3), points)]


def picture_of_profile(profile: Profile, path: Path, stated: str) -> None:
    """Draw ε against δ, tight and by the loose conversions, and the trade-off curve.

    Args:
        profile: of the composition.
        path: PNG, SVG or PDF.
        stated: whom the curves protect and how well, which stands above them: of a release its
            whole promise.

    Raises:
        BudgetError: matplotlib is not installed, or the file cannot be written.
    """
    with figure_for(path, (11, 4.4), BudgetError) as figure:
        figure.suptitle(textwrap.fill(stated, LETTERS_A_LINE), fontsize=8, parse_math=False)
        curve, trade = figure.subplots(1, 2)
        grid = epsilon_grid(profile)
        curve.semilogy(
            grid,
            [max(profile.delta(e), 1e-18) for e in grid],
            color=EXACT,
            label="exact" if profile.is_exact else "proved bound",
        )
        if profile.rho is not None:
            deltas = np.logspace(-15, -2, 30)
            for label, style, ask in (
                ("from ρ, optimally", "--", profile.zcdp_epsilon),
                ("from ρ, as the Bureau", ":", profile.bureau_epsilon),
            ):
                curve.semilogy(
                    [ask(float(d)) for d in deltas], deltas, style, color=LOOSE, label=label
                )
        curve.set(xlabel="ε", ylabel="δ(ε)", ylim=(1e-15, 1))
        curve.legend(frameon=False)
        alphas = np.linspace(0, 1, 51)
        trade.plot(alphas, profile.tradeoff_curve(alphas.tolist()), color=EXACT)
        trade.plot([0, 1], [1, 0], color="grey", linewidth=0.8)
        trade.set(
            xlabel="type I error α", ylabel="least type II error T(α)", xlim=(0, 1), ylim=(0, 1)
        )
        for axes in (curve, trade):
            open_axes(axes)
