"""`export --as sdmx`: valid for pysdmx, and equal to the Parquet files when it reads them back."""

import polars as pl
import pytest
from pysdmx.io import get_datasets, read_sdmx
from pysdmx.model import Codelist, Hierarchy

import hedgerow as hr
from hedgerow.errors import ReleaseError, TableError
from hedgerow.export.sdmx import identifiers, is_period
from tests.made import plain_plan

FIGURES = {
    "OBS_VALUE": "count", "ESTIMATE": "estimate", "STANDARD_ERROR": "standard_error",
    "LOW": "low", "HIGH": "high", "CONTRADICTED": "contradicted",
}  # fmt: skip


@pytest.fixture(scope="module", params=["flows", "places", "plain", "named"])
def out(request, tmp_path_factory):
    if request.param != "plain":
        return request.getfixturevalue(request.param)
    areas = pl.DataFrame({"state": ["NSW", "NSW", "VIC"], "sa2": ["101", "102", "201"]})
    tree = hr.Tree([hr.Axis.from_frame("estimate", areas, levels=["state", "sa2"])])
    counts = hr.Counts.from_frame(tree, areas.with_columns(people=70), count="people")
    folder = tmp_path_factory.mktemp("plain") / "out"
    hr.release(counts, plain_plan(tree, budget=hr.Rho(9))).write(folder)
    return folder


