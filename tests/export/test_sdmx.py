"""`export --as sdmx`: valid for pysdmx, and equal to the Parquet files when it reads them back."""

import polars as pl
import pytest
from pysdmx.io import get_datasets, read_sdmx
from pysdmx.model import Codelist, Hierarchy

import hedgerow as hr
from hedgerow.errors import ReleaseError
from hedgerow.export.sdmx import identifiers

FIGURES = {
    "OBS_VALUE": "count", "ESTIMATE": "estimate", "STANDARD_ERROR": "standard_error",
    "LOW": "low", "HIGH": "high", "CONTRADICTED": "contradicted",
}  # fmt: skip


@pytest.fixture(scope="module", params=["flows", "places", "plain"])
def out(request, tmp_path_factory):
    if request.param != "plain":
        return request.getfixturevalue(request.param)
    areas = pl.DataFrame({"state": ["NSW", "NSW", "VIC"], "sa2": ["101", "102", "201"]})
    tree = hr.Tree([hr.Axis.from_frame("estimate", areas, levels=["state", "sa2"])])
    counts = hr.Counts.from_frame(tree, areas.with_columns(people=70), count="people")
    folder = tmp_path_factory.mktemp("plain") / "out"
    hr.release(counts, hr.make_plan(tree, budget=hr.Rho(9))).write(folder)
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
            if level == 0:
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
            labels.gather(axis.ancestors(level)).to_list()
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
