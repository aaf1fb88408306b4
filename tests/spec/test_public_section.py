"""``[[public]]`` of a release file: rules, files, and what is refused."""

import polars as pl
import pytest

import hedgerow as hr
from hedgerow.errors import HedgerowError, SpecError
from hedgerow.plan.facts.facts import Zeros
from hedgerow.spec.release_spec import ReleaseSpec

FILE = """
[table]
source = "people.csv"
[[axis]]
name = "place"
levels = ["tract", "block"]
areas = "areas.csv"
[[axis]]
name = "kind"
levels = ["kind"]
areas = "kinds.csv"
attribute = {attribute}
[workload]
cuboids = "{cuboids}"
[privacy]
rho = "1/20"
{public}
"""
BOTH = """
[[public]]
zeros = { kind = ["prison"] }
[[public]]
source = "facilities.csv"
zeros = "unlisted"
at_least = "people"
"""


@pytest.fixture
def written(tmp_path):
    """Write the files, with some lines for what is public; return the release file."""
    areas = {"tract": ["A", "A", "B"], "block": ["A1", "A2", "B1"]}
    kinds = {"kind": ["home", "nursing", "prison"]}
    facilities = {"block": ["A1", "B1"], "kind": ["home", "nursing"], "people": [0, 2]}
    for name, columns in {"areas": areas, "kinds": kinds, "facilities": facilities}.items():
        pl.DataFrame(columns).write_csv(tmp_path / f"{name}.csv")
    people = {"block": ["A1", "B1"], "kind": ["home", "nursing"]}
    pl.DataFrame(people).write_csv(tmp_path / "people.csv")

    def write(public, cuboids="cube", attribute="true"):
        file = tmp_path / "release.toml"
        file.write_text(FILE.format(public=public, cuboids=cuboids, attribute=attribute))
        return file

    return write


def plan_of(file):
    spec = ReleaseSpec(file)
    return spec.plan(spec.tree())


def test_a_file_has_the_facts_that_python_has(written, tmp_path):
    plan = plan_of(written(BOTH))
    rule, rows = plan.facts
    assert rule == Zeros({"kind": ["prison"]})
    assert rows.frame.rows() == [("A1", "home", 0), ("B1", "nursing", 2)]
    table = hr.PublicTable(tmp_path / "facilities.csv", zeros="unlisted", at_least="people")
    made = hr.make_plan(plan.tree, budget=hr.Rho("1/20"), workload=hr.Cube(), public=[rule, table])
    assert made.hash == plan.hash
    assert (plan.constraints.open_cells, plan.constraints.least) == (2, 2)


def test_a_file_without_facts_has_the_hash_that_it_had(written):
    assert plan_of(written("")).facts == ()


def test_the_plan_for_a_target_keeps_the_facts(written):
    spec = ReleaseSpec(written('[allocation]\nmethod = "optimal"\n' + BOTH))
    assert len(spec.cheapest(spec.tree(), "100").facts) == 2


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('zero = "unlisted"', "unknown key.*did you mean 'zeros'"),
        ('zeros = "unlisted"', "without a source is a rule, and has zeros alone"),
        ('zeros = { kind = ["home"] }\nat_least = "n"', "without a source is a rule"),
        ('at_most = "n"', "without a source is a rule"),
        ('source = "facilities.csv"', "needs zeros, at_least or at_most"),
        ('source = "facilities.csv"\nzeros = { kind = ["home"] }', "with a source, got"),
        ('source = "facilities.csv"\nzeros = "none"', 'must be "unlisted" or "listed"'),
        ('source = "facilities.csv"\nzeros = 5', 'must be "unlisted" or "listed"'),
        ('zeros = { kind = "home" }', 'must be "unlisted" or "listed" .* lists of codes'),
        ("zeros = { kind = [1] }", 'must be "unlisted" or "listed" .* lists of codes'),
        ('zeros = { kind = [["home"]] }', "lists of codes"),
        ("zeros = {}", "name no column"),
        ('source = ""\nzeros = "listed"', "at least 1|empty|character"),
        ('source = "nowhere.csv"\nzeros = "listed"', "nowhere.csv does not exist"),
        ('source = "areas.csv"\nzeros = "listed"\nat_least = "n"', "have no bounds"),
        ('source = "facilities.csv"\nat_least = "none"', "has no column 'none'"),
        ('source = "facilities.csv"\nat_least = "block"', "'block' holds codes, and no numbers"),
        ('source = "kinds.csv"\nzeros = "listed"', "leave nobody anywhere"),
    ],
)
def test_what_a_section_cannot_say_is_refused(written, lines, words):
    with pytest.raises(HedgerowError, match=words) as error:
        plan_of(written(f"[[public]]\n{lines}\n"))
    assert "public" in str(error.value)


def test_a_database_is_no_public_file_and_its_password_is_not_quoted(written):
    with pytest.raises(SpecError, match="must name a file, not a database") as error:
        plan_of(written('[[public]]\nsource = "postgresql://me:secret@host/d"\nzeros = "listed"'))
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("name", ["people.csv", "./people.csv", "link.csv", "hard.csv"])
def test_the_confidential_table_is_no_public_file(written, tmp_path, name):
    (tmp_path / "link.csv").symlink_to("people.csv")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "people.csv")
    with pytest.raises(SpecError, match="is the confidential table itself"):
        plan_of(written(f'[[public]]\nsource = "{name}"\nzeros = "unlisted"'))


@pytest.mark.parametrize("role", ["public", "areas", "lists", "shapes", "prior"])
def test_nor_is_it_on_spark_whatever_it_is_given_as(written, tmp_path, role):
    """A URI names a file too; only a path used to be compared."""
    more = {
        "public": '[[public]]\nsource = "people.csv"\nzeros = "unlisted"',
        "prior": '[allocation]\nmethod = "optimal"\nprior = {source = "people.csv", public = true}',
    }
    file = written(more.get(role, BOTH))
    text = file.read_text().replace('"people.csv"', f'"file://{tmp_path}/people.csv"', 1)
    text += '[engine]\nname = "spark"\n'
    if role == "areas":
        text = text.replace('"kinds.csv"', '"people.csv"')
    elif role == "lists":
        text = text.replace(
            'levels = ["kind"]\nareas = "kinds.csv"', 'product = ["kind"]\nlists = ["people.csv"]'
        )
    elif role == "shapes":
        text = text.replace('areas = "areas.csv"', 'areas = "areas.csv"\nshapes = "people.csv"')
    file.write_text(text)
    with pytest.raises(SpecError, match="is the confidential table itself"):
        plan_of(file)


@pytest.mark.parametrize(("cuboids", "attribute"), [("chain", "true"), ("cube", "false")])
def test_facts_need_attributes_and_a_cube_or_a_list(written, cuboids, attribute):
    with pytest.raises(HedgerowError, match=r'cuboids = "cube" or a list, and attribute = true'):
        plan_of(written(BOTH, cuboids, attribute))
