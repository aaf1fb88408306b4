"""Public facts: what rules and files say, in numbers, against brute force; what is refused."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import hedgerow as hr
from hedgerow.errors import PlanError
from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.estimate.spine.support import UNBOUNDED, Support
from hedgerow.limits import LARGEST_LEAF
from hedgerow.plan import placed as placed_module
from hedgerow.plan.facts import constraints as constraints_module
from hedgerow.plan.facts.constraints import constraints_of
from hedgerow.plan.facts.facts import PublicTable, Zeros, read_facts
from hedgerow.plan.make import read_plan
from tests.made import random_axis

KINDS = {"hhgq": ["home", "nursing", "prison"]}
AGES = {"votingage": ["minor", "adult"]}
RACES = {"hispanic": ["h", "n", "n"], "race": ["w", "w", "b"]}
BLOCKS = {
    "county": ["1", "1", "1", "1", "2", "2"],
    "tract": ["1a", "1a", "1b", "1b", "2a", "2a"],
    "block": ["1a1", "1a2", "1b1", "1b2", "2a1", "2a2"],
}
PLACE = hr.Axis.from_frame("place", BLOCKS, levels=list(BLOCKS))


def person(product=("hhgq", "votingage", "detail")):
    return hr.Axis.from_product("person", [KINDS, AGES, RACES], product, attribute=True)


def apart():
    """Attributes as axes of their own."""
    return [
        hr.Axis.from_frame(next(iter(codes)), codes, levels=list(codes), attribute=True)
        for codes in (KINDS, AGES, {"hispanic": ["h", "n"]})
    ]


ONE = hr.Tree([PLACE, person()])
APART = hr.Tree([PLACE, *apart()])


def known(tree, *facts):
    return constraints_of(tree, read_facts(tree, facts))


def planned(*facts, tree=ONE, **options):
    options = {"budget": hr.Rho(1), "neighbours": hr.Replace(), "workload": hr.Cube()} | options
    return hr.make_plan(tree, public=facts, **options)


def refused(words, *facts, tree=ONE):
    with pytest.raises(PlanError, match=words) as error:
        known(tree, *facts)
    assert str(error.value).startswith("[[public]]")
    assert str(error.value).count("\n") == 0


# --- brute force ------------------------------------------------------------------------------


def cells_of(tree):
    """Every finest cell, in order: a dict of all its codes, those of the spine's ancestors too."""
    spine = tree.axes[tree.spine].leaf_frame().to_dicts()
    beside = [axis.leaf_frame().to_dicts() for a, axis in enumerate(tree.axes) if a != tree.spine]
    return [
        [place | {k: v for part in parts for k, v in part.items()} for parts in product(*beside)]
        for place in spine
    ]


def is_open(cell, facts):
    """Whether a cell may hold records, fact by fact, from the words alone."""
    for fact in facts:
        if isinstance(fact, Zeros):
            if all(cell[column] in codes for column, codes in fact.codes):
                return False
        elif fact.zeros is not None:
            frame = fact.source
            names = [name for name in frame.columns if name in cell]
            listed = tuple(cell[name] for name in names) in set(frame.select(names).rows())
            if listed == (fact.zeros == "listed"):
                return False
    return True


def opened(found):
    """Which finest cells may hold records, from facts in numbers: bool (nodes, attribute cells)."""
    rows = np.ones((found.spine.sizes[-1], found.groups), dtype=bool)
    if found.has is not None:
        rows[:] = False
        rows[found.has] = True
    return rows[:, found.group_of] & ~found.zeros


def random_tree(rng):
    spine = random_axis(rng, "g", 3, 3)
    columns = {"x": ["x0", "x1", "x2"], "y": ["y0", "y1"], "z": ["z0", "z1", "z2"]}
    used = {name: codes[: rng.integers(1, 4)] for name, codes in columns.items()}
    if rng.random() < 0.5:
        lists = [{name: codes} for name, codes in used.items()]
        order = list(rng.permutation(list(used)))
        return hr.Tree([spine, hr.Axis.from_product("p", lists, order, attribute=True)])
    axes = [
        hr.Axis.from_frame(f"axis_{n}", {n: c}, levels=[n], attribute=True) for n, c in used.items()
    ]
    rng.shuffle(axes)
    return hr.Tree([axes[0], spine, *axes[1:]])


