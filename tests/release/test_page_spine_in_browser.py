"""The page of a release along a spine in a real browser, against the files of its cuboids."""

import pytest

from tests.browser import show_all
from tests.parts import CHROMIUM
from tests.release.in_browser import address, as_matrix, choose, ready
from tests.release.test_page_cube_in_browser import check_matrix

pytestmark = [CHROMIUM.needed, pytest.mark.xdist_group("browser")]


def note(tab):
    return " ".join(tab.inner_text(".listing .note").split())


def legends(tab):
    return [" ".join(one.split()) for one in tab.locator("#explorer .told").all_inner_texts()]


def test_every_pair_of_levels_has_its_cells_and_the_columns_of_its_labels(opened, of_a_spine):
    made = of_a_spine
    tab = as_matrix(ready(opened(made.path), "Total"))
    check_matrix(tab, made, (1, 1), {})
    assert legends(tab) == []
    for levels in [levels for levels in made.plan.levels if all(levels)][1:]:
        choose(tab, levels)
        show_all(tab)
        check_matrix(tab, made, levels, {})
        columns = " · ".join(made.tree.axes[1].columns_of(levels[1]))
        assert legends(tab) == ([f"Labels of person list {columns}."] if levels[1] > 1 else [])
        assert note(tab).endswith("was released as 0, as is what public facts rule out.")


def test_a_kind_of_quarters_within_a_county_opens_with_its_margins(opened, of_a_spine):
    made = of_a_spine
    first = made.release.level("person.hhgq")["hhgq"].sort()[0]
    tab = ready(opened(made.path, address("C0", first, within=("C0", first), by=(2, 4))), "C0")
    show_all(tab)
    check_matrix(tab, made, (2, 4), {0: (1, "C0"), 1: (1, first)})
