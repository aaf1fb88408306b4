"""The option `--beside`: the same table under what offices do today, a column a method."""

from collections.abc import Callable, Sequence
from textwrap import fill
from typing import Annotated

from typer import Option

from hedgerow.cli.terminal import say, stage, stdout
from hedgerow.evaluate.method import Setting
from hedgerow.evaluate.practice.figures import (
    ADDED,
    PUBLISHED,
    WIDTH,
    OneRelease,
    beside,
    beside_tables,
)
from hedgerow.evaluate.practice.practice import Practice
from hedgerow.noise.bits import Bits
from hedgerow.plan.describe import aligned
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
    "Means over the cells above 0. A cell without a number counts as 0 in sums. Rounding and cell "
    "keys treat every cell for itself, with a key that stays; nothing but Hedgerow limits what "
    "everything that is published tells together. Cells of 1 to 9 are found out by who rounds the "
    "published number, the weighted mean of what the published tables tell by differences, or the "
    "mean difference of sums of other cells with the cell and without it."
)


def show_beside(
    counts: Counts,
    own: Setting | OneRelease,
    practice: Sequence[Practice],
    bits: Callable[[int], Bits],
    about: str,
    runs: int = 1,
) -> None:
    """Print the figures of `hedgerow.evaluate.practice.figures.beside`, Hedgerow's first."""
    plan = own.plan
    with stage("doing what offices do today"):
        frame = beside(counts, [own, *practice], plan, bits, runs)
    for group in frame["group"].unique(maintain_order=True):
        unit = f", in {unit_of(plan)}" if group in {PUBLISHED, ADDED} else ""
        say(f"{group}{unit} ({about}):\n")
        say("\n\n".join(map(aligned, beside_tables(frame, group))) + "\n")
    stdout.print(f"{fill(NOTES, WIDTH)}\n")
