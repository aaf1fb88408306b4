"""The closure of a workload, and the cuboids that its counts are settled at."""

from itertools import combinations, product

import numpy as np
import pytest

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import is_within, maximal, refined_axes
from hedgerow.estimate.workload import kept_sums
from hedgerow.estimate.workload import lattice as module
from hedgerow.estimate.workload.kept_sums import KeptSumsError, descend
from hedgerow.estimate.workload.lattice import Lattice, closure
from hedgerow.limits import MOST_CUBOIDS_SETTLED, MOST_ELEMENTS, MOST_SEARCHED
from tests.estimate.workload.workloads import random_lattice


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

    assert len(closure([*all_but_one(9), (1,) * 9])) == MOST_CUBOIDS_SETTLED == 512
    with pytest.raises(
        EstimateError, match=f"more than {MOST_CUBOIDS_SETTLED} common coarsenings; name"
    ):
        closure(all_but_one(10))


def test_a_closure_needs_cuboids_of_the_same_axes():
    for named in ([], [(1, 0), (1,)]):
        with pytest.raises(EstimateError, match="at least one cuboid, and all must have the same"):
            closure(named)


def brute_elements(named, tables):
    """The smallest set with minima, and with maxima where a table holds them, pair by pair."""
    found = set(named) | {(0,) * len(named[0])}
    while True:
        new = set(found)
        for one, other in combinations(found, 2):
            new.add(tuple(map(min, one, other)))
            finer = tuple(map(max, one, other))
            if any(is_within(finer, table) for table in tables):
                new.add(finer)
        if new == found:
            return found
        found = new


def random_lattices(many, seed=1):
    rng = np.random.default_rng(seed)
    for number in range(many):
        yield random_lattice(rng, 1 + number % 4)


@pytest.mark.parametrize("searched", [MOST_SEARCHED, 0])
def test_elements_are_the_minima_and_maxima_that_blocks_need(monkeypatch, searched):
    monkeypatch.setattr(module, "MOST_SEARCHED", searched)
    fewer = 0
    for lattice, named, public, _ in random_lattices(400):
        given = [] if public is None else [tuple(map(min, public, t)) for t in lattice.tables]
        elements, every = set(lattice.elements), brute_elements([*named, *given], lattice.tables)
        assert lattice.tables == maximal(named)
        assert {*closure([*named, *given])} <= elements <= every
        assert searched or elements == every
        assert list(lattice.elements) == sorted(lattice.elements, key=lambda c: (sum(c), c))
        assert elements == {*closure(elements)}
        for c in lattice.elements:
            below = [e for e in lattice.elements if e != c and is_within(e, c)]
            assert sorted(lattice.covers[c]) == list(maximal(below))
            for two in combinations(lattice.covers[c], 2):
                assert tuple(map(max, *two)) == c
        fewer += len(elements) < len(every)
    assert (fewer > 40) == bool(searched)


def test_an_unmeasured_maximum_is_no_element_where_blocks_are_full_without_it():
    named = [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (3, 2), (3, 3), (3, 0), (0, 3)]
    lattice = Lattice.of(named, [(3, 3)])
    assert {*lattice.elements} == {*named, (2, 0), (0, 1), (0, 2)}
    assert lattice.covers[3, 3] == ((0, 3), (3, 2))
    needed = Lattice.of([(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)], [(1, 1, 1)])
    assert (1, 1, 0) in needed.elements


def test_each_axis_that_is_refined_belongs_to_one_group_and_minima_of_covers_are_elements():
    for lattice, *_ in random_lattices(400, seed=2):
        for c in lattice.elements:
            covers = lattice.covers[c]
            groups = [refined_axes(c, cover) for cover in covers]
            common = tuple(map(min, *covers)) if len(covers) > 1 else (covers or (c,))[0]
            assert list(groups) == sorted(groups)
            assert sorted(a for g in groups for a in g) == [
                a for a, (k, m) in enumerate(zip(c, common, strict=True)) if k > m
            ]
            for cover, group in zip(covers, groups, strict=True):
                assert group
                assert all(cover[a] == (common[a] if a in group else c[a]) for a in range(len(c)))
            minima = {
                tuple(min(levels) for levels in zip(*some, strict=True))
                for count in range(1, len(covers) + 1)
                for some in combinations(covers, count)
            }
            assert len(minima) == 2 ** len(covers) - 1
            assert minima <= set(lattice.elements)


def test_covers_that_are_kept_keep_what_they_have_in_common_and_tables_what_they_must():
    for lattice, _, public, _ in random_lattices(600, seed=3):
        for c in lattice.elements:
            exact = lattice.exact[c]
            assert set(exact) <= set(lattice.covers[c])
            if public is not None and is_within(c, public):
                assert exact == lattice.covers[c]
                continue
            assert min(1, len(lattice.covers[c])) <= len(exact) <= 2
            if len(exact) == 2:
                common = tuple(map(min, *exact))
                assert all(common in descend(cover, lattice.exact) for cover in exact)
        for one, other in product(lattice.tables, lattice.tables):
            assert tuple(map(min, one, other)) in descend(one, lattice.exact)
        for table in lattice.tables:
            assert lattice.elements[0] in descend(table, lattice.exact)
            if public is not None:
                assert tuple(map(min, public, table)) in descend(table, lattice.exact)
        every = frozenset().union(*(descend(table, lattice.exact) for table in lattice.tables))
        assert lattice.kept == every


