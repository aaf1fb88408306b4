"""How the skewness of counts drives the bias of clipping (Ko et al., Appendix B)."""

import numpy as np

from hedgerow.arrays import Float64
from hedgerow.noise.cell_error import CellError


def bias_of_clipping(error: CellError, parameter: float, counts: Float64) -> float:
    """The sum (records) of the biases of max(0, N + noise) over the cells of a family.

    A cell's bias E(-N - noise)₊ is convex in N whatever the noise, so the sum is Schur-convex: if
    one vector majorises another, its bias is at least as large. For a fixed total and number of
    cells it is least at equal counts.
    """
    distinct, times = np.unique(counts, return_counts=True)
    return float(error.bias(parameter, distinct) @ times)


def least_bias_of_clipping(error: CellError, parameter: float, total: int, cells: int) -> float:
    """The least sum (records) of biases that whole counts of this total and number can have.

    It is attained at counts that differ by at most one, which all others majorise.
    """
    whole, larger = divmod(total, cells)
    even = np.repeat([whole + 1.0, float(whole)], [larger, cells - larger])
    return bias_of_clipping(error, parameter, even)