def random_rows(rng, tree, columns, part):
    """Some of the combinations of codes in some columns that the tree's cells have, each once."""
    every = pl.DataFrame([cell for row in cells_of(tree) for cell in row])
    rows = every.select(columns).unique(maintain_order=True)
    return rows.filter(pl.Series(rng.random(len(rows)) < part))


def random_facts(rng, tree):
    spine = tree.axes[tree.spine]
    beside = [axis for a, axis in enumerate(tree.axes) if a != tree.spine]
    about = beside[rng.integers(len(beside))]
    facts = []
    for _ in range(rng.integers(1, 4)):
        kind = rng.integers(3)
        level = spine.columns[rng.integers(spine.depth)]
        if kind == 0:
            columns = [column for axis in beside for column in axis.columns]
            chosen = rng.choice(columns, size=rng.integers(1, 3), replace=False)
            codes = {n: random_rows(rng, tree, [n], 0.5)[n].to_list() for n in chosen}
            if all(codes.values()):
                facts.append(Zeros(codes))
            continue
        columns = [level] if kind == 1 else []
        columns += [c for c in about.columns if rng.random() < 0.6]
        rows = random_rows(rng, tree, columns, 0.7) if columns else pl.DataFrame()
        if len(rows):
            order = rng.permutation(rows.columns)
            rows = rows.sample(fraction=1, shuffle=True, seed=int(rng.integers(1 << 30)))
            zeros = ("unlisted", "listed")[rng.integers(2)]
            facts.append(PublicTable(rows.select(order), zeros=zeros))
    return facts


