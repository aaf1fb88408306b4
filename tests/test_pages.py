"""The texts of the pages: complete in every language, each used, and nowhere else."""

import ast
import re
from pathlib import Path

import polars as pl
import pytest

from hedgerow.noise.mechanisms import MECHANISMS, DiscreteGaussian, DiscreteLaplace
from hedgerow.pages.catalogue import FORMS, catalogue, languages
from hedgerow.pages.markup import Scale, even_ticks
from hedgerow.plan.criteria.criterion import BOUNDS
from hedgerow.plan.cuboids import MEASURES, Invariant
from hedgerow.plan.workload import Cube, Cuboids
from hedgerow.privacy.budget import Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.neighbours import AddRemove, Replace
from hedgerow.release.page.levels import percent_of
from hedgerow.release.page.words import stated
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree
from tests.made import plain_plan

SOURCE = Path(__file__).parents[1] / "src" / "hedgerow"
PLACES = (
    "pages/*", "release/page/*", "plan/page/*", "release/distribution/cumulative*",
    "plan/defaults*", "distribution/plan*",
)  # fmt: skip
GAP = re.compile(r"\{(\w+)\}")
ENGLISH = catalogue("en").texts
MADE = {f"release.made.{kind}" for kind in (*MECHANISMS, *MEASURES)}
CRITERIA = (
    {f"criteria.bound.{kind}" for kind in ("Fraction", *BOUNDS)}
    | {
        f"criteria.told.{kept}"  # `Verdict.kept`
        for kept in ("yes", "no", "unknown")
    }
    | {f"criteria.cells.{which}{kind}" for which in ("all", "part") for kind in ("", *BOUNDS)}
)
FOUND_BY_NAME = {
    "number.thousands", "number.decimal", "number.singular",
    "planning.chosen.branching",  # `hedgerow.spec.release_spec`
    "release.made.sums_by_place",  # `PlannedSums.noised`
} | MADE | CRITERIA | {
    f"release.made.{which}_{workload.name}"  # `Joint.noised`
    for which in ("whole", "both", "below")
    for workload in (Cube, Cuboids)
}  # fmt: skip


def files(*kinds):
    return [
        file
        for place in PLACES
        for kind in kinds
        for file in sorted(SOURCE.glob(f"{place}.{kind}"))
    ]


def sources(*kinds):
    return "\n".join(file.read_text(encoding="utf-8") for file in files(*kinds))


def gaps(text):
    forms = [text] if isinstance(text, str) else [text[form] for form in sorted(FORMS)]
    return [sorted(set(GAP.findall(form))) for form in forms]


def test_there_are_two_languages():
    assert languages() == ("en", "fr")


@pytest.mark.parametrize("language", languages())
def test_every_language_has_every_text_with_the_same_gaps(language):
    texts = catalogue(language).texts
    assert set(texts) == set(ENGLISH)
    for key, text in texts.items():
        assert gaps(text) == gaps(ENGLISH[key]), key
        forms = [text] if isinstance(text, str) else list(text.values())
        assert all(form.strip() for form in forms) or key == "number.thousands"


def test_french_is_no_copy_of_english():
    """But for words that both have, such as total."""
    french = catalogue("fr").texts
    same = [key for key, text in ENGLISH.items() if french[key] == text and len(str(text)) > 20]
    assert same == []


def keys_of(source):
    """Keys in quotes, and those with a part left open, as patterns."""
    whole = set(re.findall(r"[\"'`{]((?:\w+\.)+[\w-]+)[\"'`}]", source))
    opened = re.findall(r"[\"']((?:\w+\.)+\w*\{[^}]*\})[\"']", source)
    opened += re.findall(r"[\"']((?:\w+\.)+\w*\{'?\w+'? if [^\"]*\})\"", source)
    return whole, {re.sub(r"\{[^}]*\}", r"([\\w-]+)", key.replace(".", r"\.")) for key in opened}


def test_every_text_is_used():
    """By its key, or by a key of which one part is put in and stands in quotes somewhere."""
    source = sources("py", "html")
    whole, opened = keys_of(source)
    script = sources("js")
    words = set(re.findall(r"[\"'`]([\w-]+)[\"'`]", source + script))
    unused = []
    for key in ENGLISH:
        name = key.rpartition("script.")[2]
        if key in whole | FOUND_BY_NAME or (name != key and name in words):
            continue
        found = [re.fullmatch(pattern, key) for pattern in opened]
        parts = [match[1] for match in found if match]
        if name != key and re.fullmatch(r"reach_\d", name) and "say(`reach_${" in script:
            continue
        if not any(part in words for part in parts):
            unused.append(key)
    assert unused == []


def test_every_key_that_is_asked_for_is_there():
    whole, _ = keys_of(sources("py", "html"))
    sections = {key.split(".")[0] for key in ENGLISH}
    asked = {key for key in whole if key.split(".")[0] in sections} | MADE
    assert {
        key
        for key in asked
        if key not in ENGLISH and not key.endswith((".js", ".css", ".py", ".html"))
    } == set()
    names = {key.rpartition("script.")[2] for key in ENGLISH if "script." in key}
    assert set(re.findall(r"say\(\"(\w+)\"", sources("js"))) <= names


