"""The page of a cube: pairs of levels with their margins, and what it carries, against the files.

Errors are by dense matrices (`tests.estimate.cube.dense_cubes`), counts from the Parquet files.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import ReleaseError
from hedgerow.estimate.cube.shape import CubeShape
from hedgerow.release.directory.measurements import counts_file
from hedgerow.release.page import cuboids as cuboids_module
from hedgerow.release.page.carried import Cells
from hedgerow.release.page.cuboids import Carried
from hedgerow.text import visible
from tests.estimate.cube.dense_cubes import cuboid_sums, dense_gain
from tests.made import all_leaves
from tests.release.drawn_page import read, table, tables
from tests.release.made_pages import (
    CUBES,
    USUAL,
    areas,
    blocks_of,
    counts_of,
    facts_of,
    page_of,
    written,
)
from tests.release.shown_pages import close, variance

pytestmark = pytest.mark.xdist_group("pages")  # the releases are made once

LEVELS = "Level by level"
PAIRS = "Expected error (RMSE) of every pair of levels"
TWO = [kind for kind in CUBES if kind != "three axes"]
INTERVAL, ESTIMATE = "95 % interval", "unbiased estimate"


# What it carries.


def test_some_of_the_cubes_here_have_contradicted_counts_and_some_have_none(cubes):
    found = {kind: sum(counts_of(cubes[kind], levels)["contradicted"].sum()
                       for levels in cubes[kind].plan.levels) for kind in CUBES}  # fmt: skip
    assert found["doubtful"] > 5
    assert found["pairs"] == 0


def levels_carried(text):
    return [tuple(levels) for levels in facts_of(text)["cuboids"]]


def rows_of(made):
    return {levels: len(counts_of(made, levels)) for levels in made.plan.levels}


def test_margins_are_carried_before_pairs_and_these_coarse_to_fine(cubes, monkeypatch):
    made, rows = cubes["pairs"], rows_of(cubes["pairs"])
    margins = [levels for levels in made.plan.levels if not all(levels)]
    pairs = [levels for levels in made.plan.levels if all(levels)]
    for few in (margins, [*margins, *pairs[:2]]):
        monkeypatch.setattr(
            cuboids_module, "MOST_NODES_OF_A_PAGE", sum(rows[levels] for levels in few)
        )
        assert levels_carried(page_of(made)) == few


def test_what_is_carried_fits_in_so_many_characters_and_rows(cubes, monkeypatch):
    made = cubes["pairs"]
    size = {one.attributes["id"]: len(one.text) for one in made.seen.all("script")
            if one.attributes.get("type") == "text/plain"}  # fmt: skip
    whole, finest = sum(size.values()), made.plan.levels[-1]
    for name, most in (
        ("MOST_CHARACTERS", whole),
        ("MOST_NODES_OF_A_PAGE", sum(rows_of(made).values())),
    ):
        monkeypatch.setattr(cuboids_module, name, most)
        assert levels_carried(page_of(made))[-1] == finest
        monkeypatch.setattr(cuboids_module, name, most - 1)
        assert finest not in levels_carried(page_of(made))
        monkeypatch.undo()


def test_the_page_names_the_files_of_what_it_does_not_carry(cubes, monkeypatch):
    made = cubes["pairs"]
    assert "This page carries the counts of all combinations of levels." in made.seen.text
    finest = made.plan.levels[-1]
    monkeypatch.setattr(cuboids_module, "MOST_NODES_OF_A_PAGE", sum(rows_of(made).values()) - 1)
    words = read(page_of(made)).all("details", id="files")[0].text
    assert "This page carries the counts of 11 of 12 combinations of levels, to stay" in words
    assert f"The others are in the Parquet files beside it: {counts_file(finest)}." in words
    monkeypatch.setattr(cuboids_module, "MOST_NODES_OF_A_PAGE", 0)
    words = read(page_of(made)).text
    assert "The counts are in the Parquet files of this release." in words
    assert "This page carries no counts, to stay small." in words


def test_counts_that_a_browser_cannot_hold_are_left_to_the_files(cubes, monkeypatch):
    made = cubes["pairs"]
    top = int(counts_of(made, (1, 1))["high"].max())
    monkeypatch.setattr(cuboids_module, "LARGEST_DOUBLE", top)
    carried = levels_carried(page_of(made))
    assert carried == []  # the total is above it, and nothing is carried without its margins
    monkeypatch.setattr(cuboids_module, "LARGEST_DOUBLE", made.counts.total + 1)
    assert len(levels_carried(page_of(made))) == 12


# What it refuses.


def test_equal_sums_at_other_areas_do_not_add_up(cubes):
    used = {(0, 0): np.zeros(1, int), (1, 0): np.zeros(1, int), (0, 1): np.arange(3),
            (1, 1): np.arange(2)}  # fmt: skip
    made = Carried(cubes["pairs"].plan, used=used)

    def one_cell(*codes):
        one, places = np.array([5]), tuple(np.array([code]) for code in codes)
        flat = 2 * places[0] + places[1]
        return Cells(places, flat, one, one, one, one, *(np.array([False]),) * 2)

    below, above = ((1, 1), one_cell(2, 1)), ((0, 1), one_cell(0, 1))
    cuboids_module.check_adds_up(made, below, above)
    with pytest.raises(ReleaseError, match="do not add up"):
        cuboids_module.check_adds_up(made, below, ((0, 1), one_cell(0, 0)))


def test_an_area_that_no_coarser_cuboid_has_is_refused(cubes, monkeypatch):
    """All flows from regions move to the next region, the last one's to one that has none."""
    read = cuboids_module.read_nodes

    def moved(folder, tree, levels):
        nodes = read(folder, tree, levels)
        return replace(nodes, codes=(nodes.codes[0] + 1, nodes.codes[1])) if all(levels) else nodes

    made = cubes["pairs"]
    assert page_of(made) == made.text
    monkeypatch.setattr(cuboids_module, "read_nodes", moved)
    with pytest.raises(ReleaseError, match=r"=1-1\.parquet are of other areas than coarser ones"):
        page_of(made)


