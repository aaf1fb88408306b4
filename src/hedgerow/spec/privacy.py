"""``[privacy]`` of a release file as types: the mechanism, the neighbours and the budget."""

from hedgerow.errors import SpecError
from hedgerow.noise.mechanisms import MECHANISMS, Mechanism
from hedgerow.noise.price import InEpsilon
from hedgerow.privacy.budget import WELL_BELOW, Budget, Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.neighbours import AddRemove, Neighbours, Replace
from hedgerow.spec.release_file import PrivacySection
from hedgerow.spec.toml_file import within


def mechanism_of(privacy: PrivacySection) -> type[Mechanism]:
    """The mechanism that a section names."""
    return MECHANISMS[privacy.mechanism]


def neighbours_of(privacy: PrivacySection, unit: str | None) -> Neighbours:
    """The tables that a section makes hard to tell apart.

    Args:
        privacy: the section.
        unit: the column of the table that names the unit of privacy, if there is one.

    Raises:
        SpecError: keys that do not go together.
        BudgetError: no number of contributions.
    """
    return within("[privacy]", _neighbours, privacy, unit)


def budget_of(privacy: PrivacySection) -> Budget:
    """The budget of a section.

    Raises:
        SpecError: none, or several, or one that the mechanism cannot keep.
        BudgetError: numbers that are no budget.
    """
    return within("[privacy]", _budget, privacy)


def _neighbours(privacy: PrivacySection, unit: str | None) -> Neighbours:
    m, exactly = privacy.contributions, privacy.exactly
    if privacy.neighbours == "add-remove":
        if exactly is not None:
            raise SpecError("exactly goes with replace neighbours; add-remove measures the total")
        return AddRemove(m, unit=unit)
    if exactly is None and unit is None and m > 1:
        raise SpecError(
            f"replace with contributions = {m} needs exactly = true (every unit has exactly "
            f"{m} records, so the total is public) or exactly = false (at most {m}; the total "
            f"is measured)"
        )
    # A unit column keeps *at most* m records a unit; only for m = 1 is that exactly m.
    return Replace(m, exactly=m == 1 if exactly is None else exactly, unit=unit)


def _budget(privacy: PrivacySection) -> Budget:
    given = {n for n in ("epsilon", "delta", "rho") if getattr(privacy, n) is not None}
    if privacy.rho is not None and given == {"rho"}:
        return Rho(privacy.rho)
    if privacy.epsilon is not None and privacy.delta is not None and len(given) == 2:
        return EpsilonDelta(privacy.epsilon, privacy.delta)
    if privacy.epsilon is not None and given == {"epsilon"}:
        if not isinstance(mechanism_of(privacy).price, InEpsilon):
            raise SpecError(
                f"{privacy.mechanism} noise has no pure epsilon; add a delta {WELL_BELOW}, or give "
                f'rho, or use mechanism = "discrete-laplace"'
            )
        return Epsilon(privacy.epsilon)
    raise SpecError(
        f"give one budget: rho, or epsilon with delta, or (for discrete-laplace) epsilon alone; "
        f"got {' and '.join(sorted(given)) or 'none'}"
    )