@pytest.mark.parametrize("page", ["release", "map", "planning"])
def test_no_page_has_a_text_of_its_own_by_the_key_of_one_that_all_pages_share(page):
    shared = {key for key in ENGLISH if key.startswith("script.")}
    own = {key.removeprefix(f"{page}.") for key in ENGLISH if key.startswith(f"{page}.script.")}
    assert not shared & own


SENTENCE = re.compile(r"[A-Za-z’']{2,} [A-Za-z’']{2,} [a-z’']{2,}")


def strings_of(file):
    """The strings of a module that are no docstrings, tell no error, and are for a page."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    left_out = set()
    for node in ast.walk(tree):
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_docstring or isinstance(node, ast.Raise):
            left_out |= {id(each) for each in ast.walk(node)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in left_out
    ]


def test_no_text_of_a_page_stands_elsewhere():
    found = [(file.name, text) for file in files("py") for text in strings_of(file)
             if SENTENCE.search(re.sub(r"<[^>]*>", "", text))]  # fmt: skip
    for file in files("js"):
        code = re.sub(
            r"^\s*//.*$|\s// .*$", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE
        )
        code = re.sub(r"class: (?:\"[^\"]*\"|`[^`]*`)", "", code)
        quoted = re.findall(r"\"([^\"\n]*)\"|`([^`]*)`", code)
        found += [(file.name, text) for pair in quoted for text in pair if SENTENCE.search(text)]
    for file in files("html"):
        plain = re.sub(r"<[^>]*>|\{\{[^}]*\}\}", "", file.read_text(encoding="utf-8"))
        found += [(file.name, text) for text in SENTENCE.findall(plain)]
    assert found == []


def test_a_language_is_known_by_its_first_part_and_english_stands_for_all_others():
    assert catalogue("fr-CA").language == "fr"
    assert catalogue("").language == catalogue("pt-BR").language == "en"


def test_numbers_are_written_as_in_the_language():
    assert catalogue("en").number(10_533_470) == "10,533,470"
    assert catalogue("fr").number(10_533_470) == "10\u202f533\u202f470"
    assert catalogue("fr").numeral("1,234.5") == "1\u202f234,5"
    assert catalogue("fr").percent("2.5") == "2,5\u00a0%"


@pytest.mark.parametrize(("language", "singular"), [("en", {1}), ("fr", {0, 1})])
def test_a_number_chooses_the_form_of_its_text(language, singular):
    say = catalogue(language)
    forms = say.texts["release.levels.counts"]
    for n in (0, 1, 2, 21):
        assert say("release.levels.counts", n=n) == forms[
            "one" if n in singular else "other"
        ].replace("{n}", str(n))


@pytest.mark.parametrize(
    "neighbours",
    [
        AddRemove(), AddRemove(3), AddRemove(3, unit="person"), AddRemove(unit="person"), Replace(),
        Replace(2), Replace(unit="person"), Replace(2, unit="person"), Replace(2, exactly=False),
        Replace(2, exactly=False, unit="person"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("budget", [Epsilon("1/3"), Rho("1/7"), EpsilonDelta("1", "1e-9")])
def test_the_promise_in_english_is_word_for_word_that_of_the_plan(neighbours, budget):
    frame = pl.DataFrame({"state": ["a", "a", "b"], "town": ["aa", "ab", "ba"]})
    tree = Tree([Axis.from_frame("place", frame, frame.columns)])
    pure = isinstance(budget, Epsilon)
    mechanism = DiscreteLaplace if pure else DiscreteGaussian
    agreed = neighbours.total_is_public and mechanism is DiscreteGaussian
    for invariants in ([], [Invariant("place", "state")]) if agreed else ([],):
        plan = plain_plan(tree, budget=budget, neighbours=neighbours, mechanism=mechanism,
                         invariants=invariants)  # fmt: skip
        assert stated(plan) == str(plan.promise)


def test_a_small_part_is_said_to_be_small_and_never_a_power_of_ten():
    said = {12.34: "12 %", 0.0123: "0.012 %", 0.01: "0.01 %", 0.00002: "&lt; 0.01 %"}
    say = catalogue("en")
    assert {value: percent_of(say, value).replace("\u00a0", " ") for value in said} == said
    assert percent_of(catalogue("fr"), 0.001) == "&lt; 0,01\u00a0%"


def test_no_text_states_an_error_as_plus_or_minus():
    for language in languages():
        texts = catalogue(language).texts
        assert [key for key, text in texts.items() if "±" in str(text)] == []
    assert "±" not in sources("html")


def test_a_picture_reaches_from_one_end_of_its_scales_to_the_other():
    ages, chances = Scale("age", 20, 30, even_ticks(20, 30)), Scale("δ", 1e-3, 1, [], log=True)
    assert [ages.place(age) for age in (20, 25, 30)] == [0, 0.5, 1]
    assert [chances.place(delta) for delta in (1e-3, 0.1, 1)] == pytest.approx([0, 2 / 3, 1])
    assert [age for age, _ in ages.ticks] == [20, 22, 24, 26, 28, 30]
