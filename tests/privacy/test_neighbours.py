"""Sensitivities against every pair of small neighbouring tables."""

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from hedgerow.errors import BudgetError
from hedgerow.privacy.neighbours import AddRemove, Replace, l1, l2_squared

LEAVES = 4  # depth 1 has two nodes of two leaves each


def units(records):
    """Every way in which one unit's records fall into the leaves."""
    every = product(range(max(records) + 1), repeat=LEAVES)
    return [np.array(unit) for unit in every if sum(unit) in records]


def at_depth(leaves, depth):
    return np.asarray(leaves.reshape(2**depth, -1).sum(axis=1))


def changes(neighbours):
    """Every change of the leaf counts that one unit can make, straight from the definitions."""
    m = neighbours.contributions
    if isinstance(neighbours, AddRemove):
        added = units(range(m + 1))
        return added + [-unit for unit in added]
    old = units({m} if neighbours.exactly else range(m + 1))
    return [after - before for before in old for after in old]


RELATIONS = [
    relation
    for m in (1, 2, 3)
    for relation in (AddRemove(m), Replace(m), Replace(m, exactly=False))
]


each_neighbours = pytest.mark.parametrize("neighbours", RELATIONS, ids=str)


@pytest.mark.parametrize("depth", [0, 1, 2])
@each_neighbours
def test_sensitivities_are_attained_and_never_exceeded(neighbours, depth):
    moves = [at_depth(change, depth) for change in changes(neighbours)]
    assert neighbours.l1_sensitivity(depth) == max(np.abs(move).sum() for move in moves)
    assert neighbours.l2_sensitivity_squared(depth) == max((move**2).sum() for move in moves)


MATRICES = {
    "leaves": np.eye(LEAVES, dtype=int),
    "a column far from the others": np.array([[9, 0, 1, 0], [0, 1, 1, 0]]),
    "columns that are alike": np.array([[5, 5, 5, 4], [1, 1, 2, 1], [2, 2, 2, 2]]),
    "opposite columns": np.array([[3, -3, 0, 1], [2, -2, 1, 0]]),
    "running sums": np.tril(np.full((LEAVES, LEAVES), 4)),
    "weighted running sums": np.array([[8, 0, 0, 0], [4, 8, 0, 0], [3, 4, 8, 0], [2, 3, 4, 8]]),
}


@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
@each_neighbours
def test_the_norm_of_columns_is_that_of_the_worst_change_of_all(neighbours, matrix):
    """‖Wx‖² over every change x of the leaves that one unit can make; attained by moving as one."""
    columns = matrix.T
    column = max(int(c @ c) for c in columns)
    distance = max(int((c - d) @ (c - d)) for c in columns for d in columns)
    worst = max(int((matrix @ x) @ (matrix @ x)) for x in changes(neighbours))
    assert neighbours.norm_of_columns(column, distance).squared == worst


@pytest.mark.parametrize("depth", [0, 1, 2])
@each_neighbours
def test_each_case_is_a_change_that_one_unit_can_make(neighbours, depth):
    made = {
        tuple(sorted(int(v) for v in at_depth(change, depth) if v))
        for change in changes(neighbours)
    }
    for shifts in neighbours.changes(depth):
        assert tuple(sorted(shifts)) in made


@each_neighbours
def test_some_unit_makes_the_changes_of_a_case_at_all_depths_at_once(neighbours):
    made = {
        tuple(tuple(sorted(int(v) for v in at_depth(c, t) if v)) for t in range(3))
        for c in changes(neighbours)
    }
    for case in zip(*(neighbours.changes(t) for t in range(3)), strict=True):
        assert tuple(tuple(sorted(shifts)) for shifts in case) in made


@pytest.mark.parametrize("neighbours", [r for r in RELATIONS if r.contributions == 1], ids=str)
def test_with_one_record_every_change_is_part_of_a_case(neighbours):
    """Post-processing of it: the same shifts up to the unit's sign, or none, at every depth."""
    cases = list(zip(*(neighbours.changes(t) for t in range(3)), strict=True))
    for change in changes(neighbours):
        sizes = [Counter(abs(int(v)) for v in at_depth(change, t) if v) for t in range(3)]
        assert any(
            all(size <= Counter(map(abs, s)) for size, s in zip(sizes, case, strict=True))
            for case in cases
        )


WEIGHTS = [(1, 1, 1), (5, 1, 1), (1, 7, 2), (100, 1, 0), (0, 1, 1), (3, 3, 0)]


@pytest.mark.parametrize("weights", WEIGHTS)
@each_neighbours
def test_no_unit_costs_more_at_all_depths_together_than_the_worst_case(neighbours, weights):
    """Costs that grow with the norms, ρ with the squared ones: the corners of the docstring."""
    cases = list(zip(*(neighbours.changes(t) for t in range(3)), strict=True))
    for norm in (l1, l2_squared):
        worst = max(sum(w * norm(s) for w, s in zip(weights, c, strict=True)) for c in cases)
        every = [
            sum(w * norm(tuple(int(v) for v in at_depth(change, t))) for t, w in enumerate(weights))
            for change in changes(neighbours)
        ]
        assert max(every) == worst


@each_neighbours
def test_the_total_is_public_just_where_no_unit_changes_it(neighbours):
    fixed = all(change.sum() == 0 for change in changes(neighbours))
    assert neighbours.total_is_public is fixed
    assert (neighbours.l2_sensitivity_squared(0) == 0) is fixed


def test_ten_distinct_trips_do_not_cost_less_than_ten_equal_ones():
    """Boninsegna et al. state √(2m) for distinct trips; above the leaves it is √2·m."""
    for depth in (1, 6, 63):
        assert Replace(10).l2_sensitivity_squared(depth) == 200
        assert Replace(10).l1_sensitivity(depth) == 20
        assert AddRemove(10).l2_sensitivity_squared(depth) == 100
        assert AddRemove(10).l1_sensitivity(depth) == 10


def test_sensitivities_are_fractions():
    assert type(AddRemove().l1_sensitivity(0)) is Fraction
    assert type(Replace().l2_sensitivity_squared(0)) is Fraction


@pytest.mark.parametrize("relation", [AddRemove, Replace])
@pytest.mark.parametrize("contributions", [0, -1, 1.0, "1", True, None])
def test_contributions_are_whole_and_positive(relation, contributions):
    with pytest.raises(BudgetError, match="contributions must be a whole number of at least 1"):
        relation(contributions)


@pytest.mark.parametrize("exactly", ["no", 1, None])
def test_exactly_is_a_promise_or_none(exactly):
    with pytest.raises(BudgetError, match="exactly must be True or False"):
        Replace(1, exactly=exactly)


def test_there_is_no_depth_above_the_total():
    for neighbours in (AddRemove(), Replace()):
        with pytest.raises(BudgetError, match="a depth must be a whole number of at least 0"):
            neighbours.changes(-1)


def test_the_promise_is_told_in_plain_words():
    assert AddRemove().describe().endswith("with or without any one record.")
    assert AddRemove(3).describe().endswith("any one unit of up to 3 records.")
    assert Replace().describe().endswith("any one record says; the number of records is public.")
    assert "the 3 records of any one unit say; the number" in Replace(3).describe()
    assert "however many they are, up to 3" in Replace(3, exactly=False).describe()
    assert (AddRemove().name, Replace().name) == ("add-remove", "replace")
