"""Public facts in a release directory: written, read back, and held by its check."""

import json
import shutil

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.errors import PlanError, ReleaseError
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.directory.check_facts import TableFacts
from hedgerow.release.directory.manifest import REPORT, sha256
from hedgerow.release.preflight import check_public_total
from hedgerow.tables.tree import cell_numbers
from tests.made import plain_plan
from tests.plan.test_facts import (
    APART,
    ONE,
    RULE,
    cells_of,
    is_open,
    known,
    planned,
    random_bounds,
    random_facts,
    random_tree,
)

ROWS = hr.PublicTable(
    {
        "tract": ["1a", "1a", "2a"],
        "block": ["1a1", "1a1", "2a2"],
        "hhgq": ["home", "prison", "nursing"],
        "address": ["here", "there", "nowhere"],
        "n": [0, 2, 1],
    },
    zeros="unlisted",
    at_least="n",
)
PLENTY = {"budget": hr.Epsilon(10**4), "mechanism": hr.DiscreteLaplace, "measure": hr.All()}
"""Hardly any noise, whose page is soon made."""


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A release with nearly no noise, of a table that keeps to the facts."""
    codes = [
        ("1a1", "home", "minor", 30),
        ("1a1", "prison", "adult", 20),
        ("2a2", "nursing", "adult", 9),
    ]
    rows = pl.DataFrame(codes, schema=["block", "hhgq", "votingage", "n"], orient="row")
    table = rows.with_columns(hispanic=pl.lit("n"), race=pl.lit("b"))
    plan = planned(RULE, ROWS, **PLENTY)
    folder = tmp_path_factory.mktemp("facts") / "out"
    hr.release(hr.Counts.from_frame(ONE, table, count="n"), plan, directory=folder)
    return plan, folder


@pytest.fixture
def copied(released, out):
    return shutil.copytree(released[1], out)


def failures(folder):
    return [finding.failure for finding in hr.check(folder) if not finding.passed]


def test_a_release_with_facts_passes_its_check_and_reads_back_with_its_plan(released):
    plan, folder = released
    assert failures(folder) == []
    held = [finding.what for finding in hr.check(folder) if "leave nobody" in finding.what]
    assert held == [
        "place.block × person.detail: nobody where public facts leave nobody, bounds kept"
    ]
    again = hr.read_release(folder).plan
    assert again.hash == plan.hash
    assert np.array_equal(again.constraints.zeros, plan.constraints.zeros)
    assert [a.tolist() for a in again.constraints.has] == [a.tolist() for a in plan.constraints.has]


def test_the_page_says_that_facts_are_public(copied):
    assert "facts from public files and rules" in (copied / REPORT).read_text()
    plain = planned(**PLENTY)
    counts = hr.Counts.from_frame(ONE, pl.DataFrame(cells_of(ONE)[0]))
    hr.release(counts, plain, directory=copied.parent / "plain")
    assert "facts from public files" not in (copied.parent / "plain" / REPORT).read_text()


def test_the_directory_has_the_rows_that_were_used_and_no_more(released):
    _, folder = released
    assert [path.name for path in (folder / "domain" / "public").iterdir()] == ["2.parquet"]
    rows = pl.read_parquet(folder / "domain" / "public" / "2.parquet")
    assert rows.columns == ["block", "hhgq", "n"]
    assert rows.rows() == [("1a1", "home", 0), ("1a1", "prison", 2), ("2a2", "nursing", 1)]
    text = (folder / "manifest.json").read_text()
    assert "nowhere" not in text
    assert json.loads(text)["plan"]["public"][0] == {
        "zeros": {"hhgq": ["nursing", "prison"], "votingage": ["minor"]}
    }


NAMED = {
    ONE: hr.Cuboids(["place.tract × person.hhgq", "place.block × person.detail"]),
    APART: hr.Cuboids(
        [
            "place.tract × hhgq.hhgq",
            "place.block × hhgq.hhgq × votingage.votingage × hispanic.hispanic",
        ]
    ),
}


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("neighbours", [hr.Replace(), hr.AddRemove()])
@pytest.mark.parametrize("tree", [ONE, APART])
@pytest.mark.sweep(3)
def test_a_release_of_a_table_that_contradicts_the_facts_keeps_to_them(
    tree, neighbours, named, out
):
    """The table has people in every cell, and is neither refused nor reported."""
    cells = [cell for row in cells_of(tree) for cell in row]
    table = pl.DataFrame(cells).with_columns(n=pl.int_range(pl.len()) % 7)
    rows = ROWS if tree is APART or not named else hr.PublicTable(ROWS.source, "unlisted")
    plan = plain_plan(
        tree,
        budget=hr.Rho("1/10"),
        neighbours=neighbours,
        workload=NAMED[tree] if named else hr.Cube(),
        measure=hr.All(),
        public=[RULE, rows],
    )
    counts = hr.Counts.from_frame(tree, table, count="n")
    released = hr.release(counts, plan, directory=out)
    assert failures(out) == []
    if neighbours == hr.Replace():
        total = released.level("total")["count"].sum()
        assert total == table["n"].sum(), "the public total includes everybody"


def signed(folder, name):
    """Let the manifest have the digest of a file."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"][name] = sha256(folder / name)
    path.write_text(json.dumps(manifest))


