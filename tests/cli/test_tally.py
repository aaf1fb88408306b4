"""What a release has done by cuboid."""

import numpy as np

import hedgerow as hr
from hedgerow.cli.terminal import HEADINGS, Tally
from hedgerow.release.descent.jobs import Progress
from tests.made import fixed_axis, plain_plan, random_counts


def test_the_tally_counts_what_is_released_and_measured(tmp_path):
    tree = hr.Tree([fixed_axis("geo", 4, 5, 3)])
    counts = random_counts(np.random.default_rng(0), tree)
    tally = Tally()
    plan = plain_plan(tree, budget=hr.Rho("1/2"))
    progress = Progress(on_cuboid=tally.on_cuboid)
    release = hr.release(counts, plan, directory=tmp_path / "out", progress=progress)
    assert list(tally.work) == ["total", "level1", "level2", "level3"], "coarse to fine"
    for depth, (cells, survivors, seconds) in enumerate(tally.work.values()):
        assert cells == len(release.measurements(depth=depth))
        assert survivors == release.level(depth=depth).height
        assert seconds >= 0
    assert all(len(row) == len(HEADINGS) for row in tally.rows())


def test_parts_of_a_cuboid_are_added_up():
    tally = Tally()
    tally.on_cuboid("o.region × d.state", 1000, 10, 0.5)
    tally.on_cuboid("o.region × d.state", 500, 5, 1.0)
    assert tally.rows() == [("o.region × d.state", "1,500", "15", "1.5")]
