"""Mean variances in closed form when every family of an axis is taken to be of one size.

Then all S_cᵀ S_c commute. On the residual space V_b, b a vector of levels (what level b_a of every
axis a says beyond the level before), S_cᵀ S_c is r_c times the identity where b is within c and 0
elsewhere, r_c being the number of joint leaves in a cell of c. V_b has m_b = Π_a (n_a(b_a) -
n_a(b_a - 1)) dimensions, n_a(k) being the number of nodes of level k and n_a(-1) = 0. So the leaves
have on V_b the precision h_b = Σ_{measured d ≥ b} r_d / v_d, and the mean variance over the n_c
cells of cuboid c is

    (r_c / n_c) Σ_{b ≤ c, not within the public cuboid} m_b / h_b :

a convex function of the precisions 1 / v_d. It is exact on axes that are even, and an approximation
elsewhere.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import Cuboid, Floats, is_within


@dataclass(frozen=True, slots=True, init=False, eq=False)
class EvenWorkload:
    """The mean variances of cuboids as functions of what is measured, all axes taken to be even.

    Attributes:
        measured: the measured cuboids.
        wanted: whose mean variances are asked for.
        repeated: float64 (residual spaces, measured): r_d where b is within d, else 0.
        counted: float64 (wanted, residual spaces): m_b r_c / n_c where b counts, else 0.
    """

    measured: tuple[Cuboid, ...]
    wanted: tuple[Cuboid, ...]
    repeated: Floats
    counted: Floats

    def __init__(
        self,
        sizes: Sequence[Sequence[int]],
        measured: Iterable[Cuboid],
        public: Cuboid | None,
        wanted: Iterable[Cuboid],
    ) -> None:
        """Count dimensions.

        Args:
            sizes: for each axis the number of nodes of each level.
            measured: cuboids with a variance.
            public: whose counts, and those of its coarsenings, are known, if any.
            wanted: which cuboids are asked for.

        Raises:
            EstimateError: a wanted cuboid that is no sum of a measured one's cells.
        """
        measured, wanted = tuple(measured), tuple(wanted)
        known = measured if public is None else (*measured, public)
        for cuboid in wanted:
            if not any(is_within(cuboid, d) for d in known):
                raise EstimateError(f"cuboid {cuboid} is no sum of measured cells")
        spaces = np.array(list(product(*(range(len(nodes)) for nodes in sizes))))
        is_new = (spaces > (-1 if public is None else public)).any(axis=1)
        is_seen = [(spaces <= d).all(axis=1) for d in measured]
        spaces = spaces[is_new & np.any(is_seen, axis=0)]
        nodes = [np.asarray(each, dtype=np.float64) for each in sizes]
        born = [np.diff(each, prepend=0.0) for each in nodes]
        dimensions = np.prod([own[b] for own, b in zip(born, spaces.T, strict=True)], axis=0)

        def leaves_in(cuboid: Cuboid) -> float:
            return float(np.prod([own[-1] / own[k] for own, k in zip(nodes, cuboid, strict=True)]))

        def cells(cuboid: Cuboid) -> float:
            return float(np.prod([own[k] for own, k in zip(nodes, cuboid, strict=True)]))

        repeated = np.zeros((len(spaces), len(measured)))
        for j, d in enumerate(measured):
            repeated[:, j] = np.where((spaces <= d).all(axis=1), leaves_in(d), 0.0)
        counted = np.zeros((len(wanted), len(spaces)))
        for i, c in enumerate(wanted):
            factor = leaves_in(c) / cells(c)
            counted[i] = np.where((spaces <= c).all(axis=1), factor * dimensions, 0.0)
        for name, value in (
            ("measured", measured), ("wanted", wanted),
            ("repeated", repeated), ("counted", counted),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    def means(self, precisions: Floats) -> Floats:
        """Return the mean variance of each wanted cuboid: float64 (wanted), records².

        Args:
            precisions: 1 / v_d, float64 (measured).
        """
        found: Floats = self.counted @ (1 / (self.repeated @ precisions))
        return found

    def gradient(self, precisions: Floats) -> Floats:
        """Return the derivatives of `means` by the precisions: float64 (wanted, measured)."""
        slopes = -1 / (self.repeated @ precisions) ** 2
        found: Floats = (self.counted * slopes) @ self.repeated
        return found


def even_means(
    sizes: Sequence[Sequence[int]],
    variances: Mapping[Cuboid, float],
    public: Cuboid | None,
    wanted: Iterable[Cuboid],
) -> dict[Cuboid, float]:
    """Return the mean variance of each wanted cuboid, all axes taken to be even; records².

    Args:
        sizes: for each axis the number of nodes of each level.
        variances: of each measured cuboid.
        public: whose counts, and those of its coarsenings, are known, if any.
        wanted: which cuboids are asked for.
    """
    even = EvenWorkload(sizes, variances, public, wanted)
    precisions = 1 / np.array([variances[d] for d in even.measured])
    return dict(zip(even.wanted, even.means(precisions).tolist(), strict=True))
