"""The map of a page without a browser: how large it is, and which pages have one."""

import numpy as np

from hedgerow.estimate.families.chebyshev import Chebyshev
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.privacy.budget import Rho
from hedgerow.release.execution import in_memory
from hedgerow.release.page.report import page
from hedgerow.tables.tree import Tree
from tests.made import all_leaves, plain_plan
from tests.tables.test_maps import axis_of, file_of, voronoi

AREAS = 10_000


def page_of(folder, axis):
    tree = Tree([axis])
    plan = plain_plan(tree, budget=Rho(1))
    size = axis.size(axis.depth)
    values = np.random.default_rng(20260902).lognormal(6, 1.5, size).astype(np.int64)
    counts = all_leaves(tree, values)
    in_memory(counts, plan, estimator=Chebyshev(), bits=seeded_bits(1)).write(folder)
    return page(folder, plan, Chebyshev(), "1")


def test_a_page_with_a_map_of_ten_thousand_areas_is_below_one_megabyte(tmp_path):
    """Of areas with crinkled borders, as real ones are: 150,000 points after simplifying."""
    path = file_of(tmp_path, voronoi(AREAS, crinkle=0.1), name="a.parquet")
    text = page_of(tmp_path / "out", axis_of(AREAS).with_shapes(path))
    assert 'id="shapes-0"' in text
    assert len(text.encode()) < 1_000_000


def test_a_page_without_shapes_has_nothing_of_a_map(out):
    text = page_of(out, axis_of(30))
    assert "atlas" not in text
    assert "cartography" not in text
