"""How benchmarks draw."""

from functools import partial

from benchmarks.page import PAGES
from studies import showing

COLOURS = OURS, OTHER, THIRD, FOURTH = "#0072b2", "#e69f00", "#009e73", "#cc79a7"
panels = partial(showing.panels, size=(4.2, 3.2))
save = partial(showing.save, folder=PAGES)