# The first table.


def sentence(row):
    """What stands in a margin: the count, the interval, the estimate."""
    exact = row["low"] == row["high"] == row["count"]
    interval = "exact" if exact else f"{row['low']:,} to {row['high']:,}"
    return [f"{row['count']:,}", interval, f"{round(row['estimate']):,}"]


def by_labels(made, levels):
    columns = [axis.columns[k - 1] for axis, k in zip(made.tree.axes, levels, strict=True) if k]
    return {
        tuple(visible(row[column]) for column in columns): row
        for row in counts_of(made, levels).iter_rows(named=True)
    }


def check_doubt(cell, row):
    told = [one.text for one in cell.all("small")]
    wanted = (
        f"≠ contradicted; unbiased estimate {round(row['estimate']):,}; "
        "the count was changed so that none is negative and all add up"
    )
    assert told == ([wanted] if row["contradicted"] else [])


FIRST = {
    "pairs": (1, 1),
    "doubtful": (1, 1),
    "open": (1, 1),
    "names of a cube": (1, 1),
    "only": (1, 2),
}


@pytest.mark.parametrize("kind", FIRST)
def test_without_scripts_a_pair_stands_with_the_counts_of_its_margins(cubes, kind):
    made, levels = cubes[kind], FIRST[kind]
    (whole,) = by_labels(made, (0, 0)).values()
    down, across = by_labels(made, (levels[0], 0)), by_labels(made, (0, levels[1]))
    cells, found = by_labels(made, levels), table(made.seen, "Counts by")
    corner = next(iter(found.rows[0]))
    rows = {row[corner].text: row for row in found.rows}
    assert len(rows) == len(found.rows) == 3 + len(down)
    columns = list(found.rows[0])[1:]
    assert columns[:3] == ["all", INTERVAL, ESTIMATE]
    assert columns[3:] == [name for (name,) in across]
    for (name,), row in across.items():
        told = [rows[words][name] for words in ("all", INTERVAL, ESTIMATE)]
        check_doubt(told[0], row)
        assert [told[0].inside[0], *(one.text for one in told[1:])] == sentence(row)
    for (name,), row in down.items():
        told = [rows[name][words] for words in ("all", INTERVAL, ESTIMATE)]
        check_doubt(told[0], row)
        assert [told[0].inside[0], *(one.text for one in told[1:])] == sentence(row)
    assert [rows["all"][words].text for words in columns[:3]] == sentence(whole)
    for (row,) in down:
        for (column,) in across:
            known = cells.get((row, column))
            assert rows[row][column].inside[0] == (f"{known['count']:,}" if known else "0")
            if known:
                check_doubt(rows[row][column], known)


def test_where_a_pair_is_too_wide_its_rows_are_listed(cubes, monkeypatch):
    made = cubes["pairs"]
    monkeypatch.setattr(cuboids_module, "MOST_COLUMNS", 1)
    monkeypatch.setattr(cuboids_module, "MOST_ROWS", 2)
    found = table(read(page_of(made)), "Counts by home region; the first 2 of 3")
    told = [[one.text for one in row.values()] for row in found.rows]
    wanted = [[name, *sentence(row)] for (name,), row in by_labels(made, (1, 0)).items()]
    assert told == wanted[:2]


# The levels.


