"""How many cells keep a criterion in fact, cell by cell."""

from fractions import Fraction

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.distribution.bins import coded_axis
from hedgerow.evaluate.accepted import in_fact, kept_in_fact
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.accepted import accepted
from hedgerow.release.execution import in_memory
from tests.made import fixed_tree, plain_plan, random_counts

TREE = fixed_tree(place=(4, 30))
CRITERIA = [
    hr.Criterion("level2", 4, cells="0.8"),
    hr.Criterion("level2", hr.OfCount("0.29", least=10), cells="0.8"),
    hr.Criterion("level2", hr.OfRecords("0.001")),
    hr.Criterion("level1", hr.OfCount("0.01", least=1)),
]


@pytest.fixture(scope="module")
def made():
    counts = random_counts(np.random.default_rng(5), TREE, filled=0.6, mean=40)
    plan = plain_plan(TREE, budget=hr.Rho("1/20"), measure=hr.All(), accept=CRITERIA)
    return counts, in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(2))


def dense(frame, name, column="count"):
    codes = frame[name].to_list()
    return dict(zip(codes, frame[column].to_list(), strict=True))


@pytest.mark.parametrize("criterion", CRITERIA, ids=repr)
def test_cells_are_counted_that_keep_a_bound_and_those_that_neither_side_lists(made, criterion):
    counts, release = made
    name = criterion.cuboid
    levels = criterion.levels(TREE)
    codes, values = counts.roll_up(sum(levels))
    true = np.zeros(TREE.cells(levels), dtype=np.int64)
    true[codes[0]] = values
    given = np.zeros_like(true)
    nodes = release.content.nodes[levels]
    given[nodes.codes[0]] = nodes.counts
    within = criterion.within
    kept = cells = 0
    for one, other in zip(given.tolist(), true.tolist(), strict=True):
        if isinstance(within, hr.OfCount):
            if other < within.least:
                continue
            bound = within.part * other
        else:
            bound = within if isinstance(within, Fraction) else within.part * counts.total
        cells += 1
        kept += abs(one - other) <= bound
    assert kept_in_fact(counts, release, criterion) == (cells, kept), name
    assert 0 < kept <= cells


def test_a_criterion_is_kept_where_as_many_cells_keep_it_as_must(made):
    counts, release = made
    said = list(in_fact(counts, release))
    assert len(said) == len(CRITERIA)
    for criterion, sentence in zip(CRITERIA, said, strict=True):
        cells, kept = kept_in_fact(counts, release, criterion)
        assert sentence.endswith("must: kept." if kept >= criterion.cells * cells else "not kept.")
    assert {sentence.endswith("not kept.") for sentence in said} == {True, False}


def test_shares_areas_and_quantiles_are_compared_with_the_truth():
    bins = coded_axis(hr.Ranges.equal_width("income", 0, 80, 8), [8])
    tree = hr.Tree([TREE.axes[0], bins])
    codes = TREE.axes[0].labels[-1].to_list()
    lookup = {"level2": codes[:60], "clinic": ["p", "q", "r"] * 20}
    criteria = [
        hr.Criterion("total", 25, areas=lookup, cells="2/3"),
        hr.Criterion("place.level2", hr.OfShare("0.007", "place.level1", least=300), cells="0.9"),
        hr.Criterion("place.level2", hr.OfQuantile(2, "income"), cells="0.9"),
    ]
    counts = random_counts(np.random.default_rng(5), tree, filled=0.05, mean=40)
    options = {"budget": hr.Rho("1/20"), "measure": hr.All(), "workload": hr.Cube()}
    plan = plain_plan(tree, accept=criteria, **options)
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(2))
    true, given = np.zeros((2, 120, 8))
    true[counts.codes] = counts.values
    nodes = release.content.nodes[tree.finest]
    given[nodes.codes] = nodes.counts
    off = [abs((given - true)[:60][k::3].sum()) for k in range(3)]
    expected = [(3, sum(one <= 25 for one in off))]
    a, b = (each.sum(axis=1) for each in (true, given))
    above, below = (np.repeat(each.reshape(4, 30).sum(axis=1), 30) for each in (a, b))
    large = above >= 300
    expected.append((int(large.sum()), int((abs(a / above - b / below) <= 0.007)[large].sum())))
    edges, kept, cells = np.linspace(0, 80, 9), 0, np.flatnonzero(a)
    for place in cells:
        ends = []
        for each in (true[place], given[place]):
            before = np.append(0, np.cumsum(each))
            first = np.interp(before[-1] / 2, before, edges) if each.any() else np.nan
            back = (before[-1] - before)[::-1]
            ends.append((first, 80 - np.interp(before[-1] / 2, back, edges)))
        (value, _), (low, high) = ends
        kept += min(low, high) <= value + 2 and max(low, high) >= value - 2
    expected.append((len(cells), kept))
    assert [kept_in_fact(counts, release, each) for each in criteria] == expected
    assert all(0 < some < every for every, some in expected[1:]), expected
    verdicts = accepted(release.content)
    assert [each.source for each in verdicts] == ["", "released counts", "released counts"]
    assert all(each.probability is not None for each in verdicts)
    assert len(list(in_fact(counts, release))) == 3


def test_sizes_of_a_check_are_the_released_counts(made):
    """And nothing of the true ones: a bound in parts of counts follows those that are released."""
    _, release = made
    verdicts = accepted(release.content)
    assert [verdict.source for verdict in verdicts] == ["", *["released counts"] * 3]
    nodes = release.content.nodes[CRITERIA[1].levels(TREE)]
    assert verdicts[1].cells == int((nodes.counts >= 10).sum())
