"""Small releases of each kind with their pages, and the dense algebra of their errors.

Variances are by matrices over all leaves, tails by enumeration: nothing here is computed as the
package computes it.
"""

import math

import numpy as np
import polars as pl
import pytest

from hedgerow.distribution.bins import coded_axis
from hedgerow.distribution.plan import plan_distribution
from hedgerow.distribution.ranges import Ranges
from hedgerow.estimate.families.chebyshev import Chebyshev
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.families.isotonic import Isotonic
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from hedgerow.plan.allocation.shares import Shares
from hedgerow.plan.cuboids import All, Invariant, Measured, RunningSums
from hedgerow.privacy.budget import Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.neighbours import AddRemove, Replace
from hedgerow.release.directory.measurements import counts_file, noisy_file
from hedgerow.tables.axis import Axis
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree
from tests.estimate.dense_trees import dense_combined, dense_projected
from tests.made import all_leaves, fixed_axis, plain_plan, random_axis, random_counts, random_tree
from tests.release.drawn_page import number
from tests.release.made_pages import written

BINS, WIDTH = 40, 25
ALPHA = 0.05
KINDS = ["geography", "flows", "parts", "combined", "cases", "uneven", "three", "numeric", "sums"]
NUMERIC = ["numeric", "sums"]
OTHERS = ["names of a chain", "empty"]
EVIL = "</script><script>alert('name')</script>"
NAMES = [EVIL, '"><img src=x onerror=alert(1)>', "&lt;b&gt;", "\u202eabc", "a\x00b", "$title", "—"]


def areas(rng, depth=3):
    tree = Tree([random_axis(rng, "geography", depth=depth, widest=6)])
    return random_counts(rng, tree, filled=0.9, mean=90)


def towns():
    """Measured well in the plan below, their total badly; and they must add up to it."""
    codes = (np.arange(30, dtype=np.int32),)
    return Counts.from_leaves(Tree([fixed_axis("geography", 30)]), codes, np.arange(200, 3200, 100))


def called():
    """Areas of two levels whose names are no words of a page."""
    frame = pl.DataFrame({
        "re</script <i>gion": [NAMES[0]] * (len(NAMES) - 1) + [NAMES[1]],
        'place"': [f"{name}{i}" for i, name in enumerate(NAMES)],
    })  # fmt: skip
    tree = Tree([Axis.from_frame("<i>where", frame, frame.columns)])
    return all_leaves(tree, np.full(len(NAMES), 500))


def incomes(rng, plan):
    return all_leaves(plan.tree, rng.integers(0, 300, BINS))


def planned():
    """One plan of each kind, with counts."""
    rng = np.random.default_rng(5)
    one, two = areas(rng), random_counts(rng, random_tree(rng, depth=2, widest=3))
    four = areas(rng, depth=4)
    ranges = Ranges.equal_width("income", 0, BINS * WIDTH, BINS)
    tree = plain_plan(Tree([coded_axis(ranges, [4, 10])]), budget=Epsilon(1), measure=All(),
                     neighbours=Replace(), mechanism=DiscreteLaplace)  # fmt: skip
    sums = plan_distribution(ranges, budget=Rho("1/10"), measure=RunningSums())
    yield "geography", plain_plan(one.tree, budget=Rho("1/2")), one, Chebyshev()
    yield (
        "flows",
        plain_plan(two.tree, budget=EpsilonDelta(1, "1e-8"), neighbours=Replace()),
        two,
        Chebyshev(),
    )
    yield (
        "parts",
        plain_plan(
            four.tree, budget=EpsilonDelta(2, "1e-7"), neighbours=Replace(),
            invariants=[Invariant("geography", "level1")], allocation=Shares([0, "1/4", "3/4"]),
        ),
        four,
        Chebyshev(),
    )  # fmt: skip
    yield "combined", plain_plan(one.tree, budget=Rho("1/50"), measure=All()), one, Euclidean()
    at_most_one = Replace(exactly=False)  # a record comes or goes, or moves: two cases
    yield "cases", plain_plan(one.tree, budget=Rho("1/2"), neighbours=at_most_one), one, Chebyshev()
    low = Shares(["1/100000", "99999/100000"])
    yield "uneven", plain_plan(towns().tree, budget=Rho(1), allocation=low), towns(), Euclidean()
    yield (
        "three",
        plain_plan(one.tree, budget=Rho("1/2"), neighbours=AddRemove(3)),
        one,
        Chebyshev(),
    )
    yield "numeric", tree, incomes(rng, tree), Euclidean()
    yield "sums", sums, incomes(rng, sums), Isotonic()
    yield "names of a chain", plain_plan(called().tree, budget=Rho("1/2")), called(), Chebyshev()
    nobody = Counts.from_leaves(two.tree, (np.zeros(0, np.int32),) * 2, np.zeros(0, np.int64))
    none = plain_plan(two.tree, budget=Rho("1/2"), neighbours=Replace())
    yield "empty", none, nobody, Chebyshev()