@pytest.mark.parametrize("seed", range(60))
def test_open_cells_are_those_that_no_fact_leaves_empty(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    facts = random_facts(rng, tree)
    wanted = np.array([[is_open(cell, facts) for cell in row] for row in cells_of(tree)])
    if not wanted.any():
        with pytest.raises(PlanError, match="leave nobody anywhere"):
            known(tree, *facts)
        return
    found = known(tree, *facts)
    assert np.array_equal(opened(found), wanted)
    assert found.open_cells == wanted.sum()
    assert found.cells == wanted.size
    assert np.array_equal(
        found.widths, np.bincount(found.group_of[~found.zeros], minlength=found.groups)
    )
    if found.has is not None:
        keys = found.has[0] * found.groups + found.has[1]
        assert (np.diff(keys) > 0).all()
    support = Support.of(found.spine, found.tree, found.widths, found.has, found.bounds)
    nodes = range(found.spine.sizes[-1])
    assert support.cells(found.spine.depth, nodes) == wanted.sum()


def bounds_of(facts, cells):
    """All bounds as rows of a linear program over cells."""
    rows, limits = [np.zeros(len(cells))], [0]
    for fact in (fact for fact in facts if not isinstance(fact, Zeros)):
        for row in fact.source.to_dicts():
            codes = {k: v for k, v in row.items() if k in cells[0]}
            mask = np.array([all(cell[k] == v for k, v in codes.items()) for cell in cells], float)
            for end, sign in ((fact.at_most, 1), (fact.at_least, -1)):
                if end is not None and row[end] < LARGEST_LEAF:
                    rows.append(sign * mask)
                    limits.append(sign * row[end])
    return {"A_ub": np.array(rows), "b_ub": limits}


def limits_by_program(tree, facts):
    """The least and the largest sum of all records under all bounds, by a linear program."""
    flat = [cell for row in cells_of(tree) for cell in row]
    bounds = [(0, None if is_open(cell, facts) else 0) for cell in flat]
    given = {**bounds_of(facts, flat), "bounds": bounds}
    least, largest = (linprog(sign * np.ones(len(flat)), **given) for sign in (1, -1))
    if least.status == 2:
        return None
    return round(least.fun), UNBOUNDED if largest.status == 3 else round(-largest.fun)


def random_bounds(seed):
    rng = np.random.default_rng(seed)
    tree = ONE if seed % 2 else APART
    facts = []
    if rng.random() < 0.5:
        facts.append(
            Zeros({"hhgq": ["nursing"], "votingage": ["minor", "adult"][: 1 + seed % 3 // 2]})
        )
    if rng.random() < 0.6:
        rows = random_rows(rng, tree, ["tract", "hhgq"], 0.8)
        facts.append(PublicTable(rows, zeros="unlisted"))
    for level in ("county", "tract", "block", None):
        if rng.random() < 0.6 or level == "block":
            rows = random_rows(rng, tree, [*filter(None, [level]), "hhgq"], 0.6)
            low = rng.integers(0, 4 if level == "block" else 9, len(rows))
            high = low + rng.integers(0, 25, len(rows)) + (40 if level is None else 0)
            rows = rows.with_columns(
                low=low, high=np.where(rng.random(len(rows)) < 0.2, 1 << 50, high)
            )
            ends = {"at_least": "low", "at_most": "high"}
            facts += [PublicTable(rows, **ends)] if len(rows) else []
    return tree, facts


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.sweep(4)
def test_bounds_that_no_counts_keep_are_refused_and_others_give_the_limits_of_the_total(seed):
    tree, facts = random_bounds(seed)
    wanted = limits_by_program(tree, facts)
    if wanted is None:
        with pytest.raises(PlanError, match=r"contradict|leaves nobody"):
            known(tree, *facts)
    else:
        found = known(tree, *facts)
        assert (found.least, found.most) == wanted


def test_some_of_the_bounds_above_contradict_each_other_and_some_do_not():
    kept = [limits_by_program(*random_bounds(seed)) is not None for seed in range(40)]
    assert 5 < sum(kept) < 35


# --- groups -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "columns", "level"),
    [
        (["hhgq", "votingage", "detail"], ["hhgq"], 1),
        (["hhgq", "votingage", "detail"], ["votingage"], 2),
        (["hhgq", "votingage", "detail"], ["hhgq", "votingage"], 2),
        (["hhgq", "votingage", "detail"], ["race"], 3),
        (["hhgq", "votingage", "detail"], [], 0),
        (["votingage", "hhgq", "detail"], ["votingage"], 1),
    ],
)
def test_groups_are_the_nodes_of_the_coarsest_level_that_the_columns_follow(order, columns, level):
    tree = hr.Tree([PLACE, person(order)])
    every = pl.DataFrame([cell for row in cells_of(tree) for cell in row])
    rows = every.select(["block", *columns]).unique()
    found = known(tree, PublicTable(rows, zeros="unlisted"))
    assert found.group_level == level
    assert found.groups == tree.axes[1].size(level)
    assert found.group_axis == 1


@pytest.mark.parametrize("form", ["frame", "file"])
def test_an_empty_bound_says_nothing(tmp_path, form):
    """As a spreadsheet leaves it: no 0 is read where a largest number is missing."""
    rows = pl.DataFrame(
        {"block": ["1a1", "1a2", "1b1"], "low": [None, 2, None], "high": [None, None, 0]},
        schema_overrides={"low": pl.Int64, "high": pl.Int64},
    )
    source = rows
    if form == "file":
        source = tmp_path / "bounds.csv"
        rows.write_csv(source)
    (fact,) = read_facts(ONE, [PublicTable(source, at_least="low", at_most="high")])
    assert fact.low.tolist() == [0, 2, 0]
    assert fact.high.tolist() == [UNBOUNDED, UNBOUNDED, 0]
    written = PublicTable(
        rows.with_columns(pl.col("low").fill_null(0), pl.col("high").fill_null(LARGEST_LEAF)),
        at_least="low",
        at_most="high",
    )
    assert fact.digest == read_facts(ONE, [written])[0].digest
    refused("column 'low' has a row without a value", PublicTable(rows, None, "low", "low"))


def test_levels_of_single_children_are_left_out():
    lone = {"state": ["s"] * 6, **BLOCKS, "again": BLOCKS["block"]}
    place = hr.Axis.from_frame("place", lone, levels=list(lone))
    kinds = hr.Axis.from_frame(
        "kind", {"any": ["a"] * 3, **KINDS}, levels=["any", "hhgq"], attribute=True
    )
    tree = hr.Tree([place, kinds])
    rows = {"again": ["1a1", "2a2"], "hhgq": ["nursing", "home"], "n": [1, 2]}
    found = known(tree, PublicTable(rows, zeros="unlisted", at_least="n"))
    assert found.spine.depth == 3
    assert (found.group_level, found.groups) == (1, 3)
    assert [bounds[0] for bounds in found.bounds] == [3]
    assert list(zip(*found.has, strict=True)) == [(0, 1), (5, 0)]


@pytest.mark.parametrize("seed", range(30))
def test_groups_at_the_leaves_leave_the_same_cells_open(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    try:
        found = known(tree, *random_facts(rng, tree))
    except PlanError:
        return
    beside = [a for a in range(len(tree.axes)) if a != tree.spine]
    number = beside[-1] if found.group_axis is None else found.group_axis
    own = AxisShape.of(tree.axes[number].child_start)
    has, bounds = found.at_leaves(number, own)
    assert bounds == ()
    rows = np.ones((found.spine.sizes[-1], own.sizes[-1]), dtype=bool)
    if found.has is not None:
        keys = has[0] * own.sizes[-1] + has[1]
        assert (np.diff(keys) > 0).all()
        rows[:] = False
        rows[has] = True
    sizes = [tree.axes[a].size(tree.axes[a].depth) for a in beside]
    leaf = np.unravel_index(np.arange(len(found.zeros)), sizes)[beside.index(number)]
    assert np.array_equal(rows[:, leaf] & ~found.zeros, opened(found))


def test_bounds_go_to_the_leaves_only_where_a_group_is_one():
    bound = table(None, "n", block=["1a1"], hhgq=["prison"], n=[2])
    own = AxisShape.of(ONE.axes[1].child_start)
    with pytest.raises(PlanError, match="bounds of several attribute cells together"):
        known(ONE, bound).at_leaves(1, own)
    apart = known(APART, bound)
    has, bounds = apart.at_leaves(1, AxisShape.of(APART.axes[1].child_start))
    assert has is None
    assert bounds == apart.bounds


def test_without_tables_by_place_there_is_one_group_and_nobody_is_left_out():
    rule = Zeros({"hhgq": ["nursing"], "votingage": ["minor"]})
    listed = PublicTable({"hhgq": ["nursing"], "votingage": ["minor"]}, zeros="listed")
    for tree, axis in ((ONE, 1), (APART, None)):
        for fact in (rule, listed):
            found = known(tree, fact)
            assert (found.groups, found.group_level, found.group_axis) == (1, 0, axis)
            assert found.has is None
            assert found.zeros.sum() == len(found.zeros) // 6
            assert (found.least, found.most) == (0, UNBOUNDED)


# --- what is refused ----------------------------------------------------------------------------


def table(zeros=None, at_least=None, at_most=None, **columns):
    return PublicTable(columns, zeros, at_least, at_most)


def test_names_that_the_tree_has_not_are_refused():
    refused("no attribute has a column 'hhg'.*did you mean 'hhgq'", Zeros({"hhg": ["home"]}))
    refused("no attribute has a column 'block'", Zeros({"block": ["1a1"]}))
    refused("hhgq has no code 'hom'; did you mean 'home'", Zeros({"hhgq": ["hom"]}))
    refused(
        "block has no code '1a' in the list of axis 'place'", table("listed", block=["1a1", "1a"])
    )
    refused("hhgq has no code 'hom'; did", table("listed", block=["1a1"], hhgq=["hom"]))
    refused("no column of an axis.*its columns are x", table("listed", x=["1"]))
    refused("has no column 'm'", table("unlisted", "m", block=["1a1"], n=[1]))


def test_a_combination_that_no_cell_has_is_refused():
    mixed = {"group": ["a", "a", "b"], "kind": ["a1", "a2", "b1"]}
    tree = hr.Tree([PLACE, hr.Axis.from_frame("k", mixed, levels=list(mixed), attribute=True)])
    refused(r"no cell is .*'a' × kind 'b1'", table("listed", group=["a"], kind=["b1"]), tree=tree)
    refused("no cell has group a × kind b1", Zeros({"group": ["a"], "kind": ["b1"]}), tree=tree)


def test_cells_that_are_listed_twice_are_refused():
    twice = {"block": ["1a1", "1a1"], "hhgq": ["home", "home"], "other": ["x", "y"]}
    refused("lists block '1a1' × hhgq 'home' twice", table("unlisted", **twice))


def test_rows_without_a_code_and_tables_without_rows_are_refused():
    refused("a row without a 'hhgq'", table("unlisted", block=["1a1"], hhgq=[None]))
    refused("a row without a 'hhgq'", table("unlisted", block=["1a1"], hhgq=[""]))
    refused("has no row", PublicTable(pl.DataFrame(schema={"block": pl.String}), "unlisted"))


def test_a_row_whose_places_do_not_nest_is_refused():
    rows = {"tract": ["1a", "1b"], "block": ["1a1", "1a2"]}
    refused("block '1a2' lies in tract '1a' and not in '1b'", table("unlisted", **rows))
    rows["tract"] = ["1a", "1a"]
    assert known(ONE, table("unlisted", **rows)).has[0].tolist() == [0, 1]


def test_bounds_below_each_other_are_refused_in_a_row():
    rows = {"block": ["1a1", "1a2"], "n": [1, 3], "m": [2, 2]}
    refused("block '1a2' has n = 3, above m = 2", table(None, "n", "m", **rows))


def test_records_where_nobody_may_be_are_refused():
    least = table(None, "n", tract=["1b"], hhgq=["nursing"], n=[2])
    refused(
        "has n = 2 for tract '1b' × hhgq 'nursing', where .*zeros leaves nobody",
        Zeros({"hhgq": ["nursing"]}),
        least,
    )
    other = table("unlisted", block=["1a1", "1b1"], hhgq=["nursing", "home"])
    refused(r"has n = 2 for tract '1b' × hhgq 'nursing', where .*table 1 leaves", other, least)
    some = table("unlisted", block=["1a1", "1b1"], hhgq=["nursing", "nursing"])
    assert known(ONE, some, least).least == 2


def test_bounds_of_several_levels_that_contradict_each_other_are_named():
    below = table(None, "n", block=["1a1", "1a2"], hhgq=["nursing"] * 2, n=[2, 3])
    above = table(None, None, "m", tract=["1a"], hhgq=["nursing"], m=[4])
    refused("tract '1a' × hhgq 'nursing' must have at least 5 and at most 4", below, above)
    refused("everything × hhgq", below, table(None, None, "m", hhgq=["nursing"], m=[4]))
    high = table(None, None, "m", block=["1a1", "1a2"], hhgq=["nursing"] * 2, m=[2, 3])
    low = table(None, "n", tract=["1a"], hhgq=["nursing"], n=[6])
    refused("tract '1a' × hhgq 'nursing' must have at least 6 and at most 5", high, low)


def test_bounds_of_several_groups_together_are_refused():
    fine = table("unlisted", block=["1a1"], hhgq=["home"], votingage=["adult"])
    refused(
        "bounds must be of single groups, and hhgq has several",
        fine,
        table(None, "n", block=["1a1"], hhgq=["home"], n=[1]),
    )
    refused("votingage has several", table(None, "n", block=["1a1"], votingage=["minor"], n=[1]))


def test_several_attributes_by_place_are_refused():
    facts = (
        table("listed", block=["1a1"], hhgq=["home"]),
        table("listed", block=["1a1"], votingage=["minor"]),
    )
    refused(
        "may speak of one attribute, and those .* speak of 'hhgq' and 'votingage'",
        *facts,
        tree=APART,
    )
    refused(
        "one attribute",
        table("listed", block=["1a1"], hhgq=["home"], votingage=["minor"]),
        tree=APART,
    )
    assert known(ONE, *facts).groups == 6


def test_facts_that_leave_nobody_are_refused():
    refused("leave nobody anywhere", Zeros({"hhgq": KINDS["hhgq"]}))
    homes = table("unlisted", block=["1a1"], hhgq=["home"])
    refused("leave nobody anywhere", homes, Zeros({"hhgq": ["home"]}))


def test_facts_that_say_nothing_or_are_none_are_refused():
    for make, words in (
        (lambda: Zeros({}), "name no column"),
        (lambda: Zeros({"hhgq": []}), "hhgq has no code"),
        (lambda: Zeros({"hhgq": "home"}), "must be a list of codes"),
        (lambda: Zeros(["hhgq"]), "must be a table of columns and codes"),
        (lambda: PublicTable({}), "needs zeros, at_least or at_most"),
        (lambda: PublicTable({}, zeros="none"), 'must be "unlisted" or "listed"'),
        (lambda: PublicTable({}, zeros="listed", at_least="n"), "have no bounds"),
        (lambda: planned("zeros"), "a public fact must be"),
        (lambda: planned(Zeros), "a public fact must be"),
    ):
        with pytest.raises(PlanError, match=words):
            make()


def test_facts_need_a_spine_and_no_chain():
    flat = hr.Tree([PLACE, hr.Axis.from_frame("k", KINDS, levels=["hhgq"])])
    rule = Zeros({"hhgq": ["home"]})
    for tree, workload in ((flat, hr.Cube()), (ONE, hr.Chain()), (ONE, None)):
        with pytest.raises(
            PlanError, match=r"goes with cuboids = \"cube\" or a list.*attribute = true"
        ):
            planned(rule, tree=tree, workload=workload)
    named = hr.Cuboids(["place.tract × person.hhgq", "place.block × person.detail"])
    assert planned(rule, workload=named).facts == (rule,)
    with pytest.raises(PlanError, match="goes with cuboids"):
        replace(planned(workload=hr.Chain()), facts=(rule,))


def test_a_chain_reads_no_public_file():
    with pytest.raises(PlanError, match="goes with cuboids"):
        planned(PublicTable("/nowhere.csv", "listed"), workload=hr.Chain())


def test_too_many_groups_and_attribute_cells_are_refused(monkeypatch):
    rows = table("unlisted", block=["1a1"], hhgq=["home"])
    monkeypatch.setattr(placed_module, "MOST_PUBLIC_PLACES", 17)
    refused("3 groups of attribute cells apart at 6 places", rows)
    monkeypatch.setattr(placed_module, "MOST_PUBLIC_PLACES", 18)
    known(ONE, rows)
    monkeypatch.setattr(constraints_module, "MOST_ATTRIBUTE_CELLS", 17)
    refused("attributes of up to 17 cells together, got 18", rows)


# --- plans --------------------------------------------------------------------------------------

FACILITIES = {
    "block": ["1a1", "1a1", "2a2"], "hhgq": ["home", "prison", "nursing"], "n": [0, 2, 1],
}  # fmt: skip
RULE = Zeros({"votingage": ["minor"], "hhgq": ["nursing", "prison"]})


def test_the_hash_is_of_what_facts_say_and_not_how_it_is_written(tmp_path):
    frame = pl.DataFrame(FACILITIES)
    frame.reverse().select("n", "hhgq", "block").write_csv(tmp_path / "some.csv")
    frame.with_columns(other=1).write_parquet(tmp_path / "other.parquet")
    says = {"zeros": "unlisted", "at_least": "n"}
    sources = frame, FACILITIES, tmp_path / "some.csv", str(tmp_path / "other.parquet")
    hashes = {planned(RULE, PublicTable(source, **says)).hash for source in sources}
    assert len(hashes) == 1
    again = Zeros({"hhgq": ["prison", "nursing", "nursing"], "votingage": ["minor"]})
    assert planned(again, PublicTable(frame, **says)).hash in hashes
    different = [
        planned(RULE),
        planned(),
        planned(RULE, PublicTable(frame, zeros="unlisted")),
        planned(RULE, PublicTable(frame, zeros=None, at_least="n")),
        planned(RULE, PublicTable(frame, zeros="unlisted", at_most="n")),
        planned(RULE, PublicTable(frame.with_columns(n=pl.Series([0, 2, 2])), **says)),
        planned(RULE, PublicTable(frame[:2], **says)),
        planned(Zeros({"hhgq": ["home"], "votingage": ["minor"]}), PublicTable(frame, **says)),
    ]
    hashes |= {plan.hash for plan in different}
    assert len(hashes) == 1 + len(different)


def test_a_plan_without_facts_says_nothing_of_them():
    assert "public" not in planned().to_dict()
    assert planned().constraints is None
    assert planned().facts == ()


def test_a_plan_with_facts_reads_back_as_itself():
    plan = planned(RULE, PublicTable(FACILITIES, zeros="unlisted", at_least="n"))
    described = json.loads(json.dumps(plan.to_dict()))
    assert read_plan(ONE, described, plan.facts).to_dict() == described
    assert read_plan(ONE, described).to_dict() != described


def test_facts_restrict_no_promise_and_cost_nothing():
    facts = RULE, PublicTable(FACILITIES, zeros="unlisted", at_least="n")
    with_facts, without = planned(*facts), planned()
    assert str(with_facts.promise) == str(without.promise)
    assert with_facts.protection == without.protection
    assert with_facts.guarantee.rho == without.guarantee.rho
    assert "do not restrict the promise" in str(with_facts)


def test_a_plan_says_how_many_cells_hold_nobody_and_how_many_bounds_there_are():
    plan = planned(RULE, PublicTable(FACILITIES, zeros="unlisted", at_least="n"))
    lines = plan.public_facts.splitlines()
    assert (
        "zeros hhgq nursing, prison × votingage minor: 6 of 18 attribute cells hold nobody"
        in lines[1]
    )
    assert "3 rows by block × hhgq; 15 of 18 cells hold nobody; 2 lower bounds" in lines[2]
    assert lines[3] == "Together, 12 of 108 finest cells may hold records."
    assert planned().public_facts == ""


def test_the_cheapest_plan_keeps_facts():
    plan = hr.cheapest(ONE, target=1000, neighbours=hr.Replace(), workload=hr.Cube(), public=[RULE])
    assert plan.facts == (RULE,)


def test_ten_million_rows_are_no_python_loop():
    """Numbers of rows appear in array shapes alone; a hundred thousand rows take well below 1 s."""
    blocks = 50_000
    place = hr.Axis.from_frame(
        "place", {"block": [f"{i:06d}" for i in range(blocks)]}, levels=["block"]
    )
    tree = hr.Tree([place, person()])
    rows = pl.DataFrame(
        {
            "block": place.labels[-1].gather(np.repeat(np.arange(blocks), 2)),
            "hhgq": ["home", "nursing"] * blocks,
            "n": np.arange(2 * blocks) % 5,
        }
    )
    found = known(tree, PublicTable(rows, zeros="unlisted", at_least="n"))
    assert found.open_cells == 2 * 6 * blocks
    assert found.least == rows["n"].sum()
