"""The noisy counts of a release along a spine, as a user reads them: which cell is which."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.execution import in_memory
from tests.made import plain_plan
from tests.release.spine.made_spines import incidence

BLOCKS = pl.DataFrame({"tract": ["A", "A", "B"], "block": ["A1", "A2", "B1"]})
KINDS = pl.DataFrame({"band": ["x", "x", "y"], "kind": ["home", "nursing", "college"]})
AGES = pl.DataFrame({"age": ["adult", "minor"]})
LISTED = {"block": ["A1", "A1", "A2", "B1", "B1"], "kind": ["home", "college", "nursing"] * 2}
LISTED["kind"] = LISTED["kind"][:5]


@pytest.fixture(params=["age first", "kind first"])
def measured(request):
    """A release of noise that is next to nothing, its true leaves, and which may hold records."""
    kind = hr.Axis.from_frame("kind", KINDS, ["band", "kind"], attribute=True)
    age = hr.Axis.from_frame("age", AGES, ["age"], attribute=True)
    beside = [age, kind] if request.param == "age first" else [kind, age]
    tree = hr.Tree([hr.Axis.from_frame("place", BLOCKS, ["tract", "block"]), *beside])
    finest = " × ".join(f"{axis.name}.{axis.levels[-1]}" for axis in tree.axes)
    plan = plain_plan(
        tree,
        budget=hr.Rho(10**6),
        workload=hr.Cuboids(["place.tract × kind.band", "age.age", "kind.kind", finest]),
        public=[hr.PublicTable(LISTED, zeros="unlisted")],
    )
    truth = np.arange(1, 19).reshape([axis.size(axis.depth) for axis in tree.axes])
    allowed, labels = np.zeros(truth.shape, dtype=bool), kind.labels[-1].to_list()
    for block, code in zip(LISTED["block"], LISTED["kind"], strict=True):
        at = BLOCKS["block"].to_list().index(block)
        here = (at, slice(None), labels.index(code))
        allowed[here if beside[0] is age else (at, labels.index(code))] = True
    codes = np.nonzero(allowed)
    counts = hr.Counts.from_leaves(
        tree, tuple(code.astype(np.int32) for code in codes), truth[allowed]
    )
    made = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(1))
    return made, truth, allowed


def test_the_noisy_counts_of_a_cuboid_are_row_by_row_in_the_order_of_the_axes(measured, tmp_path):
    made, truth, allowed = measured
    made.write(tmp_path / "out")
    for release in (made, hr.read_release(tmp_path / "out")):
        for levels, what in release.plan.by_levels.items():
            if what.kind == "measured":
                matrix, _ = incidence(release.plan.tree, levels, allowed)
                found = release.measurements(release.plan.tree.name_of(levels))
                assert np.array_equal(found["noisy_count"], matrix @ truth[allowed])
