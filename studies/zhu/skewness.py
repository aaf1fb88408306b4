"""How the skewness of counts drives the bias of clipping (Ko et al., Appendix B)."""

import numpy as np

from hedgerow.arrays import Float64
from hedgerow.errors import EstimateError
from hedgerow.noise.cell_error import CellError


def majorises(skewed: Float64, even: Float64) -> bool:
    """Whether one vector of counts majorises another: as long, as large in sum, less even.

    Sorted from the largest down, every partial sum of ``skewed`` is at least that of ``even``.
    Counts are compared as doubles, exactly up to a sum of 2⁵³.

    Raises:
        EstimateError: the vectors differ in length or in sum, so that they cannot be compared.
    """
    if len(skewed) != len(even) or skewed.sum() != even.sum():
        raise EstimateError("majorisation compares vectors of one length and one sum")
    upper, lower = (np.cumsum(np.sort(counts)[::-1]) for counts in (skewed, even))
    return bool((upper >= lower).all())


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
    if cells < 1 or total < 0:
        raise EstimateError(
            f"a family needs at least one cell and a total of at least 0, got {cells} and {total}"
        )
    whole, larger = divmod(total, cells)
    even = np.repeat([whole + 1.0, float(whole)], [larger, cells - larger])
    return bias_of_clipping(error, parameter, even)
