"""Whether allocations are as good as they were: random plans, recorded by one tree, compared later.

``record FILE`` writes what 500 seeded plans share, and what their errors cost, computed here from
the variances of estimates and not by the optimiser; ``compare FILE`` makes them again, and says how
many cost more than before and which plans have another hash.
"""

import json
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import hedgerow as hr
from hedgerow.errors import HedgerowError
from hedgerow.estimate.tree.error import mean_variances
from hedgerow.estimate.tree.shapes import Shapes
from hedgerow.estimate.workload.even import EvenMeans
from hedgerow.plan.allocation.allocation import Problem, importances
from hedgerow.plan.cuboids import whole_cuboids
from hedgerow.plan.joint import Joint, shape_of_tree
from tests.acceptance.random_plans import axes_tree, axis_tree, cube_tree, every, small_tree, some

WORSE = 1e-6
"""By how much an error may be larger than it was, relatively."""


def noise(rng, kind):
    """A mechanism and a budget, and whose records are protected."""
    neighbours = [hr.AddRemove(), hr.AddRemove(3), hr.Replace(), hr.Replace(2, exactly=False)]
    how: dict[str, Any] = {"neighbours": neighbours[rng.integers(4)], "budget": hr.Rho("1/100")}
    if "ε" in kind:
        how |= {"mechanism": hr.DiscreteLaplace, "budget": hr.Epsilon("1/10")}
    if "δ" in kind:
        how |= {"mechanism": hr.DiscreteGaussian, "budget": hr.EpsilonDelta(1, "1e-8")}
    if "public" in kind:
        how["neighbours"] = hr.Replace(int(rng.integers(1, 3)))
    elif "measured" in kind:
        how["neighbours"] = hr.AddRemove(int(rng.integers(1, 3)))
    return how


def weights(rng, tree, cuboids, kind):
    """Importances that differ by up to 10⁴ times, or none, or those with a name."""
    drawn = [10 ** rng.uniform(-2, 2) * (rng.random() < 0.85) for _ in cuboids]
    if "by axis" in kind:
        levels = [[k for k in range(a.depth + 1) if not k or a.size(k) > a.size(k - 1)]
                  for a in tree.axes]  # fmt: skip
        return {
            axis.name: [10 ** rng.uniform(-1, 1) for _ in own]
            for axis, own in zip(tree.axes, levels, strict=True)
        }
    if "by cuboid" in kind:
        return {tree.name_of(c): w for c, w in zip(cuboids, drawn, strict=True)
                if rng.random() < 0.6}  # fmt: skip
    named = [None, hr.PerLevel(), hr.Relative()][rng.integers(3)]
    return drawn if "chain" in kind and rng.random() < 0.6 else named


def asked(tree, how, workload, measure, invariants=()):
    """What an allocation is asked."""
    mechanism = how.get("mechanism", hr.DiscreteGaussian)
    return Problem.of(
        tree, workload, how["neighbours"], mechanism, how["budget"], measure, invariants
    )


def drawn(rng, kind):
    """The problem of a random plan, and how to make it."""
    how, invariants = noise(rng, kind), []
    measure = hr.Survivors() if "survivors" in kind else hr.All()
    if kind.startswith("chain"):
        tree = small_tree(rng, [axis_tree, axes_tree][rng.integers(2)])
        workload = hr.Chain()
    elif kind.startswith("cube"):
        tree = small_tree(rng, lambda r: cube_tree(r, int(r.integers(2, 4))))
        workload = hr.Cube()
    else:
        tree = small_tree(rng, lambda r: cube_tree(r, int(r.integers(2, 4))))
        finest = [tuple(axis.depth for axis in tree.axes)] * (rng.random() < 0.7)
        cuboids = dict.fromkeys([*some(rng, every(tree), 2, 7), *finest])
        workload = hr.Cuboids([tree.name_of(c) for c in cuboids], chain=False)
    if how["neighbours"].total_is_public and rng.random() < 0.3 and not kind.startswith("named"):
        first, level = tree.steps[0]
        invariants = [hr.Invariant(tree.axes[first].name, tree.axes[first].levels[level - 1])]
    problem = asked(tree, how, workload, measure, invariants)
    how |= {"workload": workload, "measure": measure, "invariants": invariants}
    return problem, how


# --- what is allocated, and what it costs -------------------------------------------------------


def variances(problem, plan):
    """The mean variance of each cuboid that can be measured, in the model of its workload.

    Times the part of all worst changes that one unit can make at once, to the power of the noise.
    """
    tree, power = problem.tree, problem.mechanism.price.power
    given = dict(zip(plan.levels, plan.shares, strict=True))
    shares = np.array([float(given[levels] or 0) for levels in problem.cuboids])
    if problem.is_cube:
        assert isinstance(plan.design, Joint)
        return np.array([plan.design.nominal_variance(levels) for levels in problem.cuboids])
    part = float((problem.cases @ shares).max()) ** power
    if problem.is_named:
        shape = shape_of_tree(tree, problem.workload.cuboids(tree))
        whole = whole_cuboids(tree, problem.workload, problem.measure, problem.public)
        inside = np.array([levels in whole for levels in problem.cuboids])
        public = None if problem.public is None else shape.given(problem.public)
        kept = [shape.given(levels) for levels in problem.cuboids if levels in whole]
        with np.errstate(divide="ignore"):
            found = 1 / shares**power
        means = EvenMeans([axis.sizes for axis in shape.axes], kept, public)
        found[inside] = means.of(shares[inside] ** power)[0]
        return part * found
    own = np.full(tree.depth + 1, np.inf)
    own[: problem.depths[0]] = 0
    for t, share in zip(problem.depths, shares, strict=True):
        if share:
            own[t] = (
                float(problem.mechanism.price.variance) * (problem.sensitivity(t) / share) ** power
            )
    combine = isinstance(problem.measure, hr.All)
    return part * mean_variances(Shapes.of(tree), own, combine=combine)[[*problem.depths]]


