"""Small releases of incomes beside places, with their pages, and what is true of them."""

import geopandas
import numpy as np
import polars as pl
import shapely

import hedgerow as hr
from tests.made import all_leaves
from tests.release.made_pages import written

SIDE, HIGH = 4, 80_000
RANKS, LEVELS = (0.25, 0.5, 0.75), (90, 95, 99)


def places(name="place"):
    """Towns by twos in counties."""
    towns = [f"{x}{y}" for x in range(SIDE) for y in range(SIDE)]
    frame = pl.DataFrame({"county": [town[0] for town in towns], "town": towns})
    columns = [f"{name}_{level}" for level in frame.columns]
    return hr.Axis.from_frame(name, frame, frame.columns, columns=columns)


def mapped(folder):
    """The same, each a square of a map."""
    boxes = [shapely.box(x, y, x + 1, y + 1) for x in range(SIDE) for y in range(SIDE)]
    axis, path = places(), folder / "towns.geojson"
    codes = axis.labels[-1].to_list()
    geopandas.GeoDataFrame({"town": codes}, geometry=boxes, crs="EPSG:3035").to_file(path)
    return axis.with_shapes(path, "town")


def incomes(low=0, factors=(4, 4)):
    bins = int(np.prod(factors))
    return hr.numeric_axis(hr.Ranges.equal_width("income", low, low + HIGH, bins), factors)


def people(tree, most=1500):
    """A table in which each town has its own number of people and median."""
    towns, bins = SIDE**2, tree.axes[numeric(tree)].leaves
    rng = np.random.default_rng(7)
    cells = np.zeros((towns, bins), dtype=np.int64)
    for town, n in enumerate(rng.permutation(np.geomspace(30, most, towns)).astype(int)):
        values = rng.lognormal(np.log(18_000 + 2_000 * town), 0.5, n)
        at = np.minimum(values / HIGH * bins, bins - 1).astype(int)
        cells[town] = np.bincount(at, minlength=bins)
    if len(tree.axes) == 3:  # halves, of which one is a record larger
        cells = np.stack([cells // 2, cells - cells // 2], axis=1)
    return all_leaves(tree, (cells.T if numeric(tree) == 0 else cells).ravel())


def numeric(tree):
    return [axis.name for axis in tree.axes].index("income")


def trees(folder):
    """By kind a tree and its workload."""
    sexes = hr.Axis.from_frame("sex", {"sex": ["f", "m"]}, ["sex"])
    steps = ["place.county", "place.town", "income.bins_4", "income.bin"]
    yield "cube", hr.Tree([mapped(folder), incomes()]), hr.Cube()
    yield "chain", hr.Tree([places(), incomes()], steps), hr.Chain()
    yield "income first", hr.Tree([incomes(), places()]), hr.Cube()
    yield "three axes", hr.Tree([places(), sexes, incomes()]), hr.Cube()
    yield "below 0", hr.Tree([mapped(folder), incomes(low=-HIGH)]), hr.Cube()


def released(folder, **options):
    """By kind a release with its page."""
    return {
        kind: written(folder / kind, people(tree), budget=hr.Rho("1/4"), workload=workload,
                      measure=hr.All(), seed=5, **options)
        for kind, tree, workload in trees(folder)
    }  # fmt: skip


def quartiles(made, levels, level=95):
    """The quartiles of listed cells of a cuboid by the release itself: of each rank a frame."""
    tree, sure = made.tree, hr.Confidence(level / 100)
    by = {axis.name: axis.levels[k - 1] for axis, k in zip(tree.axes, levels, strict=True) if k}
    told = made.release.quantiles("income", RANKS, by=by, confidence=sure)
    return [told.filter((pl.col("quantile") == rank) & (pl.col("count") > 0)) for rank in RANKS]


def words(value):
    """A value on a page: bins are thousands wide."""
    return f"{value:,.0f}"
