"""The methods of today's practice by the words that ask for them: ``rounding:5``."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from hedgerow.declared import Whole, check_known
from hedgerow.errors import SpecError, shorten
from hedgerow.evaluate.practice.cell_key import CellKey, PerturbationTable
from hedgerow.evaluate.practice.practice import Practice
from hedgerow.evaluate.practice.rounding import Rounding
from hedgerow.evaluate.practice.suppression import Suppression
from hedgerow.plan.plan import Plan
from hedgerow.text import visible

BASE = Whole("the base of rounding", 2, 1 << 20, SpecError)
THRESHOLD = Whole("the threshold of suppression", 2, 1 << 40, SpecError)

Strategy = Callable[..., Practice]
"""What is left to give is the plan whose cuboids are published."""


def _rounding(value: str, *, at_random: bool = False) -> Strategy:
    base = int(BASE(_number(value)))
    return partial(Rounding, base=base, at_random=at_random)


def _suppression(value: str) -> Strategy:
    return partial(Suppression, threshold=int(THRESHOLD(_number(value))))


def _cell_key(value: str) -> Strategy:
    return partial(CellKey, table=PerturbationTable.read(Path(value)))


def _number(value: str) -> int | str:
    is_whole = value.isascii() and value.isdecimal() and len(value) < LONGEST_NUMBER
    return int(value) if is_whole else shorten(value)


STRATEGIES: dict[str, Callable[[str], Strategy]] = {
    "rounding": _rounding,
    "random-rounding": partial(_rounding, at_random=True),
    "suppression": _suppression,
    "cell-key": _cell_key,
}
LONGEST_NAME, LONGEST_NUMBER = 18, 20
MOST_METHODS = 8


def read_strategies(words: str) -> dict[str, Strategy]:
    """Return by name the methods that words such as ``rounding:5,cell-key:FILE`` ask for.

    Raises:
        SpecError: a method that is not there or asked for twice, a number out of its range, or a
            file that is no table of perturbation.
    """
    strategies = {}
    each = words.split(",")
    if len(each) > MOST_METHODS:
        raise SpecError(f"--beside gives {len(each):,} methods; give at most {MOST_METHODS}")
    for word in each:
        method, _, value = word.strip().partition(":")
        check_known(method, STRATEGIES, "method", SpecError)
        if not value:
            raise SpecError(f"--beside takes METHOD:VALUE such as rounding:5, got {method!r}")
        strategy = STRATEGIES[method](value)
        short = visible(Path(value).stem) if method == "cell-key" else value
        name = shorten(f"{method}:{short}", LONGEST_NAME)
        if name in strategies:
            raise SpecError(f"--beside gives {name!r} twice; give it once")
        strategies[name] = strategy
    return strategies


def methods_of(strategies: dict[str, Strategy], plan: Plan) -> Sequence[Practice]:
    """Return the methods, which publish the cuboids of a plan."""
    return [make(plan=plan, name=name) for name, make in strategies.items()]
