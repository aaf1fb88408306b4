"""Plans along a spine at the ends of what they take: exact figures, bounds, sizes, refusals."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.plan.planned_spine import PlannedSpine
from hedgerow.plan.tables import PlannedTables
from hedgerow.release.execution import in_memory
from tests.made import plain_plan


def axis(name, size, band=None, *, attribute=True):
    """An axis of so many leaves, in bands of so many or without."""
    codes = {name: [f"{name}{i:07d}" for i in range(size)]}
    if band is not None:
        codes = {f"{name}_band": [f"{name}b{i // band:05d}" for i in range(size)], **codes}
    return hr.Axis.from_frame(name, codes, levels=list(codes), attribute=attribute)


def place(size):
    return axis("place", size, attribute=False)


def counts_of(tree, value):
    codes = tuple(np.zeros(1, dtype=np.int32) for _ in tree.axes)
    return hr.Counts.from_leaves(tree, codes, np.array([value]))


@pytest.mark.parametrize("seed", range(8))
def test_a_sum_that_facts_and_the_total_tell_has_no_variance_below_0(seed):
    rng = np.random.default_rng(seed)
    kinds, ages = axis("kind", 7, band=3), axis("age", 2)
    tree = hr.Tree([place(3), kinds, ages])
    inside = {"place": ["place0000000", "place0000002"], "kind": ["kind0000003", "kind0000004"]}
    cuboids = ["kind.kind_band", "kind.kind_band × age.age", "place.place × age.age", "kind.kind",
               "age.age", "place.place × kind.kind × age.age"]  # fmt: skip
    plan = plain_plan(
        tree,
        budget=hr.Rho(f"{rng.integers(1, 10**6)}/1000000"),
        neighbours=hr.Replace(),
        workload=hr.Cuboids(cuboids),
        public=[hr.PublicTable(inside, zeros="unlisted")],
    )
    assert "Marginals" in type(plan.design.model).__name__
    found = hr.forecast(plan).filter(cuboid="kind.kind_band")["rmse"][0]
    assert 0 <= found < 1e-4
    for levels in plan.levels:
        every = tuple(
            np.arange(a.size(k), dtype=np.int32) for a, k in zip(tree.axes, levels, strict=True)
        )
        grid = tuple(code.ravel() for code in np.meshgrid(*every, indexing="ij"))
        assert (plan.design.variances_at(plan.design.shape.given(levels), grid) >= 0).all()
    counts, bits = counts_of(tree, 40), seeded_bits(seed)
    made = in_memory(counts, plan, estimator=hr.Euclidean(), bits=bits)
    assert made.cuboid(kind="kind_band")["count"].to_list() == [40]


def cube(rho, **options):
    tree = hr.Tree([axis("place", 6, band=2, attribute=False), axis("kind", 6, band=3)])
    options = {"neighbours": hr.AddRemove(), "workload": hr.Cube(), **options}
    return plain_plan(tree, budget=hr.Rho(rho), **options)


def test_errors_are_called_exact_only_where_noise_has_the_variances_of_its_weights():
    wide = cube("1/10")
    assert "errors are exact" in wide.design.words
    assert wide.design.steps(wide.design.shape.finest) is None
    tree = wide.tree
    parts = (Fraction(1, 10), Fraction(1, 10), Fraction(8, 10))
    shares = {tree.name_of(k): parts[k[0]] * parts[k[1]] for k in wide.levels}
    narrow = cube(20, allocation=hr.Shares(shares))
    words = "errors are at most those stated, and at least "
    least = narrow.design.words.partition(words)[2].split(" %")[0]
    ratios = narrow.design.model.ratios
    assert 0.01 * int(least) <= (ratios.min() / ratios.max()) ** 0.5 < 0.01 * (int(least) + 1)
    assert not narrow.design.steps(narrow.design.shape.finest).is_exact


def test_attributes_of_too_many_cells_for_a_spine_are_held_as_tables():
    tree = hr.Tree([place(5), *(axis(f"a{i}", 2) for i in range(30))])
    cuboids = hr.Cuboids([f"place.place × a{i}.a{i}" for i in range(30)])
    plan = plain_plan(tree, budget=hr.Rho(1), workload=cuboids)
    assert isinstance(plan.design, PlannedTables)


@pytest.mark.parametrize(
    ("places", "kinds"),
    [(3, 1 << 15), (9000, 400), (1 << 18, 1 << 11)],
    ids=["groups", "pairs", "rows"],
)
def test_groups_too_many_for_matrices_are_held_as_tables_and_refused_with_facts(places, kinds):
    tree = hr.Tree([place(places), axis("kind", kinds, band=64)])
    cuboids = hr.Cuboids(["place.place × kind.kind", "kind.kind_band"])
    options = {"budget": hr.Rho(1), "workload": cuboids}
    if places * kinds < 1 << 27:
        assert isinstance(plain_plan(tree, **options).design, PlannedTables)
    rule = hr.Zeros({"kind": ["kind0000000"]})
    with pytest.raises(hr.PlanError, match="groups"):
        plain_plan(tree, public=[rule], **options)


def test_cells_too_many_for_the_matrices_of_variances_are_held_as_tables():
    tree = hr.Tree([place(3), axis("kind", 200), axis("age", 200)])
    cuboids = hr.Cuboids(["place.place × kind.kind × age.age", "kind.kind"])
    assert isinstance(plain_plan(tree, budget=hr.Rho(1), workload=cuboids).design, PlannedTables)


def test_groups_that_public_tables_tell_apart_in_a_cube_are_refused_if_too_many():
    tree = hr.Tree([place(3), axis("kind", 1 << 14, band=64)])
    listed = {"place": ["place0000001"], "kind": ["kind0000005"]}
    facts = [hr.PublicTable(listed, zeros="listed")]
    with pytest.raises(hr.PlanError, match="tell fewer groups apart"):
        plain_plan(tree, budget=hr.Rho(1), workload=hr.Cube(), public=facts)


def test_lower_bounds_of_more_records_than_are_counted_are_refused():
    tree = hr.Tree([place(9000), axis("kind", 2)])
    rows = pl.DataFrame({"place": tree.axes[0].labels[-1], "kind": ["kind0000000"] * 9000})
    rows = rows.with_columns(least=pl.lit((1 << 40) - 1))
    options = {"budget": hr.Rho(1), "workload": hr.Cube(), "neighbours": hr.AddRemove()}
    with pytest.raises(hr.PlanError, match=r"2\*\*53 records or more together"):
        plain_plan(tree, public=[hr.PublicTable(rows, at_least="least")], **options)
    few = plain_plan(tree, public=[hr.PublicTable(rows[:8], at_least="least")], **options)
    assert isinstance(few.design, PlannedSpine)


def far_apart(cuboid, times, *, rho=1, facts=True, attributes=2):
    """A plan that gives one cuboid nearly all of the budget, so many times another's share."""
    kind = axis("kind", 6, band=3)
    tree = hr.Tree([place(3), kind] + [axis("age", 2)] * (attributes - 1))
    rows = {"place": ["place0000000", "place0000001"], "kind": ["kind0000000", "kind0000003"]}
    finest = tree.name_of(tuple(a.depth for a in tree.axes))
    names = ["total", "kind.kind_band", "kind.kind", finest]
    options = {"workload": hr.Cuboids(names)}
    small = Fraction(1, times)
    shares = dict.fromkeys(names, small) | {cuboid: 1 - 3 * small}
    if attributes == 1:
        parts = [1 - 2 * small, small, small]
        shares = {tree.name_of((k, b)): Fraction(1, 2) * parts[b] for k in (0, 1) for b in range(3)}
        options = {"workload": hr.Cube()}
    return plain_plan(
        tree,
        budget=hr.Rho(rho),
        neighbours=hr.AddRemove(),
        allocation=hr.Shares(shares),
        public=[hr.PublicTable(rows, zeros="listed")] if facts else [],
        **options,
    )


