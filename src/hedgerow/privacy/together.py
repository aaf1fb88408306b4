"""Several releases together: what they promise when one unit may change each in another way.

Within a release what one unit changes is one of a few cases, the same at every depth
(`Neighbours.changes`). Releases of one dataset need not agree on the case: of two tables that a
query made, or of two years, the same unit may leave one and move in the other. So all together are
priced by the worst *combination* of their cases.

Proof. Fix two neighbouring datasets. Given what was released before, release i says no more of
them than the composition of its uses in some case k_i (its own profile rests on that). Pairs of
laws that dominate compose, so all together say no more than the composition in (k_1, k_2, …), whose
figures are at most the largest over all combinations. A ρ and a pure ε are then the sums of the
releases' own. Equal releases need only be combined in one case: what their figures rest on (ρ, a
pure ε, and the μ² and C of `hedgerow.privacy.accountant.domination`) are sums over the releases of
what each costs in its own case, and so largest where each is in the same. A release that would make
too many combinations is taken in the *union* of its cases: of each use the shifts of all cases, or
the largest norm, of which every case is a part. ∎

Whether some unit can make the worst combination depends on the tables, which a ledger does not
know: where a release has several cases, figures of several releases are bounds and not exact.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import product

from hedgerow.privacy.neighbours import Norm, l2_squared
from hedgerow.privacy.profile import Profile
from hedgerow.privacy.use import Use

MOST_COMBINATIONS = 64


def together(profiles: Sequence[Profile]) -> Profile:
    """The profile of all releases, at least one, whose noise was fixed beforehand.

    Raises:
        BudgetError: there are none.
    """
    if len(profiles) == 1:
        return profiles[0]
    single = all(len(profile.cases) == 1 for profile in profiles)
    proved = single and all(profile.is_worst for profile in profiles)
    return Profile(tuple(_combined(Counter(profiles))), is_worst=proved)


def _combined(counted: Counter[Profile]) -> list[Use]:
    """The uses of all, with a case for each combination of theirs."""
    uses: list[Use] = []
    chosen: list[Profile] = []
    number = 1
    for profile, times in counted.items():
        number *= len(profile.cases)
        if len(profile.cases) == 1 or number > MOST_COMBINATIONS:
            number //= len(profile.cases)
            uses += [_united(use) for use in profile.uses] * times
        else:
            chosen.append(profile)
    combinations = list(product(*(range(len(profile.cases)) for profile in chosen)))
    for place, profile in enumerate(chosen):
        cases = [combination[place] for combination in combinations]
        uses += [_reordered(use, cases) for use in profile.uses] * counted[profile]
    return uses


def _reordered(use: Use, cases: Sequence[int]) -> Use:
    if len(use.changes) == 1:
        return use
    return Use(use.mechanism, use.times, tuple(use.changes[case] for case in cases))


def _united(use: Use) -> Use:
    """The use with one change, of which that of every case is a part."""
    if len(use.changes) == 1:
        return use
    most: Counter[int] = Counter()
    for change in use.changes:
        if isinstance(change, Norm):
            largest = max(l2_squared(other) for other in use.changes)
            return Use(use.mechanism, use.times, (Norm(int(largest)),))
        most |= Counter(map(abs, change))
    return Use(use.mechanism, use.times, (tuple(most.elements()),))