FILE = "domain/public/2.parquet"


def test_a_public_file_that_was_changed_fails_the_check(copied):
    rows = pl.read_parquet(copied / FILE).with_columns(n=pl.Series([0, 2, 2]))
    rows.write_parquet(copied / FILE)
    assert failures(copied) == [f"{FILE} was changed after the release"]
    signed(copied, FILE)
    assert any("not those of the plan" in failure for failure in failures(copied))
    with pytest.raises(ReleaseError, match="not verified"):
        hr.read_release(copied)


@pytest.mark.parametrize(
    "edit",
    [
        lambda rows: rows[:2],
        lambda rows: pl.concat([rows, rows]),
        lambda rows: rows.drop("n"),
        lambda rows: rows.with_columns(more=1),
        lambda rows: rows.with_columns(pl.col("n").cast(pl.Float64)),
        lambda rows: rows.with_columns(n=-pl.col("n")),
        lambda rows: rows.with_columns(block=pl.lit("x" * 10_000_000)),
        lambda rows: rows.with_columns(hhgq=pl.lit("\x1b[2J")),
        lambda rows: rows.with_columns(block=pl.lit(None, pl.String)),
    ],
)
def test_a_public_file_with_anything_else_in_it_fails_the_check(copied, edit):
    edit(pl.read_parquet(copied / FILE)).write_parquet(copied / FILE)
    signed(copied, FILE)
    found = failures(copied)
    assert found
    assert not any("\x1b" in failure or len(failure) > 2_100 for failure in found)


def test_one_file_more_among_the_public_ones_fails_the_check(copied):
    shutil.copy(copied / FILE, copied / "domain/public/1.parquet")
    signed(copied, "domain/public/1.parquet")
    assert failures(copied) == [
        "domain/public/1.parquet is no file of this plan's release, or is missing"
    ]


def test_the_check_asks_the_facts_of_every_table(released, monkeypatch):
    def nobody(*given):
        return np.zeros(len(given[-1]), dtype=bool)

    monkeypatch.setattr(TableFacts, "_may_hold", nobody)
    assert any("where public facts leave nobody" in failure for failure in failures(released[1]))


# --- what a table may hold, by brute force ------------------------------------------------------


def table_of(tree, levels, counts):
    """The released cells of a table: sums of counts of finest cells, row by row."""
    order = [tree.spine, *(a for a in range(len(tree.axes)) if a != tree.spine)]
    sizes = [tree.axes[a].size(tree.axes[a].depth) for a in order]
    codes = dict(zip(order, np.indices(sizes).reshape(len(order), -1), strict=True))
    above = tuple(
        tree.axes[a].ancestors(levels[a])[codes[a]].astype(np.int32) for a in range(len(tree.axes))
    )
    number, first = np.unique(cell_numbers(tree, levels, above), return_index=True)
    sums = np.zeros(len(number), dtype=np.int64)
    np.add.at(sums, np.searchsorted(number, cell_numbers(tree, levels, above)), counts.ravel())
    keep = sums > 0
    return Nodes.exact(tuple(code[first][keep] for code in above), sums[keep])


def random_levels(rng, tree):
    return tuple(int(rng.integers(0, axis.depth + 1)) for axis in tree.axes)


