"""The results of a simulation in words and as a file that says what it is."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from hedgerow.errors import ReleaseError, machine_errors
from hedgerow.evaluate.simulate import METRICS
from hedgerow.release.manifest import MANIFEST

SHARES = tuple(name for name in METRICS if name.endswith("rate") or name.startswith("relative"))
"""Metrics that are read as percentages."""

WORDS = {
    "rmse": "RMSE (records)",
    "cumulative_rmse": "RMSE of cumulative counts (records)",
    "max_error": "Maximum error (records)",
    "mae": "Mean absolute error (records)",
    "bias2": "Bias² (records²)",
    "variance": "Variance (records²)",
    "false_discovery_rate": "False discovery rate",
    "false_negative_rate": "False negative rate",
    "total_variation": "Total variation distance",
    "seconds": "Seconds a run",
    **{
        name: f"Relative error of counts from {name.removeprefix('relative_error_')}".replace(
            "_", " "
        )
        for name in METRICS
        if name.startswith("relative_error")
    },
}
"""Metric → its heading."""

NOTICE = (
    "Simulation on a public or synthetic table under a seed. Not a release: the noise can be drawn "
    "again by anyone and protects nobody."
)


def metric_rows(errors: pl.DataFrame, metric: str) -> list[tuple[str, ...]]:
    """A table of one metric: settings by depth, ± the Monte Carlo error, * at a depth's least.

    Args:
        errors: of `hedgerow.evaluate.simulate.simulate`.
        metric: one of its columns.
    """
    depths = errors["depth"].unique().sort().to_list()
    if metric == "seconds":  # of a run, which is all depths
        depths = depths[-1:]
    value = pl.col(metric)
    ranges = errors.group_by("depth").agg(value.min().alias("least"), value.max().alias("most"))
    marked = metric != "bias2"  # of which the least is no better than one near 0
    least = {t: low if marked and low != high else None for t, low, high in ranges.rows()}
    rows: list[tuple[str, ...]] = [
        ("", "setting", *(str(t) if metric != "seconds" else "" for t in depths))
    ]
    for (name,), part in errors.group_by(["setting"], maintain_order=True):
        by_depth = {row["depth"]: row for row in part.iter_rows(named=True)}
        shown = (_shown(by_depth[t], metric, least[t]) for t in depths)
        rows.append(("", str(name), *shown))
    return rows


def _shown(row: Mapping[str, float | None], metric: str, least: float | None) -> str:
    value, error = row[metric], row[f"{metric}_error"]
    if value is None or error is None:
        return "-"
    mark = "*" if value == least and (value or error) else " "
    if metric in SHARES:
        return f"{value:.1%} ±{error:.1%}{mark}"
    digits = _digits(value, error)
    return f"{value:,.{digits}f} ±{error:,.{digits}f}{mark}" if error else f"{value:,.4g} {mark}"


def _digits(value: float, error: float) -> int:
    """Digits behind the point that show two of the error, or three of a value that is surer."""
    known = [x for x in (error, abs(value) / 10) if x > 0 and math.isfinite(x)]
    return min(max(0, 1 - math.floor(math.log10(min(known)))), 9) if known else 0


def check_place(path: Path | None, *, suffix: str, force: bool) -> None:
    """Nothing, if a file may be written there.

    Raises:
        ReleaseError: it has another suffix, its folder is not there or a release, or it exists.
    """
    if path is None:
        return
    what = f"cannot write {str(path)!r}"
    if path.suffix.lower() != suffix:
        raise ReleaseError(f"{what}: its name must end in {suffix}")
    if not path.parent.is_dir():
        raise ReleaseError(f"{what}: its folder is not there; make it first")
    for folder in path.resolve().parents:
        if (folder / MANIFEST).exists():
            raise ReleaseError(f"{what}: it would lie within the release {str(folder)!r}")
    if path.is_dir() or (path.exists() and not force):
        raise ReleaseError(f"{what}: it exists; choose another name, or overwrite with --force")


def write_simulation(errors: pl.DataFrame, path: Path, facts: Mapping[str, object]) -> None:
    """Write the results as Parquet, which appears whole; its metadata says that it simulates.

    Args:
        errors: of `hedgerow.evaluate.simulate.simulate`.
        path: where.
        facts: further metadata, as JSON under the key ``hedgerow``.

    Raises:
        MachineError: it cannot be written.
    """
    described = json.dumps({"kind": "simulation", "notice": NOTICE, **facts}, ensure_ascii=False)
    table = errors.to_arrow().replace_schema_metadata({"hedgerow": described})
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with machine_errors(f"writing {str(path)!r}"):
        try:
            pq.write_table(table, part)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def legend(errors: pl.DataFrame) -> str:
    """What the depths are."""
    depths = errors.select("depth", "cuboid", "cells").unique(maintain_order=True).sort("depth")
    rows: Sequence[tuple[int, str, float]] = depths.rows()
    width = max(len(name) for _, name, _ in rows)
    return "\n".join(f"{t:>5}  {name:<{width}}  {cells:,.0f} cells" for t, name, cells in rows)
