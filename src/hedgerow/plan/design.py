"""What a plan decides of its workload beside the noise: the one thing that others ask.

A `Design` is made where plans are made (`hedgerow.plan.plan.Plan.design`), from public facts. It
says how cuboids are estimated, how precisely, which cells they have, what that takes, and which
estimators settle them. Its questions are in the levels of the tree's axes, whatever the workload.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, ClassVar

from hedgerow.arrays import Float64, Levels, Sizes
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.intervals import Steps
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.cuboids import Invariant, Public
from hedgerow.plan.spine import Spine
from hedgerow.tables.tree import Tree

if TYPE_CHECKING:  # a plan makes its design
    from hedgerow.plan.plan import Plan

SECONDS_A_CELL = 0.1e-6
"""Core seconds to draw, project and write a measured cell."""
BYTES_AT_ONCE = 100
"""Of a cell that is drawn and estimated at once with others."""
NAMED = 3
"""Cuboids that a sentence names."""


@frozen
class Work:
    """The number of measured cells and of released counts above 0, by cuboid, coarsest first."""

    cells: Sizes
    survivors: Sizes


@frozen
class CarriedNoise:
    """The noise that the estimates of a cuboid carry, as their intervals ask for it.

    Attributes:
        mechanism: of one noisy count; None where the counts are public, or it is not known.
        raw: whether an estimate is one noisy count, not a combination of several.
        measured: whether each count has a noisy count of its own.
        sums: whether estimates are decoded from running sums, so that their errors are normal, or
            are taken for that.
        steps: what is known of the coefficients of estimates; None where none is above 1.
    """

    mechanism: Mechanism | None
    raw: bool = False
    measured: bool = True
    sums: bool = False
    steps: Steps | None = None


BEST = "best linear unbiased estimates of every node; they may be negative and fractional"
PUBLIC = CarriedNoise(None, raw=True)


@dataclass(frozen=True, eq=False)
class Design(ABC):
    """How the cuboids of a plan are estimated and settled.

    Attributes:
        plan: what is measured.
        key: how the texts of pages that depend on it end: "chain" or "cuboids".
        seconds_a_cell: core seconds of a measured cell.
        scale: what a record counts in noisy counts at most.
    """

    key: ClassVar[str]
    seconds_a_cell = SECONDS_A_CELL
    scale = 1
    plan: "Plan"

    @property
    def tree(self) -> Tree:
        """The public domain."""
        return self.plan.tree

    # --- errors ---------------------------------------------------------------------------------

    @abstractmethod
    def mean_variance(self, levels: Levels) -> float:
        """Return the mean variance of a cuboid's estimates, records²; inf where it is unknown."""

    @abstractmethod
    def largest_variance(self, levels: Levels) -> float:
        """Return the largest variance of a cuboid's estimates, or a bound of it (records²)."""

    def cell_variances(self, levels: Levels) -> Float64 | None:
        """Return the variance of each cell's estimate, or the one that all have; None of too many.

        Returns:
            float64 (cells), records², of a measured cuboid.
        """
        del levels
        return None

    @abstractmethod
    def is_raw(self, levels: Levels) -> bool:
        """Return whether the estimates of a measured cuboid are its own noisy counts alone."""

    @abstractmethod
    def carried_noise(self, levels: Levels) -> CarriedNoise:
        """Return the noise that the estimates of a cuboid of the workload carry."""

    @property
    @abstractmethod
    def steps_of_sums(self) -> Steps | None:
        """What bounds the coefficients of the estimates of any sums of cells."""

    def noise_of_sums(self, steps: Steps | None) -> CarriedNoise:
        """Return the noise that sums carry that have no noisy counts of their own.

        Args:
            steps: what is known of the coefficients of their estimates.
        """
        widest = min(self.plan.noise.values(), key=lambda mechanism: mechanism.parameter)
        return CarriedNoise(widest, measured=False, steps=steps)

    def error_of(self, levels: Levels) -> float | None:
        """Return the root of the mean variance of a cuboid's estimates, in the workload or not.

        Returns:
            Records; None where no table whose cells are all measured sums to it.
        """
        del levels
        return None

    @property
    def words(self) -> str:
        """How counts are estimated, and what that means for errors, memory and jobs: for users."""
        return f"{self.ways} {self.kept}"

    @property
    def noised(self) -> str:
        """How the text of a page that says which counts have noise of their own is called."""
        return self.plan.measure.name

    @property
    @abstractmethod
    def ways(self) -> str:
        """How counts are estimated, and what the stated errors are, in a sentence."""

    @property
    def kept(self) -> str:
        """What is held in memory at once, and in how many jobs, in a sentence."""
        return "All counts are held in memory at once, as one job."

    @property
    def remarks(self) -> str:
        """What else a reader of a forecast should know: sentences, each after a space."""
        return ""

    def settler(self, levels: Levels) -> str:
        """Return which way makes the counts of a cuboid whole: families, blocks or fit.

        `docs/proofs/settling.md`, "Settling", says what they are.
        """
        del levels
        return "families"

    @property
    def by_settler(self) -> Mapping[str, list[str]]:
        """The cuboids that each way makes whole, by name; none that are public."""
        by_settler = dict[str, list[str]]()
        for levels, what in self.plan.by_levels.items():
            if not isinstance(what, Public | Invariant):
                by_settler.setdefault(self.settler(levels), []).append(self.tree.name_of(levels))
        return by_settler

    @property
    def settlers(self) -> str:
        """Which way makes which cuboids' counts whole, in a sentence."""
        if len(by_settler := self.by_settler) == 1:
            return f"Whole counts: {next(iter(by_settler))}."
        parts = (f"{settler} for {_some(names)}" for settler, names in by_settler.items())
        return f"Whole counts: {'; '.join(parts)}."

    # --- cells ----------------------------------------------------------------------------------

    def depth_of(self, levels: Levels) -> int | None:
        """Return the number of a cuboid along a chain; None in any other workload."""
        del levels
        return None

    def possible_cells(self, levels: Levels) -> int:
        """Return how many cells of a cuboid are measured where it is measured whole."""
        return self.tree.cells(levels)

    def measured_below(self, levels: Levels) -> Levels | None:
        """Return the cuboid whose listed nodes alone have children that are measured, if any."""
        del levels
        return None

    def open_cells(self, levels: Levels) -> int:
        """Return how many cells of a cuboid may hold records: all that no public fact rules out."""
        return self.tree.cells(levels)

    @abstractmethod
    def is_answerable(self, levels: Levels) -> bool:
        """Return whether a cuboid is public or a sum of cells that are all measured."""

    # --- estimation -----------------------------------------------------------------------------

    @property
    def along(self) -> Spine | None:
        """How cuboids go along the first axis, in jobs; None where they do not."""
        return None

    @property
    def usual(self) -> Estimator:
        """What settles the counts unless another is given."""
        return Euclidean()

    def check_estimator(self, estimator: Estimator) -> None:  # noqa: B027 - a chain takes any
        """Raise an EstimateError if an estimator cannot use what is measured."""

    @property
    @abstractmethod
    def claim(self) -> str:
        """What is claimed of least squares over all noisy counts."""

    def needs_reals(self, estimator: Estimator) -> bool:
        """Return whether the estimator is given combined, real-valued counts, or makes such."""
        del estimator
        return True

    def rehearse(self) -> None:  # noqa: B027 - a closed form can always be had
        """Raise a PlanError unless estimates can be had, whatever the counts.

        To be called before anything is charged.
        """

    @property
    def cut_at(self) -> Levels | None:
        """The finest cuboid that is released before the jobs below are; None where it is uncut."""
        return None

    # --- costs ----------------------------------------------------------------------------------

    def work(self, records: int, *, noisy: bool) -> Work:
        """Return how many cells are measured, and survive, of so many records.

        Args:
            records: in the table.
            noisy: whether small counts are projected to 0, as they are expected to be; otherwise
                the most that is possible while the released total is at most the records.
        """
        cells = []
        alive = dict[Levels, int]()
        again = self.plan.repeats
        for levels in self.plan.by_levels:
            if levels in again:  # it has the cells of a coarser one
                cells.append(0)
                alive[levels] = alive[again[levels]]
                continue
            laid_out = self.laid_out(levels, alive)
            left = min(laid_out, records)
            own = self.plan.noise.get(levels)
            if own is not None and noisy:
                left = min(left, int(records / max(1.0, deviation(own))))
            cells.append(0 if own is None else laid_out)
            alive[levels] = max(left, min(1, records))
        return Work(tuple(cells), tuple(alive.values()))

    @abstractmethod
    def laid_out(self, levels: Levels, alive: Mapping[Levels, int]) -> int:
        """Return how many cells of a cuboid are measured, so many of those before it surviving."""

    def rows(self, records: int, expected: Work) -> int:
        """Return how many rows of so many records are read at most."""
        del expected
        return min(records, self.open_cells(self.tree.finest))

    @property
    @abstractmethod
    def bytes_held(self) -> int:
        """The memory that no limit reduces, beside the lists of areas."""

    def bytes_at_once(self, expected: Work) -> int:
        """Return the memory that estimates take at once without a limit."""
        del expected
        return self.bytes_held

    @property
    def bytes_read(self) -> int | None:
        """The memory that noisy counts take beside what is held, where all are read at once."""
        return None

    @property
    @abstractmethod
    def memory_words(self) -> str:
        """What is held in memory at once and what to do about it, as a clause for users."""


def _some(names: Sequence[str]) -> str:
    """Return the first few of some names, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def kept_in_jobs(jobs: int, below: str, held: str) -> str:
    """Return the sentence of a release in jobs: below which level, how many are held at once."""
    noun = "job" if jobs == 1 else "jobs"
    return (
        f"Counts are released in {jobs:,} {noun} below {below}; memory holds {held} at a time. A "
        "release into a directory that was stopped goes on from what is finished."
    )


def deviation(noise: Mechanism) -> float:
    """Return the standard deviation of one noisy count."""
    return sqrt(noise.noise_variance)


def refuse_apart(noun: str, estimator: Estimator) -> None:
    """Raise an EstimateError: cuboids that are estimated together have one estimator."""
    raise EstimateError(
        f'{noun} is settled by method = "euclidean" from combined estimates, got '
        f'"{estimator.name}"; anything else is for cuboids = "chain"'
    )
