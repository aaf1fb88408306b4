"""Named cuboids whose shares are a product over the axes: where they are planned as a cube is."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate.funds import Proportional
from hedgerow.evaluate.share_intervals import share_intervals
from hedgerow.spec.allocation import release_file_lines
from tests.made import fixed_axis, plain_plan
from tests.oracle.made import axis, table
from tests.release.pairs import released

SPARSE = hr.Tree([
    fixed_axis("g", 2, 2, 2, 2, columns=[f"g{k}" for k in range(4)]),
    fixed_axis("a", 2, 3, columns=["a0", "a1"]),
])  # fmt: skip
"""Of the first axis levels 1 and 3 are lacking in `NAMES`; of the second none is but the total."""
NAMES = [f"g.level{i} × a.level{j}" for i in (2, 4) for j in (1, 2)]
SHARES = dict(zip(NAMES, ["1/16", "3/16", "3/16", "9/16"], strict=True))


def product(**options):
    """A plan of `NAMES` with shares that are a product."""
    options = {"budget": hr.Rho(1), "measure": hr.All(), "allocation": hr.Shares(SHARES)} | options
    return plain_plan(SPARSE, workload=hr.Cuboids(NAMES), **options)


def test_wide_noise_is_settled_with_the_weights_of_the_product():
    plan = product(budget=hr.Rho("1/100"))
    assert plan.design.squares is not None
    release = released(table(SPARSE, "named products", filled=40), plan)
    whole = release.level(NAMES[-1])
    for name in NAMES[:-1]:
        assert release.level(name)["count"].sum() == whole["count"].sum()


@pytest.mark.parametrize("rho", [5, 12, 30])
def test_narrow_noise_keeps_the_best_weights(rho):
    """Nominal weights would make errors of the finest cuboid up to 66 times larger."""
    plan = product(budget=hr.Rho(rho))
    assert plan.design.squares is None
    own = plan.by_levels[4, 2].mechanism.noise_variance
    assert plan.design.mean_variance((4, 2)) <= own * (1 + 1e-9)


def test_survivors_below_cuboids_that_lack_a_level_are_planned():
    plan = product(measure=hr.Survivors(), allocation=hr.Shares(dict.fromkeys(NAMES, "1/4")))
    assert plan.design.squares is None
    assert len(released(table(SPARSE, "named products", filled=40), plan).level(NAMES[0])) > 0


def test_funds_by_a_cuboid_of_a_product_have_intervals():
    release = released(table(SPARSE, "named products", filled=40), product(budget=hr.Rho("1/100")))
    found = share_intervals(release, NAMES[0], Proportional(), 1000.0, draws=200)
    assert (found["low"] <= found["high"]).all()


def test_shares_are_printed_as_named_cuboids_take_them():
    """Their closure has every combination of levels, yet they are no cube."""
    tree = hr.Tree([axis("g", (4,)), axis("a", (3,))])
    names = ["g.level1", "a.level1", "g.level1 × a.level1"]
    shares = dict(zip(names, ["3/10", "1/5", "1/2"], strict=True))
    options = {"budget": hr.Rho(1), "neighbours": hr.Replace(), "measure": hr.All()}
    plan = plain_plan(tree, workload=hr.Cuboids(names), allocation=hr.Shares(shares), **options)
    assert plan.workload != hr.Cube()
    printed = release_file_lines(plan)
    assert all(f'"{name}" = "{share}"' in printed for name, share in shares.items() if name)


def test_public_cells_beside_survivors_have_no_covariance():
    tree = hr.Tree([axis("g", (4,)), axis("a", (3,))])
    plan = plain_plan(
        tree,
        budget=hr.Rho(1),
        neighbours=hr.Replace(),
        workload=hr.Cube(),
        measure=hr.Survivors(),
        invariants=[hr.Invariant("g", "level1")],
    )
    release = released(table(tree, "public cells", filled=12), plan)
    found = hr.reestimate(release, hr.LeastSquares())
    assert np.array_equal(found.covariance([("g.level1", 0), ("g.level1", 1)]), np.zeros((2, 2)))


def test_counts_alone_off_a_chain_are_those_of_its_leaves():
    tree = hr.Tree([axis("from", (3,), (2, 1, 3)), axis("to", (4,))])
    plan = plain_plan(tree, budget=hr.Rho(1), measure=hr.All())
    release = released(table(tree, "counts alone", filled=15), plan)
    leaves = release.level(depth=tree.depth)
    column = tree.axes[1].columns[-1]
    wanted = leaves.group_by(column).agg(pl.col("count").sum()).sort(column)
    assert release.cuboid(None, to="level1").equals(wanted)
