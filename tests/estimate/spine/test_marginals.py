"""Marginals that do not nest against dense matrices over all cells."""

import tracemalloc

import numpy as np
import pytest

from hedgerow.arrays import run_starts
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import AxisShape, CubeShape
from hedgerow.estimate.spine.component import Component
from hedgerow.estimate.spine.fit.families import _covariances
from hedgerow.estimate.spine.support import Part, Support
from tests.estimate.spine.random_models import flat_axis, small_model, small_shape


def takes(shape, cuboids, group):
    """A model takes cuboids, beside the finest one."""
    return small_model(shape, dict.fromkeys([shape.finest, *cuboids], 1.0), group=group)


def refuses(shape, cuboids, group):
    with pytest.raises(EstimateError, match="total and finest levels alone"):
        takes(shape, cuboids, group)


def test_an_attribute_measured_at_a_middle_level_does_not_fit():
    shape = small_shape(middle=True)
    takes(shape, [(1, 1, 0)], 1)
    refuses(shape, [(1, 1, 1)], 1)
    takes(shape, [(1, 1, 1)], 2)


def test_cuboids_outside_the_shape_and_too_many_attributes_do_not_fit():
    shape = small_shape()
    refuses(shape, [(2, 1)], 1)
    refuses(shape, [(3, 1, 1)], 1)
    refuses(shape, [(2, -1, 1)], 1)
    wide = CubeShape((shape.axes[0], *(flat_axis(2) for _ in range(9))))
    takes(wide, [], 1)
    refuses(wide, [], None)


def test_what_does_not_measure_the_finest_cells_is_refused():
    with pytest.raises(EstimateError, match="measure every attribute at its finest level"):
        small_model(noise={(2, 1, 0): 1.0, (2, 0, 1): 1.0, (1, 1, 1): 1.0})


@pytest.mark.parametrize("variance", [0.0, -1.0, np.nan, np.inf])
def test_a_variance_that_is_none_is_refused(variance):
    with pytest.raises(EstimateError, match=r"cuboid \(2, 1, 1\) must be above 0"):
        small_model(noise={(2, 1, 1): variance})


def test_zeros_by_rule_need_an_entry_a_cell():
    with pytest.raises(EstimateError, match="each of 6 cells, got 5"):
        small_model(zeros=np.zeros(5, dtype=bool))


def test_a_group_all_of_whose_cells_are_zero_is_nowhere():
    model = small_model(zeros=np.array([1, 1, 1, 0, 0, 1], dtype=bool))
    assert model.support.widths.tolist() == [0, 3]
    assert all(set(each.tolist()) == {1} for each in model.support.group)
    np.testing.assert_array_equal(model.allowed[1], [True, True, False])


@pytest.mark.parametrize("known", [False, True])
def test_sums_of_the_root_are_not_moved_by_cells_that_hold_nobody(known):
    """The best fit of all cells at once takes 10 records from the group that fills its cells."""
    shape = CubeShape((flat_axis(2), flat_axis(2), flat_axis(40)))
    noise = {(0, 1, 0): 100.0, (0, 1, 1): 20.0, shape.finest: 20.0}
    model = small_model(shape, noise, known=known)
    true = {1: np.zeros((2, 2, 40))}
    true[1][:, 0, :30], true[1][:, 1, 0] = 200, 300
    true[0] = true[1].sum(axis=0)
    rng, runs, part = np.random.default_rng(1), 200, Part.top(1)
    errors = np.empty((runs, 2))
    for run in range(runs):
        tables = {}
        for key, variance in noise.items():
            table = true[key[0]] if key[2] else true[key[0]].sum(axis=1)
            tables[key] = (table + rng.normal(0, variance**0.5, table.shape)).ravel()
        total = int(true[0].sum()) if known else None
        counts = model.settle(part, model.up(part, tables), None, total)
        errors[run] = counts[0].reshape(2, 40).sum(axis=1) - true[0].sum(axis=1)
    groups = np.repeat(np.arange(2, dtype=np.int32), 40)
    error = model.variances(groups).at(0, np.zeros(2, np.int64), np.arange(2)) ** 0.5
    # five standard errors of the mean of nearly normal errors: α = 6e-7 a group
    assert (np.abs(errors.mean(axis=0)) < 5 * error / runs**0.5).all()
    assert (errors.std(axis=0) < 1.3 * error).all()


def test_covariances_of_families_are_copied_without_lists_of_their_entries():
    spine, tree = AxisShape.of([np.array([0, 40])]), AxisShape.of([np.array([0, 50])])
    support = Support.of(spine, tree, np.ones(50, dtype=int), None)
    apart, nothing = np.eye(50), np.zeros((50, 50))
    components = [
        Component.of(support, np.ones(50, dtype=int), [nothing, information])
        for information in (apart, apart + 1)
    ]
    begin = run_starts(np.full(30, 2 * 50**2))
    given = components, 1, range(10, 40), begin
    _covariances(*given)  # compiles
    tracemalloc.start()
    found = _covariances(*given)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    for own in found.reshape(30, 2, 50, 50):
        assert (own[0] == apart).all()
        assert np.allclose(own[1], np.linalg.inv(apart + 1))
    assert most < 1.2 * found.nbytes