def released(place):
    """By kind: the plan, the page as it is read, and what the files hold."""
    found = {}
    for kind, plan, counts, estimator in planned():
        made = written(place / kind, counts, plan=plan, estimator=estimator, seed=2)
        made.files = [pl.read_parquet(made.folder / counts_file(k)) for k in plan.tree.chain]
        made.noisy = [noisy_of(made.folder, k) for k in plan.tree.chain]
        found[kind] = made
    assert list(found) == [*KINDS, *OTHERS]
    return found


def noisy_of(folder, levels):
    path = folder / noisy_file(levels)
    return pl.read_parquet(path)["noisy_count"].to_numpy() if path.exists() else None


def item(seen, term):
    """What a list of terms says of one."""
    (pair,) = [one for one in seen.all("div") if [t.text for t in one.all("dt")] == [term]]
    return pair.all("dd")[0]


def close(words, exact, digits):
    """Whether a figure is the exact one rounded to so many digits."""
    return number(words) == pytest.approx(exact, rel=0.51 * 10.0 ** (1 - digits), abs=1e-5)


# What the noise is, by enumeration.


def masses(mechanism):
    """The law of one draw: whole numbers, and their probabilities."""
    parameter = float(mechanism.parameter)
    gaussian = isinstance(mechanism, DiscreteGaussian)
    reach = int(40 * (math.sqrt(parameter) if gaussian else parameter)) + 60
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-(x * x) / (2 * parameter) if gaussian else -np.abs(x) / parameter)
    return x, weights / weights.sum()


def variance(mechanism):
    x, p = masses(mechanism)
    return float((x * x * p).sum())


def tail_quantile(mechanism, miss):
    """The least k that one draw exceeds with at most this probability."""
    x, p = masses(mechanism)
    beyond = np.cumsum(p)[: len(x) // 2][::-1]  # P(X < 0), P(X < -1), …
    return int(np.flatnonzero(2 * beyond <= miss)[0])


def own_variances(plan):
    """Of each depth's noisy counts: 0 where public, ∞ where not measured."""
    return [
        variance(what.mechanism) if isinstance(what, Measured)
        else 0.0 if what.kind == "public" else math.inf
        for what in plan.depths
    ]  # fmt: skip


def variances(plan):
    """Of the estimates of each depth, one array a depth."""
    if isinstance(plan.measure, RunningSums):
        covariance = covariance_of_sums(plan)
        steps = np.diff(np.eye(BINS + 1), axis=0)
        cuts = np.pad(covariance, ((1, 0), (1, 0)))
        return [np.array([covariance[-1, -1]]), np.diag(steps @ cuts @ steps.T)]
    combine = isinstance(plan.measure, All)
    return (dense_combined if combine else dense_projected)(plan.tree, own_variances(plan))


def covariance_of_sums(plan):
    """Of the decoded cumulative counts after each bin, the total being public: by dense inverses.

    Bins x are measured as s = W x with whole weights W, so y = cumsum(x) has the covariance of
    C W⁻¹, less what is learnt from y_K being known.
    """
    what = plan.depths[-1]
    weights = plan.strategy.weights
    matrix = np.zeros((BINS, BINS))
    for i in range(BINS):
        matrix[i:, i] = weights[: BINS - i]
    decode = np.tril(np.ones((BINS, BINS))) @ np.linalg.inv(matrix)
    covariance = variance(what.mechanism) * decode @ decode.T
    shared = covariance[:, -1]
    return covariance - np.outer(shared, shared) / shared[-1]