@pytest.mark.parametrize("attributes", [1, 2])
def test_noise_too_far_apart_for_least_squares_in_doubles_is_refused_when_planned(attributes):
    with pytest.raises(hr.PlanError, match=r"times another's.*give the one a larger share"):
        far_apart("total", 10**18, attributes=attributes)


def test_noise_too_far_apart_for_a_spine_is_held_as_tables_without_facts():
    assert isinstance(far_apart("total", 10**12, facts=False).design, PlannedTables)


@pytest.mark.parametrize(("rho", "times"), [(1, 10**10), (100, 10**8), (10**6, 10**12)])
@pytest.mark.parametrize("cuboid", ["total", "kind.kind_band"])
def test_what_is_measured_far_better_than_its_parts_keeps_its_variance(cuboid, rho, times):
    plan = far_apart(cuboid, times, rho=rho)
    joint, levels = plan.design, plan.tree.named(cuboid)
    own = joint.noise[joint.shape.given(levels)]
    codes, _ = joint.codes_of(joint.shape.given(levels))
    found = joint.variances_at(joint.shape.given(levels), codes)
    assert plan.by_levels[levels].mechanism.noise_variance <= own * (1 + 1e-9)
    assert own <= max(1e-4, plan.by_levels[levels].mechanism.noise_variance)
    np.testing.assert_allclose(found, own, rtol=1e-3)
