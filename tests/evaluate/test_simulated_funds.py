"""Misallocation of simulated releases, beside the released counts themselves."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import PlanError, TableError
from hedgerow.evaluate.baselines import LeafNoise
from hedgerow.evaluate.funds import Above, Proportional, Seats
from hedgerow.evaluate.method import Setting
from hedgerow.evaluate.simulate import run_bits
from hedgerow.release.execution import in_memory
from studies.ko.misallocation import misallocation, simulated_misallocation
from tests.made import fixed_axis, plain_plan

BUDGET, WHO = hr.Rho("1/20"), hr.AddRemove()
RUNS = 6


@pytest.fixture(scope="module")
def counts():
    tree = hr.Tree([fixed_axis("geo", 6, 3)])
    leaves = np.arange(0, 18, 2, dtype=np.int32)  # the others are empty
    return hr.Counts.from_leaves(tree, (leaves,), np.arange(9, dtype=np.int64) ** 2 + 1)


@pytest.fixture(scope="module")
def settings(counts):
    plans = {m: plain_plan(counts.tree, budget=BUDGET, neighbours=WHO, measure=m)
             for m in (hr.Survivors(), hr.All())}  # fmt: skip
    return [Setting(m.name, plan, hr.Euclidean()) for m, plan in plans.items()]


@pytest.mark.parametrize("rule", [Proportional(), Above(20), Seats()], ids=lambda rule: rule.name)
def test_it_is_that_of_the_releases_of_the_same_seed(counts, settings, rule):
    found = simulated_misallocation(
        counts, settings, "level2", rule, 100, public=True, runs=RUNS, seed=5, classes=(0, 1, 20)
    )
    truth = np.zeros(18, dtype=np.int64)
    truth[counts.codes[0]] = counts.values
    names = {label: i for i, label in enumerate(counts.tree.axes[0].labels[1])}
    for setting in settings:
        released = np.zeros((RUNS, 18), dtype=np.int64)
        for r in range(RUNS):
            bits = run_bits(5, r)
            made = in_memory(counts, setting.plan, estimator=setting.estimator, bits=bits)
            for row in made.level(depth=2).iter_rows(named=True):
                released[r, names[row["level2"]]] = row["count"]
        rows = misallocation(truth, released, rule, 100, (0, 1, 20))
        assert rows.equals(found.filter(setting=setting.name).drop("setting"))
    assert found["records"].unique(maintain_order=True).to_list() == [
        "0", "1–19", "20 and more", "all",
    ]  # fmt: skip


def test_negative_counts_share_as_none(counts):
    noisy = LeafNoise(counts.tree, BUDGET, WHO, hr.DiscreteGaussian)
    found = simulated_misallocation(
        counts, [noisy], "level2", Proportional(), 1, public=True, runs=RUNS
    )
    empty = found.filter(records="0")
    assert empty["due"].item() == 0
    assert 0 < empty["paid"].item() < 1


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"public": False}, "declare public=True"),
        ({"runs": 2}, "of at least 3, got 2"),
        ({"level": "county"}, "no depth 'county'; its depths are 'total', 'level1', 'level2'"),
    ],
    ids=["word", "few", "level"],
)
def test_what_cannot_be_simulated_is_refused(counts, settings, changed, words):
    given = {"level": "level1", "public": True, "runs": RUNS, **changed}
    with pytest.raises((PlanError, TableError), match=words):
        simulated_misallocation(counts, settings, rule=Proportional(), amount=1.0, **given)
