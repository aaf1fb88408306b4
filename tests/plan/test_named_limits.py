"""Sizes beyond which named cuboids are refused by the plan, so that no charged release fails."""

from fractions import Fraction
from math import prod

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.estimate.cube.shape import CubeShape
from hedgerow.estimate.workload.general import solver_of
from hedgerow.estimate.workload.observed import Observed
from hedgerow.estimate.workload.spine import SpineSolver
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.plan.product import axis_factors
from hedgerow.plan.tables import BYTES_A_CELL, BYTES_A_FOLDED_NODE
from hedgerow.release.execution import in_memory
from tests.made import fixed_tree


def axes(sizes):
    """A tree of axes of one level, of so many nodes each."""
    return fixed_tree(**{f"x{i}": (size,) for i, size in enumerate(sizes)})


def planned(tree, *cuboids, measure=None):
    """Cuboids are given as numbers of axes."""
    names = [" × ".join(f"x{i}.level1" for i in cuboid) for cuboid in cuboids]
    workload = hr.Cuboids(names)
    return hr.make_plan(tree, budget=hr.Rho(100), workload=workload, measure=measure)


def test_more_rows_than_survivors_can_be_found_among_are_refused_by_the_plan():
    tree = axes([50_000, 50_000, 2])
    with pytest.raises(hr.PlanError, match=r"has 2,500,000,000 rows or columns below 'x2.level1' "):
        planned(tree, [0], [1], [0, 1], [2], [0, 1, 2], measure=hr.Survivors())


def test_rows_and_columns_of_survivors_count_towards_the_memory():
    plan = planned(axes([9000, 9000, 2]), [0], [1], [0, 1], [2], [0, 1, 2], measure=hr.Survivors())
    joint = plan.design
    assert joint.folded((1, 1, 1)) == (81_000_000, 2)
    held = sum(map(joint.shape.cells, joint.lattice.elements)) * BYTES_A_CELL
    assert plan.design.bytes_held == held + (81_000_000 + 2) * BYTES_A_FOLDED_NODE


def test_cells_that_int64_does_not_number_are_refused_by_the_plan():
    chain = [0], [0, 1], [0, 1, 2], [0, 1, 2, 3]
    planned(axes([1 << 16, 1 << 16, 1 << 16, 1 << 14]), *chain, measure=hr.Survivors())
    with pytest.raises(hr.PlanError, match=r"4,611,967,493,404,098,560 cells, and they are num"):
        planned(axes([1 << 16, 1 << 16, 1 << 16, (1 << 14) + 1]), *chain, measure=hr.Survivors())


def test_pairs_of_many_axes_are_released():
    """There are 2^30 combinations of levels, and none is looked at that is not named."""
    tree = axes([2] * 30)
    plan = planned(tree, *([i, i + 1] for i in range(0, 30, 2)))
    codes = np.random.default_rng(1).integers(0, 2, (30, 500)).astype(np.int32)
    counts = hr.Counts.from_leaves(tree, tuple(codes), np.ones(500, dtype=np.int64))
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(1))
    assert len(release.content.nodes) == 1 + 15


def test_more_axes_than_arrays_have_are_refused_by_the_plan():
    cuboids = [0, 1], [1, 2], [61]
    plan = planned(axes([2] * 62), *cuboids)
    counts = hr.Counts.from_leaves(plan.tree, (np.zeros(1, np.int32),) * 62, np.array([9]))
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(2))
    assert len(release.cuboid(x0="level1")) > 0
    with pytest.raises(hr.PlanError, match="over 62 axes at most, and this tree has 63"):
        planned(axes([2] * 63), *cuboids)


def test_shares_too_far_apart_for_floats_are_refused_by_the_plan():
    tree = fixed_tree(o=(2, 2), d=(2, 2))
    names = ["o.level2 × d.level1", "o.level1 × d.level2", "o.level1"]
    for digits, fits in ((18, True), (24, False)):
        small = Fraction(1, 10**digits)
        shares = hr.Shares({names[0]: "1/2", names[1]: Fraction(1, 2) - small, names[2]: small})
        wanted = {"workload": hr.Cuboids(names), "allocation": shares, "measure": hr.All()}
        if fits:
            hr.make_plan(tree, budget=hr.Rho(1), **wanted)
            continue
        with pytest.raises(hr.PlanError, match="variances of a workload are too far apart"):
            hr.make_plan(tree, budget=hr.Rho(1), **wanted)


def test_the_closed_form_along_one_axis_is_for_few_combinations_of_levels():
    """Beyond 4,096 it would take longer than the general solver, and 2^20 of them for ever."""
    for many, fits in ((12, True), (14, False)):
        shape = CubeShape.of([[np.array([0, 2])]] * many)
        every = [(1,) * many]
        observed = Observed(shape, {c: 1.0 * prod(1 + k for k in c) for c in every})
        assert SpineSolver.fits(observed) is fits
        if not fits:
            solver = solver_of(observed)
            assert not isinstance(solver, SpineSolver)
            assert solver.mean(every[0]) > 0


def test_shares_are_compared_with_a_product_over_few_combinations_of_levels():
    for many, fits in ((4, True), (8, False)):
        shape = CubeShape.of([[np.array([0, 2]), np.array([0, 1, 3])]] * many)
        every = shape.cuboids() if fits else [(2,) * many, (1,) * many]
        shares = {c: Fraction(prod(1 + k for k in c)) for c in every}
        assert (axis_factors(shape, shares, None) is not None) is fits


def test_a_name_given_a_million_times_is_refused_at_once():
    """Each was compared with all others: hours for a manifest of 16 MB."""
    workload = hr.Cuboids(["x0.level1", *["x1.level1"] * 1_000_000])
    with pytest.raises(hr.PlanError, match=r"cuboid 'x1.level1' is named twice"):
        hr.make_plan(axes([2, 2]), budget=hr.Rho(1), workload=workload)