@pytest.fixture(scope="module")
def sdmx(out, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sdmx") / "sdmx"
    hr.export(out, folder, hr.Sdmx(agency="ABS"))
    return folder


def parts(sdmx, kind):
    every = read_sdmx(sdmx / "structure.xml", validate=True).structures
    return {each.id: each for each in every if isinstance(each, kind)}


def test_its_tables_read_back_equal_the_release(out, sdmx):
    [dataset] = get_datasets(sdmx / "data.csv", sdmx / "structure.xml")
    read = pl.from_pandas(dataset.data)
    release = hr.read_release(out)
    tree = release.plan.tree
    dimensions = read.columns[: len(tree.axes)]
    lists = parts(sdmx, Codelist)
    at = 0
    for levels in release.plan.levels:
        wanted = release.level(tree.name_of(levels))
        found = read[at : at + len(wanted)]
        at += len(wanted)
        figures = found.select(pl.col(old).alias(new) for old, new in FIGURES.items())
        assert figures.cast({"contradicted": pl.Boolean}).equals(wanted.select(FIGURES.values()))
        for axis, dimension, level in zip(tree.axes, dimensions, levels, strict=True):
            names = {code.id: code.name for code in lists[f"CL_{dimension}"]}
            codes = found[dimension].replace_strict(names).to_list()
            given = axis.names_of(level)
            if given is not None:
                words = dict(zip(axis.labels[level - 1], given, strict=True))
                own = wanted[axis.columns[level - 1]].to_list()
                assert codes == [words[code] or code for code in own]
            elif level == 0:
                assert set(codes) <= {"Total"}
            elif axis.product is None:
                assert codes == wanted[axis.columns[level - 1]].to_list()
            else:
                keys = axis.keys(level).with_columns(axis.labels[level - 1].alias("name"))
                told = wanted.join(keys, on=list(axis.columns_of(level)), maintain_order="left")
                assert codes == told["name"].to_list()
    assert at == len(read)


def test_its_hierarchies_are_those_of_the_axes(out, sdmx):
    tree, lists = hr.read_release(out).plan.tree, parts(sdmx, Codelist)
    hierarchies = parts(sdmx, Hierarchy)
    assert len(hierarchies) == len(lists) == len(tree.axes)
    for axis in tree.axes:
        name = {"estimate": "ESTIMATE_2"}.get(axis.name, axis.name.upper())
        names = {code.id: code.name for code in lists[f"CL_{name}"]}
        [total] = hierarchies[f"H_{name}"].codes
        assert total.id == "_T"
        nodes = [(total, [])]
        paths = []
        while nodes:
            node, path = nodes.pop(0)
            inner = [(child, [*path, names[child.id]]) for child in node.codes]
            nodes = inner + nodes
            paths += [] if inner else [path]
        wanted = [
            (
                pl.select(pl.coalesce(axis.names_of(level), labels)).to_series()
                if axis.names_of(level) is not None
                else labels
            )
            .gather(axis.ancestors(level))
            .to_list()
            for level, labels in enumerate(axis.labels, start=1)
        ]
        assert paths == [list(path) for path in zip(*wanted, strict=True)]


def test_it_says_what_the_publisher_says(flows, tmp_path):
    hr.export(flows, tmp_path / "sdmx", hr.Sdmx())
    structures = {
        type(s).__name__: s for s in read_sdmx(tmp_path / "sdmx" / "structure.xml").structures
    }
    flow = structures["Dataflow"]
    assert flow.name == "Journeys to work — 2021"
    assert "Publisher: Office of Statistics." in flow.description
    names = {concept.id: concept.name for concept in structures["ConceptScheme"].items}
    assert names["HOME"] == "Place of residence"
    assert names["OBS_VALUE"] == "Count (workers)"


def test_names_of_the_public_list_are_names_of_codes_which_stay_to_be_seen(named, tmp_path):
    hr.export(named, tmp_path / "sdmx", hr.Sdmx())
    codes = {code.id: code for code in parts(tmp_path / "sdmx", Codelist)["CL_PLACE"]}
    assert codes["SA2@101"].name == "Goulburn"
    assert codes["SA2@101"].description == "101"
    assert codes["SA2@1"].name == 'Le "Port" </script>'
    assert codes["SA2@999"].name == "999"
    assert codes["SA2@999"].description is None


def test_codes_and_names_that_xml_does_not_allow_are_read_back_with_escapes(tmp_path):
    odd = ["\ufffe", "\uffff", "\x1b[2J", "]]>", "<&\"'>"]
    areas = pl.DataFrame({"town": odd, "nm": [f"n{each}" for each in reversed(odd)]})
    place = hr.Axis.from_frame("place", areas, levels=["town"], names="nm")
    counts = hr.Counts.from_frame(hr.Tree([place]), areas.with_columns(n=500), count="n")
    hr.release(counts, plain_plan(counts.tree, budget=hr.Rho(50))).write(tmp_path / "out")
    hr.export(tmp_path / "out", tmp_path / "sdmx", hr.Sdmx())
    codes = [(c.name, c.description) for c in parts(tmp_path / "sdmx", Codelist)["CL_PLACE"]]
    shown = ["\\ufffe", "\\uffff", "\\x1b[2J", "]]>", "<&\"'>"]
    wanted = {(f"n{name}", code) for name, code in zip(reversed(shown), shown, strict=True)}
    assert set(codes) == {("Total", None), *wanted}
    with pytest.raises(TableError, match="title must have no"):
        hr.Description(title="a\uffff")


def test_a_period_that_sdmx_knows_is_the_time_of_all_counts(named, flows, places, tmp_path):
    for out, period in ((named, "2021-Q1"), (flows, "2021"), (places, None)):
        folder = tmp_path / (period or "none")
        hr.export(out, folder, hr.Sdmx())
        [dataset] = get_datasets(folder / "data.csv", folder / "structure.xml")
        if period is None:
            assert "TIME_PERIOD" not in dataset.data
            continue
        assert set(dataset.data["TIME_PERIOD"].astype(str)) == {period}
        time = dataset.structure.components["TIME_PERIOD"]
        assert (time.role.name, time.concept.id) == ("DIMENSION", "TIME_PERIOD")


@pytest.mark.parametrize(
    ("period", "known"),
    [(each, True) for each in (
        "2021", "2021-08", "2021-Q4", "2021-S2", "2021-T3", "2021-A1", "2021-M12", "2021-W53",
        "2021-D001", "2021-D366", "2020-02-29", "2021-08-08/P7D", "2021-01-01/P1Y",
    )]
    + [(each, False) for each in (
        "", "21", "2021-13", "2021-Q5", "2021-S3", "2021-W00", "2021-W54", "2021-D000",
        "2021-D367", "2021-08-32", "2021–22", "2021/22", "week of 8 August 2021", "２０２１",
        "2021\n", "2021-02-30", "2021-02-30/P7D",
    )],
)  # fmt: skip
def test_periods_of_sdmx_are_known(period, known):
    assert is_period(period) is known


def test_identifiers_are_codes_where_they_can_be_and_always_different():
    areas = {"state": ["A", "A", "B"], "town": ["A-1", "A_2", "7"]}
    axis = hr.Axis.from_frame("place", areas, ["state", "town"])
    assert [ids.to_list() for ids in identifiers(axis)] == [["A", "B"], ["A-1", "A_2", "7"]]
    for codes in (["1", "2"], ["3", "_T"]):
        axis = hr.Axis.from_frame("place", {"state": ["1", "2"], "town": codes}, ["state", "town"])
        assert identifiers(axis)[1].to_list() == [f"TOWN@{code}" for code in codes]
    odd = {"a": ["x$", "x", "_T", "é"], "a b": ["x$24$", "b@x", "x", "_T"]}
    axis = hr.Axis.from_frame("place", odd, ["a", "a b"])
    ids = [each for level in identifiers(axis) for each in level]
    assert len(set(ids)) == 8
    assert {"A@x$24$", "A_B@x$24$24$24$", "A@_T"} <= set(ids)


@pytest.mark.parametrize("agency", ["", "9", "a b", "Ä", "x" * 41, "a."])
def test_an_agency_that_is_no_identifier_is_refused(agency):
    with pytest.raises(ReleaseError, match="an agency is identified by"):
        hr.Sdmx(agency)