@pytest.mark.parametrize("seed", range(60))
def test_a_count_above_0_fails_exactly_where_no_finest_cell_may_hold_anybody(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    facts = random_facts(rng, tree)
    cells = np.array([[is_open(cell, facts) for cell in row] for row in cells_of(tree)])
    if not cells.any():
        return
    numbers = known(tree, *facts)
    for _ in range(4):
        levels = random_levels(rng, tree)
        may = table_of(tree, levels, cells.astype(np.int64))
        table = TableFacts(tree, numbers, levels)
        table.check(may)
        every = table_of(tree, levels, np.ones_like(cells, dtype=np.int64))
        allowed = set(zip(*map(np.ndarray.tolist, may.codes), strict=True))
        for row, codes in enumerate(zip(*map(np.ndarray.tolist, every.codes), strict=True)):
            alone = every.take(slice(row, row + 1))
            if codes in allowed:
                table.check(alone)
            else:
                with pytest.raises(ReleaseError, match="leave nobody"):
                    table.check(alone)


@pytest.mark.parametrize("seed", range(40))
def test_sums_outside_a_bound_fail_and_others_do_not(seed):
    rng = np.random.default_rng(seed)
    tree, facts = random_bounds(seed)
    try:
        numbers = known(tree, *facts)
    except PlanError:
        return
    cells = cells_of(tree)
    counts = np.array(
        [[int(rng.integers(0, 3)) if is_open(cell, facts) else 0 for cell in row] for row in cells]
    )
    deepest = tuple(axis.depth for axis in tree.axes)
    kept = True
    for fact in facts:
        for row in getattr(getattr(fact, "source", None), "iter_rows", lambda **_: [])(named=True):
            inside = np.array(
                [
                    [all(cell.get(k, v) == v for k, v in row.items()) for cell in each]
                    for each in cells
                ]
            )
            total = counts[inside].sum()
            if fact.at_least is not None:
                kept &= row["low"] <= total <= (row["high"] if row["high"] < 1 << 40 else np.inf)
    table, nodes = TableFacts(tree, numbers, deepest), table_of(tree, deepest, counts)
    if kept:
        table.check(nodes)
    else:
        with pytest.raises(ReleaseError, match="outside its public bounds"):
            table.check(nodes)


def test_bounds_are_met_by_some_tables_and_not_by_others():
    """One table by hand: a bound of a tract, of a block, and of everything."""
    says = {"hhgq": ["prison"], "low": [2], "high": [3]}
    for where in ({}, {"tract": ["1a"]}, {"block": ["1a2"]}):
        fact = hr.PublicTable({**where, **says}, at_least="low", at_most="high")
        for tree in (ONE, APART):
            deepest = tuple(axis.depth for axis in tree.axes)
            table = TableFacts(tree, known(tree, fact), deepest)
            prison = np.array([[c["hhgq"] == "prison" for c in row] for row in cells_of(tree)])
            for count in range(6):
                counts = np.zeros(prison.shape, dtype=np.int64)
                counts[1, prison[1].argmax()] = count
                counts[1, 0] = 50
                nodes = table_of(tree, deepest, counts)
                if 2 <= count <= 3:
                    table.check(nodes)
                else:
                    with pytest.raises(
                        ReleaseError, match=f"released count {count}.* bounds 2 to 3"
                    ):
                        table.check(nodes)


# --- a public total -----------------------------------------------------------------------------


def test_a_public_total_must_be_what_the_bounds_allow_for():
    fact = hr.PublicTable(
        {"hhgq": ["home", "nursing", "prison"], "low": [2, 3, 4], "high": [5, 6, 8]},
        at_least="low",
        at_most="high",
    )
    plan = planned(fact)
    for total in (9, 19):
        check_public_total(total, plan)
    for total in (8, 20):
        with pytest.raises(PlanError, match=f"has {total} records.* at least 9 and at most 19"):
            check_public_total(total, plan)
    with pytest.raises(PlanError, match="at least 9 and any more"):
        check_public_total(8, planned(hr.PublicTable({**fact.source}, at_least="low")))


def test_nothing_of_a_table_is_compared_where_its_total_is_not_public():
    fact = hr.PublicTable({"hhgq": ["home"], "low": [1000]}, at_least="low")
    for neighbours in (hr.AddRemove(), hr.Replace(2, exactly=False, unit="person")):
        check_public_total(3, planned(fact, neighbours=neighbours))
    with pytest.raises(PlanError, match="at least 1,000"):
        check_public_total(3, planned(fact))
