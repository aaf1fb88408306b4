"""A part of a spine: the levels below some nodes, which one job works on, or the top above all."""

from dataclasses import dataclass

TOP_ROOT = -1
"""The root level of the top part: above the spine's level 0."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some levels of a spine below some of its nodes.

    Attributes:
        root: the level of the nodes that the part hangs from, which belong to the part above; -1
            for the top, which begins with the spine's own root.
        nodes: which nodes of level ``root``; for the top ``range(1)``.
        last: the deepest level of the part.

    Example:
        >>> from hedgerow.estimate.spine.part import Part
        >>> Part.top(2).levels, Part(2, range(3, 5), 4).levels
        (range(0, 3), range(3, 5))
    """

    root: int
    nodes: range
    last: int

    @classmethod
    def top(cls, cut: int) -> "Part":
        """Return the part of the levels 0..cut of all nodes."""
        return cls(TOP_ROOT, range(1), cut)

    @property
    def is_top(self) -> bool:
        """Whether the part begins with the spine's root."""
        return self.root == TOP_ROOT

    @property
    def levels(self) -> range:
        """The levels of the part, coarsest first."""
        return range(self.root + 1, self.last + 1)
