"""Least squares of all that a release measured, by dense matrices over the leaves that can be."""

from functools import reduce

import numpy as np
import polars as pl

import hedgerow as hr
from hedgerow.estimate.cube.shape import is_within


def leaves_of(plan):
    """All columns of every leaf that can hold records: one row each, all axes row by row."""
    frames = [axis.leaf_frame() for axis in plan.tree.axes]
    leaves = reduce(
        lambda one, other: one.join(other, how="cross", maintain_order="left_right"), frames
    )
    for fact in plan.facts:
        if isinstance(fact, hr.Zeros):
            has_all = (pl.col(column).is_in(list(codes)) for column, codes in fact.codes)
            leaves = leaves.filter(~pl.all_horizontal(*has_all))
        elif fact.zeros:
            how = "semi" if fact.zeros == "unlisted" else "anti"
            on = [column for column in leaves.columns if column in fact.frame.columns]
            leaves = leaves.join(fact.frame, on=on, how=how, maintain_order="left")
    return leaves


class Dense:
    """The estimates x of the leaves and their covariance, from noisy counts as users read them.

    Minimises Σ (noisy - a x)²/variance over all cells that were measured whole, a holding the
    cell's leaves, where sums of x are known that are public: by pseudo-inverses, so that x is one
    of many where no table has the leaves, and sums of tables are the same for all.

    Args:
        within: the cuboid that all others lie within whose noisy counts are used; all unless given.
    """

    def __init__(self, release, within=None):
        plan = release.plan
        self.leaves, self.names = leaves_of(plan), plan.tree.name_of
        exact, known = np.zeros((0, len(self.leaves))), np.zeros(0)
        if plan.public is not None:
            public = release.level(self.names(plan.public))
            if plan.is_chain:  # nobody is below a public count of 0
                codes = plan.tree.columns_of(plan.public)
                self.leaves = (
                    self.leaves.join(public, on=codes, how="semi") if codes else self.leaves
                )
            exact, known = self.sums(public), public["count"].to_numpy()
        frames = [
            release.measurements(self.names(levels))
            for levels, what in plan.by_levels.items()
            if isinstance(what, hr.Measured) and plan.is_whole(levels)
            if within is None or is_within(levels, within)
        ]
        for frame in frames:
            codes = self.codes(frame)
            assert len(frame) == (self.leaves.select(codes).n_unique() if codes else 1)
        rows = np.concatenate([self.sums(frame) for frame in frames])
        noisy, variance = pl.concat(
            [frame.select("noisy_count", "variance") for frame in frames]
        ).get_columns()
        start = np.linalg.pinv(exact) @ known
        free = np.linalg.svd(exact)[2][len(exact) :].T if len(exact) else np.eye(len(self.leaves))
        seen, weights = rows @ free, 1 / variance.to_numpy()
        inverse = np.linalg.pinv((seen.T * weights) @ seen, rcond=1e-12, hermitian=True)
        self.covariance = free @ inverse @ free.T
        self.x = start + self.covariance @ (rows.T @ (weights * (noisy.to_numpy() - rows @ start)))

    def codes(self, frame):
        """The columns of a frame that tell which leaves its rows count."""
        return [column for column in frame.columns if column in self.leaves.columns]

    def sums(self, frame, lookup=None):
        """The 0/1 matrix (rows, leaves) of a frame of codes, or of areas and codes."""
        weights = np.zeros((len(frame), len(self.leaves)))
        areas = [] if lookup is None else ["area"]
        pairs = frame.with_row_index("row").select("row", *self.codes(frame), *areas)
        if lookup is not None:
            pairs = pairs.join(lookup.unique(), on="area")
        codes, leaves = self.codes(pairs), self.leaves.with_row_index("leaf")
        on = {"on": codes} if codes else {"how": "cross"}
        pairs = pairs.join(leaves, **on)
        weights[pairs["row"].to_numpy(), pairs["leaf"].to_numpy()] = 1
        return weights

    def agrees(self, frame, lookup=None):
        """Assert that a frame has the estimates and standard errors of what its rows count."""
        weights = self.sums(frame, lookup)
        np.testing.assert_allclose(frame["estimate"], weights @ self.x, rtol=1e-7, atol=1e-5)
        variance = np.einsum("ij,jk,ik->i", weights, self.covariance, weights)
        np.testing.assert_allclose(frame["standard_error"] ** 2, variance, rtol=1e-6, atol=1e-5)
        return variance
