"""Any choice of levels of a cube: counts, estimates and intervals, in memory and on disk."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.release.release import read_release
from tests.release.cube.test_cube_release import (
    MEASURES,
    PAIRS,
    cube,
    released,
    table_of,
    tables,
)

CHOICES = [
    {name: f"level{k}" for name, k in zip("od", levels, strict=True) if k}
    for levels in hr.Cube().cuboids(PAIRS)
]


def levels_in(choice):
    return tuple(int(choice[name][-1]) if name in choice else 0 for name in "od")


@pytest.mark.parametrize("measure", MEASURES, ids=["all", "survivors"])
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_every_choice_of_levels_has_its_counts_with_least_squares_beside_them(measure, choice):
    release = released(table_of(filled=0.4), cube(measure=measure))
    levels = levels_in(choice)
    found, table = release.cuboid(**choice), tables(release)[levels]
    assert found["count"].to_list() == table[table > 0].tolist(), "sorted by the codes"
    best = hr.reestimate(release, hr.LeastSquares()).frames[levels].filter(pl.col("released") > 0)
    for name in ("estimate", "standard_error", "low", "high"):
        assert np.allclose(found[name], best[name]), name
    assert found["contradicted"].null_count() == 0
    alone = release.cuboid(None, **choice)
    assert alone.equals(found.select(alone.columns))


@pytest.mark.parametrize("measure", MEASURES, ids=["all", "survivors"])
def test_more_confidence_widens_intervals_of_any_cuboid(measure):
    release = released(table_of(filled=0.4), cube(measure=measure, neighbours=hr.AddRemove()))
    for choice in CHOICES[1:]:
        usual = release.cuboid(**choice)
        sure = release.cuboid(hr.Confidence(0.999), **choice)
        at_once = release.cuboid(hr.Confidence(0.95, simultaneous=True), **choice)
        for wide in (sure, at_once):
            assert (wide["low"] <= usual["low"]).all()
            assert (wide["high"] > usual["high"]).all()


def test_axes_stand_in_the_order_in_which_they_are_named():
    release = released(table_of(filled=0.4), cube())
    one, other = release.cuboid(o="level1", d="level2"), release.cuboid(d="level2", o="level1")
    assert one.columns[:3] == ["o_1", "d_1", "d_2"]
    assert other.columns[:3] == ["d_1", "d_2", "o_1"]
    assert other.select(one.columns).sort("o_1", "d_1", "d_2").equals(one)


@pytest.mark.parametrize("measure", MEASURES, ids=["all", "survivors"])
def test_a_directory_says_the_same_of_every_cuboid(measure, tmp_path):
    release = released(table_of(filled=0.4), cube(measure=measure))
    release.write(tmp_path / "out")
    again = read_release(tmp_path / "out")
    for choice in CHOICES:
        assert again.cuboid(**choice).equals(release.cuboid(**choice))
    here, there = (hr.reestimate(r, hr.LeastSquares()) for r in (release, tmp_path / "out"))
    for levels, frame in here.frames.items():
        assert there.frames[levels].equals(frame)
    assert there.described == here.described


def test_a_cube_is_asked_by_names_and_not_by_depths():
    release = released(table_of(), cube())
    assert release.level("o.level1 x d.level1").equals(release.level("d.level1 × o.level1"))
    assert release.level("o.level1*d.level1").equals(release.level("o.level1 × d.level1"))
    with pytest.raises(hr.ReleaseError, match="a cube has no depths; name a cuboid; there are tot"):
        release.level(depth=1)
    with pytest.raises(hr.ReleaseError, match=r"no cuboid 'o.levle1'; did you mean 'o.level1'"):
        release.level("o.levle1")
    with pytest.raises(hr.ReleaseError, match=r"'level1'; did you mean 'o.level1'"):
        release.level("level1")
    assert len(release.measurements("o.level2 × d.level1")) == 24