@pytest.mark.parametrize("kind", TWO)
def test_the_pairs_of_levels_have_the_cells_shares_and_dense_errors(cubes, kind):
    made = cubes[kind]
    found, plan = table(made.seen, PAIRS), made.plan
    names = [["total", *(f"{axis.name} {level}" for level in axis.levels)]
             for axis in made.tree.axes]  # fmt: skip
    corner = next(iter(found.rows[0]))
    assert corner == "{} ↓{} →".format(*(axis.name for axis in made.tree.axes))
    assert [row[corner].text for row in found.rows] == names[0]
    assert list(found.rows[0])[1:] == names[1]
    errors = dense_errors(plan)
    for i, row in enumerate(found.rows):
        for j, name in enumerate(names[1]):
            cell, what = row[name], plan.by_levels[i, j]
            many, share = (one.text for one in cell.all("small"))
            size = made.tree.axes[0].size(i) * made.tree.axes[1].size(j)
            assert many == f"{size:,} count{'s' if size > 1 else ''}"
            if isinstance(what, hr.Measured):
                assert close(share, float(what.share), 3)
            else:
                assert share == what.kind
            if isinstance(what, hr.Public):
                assert cell.inside[0] == "exact"
            else:
                assert close(cell.inside[0], errors[i, j], 4)


def dense_errors(plan):
    """The root mean variance of each cuboid's estimates."""
    shape = CubeShape.of([axis.child_start for axis in plan.tree.axes])
    fixed = None if plan.public is None else shape.given(plan.public)
    noise = {
        shape.given(levels): variance(what.mechanism)
        for levels, what in plan.by_levels.items()
        if isinstance(what, hr.Measured)
    }
    found = {}
    if isinstance(plan.measure, hr.Survivors):
        leaves = plan.levels[-1]
        found[leaves] = math.sqrt(noise[shape.given(leaves)])
        for levels in plan.levels[:-1]:
            corners = [c for c in ((1, 2), (2, 1)) if levels[0] <= c[0] and levels[1] <= c[1]]
            found[levels] = min(boxed(plan, corner, levels, noise, fixed) for corner in corners)
        return found
    for levels in plan.levels:
        found[levels] = mean_error(shape, levels, noise, fixed)
    return found


def boxed(plan, corner, levels, noise, fixed):
    """The error where the cuboids above a corner alone are combined."""
    starts = [axis.child_start[:k] for axis, k in zip(plan.tree.axes, corner, strict=True)]
    kept = {c: v for c, v in noise.items() if c[0] <= corner[0] and c[1] <= corner[1]}
    return mean_error(CubeShape.of(starts), levels, kept, fixed)


def mean_error(shape, levels, noise, fixed):
    _, covariance = dense_gain(shape, noise, fixed)
    sums = cuboid_sums(shape, shape.given(levels))
    return math.sqrt(max(0.0, np.diag(sums @ covariance @ sums.T).mean()))


@pytest.mark.parametrize("kind", CUBES)
def test_two_axes_have_their_levels_as_a_matrix(cubes, kind):
    made = cubes[kind]
    paired = [caption for caption in tables(made.seen) if caption.startswith(PAIRS)]
    assert len(paired) == (kind != "three axes")


# Words, names and rules of the page.


def test_a_page_says_how_a_cube_was_measured(cubes):
    whole, few = (
        cubes[kind].seen.all("details", id="made")[0].text for kind in ("pairs", "doubtful")
    )
    assert "to all possible counts, at 11 of 12 combinations of levels (cuboids)." in whole
    assert "all possible counts (of home district × work district, those of which every" in few
    assert "count was released as positive), at 8 of 9 combinations of levels (cuboids)." in few
    for kind in ("pairs", "doubtful"):
        text = cubes[kind].seen.text
        assert "those of every combination of levels add up to those of all coarser ones" in text
        assert "Every combination of levels that this page carries adds up to all coarser" in text
        assert "table DIR --by" not in text  # every combination is on the page


def test_a_cube_over_one_axis_has_the_page_of_its_chain(tmp_path):
    tree = hr.Tree([areas("home", 3, 4)])
    counts = all_leaves(tree, np.arange(100, 112))
    made = written(tmp_path / "one", counts, workload=hr.Cube(), **USUAL)
    assert made.plan.is_chain
    assert facts_of(made.text)["cuboids"] == [[0], [1], [2]]
    assert set(blocks_of(made.text)) == {
        "level-0-1", "level-0-2", "exact-0",
        *(f"{what}-{k}" for what in ("cuboid", "intervals") for k in range(3)),
    }  # fmt: skip


def test_an_empty_cube_has_a_page(tmp_path):
    tree = hr.Tree([areas("home", 2, 2), areas("work", 2)])
    counts = hr.Counts.from_leaves(tree, (np.zeros(0, np.int32),) * 2, np.zeros(0, np.int64))
    made = written(tmp_path / "empty", counts, workload=hr.Cube(), **USUAL)
    assert "The counts are in the Parquet files of this release." in made.seen.text


def test_every_table_of_a_cubes_page_is_held_by_a_test(cubes):
    known = (
        "Counts by",
        "How many counts are firm",
        "more tables",
        PAIRS,
        LEVELS,
        "Standard error of the unbiased estimates",
        "ε at several δ",
    )
    for made in cubes.values():
        captions = [caption.lstrip("0123456789 ") for caption in tables(made.seen)]
        assert all(caption.startswith(known) for caption in captions)
