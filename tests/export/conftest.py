"""Releases to export, with all that makes formats stumble."""

import polars as pl
import pytest

import hedgerow as hr
from tests.made import plain_plan

AREAS = pl.DataFrame(
    {
        "state": ["1", "1", "2", 'Île d\'Oléron, "B"'],
        "sa2": ["101", "1", "=2+3", "Straße <7&8>"],
    }
)
SAID = hr.Description(
    title="Journeys to work — 2021",
    unit="workers",
    publisher="Office of Statistics",
    period="2021",
    notes=("Those who work at home are left out.", "x" * 200),
    licence="CC BY 4.0",
    language="en",
    axes={"home": "Place of residence"},
    levels={"home.state": "State of residence", "work.state": "State of work"},
)

SAID_OF_ONE = hr.Description(title="Workers", period="2021-Q1", levels={"state": "State"})


def axis(name):
    columns = [f"{name} state", f"{name}.sa2"]
    return hr.Axis.from_frame(name, AREAS, levels=["state", "sa2"], columns=columns)


def made(tree, table, **options):
    """A release in memory of little noise."""
    plan = plain_plan(tree, budget=hr.Rho(50), **options).described(SAID)
    return hr.release(hr.Counts.from_frame(tree, table, count="people"), plan)


@pytest.fixture(scope="session")
def flows(tmp_path_factory):
    """A directory of a release of two axes, all combinations of levels."""
    pairs = AREAS.rename({"state": "home state", "sa2": "home.sa2"}).join(
        AREAS.rename({"state": "work state", "sa2": "work.sa2"}), how="cross"
    )
    table = pairs.with_columns(people=pl.int_range(pl.len()) * 40 + 5)
    out = tmp_path_factory.mktemp("flows") / "out"
    made(hr.Tree([axis("home"), axis("work")]), table, workload=hr.Cube()).write(out)
    return out


@pytest.fixture(scope="session")
def places(tmp_path_factory):
    """A directory of a release of one axis with people by a product of columns beside it."""
    sexes = hr.Axis.from_product(
        "person", [{"sex": ["f", "m"]}, {"age": ["old", "young"]}], ["sex", "detail"],
        attribute=True,
    )  # fmt: skip
    place = hr.Axis.from_frame("place", AREAS, levels=["state", "sa2"])
    rows = AREAS.join(pl.DataFrame({"sex": ["f", "m"]}), how="cross")
    rows = rows.join(pl.DataFrame({"age": ["old", "young"]}), how="cross")
    table = rows.with_columns(people=pl.int_range(pl.len()) * 30 + 9)
    plan = plain_plan(hr.Tree([place, sexes]), budget=hr.Rho(50), workload=hr.Cube())
    out = tmp_path_factory.mktemp("places") / "out"
    hr.release(hr.Counts.from_frame(plan.tree, table, count="people"), plan).write(out)
    return out


NAMED = AREAS.with_columns(
    state_name=pl.Series(["New South Wales", "New South Wales", "Victoria", None]),
    sa2_name=pl.Series(["Goulburn", 'Le "Port" </script>', "x" * 150 + "é", "=1+1"]),
)


@pytest.fixture(scope="session")
def named(tmp_path_factory):
    """A directory of a release of one axis with names, and codes that were released as 0."""
    areas = pl.concat([NAMED, NAMED[:1].with_columns(sa2=pl.lit("999"), sa2_name=pl.lit(None))],
                      how="vertical_relaxed")  # fmt: skip
    place = hr.Axis.from_frame(
        "place", areas, levels=["state", "sa2"], not_stated="999",
        names={"state": "state_name", "sa2": "sa2_name"},
    )  # fmt: skip
    table = AREAS[:3].with_columns(people=pl.Series([500, 300, 200]))
    tree = hr.Tree([place])
    plan = plain_plan(tree, budget=hr.Rho(1), measure=hr.All()).described(SAID_OF_ONE)
    out = tmp_path_factory.mktemp("named") / "out"
    hr.release(hr.Counts.from_frame(tree, table, count="people"), plan).write(out)
    return out
