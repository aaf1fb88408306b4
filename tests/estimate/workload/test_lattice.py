"""The closure of a workload, and the cuboids that its counts are settled at."""

from itertools import combinations, product

import pytest

from hedgerow.errors import EstimateError
from hedgerow.estimate.workload.lattice import MOST_CUBOIDS, closure


def test_the_closure_of_one_cuboid_is_it_and_the_total():
    assert closure([(2, 1)]) == ((0, 0), (2, 1))
    assert closure([(0, 0)]) == ((0, 0),)


@pytest.mark.parametrize("chosen", range(60))
def test_the_closure_is_the_smallest_set_with_all_common_coarsenings(chosen):
    every = list(product(range(3), range(3), range(2)))
    named = [c for i, c in enumerate(every) if (chosen * 7919 + i * 104729) % 11 < 3]
    expected = set(named) | {(0, 0, 0)}
    while True:
        meets = {tuple(map(min, a, b)) for a, b in combinations(expected, 2)}
        if meets <= expected:
            break
        expected |= meets
    found = closure(named)
    assert set(found) == expected
    assert list(found) == sorted(found, key=lambda c: (sum(c), c))


def test_a_closure_of_too_many_cuboids_is_refused():
    def all_but_one(axes):
        return [tuple(int(a != left_out) for a in range(axes)) for left_out in range(axes)]

    assert len(closure([*all_but_one(9), (1,) * 9])) == MOST_CUBOIDS == 512
    with pytest.raises(EstimateError, match=f"more than {MOST_CUBOIDS} common coarsenings; name"):
        closure(all_but_one(10))


def test_a_closure_needs_cuboids_of_the_same_axes():
    for named in ([], [(1, 0), (1,)]):
        with pytest.raises(EstimateError, match="at least one cuboid, and all must have the same"):
            closure(named)
