"""SDMX 3.0: code lists, hierarchies, a data structure and flow, and all tables as SDMX-CSV 2.0.

Every axis is a dimension, whose code list has the codes of all its levels and ``_T`` for the axis
summed over; so the counts of all cuboids stand in one flow. A code that SDMX allows, and that is
the code of one node alone, is its own identifier; where an axis has others they are
``LEVEL@code``, with what SDMX does not allow as ``$hex$``, and have the code as description. A
code's name is that of the public list; the code itself where that names none. Where the period of
the description is one that SDMX knows, it is the time dimension.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any

import polars as pl

from hedgerow.declared import frozen
from hedgerow.errors import ReleaseError
from hedgerow.export.released import column_labels, plain_names, statements
from hedgerow.machine import library
from hedgerow.release.directory.measurements import (
    CONTRADICTED,
    COUNT,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
)
from hedgerow.release.directory.output import whole_or_not
from hedgerow.release.page.words import title
from hedgerow.release.release import Release
from hedgerow.tables.axis import Axis
from hedgerow.text import Json, TextByName, visible

STRUCTURE, DATA = "structure.xml", "data.csv"
TOTAL, OBSERVED = "_T", "OBS_VALUE"
VERSION = "1.0"
LONGEST_ID = 40
MEASURES = {
    COUNT: (OBSERVED, "LONG"),
    ESTIMATE: ("ESTIMATE", "DOUBLE"),
    STANDARD_ERROR: ("STANDARD_ERROR", "DOUBLE"),
    LOW: ("LOW", "LONG"),
    HIGH: ("HIGH", "LONG"),
}
_AGENCY = re.compile(r"[A-Za-z][\w-]*(\.[A-Za-z][\w-]*)*", re.ASCII)
_CODE = re.compile(r"[A-Za-z0-9_@$-]+")
TIME = "TIME_PERIOD"
_DAY = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_PERIOD = re.compile(
    r"\d{4}(-(0[1-9]|1[0-2]|A1|S[12]|T[123]|Q[1-4]|M(0[1-9]|1[0-2])|W(0[1-9]|[1-4]\d|5[0-3])"
    r"|D(0\d[1-9]|0[1-9]0|[12]\d\d|3[0-5]\d|36[0-6])))?"
    rf"|{_DAY}(/P[1-9]\d{{0,3}}[YMWD])?",
    re.ASCII,
)
"""Periods of SDMX: 2021, 2021-08, 2021-Q1, 2021-W32, 2021-08-10, 2021-08-08/P7D, …."""


@frozen
class Sdmx:
    """A directory of SDMX: ``structure.xml`` (SDMX-ML 3.0) and ``data.csv`` (SDMX-CSV 2.0).

    Attributes:
        agency: the identifier of the agency that maintains the structures.

    Raises:
        ReleaseError: the agency's identifier is none.

    Example:
        >>> hr.Sdmx(agency="ABS")
        Sdmx(agency='ABS')
    """

    agency: str = "HEDGEROW"

    def __post_init__(self) -> None:
        if len(self.agency) > LONGEST_ID or not _AGENCY.fullmatch(self.agency):
            raise ReleaseError(
                f'an agency is identified by ASCII letters, digits, _ and -, such as "ABS", got '
                f"{self.agency[:LONGEST_ID]!r}"
            )

    def write(self, release: Release, output: Path) -> None:
        """Write the directory, whole or not at all.

        Raises:
            ReleaseError: it exists, or the release is damaged.
            MachineError: pysdmx is missing, or the disk is full.
        """
        for name in ("pandas", "lxml"):
            library(name, "sdmx")
        io = library("pysdmx.io", "sdmx")
        formats = library("pysdmx.io.format", "sdmx").Format
        with whole_or_not(output) as folder:
            made = _Structures(release, self.agency)
            io.write_sdmx(made.artefacts(), formats.STRUCTURE_SDMX_ML_3_0, str(folder / STRUCTURE))
            io.write_sdmx(made.data(), formats.DATA_SDMX_CSV_2_0_0, str(folder / DATA))


@dataclass(frozen=True)
class _Structures:
    """What SDMX calls the parts of a release.

    Attributes:
        release: whose tables are written.
        agency: that maintains the structures.
    """

    release: Release
    agency: str

    @cached_property
    def dimensions(self) -> list[str]:
        """The identifier of each axis."""
        taken = {name.lower() for name, _ in MEASURES.values()} | {CONTRADICTED}
        taken |= {"structure", "structure_id", "action", "time_period"}
        plain = plain_names(self.release.plan.tree.axis_names, LONGEST_ID, taken)
        return [plain[axis.name].upper() for axis in self._axes]

    @cached_property
    def ids(self) -> list[list[pl.Series]]:
        """For each axis and level the identifiers of its nodes."""
        return [identifiers(axis) for axis in self._axes]

    @property
    def _name(self) -> str:
        return f"HR_{self.release.plan.hash[:12].upper()}"

    def _urn(self, kind: str, name: str, item: str = "") -> str:
        whole = f"{self.agency}:{name}({VERSION}){f'.{item}' if item else ''}"
        return f"urn:sdmx:org.sdmx.infomodel.{kind}={whole}"

    def _maintained(self, name: str, words: str) -> TextByName:
        return {"id": name, "name": words, "agency": self.agency, "version": VERSION}

    def artefacts(self) -> list[Any]:
        """Return code lists, hierarchies, concepts, the structure and the flow."""
        flows = library("pysdmx.model.dataflow", "sdmx")
        said = self.release.plan
        lists = self._lists()
        concepts = self._concepts()
        scheme = library("pysdmx.model.concept", "sdmx").ConceptScheme(
            **self._maintained(f"CS_{self._name}", "Concepts"), items=concepts
        )
        structure = flows.DataStructureDefinition(
            **self._maintained(f"DSD_{self._name}", title(said)),
            components=self._components(concepts, lists),
        )
        flow = flows.Dataflow(
            **self._maintained(f"DF_{self._name}", title(said)),
            description="\n".join(statements(said)),
            structure=structure,
        )
        hierarchies = [self._hierarchy(a) for a in range(len(self.dimensions))]
        return [*lists, *hierarchies, scheme, structure, flow]

    def data(self) -> Any:
        """Return all counts as a dataset of pysdmx."""
        flows = library("pysdmx.model.dataflow", "sdmx")
        schema = flows.Schema(
            context="dataflow",
            agency=self.agency,
            id=f"DF_{self._name}",
            version=VERSION,
            components=self._components(self._concepts(), self._lists()),
        )
        pandas = library("pandas", "sdmx").DataFrame(self.observations().to_dict(as_series=False))
        return library("pysdmx.io.pd", "sdmx").PandasDataset(structure=schema, data=pandas)

    def observations(self) -> pl.DataFrame:
        """Return all cuboids below each other: identifiers, then figures."""
        tree = self.release.plan.tree
        figures = [pl.col(name).alias(new) for name, (new, _) in MEASURES.items()]
        figures.append(pl.col(CONTRADICTED).cast(pl.Int64).alias(CONTRADICTED.upper()))
        parts = []
        for levels in self.release.plan.levels:
            frame = self.release.level(tree.name_of(levels))
            columns: list[pl.Series | pl.Expr] = []
            for a, level in enumerate(levels):
                if level == 0:
                    columns.append(pl.lit(TOTAL).alias(self.dimensions[a]))
                    continue
                keys = tree.axes[a].keys(level)
                own = keys.with_columns(self.ids[a][level - 1].alias("\0id"))
                joined = frame.select(keys.columns).join(
                    own, on=keys.columns, how="left", maintain_order="left"
                )
                columns.append(joined["\0id"].alias(self.dimensions[a]))
            columns += [pl.lit(period).alias(TIME) for period in self._period]
            parts.append(frame.select(*columns, *figures))
        return pl.concat(parts)

    def _lists(self) -> list[Any]:
        """Return a code list an axis: ``_T``, then the codes of each level."""
        codes = library("pysdmx.model.code", "sdmx")
        described = self.release.plan.description
        lists = []
        for axis, dimension, ids in zip(self._axes, self.dimensions, self.ids, strict=True):
            items = [codes.Code(id=TOTAL, name="Total")]
            for level, own in enumerate(ids, start=1):
                labels = axis.labels[level - 1]
                given_names = axis.names_of(level)
                names = repeat(None) if given_names is None else given_names
                items += [
                    codes.Code(
                        id=each,
                        name=visible(name or label),
                        description=visible(label) if name and each != label else None,
                    )
                    for each, label, name in zip(own, labels, names, strict=False)
                ]
            words = described.axis_label(axis)
            lists.append(codes.Codelist(**self._maintained(f"CL_{dimension}", words), items=items))
        return lists

    @property
    def _period(self) -> list[str]:
        """The period of all counts, if it is one that SDMX knows."""
        period = self.release.plan.description.period
        return [period] if is_period(period) else []

    @property
    def _axes(self) -> Sequence[Axis]:
        return self.release.plan.tree.axes

    def _hierarchy(self, a: int) -> Any:
        """Return the hierarchy of an axis, from the total down."""
        codes = library("pysdmx.model.code", "sdmx")
        axis = self._axes[a]
        name = self.dimensions[a]
        described = self.release.plan.description
        level = None
        plain = plain_names(axis.levels, LONGEST_ID, {"total"})
        for each in reversed(axis.levels):
            words = described.level_label(axis, each)
            level = codes.LevelType(id=plain[each].upper(), name=words, level=level)
        level = codes.LevelType(id="TOTAL", name="Total", level=level)
        # the nodes of the coarsest level with all below them, made from the leaves up
        below: list[list[Any]] = [[] for _ in range(axis.leaves)]
        for k in range(axis.depth, 0, -1):
            pairs = zip(self.ids[a][k - 1], below, strict=True)
            nodes = [self._node(a, each, children) for each, children in pairs]
            start = axis.child_start[k - 1]
            below = [nodes[start[j] : start[j + 1]] for j in range(axis.size(k - 1))]
        return codes.Hierarchy(
            **self._maintained(f"H_{name}", described.axis_label(axis)),
            is_partial=False,
            has_formal_levels=True,
            level=level,
            codes=[self._node(a, TOTAL, below[0])],
        )

    def _node(self, a: int, code: str, below: list[Any]) -> Any:
        urn = self._urn("codelist.Code", f"CL_{self.dimensions[a]}", code)
        return library("pysdmx.model.code", "sdmx").HierarchicalCode(id=code, urn=urn, codes=below)

    def _concepts(self) -> list[Any]:
        """Return the concepts of dimensions, time, measures and the attribute, in this order."""
        concepts = library("pysdmx.model.concept", "sdmx")
        plan = self.release.plan
        kinds = concepts.DataType
        labels = column_labels(plan)
        given = [
            (dimension, plan.description.axis_label(axis), kinds.STRING)
            for dimension, axis in zip(self.dimensions, self._axes, strict=True)
        ]
        given += [(TIME, "Time period", kinds.PERIOD) for _ in self._period]
        given += [(new, labels[name], kinds[kind]) for name, (new, kind) in MEASURES.items()]
        given.append((CONTRADICTED.upper(), f"{labels[CONTRADICTED]} (1 or 0)", kinds.INTEGER))
        scheme = f"CS_{self._name}"
        return [
            concepts.Concept(
                id=name,
                name=words,
                dtype=kind,
                urn=self._urn("conceptscheme.Concept", scheme, name),
            )
            for name, words, kind in given
        ]

    def _components(self, concepts: Sequence[Any], lists: Sequence[Any]) -> Any:
        flows = library("pysdmx.model.dataflow", "sdmx")
        made = []
        for place, concept in enumerate(concepts):
            own: Json = {"role": flows.Role.MEASURE, "local_dtype": concept.dtype}
            if place < len(lists):
                urn = self._urn("codelist.Codelist", lists[place].id)
                own = {"role": flows.Role.DIMENSION, "local_codes": lists[place]}
                own["local_enum_ref"] = urn
            elif concept.id == TIME:
                own["role"] = flows.Role.DIMENSION
            elif place == len(concepts) - 1:
                own |= {"role": flows.Role.ATTRIBUTE, "attachment_level": "O"}
            made.append(flows.Component(id=concept.id, required=True, concept=concept, **own))
        return flows.Components(made)


def is_period(text: str) -> bool:
    """Return whether a text is a period of SDMX.

    Example:
        >>> from hedgerow.export.sdmx import is_period
        >>> is_period("2021-Q1"), is_period("first quarter of 2021")
        (True, False)
    """
    if not _PERIOD.fullmatch(text):
        return False
    if text.count("-") == 2:
        try:
            date.fromisoformat(text[:10])
        except ValueError:
            return False
    return True


def identifiers(axis: Axis) -> list[pl.Series]:
    """Return for each level of an axis the identifiers of its nodes, all different.

    Example:
        >>> from hedgerow.export.sdmx import identifiers
        >>> areas = {"state": ["1", "2"], "town": ["1", "é"]}
        >>> place = hr.Axis.from_frame("place", areas, levels=["state", "town"])
        >>> [ids.to_list() for ids in identifiers(place)]
        [['STATE@1', 'STATE@2'], ['TOWN@1', 'TOWN@$e9$']]
    """
    every = pl.concat([labels.alias("code") for labels in axis.labels])
    plain = every.n_unique() == len(every) and not (every == TOTAL).any()
    if plain and all(map(_CODE.fullmatch, every)):
        return list(axis.labels)
    levels = plain_names(axis.levels, LONGEST_ID)
    return [
        pl.Series([f"{levels[level].upper()}@{_allowed(code)}" for code in labels], dtype=pl.String)
        for level, labels in zip(axis.levels, axis.labels, strict=True)
    ]


def _allowed(code: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", lambda match: f"${ord(match[0]):x}$", code)
