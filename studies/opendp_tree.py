"""OpenDP's b-ary tree with its branching factor and consistency."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import opendp.prelude as dp

from hedgerow.arrays import Float64, Int64

REPLACED = 2
"""How far one record replaced moves a histogram."""


def opendp_tree(bins: int, epsilon: float | Fraction) -> tuple[int, Callable[[Int64], Float64]]:
    """Its branching factor, and its release: counts of bins in, cumulative counts out."""
    dp.enable_features("contrib")
    factor = dp.t.choose_branching_factor(bins)
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    tree = dp.t.make_b_ary_tree(*space, leaf_count=bins, branching_factor=factor)
    scale = dp.binary_search(
        lambda s: (tree >> dp.m.then_laplace(scale=s)).map(REPLACED) <= epsilon,
        bounds=(1e-3, 1e7),
    )
    noisy = tree >> dp.m.then_laplace(scale=scale)
    consistent = dp.t.make_consistent_b_ary_tree(branching_factor=factor)
    return factor, lambda leaves: np.cumsum(consistent(noisy(leaves.tolist()))[:bins])
