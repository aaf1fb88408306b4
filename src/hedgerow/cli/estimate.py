"""The command `estimate`: noisy counts estimated again, at no privacy cost."""

from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from hedgerow.cli.terminal import escape, stage, stdout
from hedgerow.errors import ReleaseError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.families.registry import ESTIMATORS, read_estimator
from hedgerow.plan.describe import aligned
from hedgerow.release.directory.measurements import COUNT, ESTIMATE, STANDARD_ERROR
from hedgerow.release.directory.output import check_output
from hedgerow.release.preflight import usual_method
from hedgerow.release.reestimate.reestimate import (
    RELEASED,
    Estimates,
    estimate_measurements,
    reestimate,
)
from hedgerow.release.release import read_release
from hedgerow.spec.measurement_file import read_measurements

HEADINGS = (
    "depth",
    "cuboid",
    "rows",
    "total",
    "mean standard error",
    "differs from the release by",
)


def estimate(
    source: Annotated[
        Path,
        typer.Argument(metavar="DIR|FILE", help="A release directory, or a measurement file."),
    ],
    method: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(ESTIMATORS)}; euclidean unless given, isotonic for running sums."
        ),
    ] = None,
    penalty: Annotated[
        float | None, typer.Option(help="Of sparse: what a positive count costs, in variances.")
    ] = None,
    combine: Annotated[
        bool | None,
        typer.Option("--combine/--no-combine", help="Whether depths are combined first."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Where the estimates go; else beside the source.")
    ] = None,
) -> None:
    """Estimate noisy counts again, side by side with what was there; it costs no privacy.

    The source is a release directory, which stays as it is, or a TOML file that describes noisy
    counts from elsewhere (see hedgerow.release.reestimate.external for their layout).
    """
    if method is None:
        method = Euclidean.name
        if source.is_dir():
            method = usual_method(read_release(source).plan.measure)
    given: dict[str, Any] = {"method": method, "penalty": penalty, "combine": combine}
    with_values = {name: value for name, value in given.items() if value is not None}
    chosen = read_estimator(with_values)
    place = output or _beside(source, method)
    _check_place(place)
    with stage("estimating"):
        made = _estimates(source, chosen)
    made.write(place)
    stdout.print(f"\n{escape(made.described['claim'].capitalize())}.\n")
    rows = [_row(made, t, frame) for t, frame in enumerate(made.frames)]
    stdout.print(escape(aligned([HEADINGS, *rows])))
    stdout.print(f"\nEstimates: {escape(str(place))}")


def _beside(source: Path, method: str) -> Path:
    """Return where estimates go that nobody named a place for."""
    named = source.resolve() if source.name in {"", ".."} else source
    if not named.name:
        raise ReleaseError(f"there is no place beside {str(source)!r}; name one with --output")
    return named.with_name(f"{named.stem}.{method}")


def _check_place(place: Path) -> None:
    """Refuse a place that is taken, or that lies within a release."""
    try:
        check_output(place)
    except ReleaseError as error:
        raise ReleaseError(str(error).replace("[output] directory", "--output", 1)) from None


def _estimates(source: Path, method: Estimator) -> Estimates:
    if source.is_dir():
        return reestimate(source, method)
    return estimate_measurements(read_measurements(source), method)


def _row(made: Estimates, depth: int, frame: pl.DataFrame) -> tuple[str, ...]:
    value = COUNT if COUNT in frame.columns else ESTIMATE
    differs = ""
    if RELEASED in frame.columns:
        difference = _mean((frame[value] - frame[RELEASED]).abs())
        differs = f"{difference:,.3g} on average"
    return (
        str(depth),
        made.tree.cuboid_name(depth),
        f"{len(frame):,}",
        f"{frame[value].sum():,.0f}",
        f"{_mean(frame[STANDARD_ERROR]):,.4g}",
        differs,
    )


def _mean(values: pl.Series) -> float:
    known = values.drop_nulls().to_numpy()
    return float(known.mean()) if len(known) else 0.0
