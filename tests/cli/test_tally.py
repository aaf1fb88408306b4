"""What a release has done by depth."""

import numpy as np

import hedgerow as hr
from hedgerow.cli.terminal import HEADINGS, Tally
from hedgerow.release.descent.jobs import Progress
from tests.made import fixed_axis, random_counts


def test_the_tally_counts_what_is_released_and_measured(tmp_path):
    tree = hr.Tree([fixed_axis("geo", 4, 5, 3)])
    counts = random_counts(np.random.default_rng(0), tree)
    tally = Tally()
    plan = hr.make_plan(tree, budget=hr.Rho("1/2"))
    progress = Progress(on_depth=tally.on_depth)
    release = hr.release(counts, plan, directory=tmp_path / "out", progress=progress)
    assert sorted(tally.work) == [0, 1, 2, 3]
    for depth, (cells, survivors, seconds) in tally.work.items():
        assert cells == len(release.measurements(depth))
        assert survivors == release.level(depth=depth).height
        assert seconds >= 0
    assert all(len(row) == len(HEADINGS) for row in tally.rows())


def test_parts_of_a_depth_are_added_up():
    tally = Tally()
    tally.on_depth(2, 1000, 10, 0.5)
    tally.on_depth(2, 500, 5, 1.0)
    assert tally.rows() == [("2", "1,500", "15", "1.5")]
