"""Tables of extreme shapes and counts: released, or refused in a sentence; never wrapped."""

import subprocess
import sys
import textwrap

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.distribution.plan import plan_distribution
from hedgerow.errors import HedgerowError
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.limits import LARGEST_LEAF
from hedgerow.release.execution import in_memory
from hedgerow.release.preflight import check_public_total
from tests.hostile.commands import ends_well, ran, write
from tests.hostile.mutations import csv, parquet, toml
from tests.made import all_leaves, fixed_axis, plain_plan

ESTIMATORS = {
    "chebyshev": "survivors",
    "euclidean": "all",
    "sparse": "all",
    "least-squares": "all",
}


def spec(relation, measure="survivors", method="chebyshev", **privacy):
    penalty = {"penalty": 2} if method == "sparse" else {}
    return {
        "table": {"source": "table.parquet", "count": "n"},
        "axis": [{"name": "geo", "levels": ["region", "town"], "areas": "areas.csv"}],
        "privacy": {"neighbours": relation, **(privacy or {"rho": "1/20"})},
        "estimate": {"method": method, "measure": measure, **penalty},
    }


def released(folder, table, areas, described):
    """The exit code of a release of these files; one that is made passes its check."""
    files = {"table.parquet": parquet(table), "areas.csv": csv(areas)}
    write(folder, {**files, "release.toml": toml(described).encode()})
    code = ends_well(folder, "release", folder / "release.toml", makes="manifest.json")
    if code == 0:
        assert ran("check", folder / "out")[0] == 0
    return code


TOWNS = {"region": ["r1", "r1", "r2"], "town": ["a", "b", "c"]}
SMALL = {
    "empty": (
        pl.DataFrame(schema={"region": pl.String, "town": pl.String, "n": pl.Int64}).to_arrow(),
        TOWNS,
    ),
    "all zeros": ({**TOWNS, "n": [0, 0, 0]}, TOWNS),
    "a single cell": (
        {"region": ["r"], "town": ["t"], "n": [7]},
        {"region": ["r"], "town": ["t"]},
    ),
    "a single cell of zero": (
        {"region": ["r"], "town": ["t"], "n": [0]},
        {"region": ["r"], "town": ["t"]},
    ),
}


@pytest.mark.parametrize("method", ESTIMATORS)
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.sweep(4)
def test_hardly_anything_is_a_table_too(tmp_path, name, relation, method):
    table, areas = SMALL[name]
    code = released(tmp_path, table, areas, spec(relation, ESTIMATORS[method], method))
    nothing_to_measure = name.startswith("a single cell") and relation == "replace"
    assert code == (2 if nothing_to_measure else 0)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize(
    ("counts", "fits"),
    [
        ([2**40 - 1, 0, 0], True),
        ([2**40 - 3, 1, 1], True),
        ([2**40, 0, 0], False),
        ([2**40 - 1, 1, 0], False),
        ([2**62, 2**62, 2**62], False),
        ([2**63 - 1, 0, 0], False),
        ([2**64 - 1, 2**64 - 1, 2], False),
    ],
)
@pytest.mark.sweep(3)
def test_a_table_beyond_the_limit_is_refused_only_where_its_size_is_public(
    tmp_path, relation, counts, fits
):
    kind = pl.Int64 if max(counts) < 2**63 else pl.UInt64
    table = pl.DataFrame({**TOWNS, "n": pl.Series(counts, dtype=kind)}).to_arrow()
    is_released = fits or relation == "add-remove"
    assert released(tmp_path, table, TOWNS, spec(relation)) == (0 if is_released else 2)
    if is_released:
        found = pl.read_parquet(tmp_path / "out" / "counts" / "cuboid=0.parquet")["count"].item()
        assert abs(found - sum(min(n, LARGEST_LEAF) for n in counts)) < 100


@pytest.mark.parametrize("method", ["euclidean", "sparse", "least-squares"])
@pytest.mark.parametrize("records", [2**39, 2**39 + 1, 2**40, 2**41, 2**62])
@pytest.mark.sweep(3)
def test_whether_real_estimates_are_released_does_not_depend_on_the_number_of_records(
    tmp_path, method, records
):
    half = records // 2
    table = pa.table({**TOWNS, "n": pa.array([records - half, half, 7], pa.int64())})
    assert released(tmp_path, table, TOWNS, spec("add-remove", "all", method)) == 0
    found = pl.read_parquet(tmp_path / "out" / "counts" / "cuboid=0.parquet")["count"].item()
    assert abs(found - min(records + 7, 2**40)) < 100


def test_running_sums_of_any_number_of_records_are_released():
    plan = plan_distribution(
        hr.Ranges.equal_width("x", 0, 64, 64),
        budget=hr.Rho(1),
        neighbours=hr.AddRemove(),
        measure=hr.RunningSums(),
    )
    codes = (np.arange(64, dtype=np.int32),)
    for each in (2**33, 2**34, 2**40, 2**62):
        counts = hr.Counts.from_leaves(plan.tree, codes, np.full(64, each))
        found = in_memory(counts, plan, estimator=hr.Isotonic(), bits=seeded_bits(1))
        total = found.level(depth=0)["count"].item()
        assert total == pytest.approx(min(64 * each, 2**40), abs=100)


