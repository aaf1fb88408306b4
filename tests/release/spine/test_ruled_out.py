"""Cells that a rule over several attributes empties: nobody is listed there, with no error."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.execution import in_memory
from tests.made import plain_plan

BLOCKS = pl.DataFrame({"county": ["a", "a", "b"], "block": ["a1", "a2", "b1"]})
KINDS = pl.DataFrame({"sort": ["home", "care", "care"], "kind": ["home", "nursing", "youth"]})
THERE = [("a1", "home"), ("a1", "nursing"), ("a2", "home"), ("b1", "nursing"), ("b1", "youth")]
"""The kinds of each block: a1 has nursing alone of those in care, b1 no home."""
FINEST = "place.block × kind.kind × age.age × race.race"
CUBOIDS = [
    "place.county × kind.kind × age.age", "place.block × kind.sort × age.age",
    "place.block × age.age", f"place.county × {FINEST.partition(' × ')[2]}", FINEST,
]  # fmt: skip


def is_empty(row):
    """Whether facts leave nobody in a cell: of its kind or sort, at its place, of its age."""
    sorts = dict(zip(KINDS["kind"], KINDS["sort"], strict=True))
    blocks = dict(zip(BLOCKS["block"], BLOCKS["county"], strict=True))
    return not any(
        blocks[block] == row.get("county", blocks[block])
        and block == row.get("block", block)
        and kind == row.get("kind", kind)
        and sorts[kind] == row.get("sort", sorts[kind])
        and (kind, row.get("age")) != ("nursing", "minor")
        for block, kind in THERE
    )


@pytest.fixture(scope="module")
def released():
    def attribute(name, frame):
        return hr.Axis.from_frame(name, frame, frame.columns, attribute=True)

    tree = hr.Tree([
        hr.Axis.from_frame("place", BLOCKS, ["county", "block"]),
        attribute("kind", KINDS),
        attribute("age", pl.DataFrame({"age": ["adult", "minor"]})),
        attribute("race", pl.DataFrame({"race": ["x", "y", "z"]})),
    ])  # fmt: skip
    there = pl.DataFrame(THERE, schema=["block", "kind"], orient="row")
    plan = plain_plan(
        tree, budget=hr.Rho("1/10"), neighbours=hr.Replace(), workload=hr.Cuboids(CUBOIDS),
        public=[hr.Zeros({"kind": ["nursing"], "age": ["minor"]}),
                hr.PublicTable(there, zeros="unlisted")],
    )  # fmt: skip
    rows = [(*pair, age, race, 9) for pair in THERE for age in ("adult", "minor") for race in "xyz"]
    table = pl.DataFrame(rows, schema=["block", "kind", "age", "race", "n"], orient="row")
    table = table.filter(~((pl.col("kind") == "nursing") & (pl.col("age") == "minor")))
    counts = hr.Counts.from_frame(tree, table, count="n")
    return in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(1))


@pytest.mark.parametrize("name", CUBOIDS)
def test_every_cell_listed_is_one_that_public_facts_leave_open(released, name):
    for frame in (released.level(name, all=True), released.measurements(name)):
        assert not any(map(is_empty, frame.iter_rows(named=True)))
    plan = released.plan
    levels = next(each for each in plan.levels if plan.tree.name_of(each) == name)
    assert plan.design.open_cells(levels) == len(frame)
    assert plan.design.possible_cells(levels) >= len(frame)


@pytest.mark.parametrize(("areas", "by"), [
    ({"block": ["a1", "b1", "b1"], "area": ["one", "one", "two"]},
     {"kind": "kind", "age": "age"}),
    ({"block": ["a1", "b1"], "area": ["one", "two"]}, {"kind": "sort", "age": "age"}),
    ({"kind": ["nursing", "nursing", "youth"], "area": ["one", "two", "two"]},
     {"place": "block", "age": "age"}),
])  # fmt: skip
def test_an_area_where_nobody_can_be_is_0_without_an_error(released, areas, by):
    found = released.areas(pl.DataFrame(areas), by=by)
    members, named = pl.DataFrame(areas).group_by("area").all(), next(iter(areas))
    cells = dict(members.select("area", named).iter_rows())
    empty = np.array([
        all(is_empty({**row, named: code}) for code in cells[row["area"]])
        for row in found.iter_rows(named=True)
    ])  # fmt: skip
    assert empty.any()
    assert not empty.all()
    errors = found.select("count", "estimate", "standard_error", "low", "high").to_numpy()
    assert (errors[empty] == 0).all()
    assert (found["standard_error"].to_numpy()[~empty] > 0).all()