Made = tuple[hr.Plan, float]
Maker = Callable[[np.random.Generator, str], Made]


def optimal(rng, kind):
    problem, how = drawn(rng, kind)
    objective: Any = "largest" if "largest" in kind else "released"
    importance = weights(rng, problem.tree, problem.cuboids, kind)
    rule = hr.Optimal(importance=importance, objective=objective)
    plan = hr.make_plan(problem.tree, allocation=rule, **how)
    costs = importances(problem, rule.importance) * variances(problem, plan)
    cells = [float(problem.tree.cells(levels)) for levels in problem.cuboids]
    return plan, float(costs.max() if objective == "largest" else costs @ cells)


def fair(rng, kind):
    problem, how = drawn(rng, kind)
    plan = hr.make_plan(problem.tree, allocation=hr.Fair(float(rng.uniform(1.2, 4))), **how)
    return plan, float(variances(problem, plan).sum())


def cheapest(rng, kind):
    problem, how = drawn(rng, kind)
    del how["budget"]
    if "level" in kind:
        chosen = {problem.cuboids[-1], *some(rng, problem.cuboids, 1, 3)}
        goal: dict[str, Any] = {
            "per_level": {problem.tree.name_of(c): float(rng.uniform(2, 30)) for c in chosen}
        }
    else:
        goal = {"target": float(10 ** rng.uniform(3, 5))}
    budget = hr.cheapest(problem.tree, **goal, **how)
    return budget, float(getattr(budget.budget, budget.budget.__slots__[0]))


KINDS: Mapping[str, Maker] = {
    "chain, all, ρ": optimal,
    "chain, all, ε": optimal,
    "chain, all, δ": optimal,
    "chain, survivors, ρ": optimal,
    "chain, survivors, ε": optimal,
    "cube, measured, by axis": optimal,
    "cube, measured, by axis, ε": optimal,
    "cube, measured, by cuboid": optimal,
    "cube, public": optimal,
    "cube, public, by cuboid": optimal,
    "cube, public, by cuboid, ε": optimal,
    "cube, survivors": optimal,
    "cube, measured, largest": optimal,
    "cube, public, largest, ε": optimal,
    "cube, largest, by cuboid": optimal,
    "named": optimal,
    "named, by cuboid": optimal,
    "named, by cuboid, ε": optimal,
    "named, largest": optimal,
    "named, largest, by cuboid, ε": optimal,
    "chain, survivors, fair, ρ": fair,
    "chain, survivors, fair, ε": fair,
    "cube, measured, fair": fair,
    "cube, public, fair": fair,
    "chain, all, cheapest": cheapest,
    "chain, all, cheapest, levels, ε": cheapest,
    "cube, cheapest": cheapest,
    "cube, cheapest, levels": cheapest,
    "named, cheapest": cheapest,
    "named, cheapest, levels": cheapest,
}


def made(kind, seed):
    """The plan of a kind and a seed, and what its errors cost; None where there is none."""
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    try:
        return KINDS[kind](rng, kind)
    except HedgerowError:
        return None


def record(number):
    """What so many plans share and cost, by kind and seed."""
    found = {}
    for seed in range(-(-number // len(KINDS))):
        for kind in KINDS:
            each = made(kind, seed)
            found[f"{kind}/{seed}"] = each and {
                "shares": [str(share or Fraction(0)) for share in each[0].shares],
                "hash": each[0].hash,
                "cost": each[1],
            }
    return found


def compare(before):
    """How much more each recorded plan costs now, by kind: None where its hash is what it was."""
    found: dict[str, list[float | None]] = {kind: [] for kind in KINDS}
    for key, old in before.items():
        kind, _, seed = key.rpartition("/")
        each = made(kind, int(seed))
        if old is None or each is None:  # a plan that was made is refused, or the other way round
            found[kind].append(None if old is None else np.inf)
        elif each[0].hash == old["hash"]:
            found[kind].append(None)
        else:
            found[kind].append(each[1] / old["cost"] - 1)
    return found


def main(what, file, number=510):
    """Record, or compare and print a table; return how many plans became worse."""
    path, write = Path(file), sys.stdout.write
    if what == "record":
        path.write_text(json.dumps(record(number), indent=0), encoding="utf-8")
        return 0
    found = compare(json.loads(path.read_text(encoding="utf-8")))
    write("| kind | plans | other hashes | worse | by at most | better by at most |\n")
    write("|---" * 6 + "|\n")
    worse = 0
    for kind, every_plan in found.items():
        changed = [each for each in every_plan if each is not None]
        lost = [each for each in changed if each > WORSE]
        worse += len(lost)
        most, least = max(lost, default=0.0), -min(changed, default=0.0)
        write(f"| {kind} | {len(every_plan)} | {len(changed)} | {len(lost)} | {most:.1e} | "
              f"{max(least, 0.0):.1e} |\n")  # fmt: skip
    write(f"\n{sum(map(len, found.values()))} plans; {worse} worse by more than {WORSE}.\n")
    return worse


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])), 1))