@settings(max_examples=100)
@given(
    st.lists(st.integers(0, LARGEST_LEAF), min_size=4, max_size=4),
    st.integers(0, 100),
    st.sampled_from([hr.Chebyshev(), hr.Euclidean(), hr.Sparse(penalty=1.0), hr.LeastSquares()]),
    st.sampled_from([hr.Survivors(), hr.All()]),
    st.sampled_from([hr.Replace(), hr.AddRemove()]),
    st.integers(0, 1000),
)
def test_huge_counts_under_huge_noise_add_up_or_are_refused(
    values, digits, estimator, measure, neighbours, seed
):
    tree = hr.Tree([fixed_axis("geo", 2, 2)])
    try:
        plan = plain_plan(
            tree, budget=hr.Rho(f"1e-{digits}"), neighbours=neighbours, measure=measure
        )
        codes = (np.arange(4, dtype=np.int32),)
        counts = hr.Counts.from_leaves(tree, codes, np.array(values))
        check_public_total(counts.unwrapped_total, plan)
        release = in_memory(counts, plan, estimator=estimator, bits=seeded_bits(seed))
    except HedgerowError:
        reject()
    whole = [release.level(depth=t) for t in range(3)]
    assert all((frame["count"] > 0).all() for frame in whole)
    sums = {sum(frame["count"].to_list()) for frame in whole}
    assert len(sums) == 1, "a sum has wrapped"
    if neighbours.total_is_public:
        assert sums == {sum(min(value, LARGEST_LEAF) for value in values)}


@pytest.mark.parametrize(
    ("estimator", "measure"),
    [
        (hr.Chebyshev(), hr.Survivors()),
        (hr.Euclidean(), hr.Survivors()),
        (hr.LeastSquares(), hr.All()),
    ],
    ids=lambda given: given.name,
)
def test_inner_nodes_of_any_size_are_released(estimator, measure):
    """A node of more than 2^21 full leaves has more than 2^61 records."""
    many = (1 << 21) + 2
    codes = pl.int_range(many, eager=True).cast(pl.String).str.zfill(7)
    areas = pl.DataFrame({"region": ["a"] * (many - 1) + ["b"], "code": codes})
    tree = hr.Tree([hr.Axis.from_frame("geo", areas, ["region", "code"])])
    plan = plain_plan(tree, budget=hr.Rho(1), neighbours=hr.AddRemove(), measure=measure)
    full = np.full(many, LARGEST_LEAF)
    counts = all_leaves(tree, full)
    release = in_memory(counts, plan, estimator=estimator, bits=seeded_bits(1))
    assert release.measurements(depth=1)["noisy_count"].max() == 2**61
    most = 2**40 if isinstance(measure, hr.All) else 2**61
    assert release.level(depth=0)["count"].item() == release.level(depth=1)["count"].sum() == most


@pytest.mark.parametrize(
    ("axes", "measure"),
    [(1, hr.Survivors()), (2, hr.All())],
    ids=["64 levels, survivors", "twice 32 levels, all"],
)
@pytest.mark.sweep(2)
def test_a_tree_of_depth_64_is_released(tmp_path, axes, measure):
    """At each level one node has a second child, where the axis ends."""
    depth = 64 // axes
    levels = [f"level{k:02}" for k in range(depth)]
    paths = [["on"] * k + [f"end{k}"] * (depth - k) for k in range(depth)] + [["on"] * depth]
    rows = [[f"{code}.{k}" for k, code in enumerate(path)] for path in paths]
    frame = pl.DataFrame(rows, schema=levels, orient="row")
    names = [f"a{i}" for i in range(axes)]
    tree = hr.Tree(
        [hr.Axis.from_frame(n, frame, levels, columns=[f"{n}_{k}" for k in levels]) for n in names]
    )
    assert tree.depth == 64
    leaves = tuple(np.arange(len(frame), dtype=np.int32) for _ in names)
    counts = hr.Counts.from_leaves(tree, leaves, np.full(len(frame), 1_000_000))
    release = hr.release(counts, plain_plan(tree, budget=hr.Rho(1), measure=measure))
    release.write(tmp_path / "out")
    assert [f for f in hr.check(tmp_path / "out") if f.failure] == []
    found = release.level(depth=64)
    assert (abs(found["count"] - 1_000_000) < 1_000).sum() == len(frame)


AREAS = """
    import tempfile
    from pathlib import Path
    import numpy as np, polars as pl
    import hedgerow as hr

    n = 10_000_000
    names = pl.int_range(n, eager=True).cast(pl.String).str.zfill(8)
    tree = hr.Tree([hr.Axis.from_frame("geo", pl.DataFrame({"area": names}), ["area"])])
    plan = hr.make_plan(tree, budget=hr.Rho(2))
    some = np.arange(0, n, 100, dtype=np.int32)
    counts = hr.Counts.from_leaves(tree, (some,), np.full(len(some), 100))
    with tempfile.TemporaryDirectory() as folder:
        release = hr.release(counts, plan, directory=Path(folder) / "out")
        assert release.level(depth=1)["count"].sum() == release.level(depth=0)["count"].item()
    # Not getrusage: a child starts with the peak of the process that it was forked from.
    status = Path("/proc/self/status").read_text()
    print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
"""


@pytest.mark.slow
def test_ten_million_areas_in_one_family_take_two_gigabytes():
    code = textwrap.dedent(AREAS)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=1200
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 2_000_000, "kilobytes"
