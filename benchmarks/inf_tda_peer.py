"""The authors' package inf-tda 0.1: made to run with today's pandas and OpenDP, in and out.

Nothing of it is copied. It is measured as it is, but for two things: OpenDP's default integer has
64 bits, and the arrays that pandas 3 locks against writing are copied before OpenDP refuses them.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import hedgerow as hr
from benchmarks.machine import needed
from studies.releases import DELTA
from studies.tables import every_count

Peer = Callable[[Any, Fraction], Any]

EPSILON = "1"


def peer_release() -> Peer:
    """The peer's function of a series and ε, made to work with today's pandas and OpenDP."""
    module = needed("InfTDA.mechanism", "inf-tda")
    needed("opendp.typing", "opendp").set_default_int_type("i64")
    make = module.make_gaussian_noise

    def make_with_copy(d_in: float, rho: float) -> Callable[[Any], Any]:
        measurement = make(d_in, rho)
        return lambda values: measurement(np.array(values))

    module.make_gaussian_noise = make_with_copy
    return lambda series, epsilon: module.inf_tda(series, (float(epsilon), float(DELTA)), 1)


def series_of(counts: hr.Counts) -> Any:
    """All possible leaves with their path in the tree, as the peer wants them."""
    pandas = needed("pandas", "pandas")
    tree = counts.tree
    values = every_count(counts, tree.finest)
    numbers = np.unravel_index(np.arange(values.size), values.shape)
    codes = [code.astype(np.int32) for code in numbers]
    paths = [
        codes[axis]
        if level == tree.axes[axis].depth
        else tree.axes[axis].ancestors(level)[codes[axis]]
        for axis, level in tree.steps
    ]
    return pandas.Series(values.ravel(), index=pandas.MultiIndex.from_arrays(paths))


def counts_of(tree: hr.Tree, released: Any) -> hr.Counts:
    """What the peer released; the tree's last steps refine destination and origin to their ends."""
    destination, origin = (released.index.get_level_values(k).to_numpy() for k in (-2, -1))
    codes = origin.astype(np.int32), destination.astype(np.int32)
    return hr.Counts.from_leaves(tree, codes, released.to_numpy().astype(np.int64))
