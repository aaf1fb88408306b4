"""What the InfTDA reference is given and what it gives back are the tables that are compared."""

import numpy as np
import pytest

from benchmarks.inf_tda_peer import counts_of, series_of
from studies.boninsegna.tables import binary_areas, destination_tree, flows, random_areas


@pytest.mark.parametrize("areas", [binary_areas(3), random_areas(2, 4)], ids=["binary", "random"])
def test_a_table_goes_out_and_comes_back(areas):
    counts = flows(destination_tree(areas), 0.4)
    series = series_of(counts)
    assert len(series) == counts.tree.leaves
    assert series.index.nlevels == counts.tree.depth
    back = counts_of(counts.tree, series.sample(frac=1, random_state=1))
    assert np.array_equal(back.values, counts.values)
    assert all(np.array_equal(*codes) for codes in zip(back.codes, counts.codes, strict=True))


def test_the_levels_of_the_index_are_the_depths_of_the_tree():
    counts = flows(destination_tree(random_areas(2, 4)), 0.4)
    series = series_of(counts)
    for depth in range(1, counts.tree.depth + 1):
        sums = series.groupby(level=list(range(depth))).sum()
        assert np.array_equal(np.sort(sums[sums > 0]), np.sort(counts.roll_up(depth)[1]))
