"""What a mechanism is: integer noise that owns its draws, price, privacy loss and law of its error.

A mechanism adds independent noise to each of a vector of integer counts. Its parameter is a
`Fraction`; composition and repetition are priced elsewhere, for all mechanisms at once, from the
pieces that each brings along. `docs/developers/mechanism.md` shows how to write one.
"""

from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self

from hedgerow.arrays import Int64
from hedgerow.errors import NoiseError
from hedgerow.noise.bits import Stream
from hedgerow.noise.cell_error import CellError
from hedgerow.noise.discrete_gaussian import DiscreteGaussian
from hedgerow.noise.discrete_laplace import DiscreteLaplace
from hedgerow.noise.envelope import Envelope
from hedgerow.noise.loss import Loss, Price
from hedgerow.text import Exact, TextByName

__all__ = [
    "MECHANISMS",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Mechanism",
    "check_mechanism",
    "check_registered",
]


class Mechanism(Protocol):
    """Integer noise, symmetric about 0, with a public parameter.

    Attributes:
        name: what files call it.
        key: what files call its parameter.
        symbol: the parameter in a table for people.
        price: by which budget it is bought, and how its variance falls with what it gets.
        cell_error: the moments of max(0, N + noise) for each precision.
        loss_is_exact: whether `loss` is the law of the noise itself; otherwise it is one that
            dominates it, figures are upper bounds, and nothing is said to be exact.
    """

    name: ClassVar[str]
    key: ClassVar[str]
    symbol: ClassVar[str]
    price: ClassVar[Price]
    cell_error: ClassVar[CellError]
    loss_is_exact: ClassVar[bool]

    def __init__(self, parameter: Exact, /) -> None:
        """Make the mechanism of a parameter."""

    @classmethod
    def with_precision(cls, precision: Fraction) -> Self:
        """Return the mechanism that costs exactly this if one count moves by 1; see `Price`.

        Raises:
            NoiseError: its parameter is too large.
        """
        ...

    @property
    def parameter(self) -> Fraction:
        """The exact parameter, such as sigma2 (records²) or scale (records): more is wider."""
        ...

    @property
    def noise_variance(self) -> float:
        """The true variance of one draw, in records²."""
        ...

    @property
    def chance_of_zero(self) -> float:
        """P(X = 0)."""
        ...

    @property
    def envelope(self) -> Envelope:
        """The continuous law that bounds sums of draws, for intervals of estimates."""
        ...

    def sample(self, n: int) -> Int64:
        """Return draws under a fresh key of the operating system: int64 (n)."""
        ...

    def draw(self, stream: Stream, start: int, out: Int64) -> None:
        """Write the noise of cells ``start .. start + len(out) - 1`` of a stream to ``out``.

        The noise of a cell is a function of (stream, cell), however the range is cut. The draw owns
        the stream's words and branches: a second mechanism or cuboid needs a stream of its own.
        """
        ...

    def tail_bound(self, probability: float) -> int:
        """Return the smallest k with P(|X| > k) <= probability, or a little more; never less."""
        ...

    def rho(self, l2_squared: Fraction) -> Fraction:
        """Return the zCDP parameter of one use whose l2 sensitivity has this square."""
        ...

    def epsilon(self, l1: Fraction) -> Fraction | None:
        """Return the pure ε of one use of this l1 sensitivity; None where it has no bound."""
        ...

    def loss(self, shift: int) -> Loss:
        """Return the law of the privacy loss of one use on a count that moves by ``shift``.

        Where its own law is none of those that the accountants know, `PairLoss` of the proved pure
        ε dominates it.
        """
        ...


MECHANISMS: dict[str, type[Mechanism]] = {
    kind.name: kind for kind in (DiscreteGaussian, DiscreteLaplace)
}
"""The mechanisms by the names under which files tell of them and plans are read back."""

PIECES: TextByName = {
    "name": "its name in files",
    "key": "the name of its parameter in files",
    "symbol": "its parameter's symbol in tables",
    "price": "by which budget it is bought",
    "cell_error": "the error of a cell that is cut off at 0",
    "loss_is_exact": "whether its loss is its own law",
    "with_precision": "the noise that a budget buys",
    "parameter": "its exact parameter",
    "noise_variance": "its variance",
    "chance_of_zero": "how often it is 0",
    "envelope": "the continuous law that bounds sums of draws",
    "sample": "fresh draws",
    "draw": "draws from a stream",
    "tail_bound": "how far a draw reaches",
    "rho": "its cost in zero-concentrated differential privacy",
    "epsilon": "its cost in pure differential privacy, or None",
    "loss": "the law of its privacy loss",
}
"""What a mechanism brings along, in words."""

_TOLD = 4

_FORMS: dict[str, tuple[Any, str]] = {
    "name": (str, "text"),
    "price": (Price, "InRho(…) or InEpsilon(…)"),
    "cell_error": (CellError, "a CellError"),
}


def check_mechanism(kind: type) -> None:
    """Raise unless a class has all that a mechanism must bring along.

    This is the one door: nothing that passes it is ever treated as another mechanism.
    """
    own = {field.name for field in fields(kind)} if is_dataclass(kind) else set()
    missing = [piece for piece in PIECES if not (hasattr(kind, piece) or piece in own)]
    if missing:
        listed = ", ".join(f"{piece} ({PIECES[piece]})" for piece in missing[:_TOLD])
        more = f" and {len(missing) - _TOLD} more" if len(missing) > _TOLD else ""
        raise NoiseError(
            f"{kind.__name__} is no complete mechanism: it has no {listed}{more}; "
            f"docs/developers/mechanism.md says what to add"
        )
    for piece, (fitting, words) in _FORMS.items():
        given = getattr(kind, piece)
        if not isinstance(given, fitting):
            raise NoiseError(
                f"{kind.__name__}.{piece} ({PIECES[piece]}) must be {words}, "
                f"got {type(given).__name__}"
            )


def check_registered(kind: type) -> None:
    """Raise unless a class is a mechanism by whose name what it released can be read back."""
    check_mechanism(kind)
    if MECHANISMS.get(kind.name) is not kind:  # type: ignore[attr-defined]
        raise NoiseError(
            f"{kind.__name__} is not in hedgerow.noise.mechanisms.MECHANISMS, so nobody could read "
            f"a plan with it; add it there under its name"
        )
