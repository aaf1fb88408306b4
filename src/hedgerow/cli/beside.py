"""The option `--beside`: the same table under what offices do today, a column a method."""

from collections.abc import Callable, Sequence
from textwrap import fill
from typing import Annotated

from typer import Option

from hedgerow.cli.terminal import say, stage
from hedgerow.columns import WIDTH, aligned
from hedgerow.evaluate.method import Setting
from hedgerow.evaluate.practice.figures import (
    ADDED,
    PUBLISHED,
    OneRelease,
    beside,
    beside_rows,
)
from hedgerow.evaluate.practice.practice import Practice
from hedgerow.noise.bits import Bits
from hedgerow.plan.picture import unit_of
from hedgerow.tables.counts import Counts

Methods = Annotated[
    str | None,
    Option(
        "--beside",
        metavar="METHOD:VALUE,…",
        help="Show the same table under what offices do today: rounding:BASE, "
        "random-rounding:BASE, suppression:LEAST, cell-key:FILE (a table of perturbation that R's "
        "ptable exported), by commas.",
    ),
]

NOTES = (
    "Means and shares are of the cells above 0. A cell without a number counts as 0 in sums. "
    "Rounding and cell keys treat each cell for itself, and answer the same question the same way. "
    "An attacker guesses a count by the published number; by the mean of what the published tables "
    "tell, each sum less its other cells; or, where sums made to order are answered, by asking for "
    "sums of other cells with it and without it. A release gives one answer, whatever sums are "
    "asked. A guess is rounded, and is 1 to 9. Hedgerow alone limits what all that is published "
    "tells together."
)


def show_beside(
    counts: Counts,
    own: Setting | OneRelease,
    practice: Sequence[Practice],
    bits: Callable[[int], Bits],
    about: str,
    runs: int = 1,
    *,
    wide: bool,
) -> None:
    """Print the figures of `hedgerow.evaluate.practice.figures.beside`, Hedgerow's first."""
    plan = own.plan
    with stage("doing what offices do today"):
        frame = beside(counts, [own, *practice], plan, bits, runs)
    for group in frame["group"].unique(maintain_order=True):
        unit = f", in {unit_of(plan)}" if group in {PUBLISHED, ADDED} else ""
        say(f"{group}{unit} ({about}):\n")
        say(f"{aligned(beside_rows(frame, group), keys=3, wide=wide)}\n")
    about_them = " ".join(filter(None, [NOTES, *(method.about for method in practice)]))
    say(f"{fill(about_them, WIDTH)}\n")
