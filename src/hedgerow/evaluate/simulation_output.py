"""The results of a simulation in words and as a file that says what it is."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import BinaryIO

import polars as pl
import pyarrow.parquet as pq

from hedgerow.evaluate.simulate import METRICS

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


def write_simulation(errors: pl.DataFrame, file: BinaryIO, facts: Mapping[str, object]) -> None:
    """Write the results as Parquet; its metadata says that it simulates.

    Args:
        errors: of `hedgerow.evaluate.simulate.simulate`.
        file: open for writing.
        facts: further metadata, as JSON under the key ``hedgerow``.
    """
    described = json.dumps({"kind": "simulation", "notice": NOTICE, **facts}, ensure_ascii=False)
    table = errors.to_arrow().replace_schema_metadata({"hedgerow": described})
    pq.write_table(table, file)


def legend(errors: pl.DataFrame) -> str:
    """What the depths are."""
    depths = errors.select("depth", "cuboid", "cells").unique(maintain_order=True).sort("depth")
    rows: Sequence[tuple[int, str, float]] = depths.rows()
    width = max(len(name) for _, name, _ in rows)
    return "\n".join(f"{t:>5}  {name:<{width}}  {cells:,.0f} cells" for t, name, cells in rows)
