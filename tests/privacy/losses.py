"""Privacy losses, and small compositions of all kinds of them."""

from fractions import Fraction

from hedgerow.noise.loss import GaussianLoss, LaplaceLoss, PairLoss


def gaussian(sigma2, shift=1):
    return GaussianLoss(Fraction(sigma2), shift)


def laplace(scale, shift=1):
    return LaplaceLoss(Fraction(scale), shift)


def pair(epsilon, delta=0):
    return PairLoss(Fraction(epsilon), Fraction(delta))


SHARES = [20, 274, 85, 131, 238, 118, 3]  # thousandths of ρ = 3.65
FOLDS = [10, 10, 10, 20, 10, 10, 10]
DHC = tuple(
    (gaussian(10 / (2 * Fraction(share, 1000) * Fraction("3.65"))), times)
    for share, times in zip(SHARES, FOLDS, strict=True)
)
"""All queries of the census of 2020."""

SMALL = {
    "one": ((gaussian(5), 1),),
    "one of shift 7": ((gaussian(5, 7), 1),),
    "two": ((gaussian(5), 2),),
    "three": ((gaussian(5), 3),),
    "two of shift 3": ((gaussian(5, 3), 2),),
    "wide": ((gaussian(30, 3), 2),),
    "two variances": ((gaussian(5), 1), (gaussian("5/2", 2), 1)),
    "narrow": ((gaussian("1/4"), 3),),
    "two narrow variances": ((gaussian("1/3"), 4), (gaussian("1/5", 2), 2)),
    "tiny": ((gaussian("1/100"), 2),),
    "very narrow": ((gaussian("1/300"), 3),),
    "no common unit to speak of": (
        (gaussian("1000003/997000"), 1), (gaussian("1000033/1010000"), 1),
    ),
    "one laplace": ((laplace(3), 1),),
    "one laplace of shift 5": ((laplace(3, 5), 1),),
    "laplace": ((laplace(2), 3),),
    "alike": ((laplace("7/3"), 7),),
    "laplace of shift 3": ((laplace("3/2", 3), 3),),
    "two scales": ((laplace(3, 2), 3), (laplace("7/3"), 2)),
    "two scales of shift 1": ((laplace(3), 3), (laplace("7/31"), 2)),
    "pair": ((pair("1/2", "1/1000"), 4),),
    "pair without delta": ((pair(3), 2),),
    "pairs": ((pair("1/10", "1e-6"), 4), (pair("3/17", "1e-9"), 3)),
    "three pairs": ((pair("1/10", "1e-6"), 4), (pair("3/17", "1e-9"), 3), (pair("5/3"), 1)),
    "mixture": ((gaussian(3), 1), (laplace(4, 2), 2), (pair("1/3", "1e-6"), 2)),
    "mixed": ((gaussian("10/3"), 2), (laplace("7/2", 3), 1), (pair("1/7", "1e-12"), 1)),
    "mixed, of two atoms": ((laplace("71/2"), 5), (pair("1/7", "1e-12"), 1), (laplace("1/9"), 2)),
}  # fmt: skip
