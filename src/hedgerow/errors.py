"""The errors that users see: one kind a room, each sentence naming the rule and the way out."""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class HedgerowError(Exception):
    """Any failure that Hedgerow explains in one sentence.

    Attributes:
        confidential: what the sentence must not say outside the boundary, such as a code that only
            the confidential table holds. The command line shows it on a terminal and nowhere else.
        exit_code: what the process returns: 2 for bad input, 1 for a failure of the machine.
    """

    exit_code = 2

    def __init__(self, message: str, *, confidential: str | None = None) -> None:
        super().__init__(message)
        self.confidential = confidential


class TableError(HedgerowError, ValueError):
    """A table, an axis or a tree that cannot be what it says it is."""


class NoiseError(HedgerowError, ValueError):
    """A noise parameter outside its domain."""


class BudgetError(HedgerowError, ValueError):
    """A budget, a neighbouring relation or a guarantee that does not exist."""


class EstimateError(HedgerowError, ValueError):
    """Noisy counts that no estimate can be made from."""


class PlanError(HedgerowError, ValueError):
    """A plan that contradicts itself or the table."""


class ReleaseError(HedgerowError, ValueError):
    """A release that cannot be made, read or confirmed."""


class SpecError(HedgerowError, ValueError):
    """A release file that breaks a rule of its format."""


class MachineError(HedgerowError, OSError):
    """The machine failed us: disk, memory, permissions."""

    exit_code = 1


@contextmanager
def machine_errors(what: str) -> Iterator[None]:
    """Turn failures of disk and memory into one sentence.

    Raises:
        MachineError: instead of `OSError` or `MemoryError`.
    """
    try:
        yield
    except MachineError:
        raise
    except OSError as error:
        raise MachineError(f"{what}: {error.strerror or error}") from error
    except MemoryError as error:
        raise MachineError(f"{what}: out of memory") from error


def nearest(given: object, known: Iterable[str], cutoff: float = 0.65) -> str:
    """``; did you mean 'trips'?``, or nothing where no known name is like the given one."""
    folded = {name.casefold(): name for name in known}
    found = difflib.get_close_matches(str(given).casefold(), folded, 1, cutoff)
    return f"; did you mean {folded[found[0]]!r}?" if found else ""
