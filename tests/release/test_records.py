"""Records of a release: as many rows as it counted, wherever they are summed, batch by batch."""

import tracemalloc

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow.errors import MachineError, ReleaseError
from hedgerow.release.directory import parquet_file
from hedgerow.release.directory.measurements import counts_layout
from hedgerow.release.records import repeated
from tests.made import plain_plan

PLACES = pl.DataFrame({"county": ["a", "a", "b"], "town": ["a1", "a2", "b1"]})
TREE = hr.Tree([
    hr.Axis.from_frame("place", PLACES, levels=["county", "town"]),
    hr.Axis.from_frame("sex", {"sex": ["f", "m"]}, levels=["sex"]),
])  # fmt: skip


def released(workload=None, people=(900, 30, 500, 0, 7, 40)):
    cells = PLACES.join(pl.DataFrame({"sex": ["f", "m"]}), how="cross")
    table = cells.with_columns(people=pl.Series(people))
    counts = hr.Counts.from_frame(TREE, table, count="people")
    options = {} if workload is None else {"workload": workload}
    plan = plain_plan(TREE, budget=hr.Rho(1), neighbours=hr.Replace(), **options)
    return hr.release(counts, plan)


@pytest.fixture(params=["memory", "directory"])
def release(request, out):
    made = released()
    if request.param == "memory":
        return made
    made.write(out)
    return hr.read_release(out)


@pytest.mark.parametrize("rows", [1, 7, 100, 1 << 18])
def test_sums_of_records_are_those_of_the_release(release, rows):
    frames = list(release.records(rows=rows))
    assert max(map(len, frames)) <= rows
    assert all(map(len, frames))
    records = pl.concat(frames)
    assert records.columns == ["county", "town", "sex"]
    assert len(records) == 1477
    for columns, found in [
        (["county"], release.cuboid(None, place="county")),
        (["county", "sex"], release.cuboid(None, place="county", sex="sex")),
        (["county", "town", "sex"], release.cuboid(None, place="town", sex="sex")),
    ]:
        sums = records.group_by(columns).len("count").sort(columns)
        assert sums.equals(found.sort(columns).with_columns(pl.col("count").cast(pl.UInt32)))


def test_records_stand_in_the_order_of_the_tree(release):
    records = pl.concat(release.records(rows=10))
    assert records.select(pl.struct(pl.all()).rle_id().max()).item() + 1 == len(
        release.level("place.town × sex.sex")
    )


def test_a_coarser_cuboid_has_records_of_its_own(release):
    records = pl.concat(release.records("place.county"))
    assert records.columns == ["county"]
    assert len(records) == 1477
    assert pl.concat(release.records(depth=1)).equals(records)


def test_one_of_several_tables_must_be_named():
    made = released(hr.Cuboids(["place.county × sex.sex", "place.town"]))
    with pytest.raises(ReleaseError, match=r"has 'place\.county × sex\.sex' and 'place\.town'"):
        made.records()
    assert pl.concat(made.records("place.town")).columns == ["county", "town"]
    assert pl.concat(made.records("place.county × sex.sex")).columns == ["county", "sex"]


def test_the_total_has_no_records_to_tell_apart(release):
    with pytest.raises(ReleaseError, match="1,477 records are all alike"):
        release.records("total")


def test_a_release_of_nobody_has_columns_and_no_rows(out):
    made = released(people=(0,) * 6)
    made.write(out)
    for release in (made, hr.read_release(out)):
        (frame,) = release.records()
        assert frame.shape == (0, 3)
        assert frame.schema == dict.fromkeys(["county", "town", "sex"], pl.String)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([900, 0, 5], "missing, or not above 0"),
        ([900, -3, 5], "missing, or not above 0"),
        ([900, None, 5], "missing, or not above 0"),
        ([1 << 62, 1 << 62, 1 << 62], "missing, or not above 0"),
    ],
)
def test_counts_that_are_none_are_refused(counts, said):
    part = pl.DataFrame({"town": ["a", "b", "c"], "count": counts}, schema_overrides={"count": int})
    with pytest.raises(ReleaseError, match=said):
        next(repeated(part, 10))


def test_a_file_whose_counts_are_others_is_noticed_at_its_end(out):
    released().write(out)
    file = out / "counts" / "cuboid=2-1.parquet"
    table = pq.read_table(file)
    pq.write_table(table.slice(1), file)
    with pytest.raises(ReleaseError, match="and 1,477 records were released: run hedgerow check"):
        list(hr.read_release(out).records())


def test_a_count_of_billions_is_written_out_in_batches():
    part = pl.DataFrame({"town": ["a", "b"], "count": [2, 10**10]})
    first, second, *_ = (frame for frame, _ in zip(repeated(part, 1000), range(3), strict=False))
    assert first["town"].to_list() == ["a"] * 2 + ["b"] * 998
    assert second["town"].to_list() == ["b"] * 1000


def test_memory_is_bounded_by_a_batch_and_not_by_the_release(tmp_path):
    """A file of 40 row groups takes no more than one of two, nor do 2 million records of 4,000."""
    peaks = []
    for groups, each in ((2, 2), (40, 2), (2, 500)):
        peaks.append(peak_of(tmp_path / f"{groups}-{each}", groups, each))
    assert peaks[1] < 1.5 * peaks[0]
    assert peaks[2] < 1.5 * peaks[0]


def peak_of(folder, groups, each):
    """Bytes of NumPy, at the peak of reading many places with a group of them in each row group."""
    places = 2_000 * groups
    names = pl.DataFrame({"town": [f"{i:06d}" for i in range(places)]})
    tree = hr.Tree([hr.Axis.from_frame("place", names, levels=["town"])])
    counts = hr.Counts.from_leaves(
        tree, (np.arange(places, dtype=np.int32),), np.full(places, each)
    )
    plan = plain_plan(tree, budget=hr.Rho(10**6), neighbours=hr.Replace())
    hr.release(counts, plan).write(folder)
    file = folder / "counts" / "cuboid=1.parquet"
    pq.write_table(pq.read_table(file), file, row_group_size=2_000)
    made = hr.read_release(folder)
    rows = sum(map(len, made.records(rows=1_000)))  # the lists of areas are read by now
    tracemalloc.start()
    assert sum(map(len, made.records(rows=1_000))) == rows == places * each
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_there_must_be_memory_for_a_row_group_and_not_for_the_file(out, monkeypatch):
    peak_of(out, 10, 1)
    release, name = hr.read_release(out), "counts/cuboid=1.parquet"
    layout = counts_layout(release.plan.tree, (1,))
    file = out / name
    largest = max(parquet_file._bytes_of(file, pq.read_metadata(file), layout))
    monkeypatch.setattr(parquet_file, "SURELY_FREE", 0)

    def read(free):
        monkeypatch.setattr(parquet_file, "available_memory", lambda: free)
        return sum(map(len, release.content.parts((1,), 1_000)))

    assert read(largest) == 20_000
    with pytest.raises(MachineError, match="GB of memory"):
        read(largest - 1)
    with pytest.raises(MachineError, match="GB of memory"):
        parquet_file.read_parquet(out, name, layout)
