"""The census as a cube along its spine, against dense matrices."""

from itertools import pairwise

import numpy as np
import pytest

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.estimate.spine.nested.nested import Nested
from hedgerow.estimate.spine.support import Part
from tests.estimate.spine.random_models import census, flat_axis
from tests.estimate.spine.spines import detail_cells


@pytest.mark.parametrize("seed", range(10))
def test_variances_with_other_noise_than_the_weights_say_are_upper_bounds(seed):
    nominal, rng = census(seed), np.random.default_rng(seed)
    noise = {key: v * rng.uniform(0.8, 1.2) for key, v in nominal.model.measured.items()}
    case = census(seed, noise=noise)
    assert dict(case.model.measured) == noise
    sizes = [len(case.sums(key)) for key in noise]
    each, gain = np.repeat([*noise.values()], sizes), []
    for unit in np.eye(sum(sizes)):  # the estimate is linear: what each noisy count moves
        tables = dict(zip(noise, np.split(unit, np.cumsum(sizes)[:-1]), strict=True))
        found = case.ask("estimates", tables, 0.0 if case.model.total_known else None)
        gain.append(found[case.depth])
    true = each @ np.square(gain)
    support, labels = case.model.support, np.arange(case.model.support.widths.sum(), dtype=np.int32)
    node, _, cell = np.transpose(detail_cells(support, case.depth, range(support.spine.sizes[-1])))
    stated = case.model.variances(labels).at(case.depth, node, cell)
    assert (true <= stated * (1 + 1e-9) + 1e-12).all()
    assert (stated <= true * 1.5 * (1 + 1e-9) + 1e-12).all()
    exact = nominal.model.variances(labels).at(case.depth, node, cell)
    assert np.allclose(exact * case.model.excess, stated)


def test_what_is_measured_is_every_pair_of_measured_levels_but_a_public_total():
    model = census(3, known=False).model
    v, s = model.spine_variances, model.attribute_variances
    pairs = {(a, b): v[a] * s[b] for a in range(len(v)) for b in range(len(s))}
    assert dict(model.measured) == {k: x for k, x in pairs.items() if np.isfinite(x)}
    assert (0, 0) not in census(3, known=True).model.measured


@pytest.mark.parametrize("seed", range(20))
def test_cuboids_within_groups_have_the_cells_that_no_rule_makes_0(seed):
    model = census(seed).model
    depth, groups = model.support.spine.depth, model.group_level
    for b in range(groups, groups + model.trees.depth + 1):
        cells = model.cells((depth, b))
        offset, places = model.support.offset, model.trees.places(b - groups)
        runs = [places[a:b].tolist() for a, b in pairwise(offset)]
        expected = [len(set(run)) for run in runs if run]
        assert cells.width[model.support.widths > 0].tolist() == expected
    assert model.cells((depth, groups + model.trees.depth)).is_detail


def made(*, v=(1.0, 1.0), s=(1.0, 1.0), zeros=(False, False)):
    axis = AxisShape.of([np.array([0, 2])])
    zero_leaves = np.array(zeros, dtype=bool)
    return Nested.of(axis, axis, 0, None, (), zero_leaves, v, s, total_known=False)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"v": (1.0,)}, "each of its 2 levels"),
        ({"v": (0.0, 1.0)}, "a variance above 0"),
        ({"v": (1.0, np.inf)}, "a finite one for the last"),
        ({"s": (0.0, 1.0)}, "a variance above 0"),
        ({"s": (1.0, np.inf)}, "a finite one for the last"),
        ({"zeros": (True, True)}, "every attribute cell 0"),
        ({"zeros": (True, True, False)}, "2 leaves, got"),
    ],
)
def test_what_is_no_census_is_refused(wrong, words):
    assert made().measured[1, 1] == 1.0
    with pytest.raises(EstimateError, match=words):
        made(**wrong)


def test_records_of_equal_estimates_are_handed_out_by_a_hash_and_alike_every_time():
    model = Nested.of(
        flat_axis(40), flat_axis(6), 1, None, (), np.zeros(6, dtype=bool), [1.0] * 2, [1.0] * 2,
        total_known=True,
    )  # fmt: skip
    first, whole = set(), Part.top(1)
    for shift in range(20):
        tables = {key: np.full(model.cells(key).count(range((1, 40)[key[0]])), 0.5 + shift)
                  for key in model.measured}  # fmt: skip
        upward = model.up(whole, tables)
        counts = [model.settle(whole, upward, None, 100) for _ in range(2)]
        assert np.array_equal(counts[0][1], counts[1][1])
        first.add(tuple(counts[0][0]))
        assert np.ptp(counts[0][0]) <= 1
    assert len(first) > 3
