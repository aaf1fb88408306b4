"""Who a plan protects, between which tables, in the language of its pages."""

from hedgerow.pages.catalogue import Catalogue, catalogue
from hedgerow.pages.markup import shown
from hedgerow.plan.facts.fixed import MOST_NAMED
from hedgerow.plan.plan import Plan
from hedgerow.privacy.neighbours import AddRemove


def words_of(plan: Plan) -> Catalogue:
    """Return the texts of the pages of a plan, in the language of its description."""
    return catalogue(plan.description.language)


def units(plan: Plan) -> str:
    """Return what a count counts, in the plural: text, the one word for it on a whole page."""
    return plan.description.unit or words_of(plan)("release.records")


def one(plan: Plan) -> str:
    """Return whoever or whatever is protected, one of them: text."""
    say = words_of(plan)
    m = plan.neighbours.contributions
    unit = ""
    key = "one_many" if m > 1 else "one_of" if plan.description.unit else "one_record"
    if plan.neighbours.unit:
        key = "one_named"
        unit = plan.neighbours.unit
    return say(f"release.promise.{key}", m=m, unit=unit, units=units(plan))


def protected(plan: Plan) -> str:
    """Return who is protected from what, in a sentence: text."""
    say = words_of(plan)
    relation = plan.neighbours
    m = relation.contributions
    unit = relation.unit
    if isinstance(relation, AddRemove):
        key = "add_remove_unit" if unit else "add_remove_many" if m > 1 else "add_remove"
    elif not relation.total_is_public:
        key = "replace_at_most"
    elif m > 1:
        key = "replace_many"
    else:
        key = "replace_unit" if unit else "replace"
    values = {"unit": unit or say("release.promise.unit"), "one": one(plan), "units": units(plan)}
    if plan.description.unit:
        said = say(f"release.promise.of.{key}", m=m, **values)
    else:
        said = say(f"release.promise.{key}", m=m, **values)
    return among(plan, said)


def agreed(plan: Plan) -> str:
    """Return what the tables agree on between which the promise holds: text, empty for any."""
    say = words_of(plan)
    return say.joined(
        [
            say("release.promise.list_of", axis=r.axis)
            if r.level is None
            else say("release.promise.counts_of", name=f"{r.axis}.{r.level}")
            for r in plan.protection.restrictions
        ]
    )


def among(plan: Plan, sentence: str, *, again: bool = False) -> str:
    """Return a sentence that promises as `hedgerow.privacy.promise.Protection.among` does: text."""
    named = agreed(plan)
    if not named:
        return sentence
    say = words_of(plan)
    key = "among_these" if again else "among"
    sentence = f"{sentence[0].lower()}{sentence[1:]}"
    return say(f"release.promise.{key}", agreed=named, sentence=sentence)


def not_hidden(plan: Plan) -> str:
    """Return what is public by declaration, and what public files fix, in sentences: text."""
    say = words_of(plan)
    restrictions = plan.protection.restrictions
    named = {
        "exact": [f"{r.axis}.{r.level}" for r in restrictions if r.level is not None],
        "lists": [r.axis for r in restrictions if r.level is None],
    }
    last = say("list.last")
    each = [say(f"release.promise.{key}", names=last.join(n)) for key, n in named.items() if n]
    return " ".join(filter(None, [*each, fixed(plan)]))


def fixed(plan: Plan) -> str:
    """Return which counts public files fix, and what that means, in a sentence: text."""
    say = words_of(plan)
    named = []
    for levels, (counts, cells) in list(plan.fixed_counts.items())[:MOST_NAMED]:
        name = plan.label_of(levels)
        named.append(say("release.promise.fixed_of", fixed=counts, cells=cells, name=name))
    if more := len(plan.fixed_counts) - len(named):
        named.append(say("release.more", number=more))
    return say("release.promise.fixed", counts=say.joined(named)) if named else ""


def has_list_of_table(plan: Plan) -> bool:
    """Return whether the areas of an axis were read from the table that is protected."""
    return any(each.level is None for each in plan.protection.restrictions)


def publisher(plan: Plan) -> str:
    """Return who answers for the table: HTML, nothing where nobody is named."""
    named = plan.description.publisher
    return f"<b>{shown(named)}</b>" if named else ""
