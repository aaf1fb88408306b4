"""The account file: a TOML list of mechanisms, priced together."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from hedgerow.errors import BudgetError, SpecError
from hedgerow.noise.mechanisms import MECHANISMS
from hedgerow.privacy.budget import LARGEST, Epsilon, EpsilonDelta
from hedgerow.privacy.profile import Profile, compose
from hedgerow.privacy.use import Guarantee, Use
from hedgerow.spec.release_file import OtherFile
from hedgerow.spec.toml_file import Number, Section, check_there, parse, within
from hedgerow.text import Texts

MOST_TIMES = 10**9

if TYPE_CHECKING:
    UseName = str
else:
    UseName = Literal[(*MECHANISMS, "guarantee")]
"""A registered mechanism by its name, or a guarantee."""


class UseSection(Section):
    """``[[use]]``: a mechanism, or a guarantee, and how often it is used."""

    mechanism: UseName
    sigma2: Number | None = None
    scale: Number | None = None
    epsilon: Number | None = None
    delta: Number | None = None
    times: int = 1
    shift: int = 1


class AccountFile(OtherFile):
    """A list of mechanisms to account for."""

    expected = (
        "account takes a list of [[use]], or a release directory; hedgerow plan shows the cost of "
        "a release file"
    )
    use: list[UseSection] = Field(min_length=1)


def read_account(path: Path) -> Profile:
    """Return the profile of a TOML list of mechanisms."""
    check_there(path)
    uses = list(enumerate(parse(path, AccountFile).use, start=1))
    profile = compose([within(f"[[use]] {i}", _use, use) for i, use in uses])
    for i, use in enumerate(profile.uses, start=1):
        within(f"[[use]] {i}", _check_size, use)
    return profile


def _check_size(use: Use) -> None:
    """Raise a BudgetError if floats cannot account for so many uses, or so much loss."""
    if use.times > MOST_TIMES:
        raise BudgetError(f"times must be at most {MOST_TIMES:,}, got {use.times}")
    cost = use.rho if use.pure_epsilon is None else use.pure_epsilon
    if isinstance(use.mechanism, EpsilonDelta):
        cost = use.times * use.mechanism.epsilon
    if cost is not None and cost > LARGEST:
        raise BudgetError(
            f"costs more than {LARGEST:,} (ρ, or pure ε), where nothing is protected; use more "
            f"noise, fewer times or a smaller shift"
        )


def _use(use: UseSection) -> tuple[Guarantee, int, int]:
    kinds: dict[Texts, Callable[..., Guarantee]] = {
        ("epsilon",): Epsilon,
        ("epsilon", "delta"): EpsilonDelta,
    }
    if use.mechanism in MECHANISMS:
        kind = MECHANISMS[use.mechanism]
        kinds = {(kind.key,): kind}
    given = use.model_dump(exclude={"mechanism", "times", "shift"}, exclude_none=True)
    if tuple(given) not in kinds:
        names = " or ".join(" and ".join(sorted(names)) for names in kinds)
        raise SpecError(f"{use.mechanism} takes {names}, got {', '.join(given) or 'nothing'}")
    return kinds[tuple(given)](*given.values()), use.times, use.shift
