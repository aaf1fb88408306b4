"""The command `estimate` on what is damaged, odd or in the way: one sentence, and exit code 2."""

import json
import shutil

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow.cli import run
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.plan.describe import plan_hash
from hedgerow.release.execution import in_memory
from hedgerow.release.reestimate.external import Measurements
from hedgerow.release.reestimate.reestimate import estimate_measurements, reestimate
from hedgerow.tables.counts import Counts
from tests.made import fixed_axis, plain_plan, random_counts

METHODS = ["euclidean", "chebyshev", "sparse", "least-squares"]
LEAVES = "s,c,noisy_count,variance\n1,a,10,2\n1,b,11,2\n2,c,12,2\n2,d,13,2\n"


def made_release(folder, measure, neighbours=None, *, empty=False):
    tree = hr.Tree([fixed_axis("geo", 3, 4)])
    counts = random_counts(np.random.default_rng(1), tree, filled=0.9)
    if empty:
        counts = Counts.from_leaves(tree, (np.empty(0, np.int32),), np.empty(0, np.int64))
    plan = plain_plan(
        tree, budget=hr.Rho("1/2"), measure=measure, neighbours=neighbours or hr.AddRemove()
    )
    release = in_memory(counts, plan, estimator=hr.Chebyshev(), bits=seeded_bits(5))
    release.write(folder)
    return folder


@pytest.fixture(scope="module", params=[hr.All(), hr.Survivors()], ids=["all", "survivors"])
def whole(request, tmp_path_factory):
    return made_release(tmp_path_factory.mktemp("whole") / "out", request.param)


@pytest.fixture
def out(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "out")
    return tmp_path / "out"


def manifest(change):
    def spoil(out):
        stated = json.loads((out / "manifest.json").read_text())
        change(stated)
        (out / "manifest.json").write_text(json.dumps(stated))

    return spoil


def noisy(depth, change):
    """A change of the noisy counts of a depth, given as a list."""

    def spoil(out):
        path = out / "measurements" / f"cuboid={depth}.parquet"
        values = pq.ParquetFile(path).read()["noisy_count"].to_pylist()
        pq.write_table(pa.table({"noisy_count": change(values)}), path)

    return spoil


def listed(depth, change):
    def spoil(out):
        path = out / "counts" / f"cuboid={depth}.parquet"
        pq.write_table(change(pq.ParquetFile(path).read()), path)

    return spoil