@pytest.mark.parametrize("depths", [(3,), (2, 3), (2, 1, 2), (1, 2, 1, 2)])
def test_a_whole_cube_keeps_the_sums_over_the_first_two_refined_axes(depths):
    every = list(product(*(range(depth + 1) for depth in depths)))
    lattice = Lattice.of(every, [depths])
    assert set(lattice.elements) == set(every)
    for c in every:
        refined = [a for a, level in enumerate(c) if level]
        coarser = [tuple(k - (a == axis) for a, k in enumerate(c)) for axis in refined]
        assert list(lattice.covers[c]) == coarser
        assert list(lattice.exact[c]) == coarser[:2]


def test_a_public_cuboid_of_a_whole_cube_is_kept_whichever_it_is():
    every = list(product(range(3), repeat=4))
    for public in every[:-1]:
        lattice = Lattice.of(every, [(2, 2, 2, 2)], public=public)
        assert public in descend((2, 2, 2, 2), lattice.exact)


def test_pairs_are_chosen_that_keep_what_is_required():
    whole = list(product(range(2), repeat=3))
    assert Lattice.of(whole, [(1, 1, 1)]).exact[1, 1, 1] == ((0, 1, 1), (1, 0, 1))
    for required, kept in (
        ((1, 1, 0), ((0, 1, 1), (1, 1, 0))),
        ((1, 0, 1), ((0, 1, 1), (1, 0, 1))),
    ):
        tables = [(1, 1, 1, 0), (*required, 1)]  # they have it in common
        lattice = Lattice.of([*((*c, 0) for c in whole), *tables], tables)
        assert lattice.exact[1, 1, 1, 0] == tuple((*cover, 0) for cover in kept)


REVISED = [
    ([(1, 0, 0), (2, 2, 1), (0, 0, 1), (0, 1, 2), (2, 0, 1)], (1, 2, 0)),
    ([(0, 2, 2, 0), (0, 2, 2, 2), (2, 0, 1, 2), (1, 0, 1, 1)], (0, 2, 0, 1)),
    ([(2, 1, 0, 0), (2, 0, 2, 0), (1, 1, 2, 2), (1, 2, 2, 0), (0, 2, 1, 0)], None),
]


@pytest.mark.parametrize(("named", "public"), REVISED)
def test_choices_before_are_revised_where_an_element_is_asked_for_three_sums(named, public):
    """Here the first pairs that hold what is asked lead to an element that cannot."""
    lattice = Lattice.of(named, maximal(named), public=public)
    for table in lattice.tables:
        asked = [*lattice.tables, *([] if public is None else [public])]
        assert {tuple(map(min, table, one)) for one in asked} <= descend(table, lattice.exact)


def test_three_margins_in_common_with_other_tables_are_refused_and_named():
    tables = [(1, 1, 1, 0, 0, 0), (1, 1, 0, 1, 0, 0), (1, 0, 1, 0, 1, 0), (0, 1, 1, 0, 0, 1)]
    with pytest.raises(KeptSumsError, match=r"cuboid \(1, 1, 1, 0, 0, 0\) cannot keep") as caught:
        Lattice.of(tables, tables)
    assert caught.value.cuboid == (1, 1, 1, 0, 0, 0)
    assert caught.value.sums == ((0, 1, 1, 0, 0, 0), (1, 0, 1, 0, 0, 0), (1, 1, 0, 0, 0, 0))
    assert Lattice.of(tables[:3], tables[:3]).tables == maximal(tables[:3])


def test_only_what_is_within_a_table_is_settled():
    with pytest.raises(EstimateError, match=r"cuboid \(0, 2\) is a coarsening of no table"):
        Lattice.of([(1, 1), (0, 2)], [(1, 1)])
    lattice = Lattice.of([(1, 1)], [(1, 1)], public=(0, 2))
    assert lattice.elements == ((0, 0), (0, 1), (1, 1))


def alone(axes):
    """The cuboids that are refined along one axis."""
    return [tuple(int(a == axis) for a in range(axes)) for axis in range(axes)]


def test_a_lattice_of_too_many_elements_is_refused_before_they_are_made():
    with pytest.raises(EstimateError, match=f"more than {MOST_ELEMENTS}; name fewer"):
        Lattice.of([*alone(50), (1,) * 50], [(1,) * 50])


def test_tables_that_have_too_many_elements_together_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MOST_ELEMENTS", 8)
    tables = [(1, 1, 1, 0), (0, 1, 1, 1)]
    assert len(Lattice.of([*alone(3), (1, 1, 1)], [(1, 1, 1)]).elements) == 8
    with pytest.raises(EstimateError, match="more than 8; name fewer"):
        Lattice.of([*alone(4), *tables], tables)


def test_few_choices_are_revised(monkeypatch):
    """What covers could not keep is seen before they are chosen."""
    monkeypatch.setattr(kept_sums, "MOST_STEPS", 64)
    test_a_public_cuboid_of_a_whole_cube_is_kept_whichever_it_is()


def test_the_lattice_of_a_table_of_one_cell_is_the_total():
    lattice = Lattice.of([(0, 0)], [(0, 0)])
    assert lattice.elements == ((0, 0),)
    assert lattice.kept == {(0, 0)}
