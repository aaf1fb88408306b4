"""No released value leads back to the confidential table: to the table, a column or a slice."""

import dataclasses

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.descent.nodes import Found, Nodes, Roots, Slices
from hedgerow.release.execution import in_memory
from hedgerow.tables.counts import Counts
from tests.made import plain_plan, random_counts, random_tree


def reachable(value, seen):
    """All objects that attributes and containers lead to from a value."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        inner = [getattr(value, field.name) for field in dataclasses.fields(value)]
        inner += list(vars(value).values()) if hasattr(value, "__dict__") else []
    elif isinstance(value, dict):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        inner = list(value)
    else:
        return
    for each in inner:
        reachable(each, seen)


@pytest.mark.parametrize("measure", [hr.Survivors(), hr.All()], ids=["survivors", "all"])
@pytest.mark.parametrize("neighbours", [hr.AddRemove(), hr.Replace()], ids=lambda n: n.name)
def test_nothing_that_a_release_holds_leads_to_the_table(measure, neighbours):
    rng = np.random.default_rng(1)
    counts = random_counts(rng, random_tree(rng))
    plan = plain_plan(counts.tree, budget=hr.Rho("1/2"), measure=measure, neighbours=neighbours)
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(0))
    seen = {}
    reachable(release, seen)
    assert any(isinstance(value, Nodes) for value in seen.values())
    assert not any(isinstance(value, Counts | Slices | Roots) for value in seen.values())
    arrays = [value for value in seen.values() if isinstance(value, np.ndarray)]
    own = (*counts.codes, counts.values)
    assert not any(np.shares_memory(array, column) for array in arrays for column in own)


def test_released_nodes_have_no_attribute_for_a_slice():
    assert [field.name for field in dataclasses.fields(Nodes)] == [
        "codes", "counts", "estimate", "variance"
    ]  # fmt: skip
    assert Found.__annotations__["nodes"] is Nodes