DAMAGES = {
    "no plan": manifest(lambda m: m.pop("plan")),
    "plan is a list": manifest(lambda m: m.update(plan=[])),
    "no promise": manifest(lambda m: m.pop("promise")),
    "no estimator": manifest(lambda m: m.pop("estimator")),
    "no measure": manifest(lambda m: m["plan"].pop("measure")),
    "bad measure": manifest(lambda m: m["plan"].update(measure=["all"])),
    "noisy is no number": noisy(2, lambda v: [float("nan")] * len(v)),
    "noisy is text": noisy(2, lambda v: ["x"] * len(v)),
    "noisy is too large": noisy(0, lambda v: [2**63 - 1] * len(v)),
    "noisy is too small": noisy(2, lambda v: [-(2**63)] * len(v)),
    "noisy is doubled": noisy(0, lambda v: v + v),
    "total listed twice": listed(0, lambda t: pa.concat_tables([t, t])),
    "no depth 1": lambda out: (out / "counts/cuboid=1.parquet").unlink(),
    "no noise of depth 1": lambda out: (out / "measurements/cuboid=1.parquet").unlink(),
    "no domain": lambda out: (out / "domain/geo.parquet").unlink(),
    "no Parquet": lambda out: (out / "counts/cuboid=1.parquet").write_bytes(b"PAR1xxxxPAR1"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("method", [hr.Euclidean(), hr.LeastSquares()], ids=lambda m: m.name)
def test_a_damaged_release_is_refused_in_a_sentence(out, damage, method):
    damage(out)
    with pytest.raises(hr.HedgerowError) as caught:
        reestimate(out, method)
    assert caught.value.exit_code == 2


def test_a_damaged_release_is_sent_to_check(out, capsys):
    DAMAGES["no plan"](out)
    assert run(["estimate", str(out)]) == 2
    assert "is damaged (KeyError): run hedgerow check" in " ".join(capsys.readouterr().err.split())


def test_the_name_of_an_axis_is_no_path(out):
    def rename(written):
        written["plan"]["tree"]["axes"][0].update(name="../../secret")
        written["plan_sha256"] = plan_hash(written["plan"])

    manifest(rename)(out)
    with pytest.raises(hr.ReleaseError, match="without dots and slashes"):
        reestimate(out, hr.Euclidean())


@pytest.mark.parametrize("method", [hr.Euclidean(), hr.LeastSquares()], ids=lambda m: m.name)
def test_a_total_listed_on_one_side_alone_stands_beside_0(tmp_path, method):
    folder = made_release(tmp_path / "out", hr.All())
    total = reestimate(folder, hr.Euclidean()).level(depth=0)["count"].item()
    for depth in range(3):
        listed(depth, lambda t: t.slice(0, 0))(folder)
    frame = reestimate(folder, method).level(depth=0)
    assert frame["released"].to_list() == [0]
    if "count" in frame.columns:
        assert frame["count"].to_list() == [total]


@pytest.mark.parametrize("measure", [hr.All(), hr.Survivors()], ids=["all", "survivors"])
@pytest.mark.parametrize("method", [hr.Euclidean(), hr.LeastSquares()], ids=lambda m: m.name)
def test_an_empty_table_with_a_public_total_has_no_other_row(tmp_path, measure, method):
    folder = made_release(tmp_path / "out", measure, hr.Replace(), empty=True)
    total, *below = reestimate(folder, method).frames.values()
    assert [len(frame) for frame in below] == [0, 0]
    assert total["released"].to_list() == [0] * isinstance(method, hr.LeastSquares)


def test_an_empty_public_total_above_noisy_counts_is_refused(tmp_path):
    folder = made_release(tmp_path / "out", hr.All(), hr.Replace(), empty=True)
    noisy(2, lambda _: [5])(folder)
    with pytest.raises(hr.ReleaseError, match="more or fewer"):
        reestimate(folder, hr.LeastSquares())


def test_estimates_of_the_directory_one_stands_in_go_beside_it(out, monkeypatch):
    monkeypatch.chdir(out)
    assert run(["estimate", "."]) == 0
    assert (out.parent / "out.euclidean" / "estimate.json").exists()


def test_nothing_lies_beside_the_root_of_all_files(capsys):
    assert run(["estimate", "/", "--method", "euclidean"]) == 2
    assert "--output" in capsys.readouterr().err


def test_a_release_is_not_written_into(out, capsys):
    assert run(["estimate", str(out), "--output", str(out / "inside")]) == 2
    assert "lies within the release" in " ".join(capsys.readouterr().err.split())
    assert not (out / "inside").exists()


def test_a_taken_place_is_called_by_the_option_that_names_it(out, capsys):
    assert run(["estimate", str(out), "--output", str(out.parent)]) == 2
    shown = capsys.readouterr().err
    assert "--output" in shown
    assert "[output]" not in shown


def measured(folder, tables, more=""):
    """A measurement file with its tables: texts, or data frames, by level."""
    (folder / "areas.csv").write_text("s,c\n1,a\n1,b\n2,c\n2,d\n")
    text = f'{more}\n[[axis]]\nname = "g"\nlevels = ["s", "c"]\nareas = "areas.csv"\n'
    for i, (level, table) in enumerate(tables):
        name = f"m{i}.{'csv' if isinstance(table, str) else 'parquet'}"
        if isinstance(table, str):
            (folder / name).write_text(table)
        else:
            table.write_parquet(folder / name)
        text += f'[[measurement]]\nlevel = "{level}"\nsource = "{name}"\n'
    (folder / "m.toml").write_text(text)
    return str(folder / "m.toml")


def refusal(file, capsys, method="euclidean"):
    assert run(["estimate", file, "--method", method]) == 2
    return " ".join(capsys.readouterr().err.split())


def test_a_header_with_a_nul_byte_is_refused(tmp_path, capsys):
    assert "is no table" in refusal(measured(tmp_path, [("c", "noisy\0count\n1\n")]), capsys)


@pytest.mark.parametrize("frame", [dict, pl.DataFrame, pa.table], ids=["dict", "polars", "arrow"])
def test_a_column_with_a_nul_byte_never_reaches_polars(frame):
    tree = hr.Tree([fixed_axis("geo", 3)])
    given = pa.table if frame is pa.table else dict
    columns = given({"noisy\0count": [1]})
    if frame is pl.DataFrame:
        columns = pl.DataFrame([pl.Series("noisy\0count", [1])])
    with pytest.raises(hr.TableError, match="control character"):
        Measurements.from_frames(tree, {1: columns})


def with_noisy(value):
    return LEAVES.replace(",10,", f",{value},")


def of_type(value):
    frame = pl.DataFrame({"s": ["1", "1", "2", "2"], "c": list("abcd")})
    return frame.with_columns(noisy_count=value, variance=pl.lit(1.0))


UNFIT = {
    "1e308": (with_noisy("1e308"), "", "between -2^61 and 2^61"),
    "-1e19": (with_noisy("-1e19"), "", "between -2^61 and 2^61"),
    "variance 1e-300": (LEAVES.replace("10,2", "10,1e-300"), "", "from 2^-300 to 2^300"),
    "variance 1e300": (LEAVES.replace("10,2", "10,1e300"), "", "from 2^-300 to 2^300"),
    "total 2^63": (LEAVES, f"total = {2**63}", "from 0 to 2^61"),
    "header alone": (LEAVES[:25], "", "nothing was measured"),
    "leaf missing": (LEAVES.replace("1,a,10,2\n", ""), "", "does not determine"),
    "binary": (of_type(pl.lit(b"1")), "", "need numbers"),
    "list": (of_type(pl.lit([1])), "", "need numbers"),
    "struct": (of_type(pl.struct(a=pl.lit(1))), "", "need numbers"),
    "bool": (of_type(pl.lit(True)), "", "need numbers"),
    "date": (of_type(pl.date(2020, 1, 1)), "", "need numbers"),
}


@pytest.mark.parametrize(("table", "more", "sentence"), UNFIT.values(), ids=UNFIT)
@pytest.mark.parametrize("method", ["euclidean", "least-squares"])
def test_measurements_beyond_the_limits_are_refused(
    tmp_path, capsys, table, more, sentence, method
):
    assert sentence in refusal(measured(tmp_path, [("c", table)], more), capsys, method)


@pytest.mark.parametrize(
    ("table", "more"),
    [(with_noisy("1e18"), ""), (LEAVES, f"total = {2**60}")],
    ids=["noisy", "total"],
)
def test_what_is_too_large_for_whole_counts_suits_least_squares(tmp_path, capsys, table, more):
    file = measured(tmp_path, [("c", table)], more)
    assert "at most 2^40" in refusal(file, capsys)
    assert run(["estimate", file, "--method", "least-squares"]) == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_public_total_of_0_is_a_total(tmp_path, method):
    file = measured(tmp_path, [("c", LEAVES)], "total = 0")
    assert run(["estimate", file, "--method", method]) == 0
    column = "estimate" if method == "least-squares" else "count"
    leaves = pl.read_parquet(tmp_path / f"m.{method}" / "cuboid=2.parquet")
    assert leaves[column].sum() == pytest.approx(0, abs=1e-9)
    if method == "least-squares":
        assert leaves["estimate"].to_list() == pytest.approx([-1.5, -0.5, 0.5, 1.5])


def test_a_level_has_one_measurement(tmp_path, capsys):
    assert "is given twice" in refusal(measured(tmp_path, [("c", LEAVES)] * 2), capsys)


@pytest.mark.parametrize("name", ["released", "estimate", "noisy_count"])
def test_a_level_is_not_called_as_a_column_of_estimates(name):
    axis = hr.Axis.from_frame("g", {name: ["a", "b"]}, [name])
    frame = {name: ["a", "b"], "noisy_count": [1, 2], "variance": [1.0, 1.0]}
    with pytest.raises(hr.TableError, match="rename it"):
        estimate_measurements(Measurements.from_frames(hr.Tree([axis]), {1: frame}), hr.Euclidean())
