import numpy as np
import pytest

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.estimates import upward
from hedgerow.estimate.cube.settle import settle, settle_cuboid
from hedgerow.estimate.cube.shape import CubeShape
from tests.estimate.cube.dense_cubes import random_axis
from tests.estimate.cube.transport import cost, optimum, random_block

KINDS = ["dense", "sparse", "lopsided", "wild"]


def settled(z, u, v, rows, columns):
    starts = np.array([0, len(rows)]), np.array([0, len(columns)])
    return settle_cuboid(z, (u, v), (rows[:, None], columns[None, :]), starts)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_keep_their_margins_and_come_within_one_percent_of_the_optimum(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    worst, ours, best = 0.0, 0.0, 0.0
    for _ in range(250):
        z, u, v, rows, columns = random_block(rng, kind)
        y = settled(z, u, v, rows, columns)
        assert (y >= 0).all()
        assert (y.sum(axis=1) == rows).all()
        assert (y.sum(axis=0) == columns).all()
        least = optimum(y, z, u, v)
        ours, best = ours + cost(y, z, u, v), best + cost(least, z, u, v)
        worst = max(worst, cost(y, z, u, v) - cost(least, z, u, v))
    print(kind, np.sqrt(ours / best), worst)
    assert np.sqrt(ours / best) <= 1.01
