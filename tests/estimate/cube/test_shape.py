import numpy as np
import pytest

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import AxisShape, CubeShape, coarser, is_within

SINGLE = [np.array([0, 2]), np.array([0, 1, 2]), np.array([0, 2, 5])]


def test_a_level_of_single_children_is_left_out():
    axis = AxisShape.of(SINGLE)
    assert axis.sizes == (1, 2, 5)
    assert axis.given == (0, 1, 1, 2)
    assert [axis.first(k) for k in range(3)] == [0, 1, 3]
    cube = CubeShape.of([SINGLE, SINGLE[:1]])
    assert cube.given((2, 1)) == (1, 1)
    assert cube.shape((1, 1)) == (2, 2)
    assert cube.cells(cube.finest) == 10


def test_an_axis_of_one_leaf_has_one_level():
    axis = AxisShape.of([np.array([0, 1]), np.array([0, 1])])
    assert axis.sizes == (1,)
    assert axis.depth == 0


def test_cuboids_come_after_their_coarsenings():
    cube = CubeShape.of([SINGLE, SINGLE])
    order = list(cube.cuboids())
    assert len(order) == 9
    for cuboid in order:
        for axis in range(2):
            if cuboid[axis]:
                assert order.index(coarser(cuboid, axis)) < order.index(cuboid)
    assert is_within((1, 0), (1, 2))
    assert not is_within((2, 0), (1, 2))


def test_ancestors_and_descendants_are_each_others_inverse():
    axis = AxisShape.of(SINGLE)
    assert axis.ancestors(2, 1).tolist() == [0, 0, 1, 1, 1]
    assert axis.descendant_start(0, 2).tolist() == [0, 5]
    assert axis.parents(2).tolist() == [0, 0, 1, 1, 1]


@pytest.mark.parametrize("start", [[0, 1, 1], [0, 2], [1, 2, 3], [0, 1, 2, 3]])
def test_ranges_that_do_not_nest_are_refused(start):
    with pytest.raises(EstimateError, match="child_start of level 1"):
        AxisShape.of([np.array([0, 2]), np.array(start)])


def test_a_cube_without_axes_is_refused():
    with pytest.raises(EstimateError, match="at least one axis"):
        CubeShape.of([])
