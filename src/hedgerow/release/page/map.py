"""The map of a page: the shapes of areas as blocks of text, for the script that colours them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hedgerow.arrays import Int64
from hedgerow.pages.catalogue import Catalogue
from hedgerow.pages.markup import part
from hedgerow.plan.plan import Plan
from hedgerow.release.page.carried import block, folded, varints, visible_labels
from hedgerow.tables.axis import Axis
from hedgerow.tables.maps.shapes import Shapes

SCRIPTS = ("map_shapes.js", "map_counts.js", "map_scale.js", "map_read.js", "map.js")
VENDOR = "cartography.js"
"""What d3-geo and topojson-client give to it, below ``pages/vendor``."""


@dataclass(frozen=True, slots=True)
class Maps:
    """The shapes that a page carries.

    Attributes:
        axes: what the script starts from: for each axis with shapes where they are.
        blocks: names and texts, see `hedgerow.release.page.carried`.
    """

    axes: list[dict[str, Any]] = field(default_factory=list)
    blocks: list[tuple[str, str]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.axes)

    def facts(self, say: Catalogue) -> dict[str, Any]:
        """Return what the script starts from."""
        return {"maps": self.axes, "words": say.script("release", "map")} if self else {}

    @property
    def scripts(self) -> tuple[str, ...]:
        """The parts of the page's script that draw maps."""
        return SCRIPTS if self else ()

    @property
    def vendor(self) -> str:
        """What others wrote for them."""
        return part("hedgerow.pages.vendor", VENDOR) if self else ""

    @property
    def styles(self) -> tuple[str, ...]:
        """The styles of maps."""
        return ("map.css",) if self else ()

    def link(self, say: Catalogue) -> str:
        """Return the entry of the page's list of sections: HTML; nothing without maps."""
        return f'<li><a href="#map">{say("map.heading")}</a></li>\n' if self else ""

    def section(self, say: Catalogue) -> str:
        """Return the section of the page that the script draws into: HTML; nothing without maps."""
        if not self:
            return ""
        return (
            f'<section id="map">\n<h2>{say("map.heading")}</h2>\n'
            f'<div id="atlas"></div>\n<noscript><p>{say("map.no_script")}</p></noscript>\n'
            f"</section>"
        )


def carry_maps(plan: Plan) -> Maps:
    """Return the shapes of all axes that have some; the same ones once."""
    made = Maps()
    texts = dict[str, str]()
    for number, axis in enumerate(plan.tree.axes):
        if axis.shapes is None:
            continue
        text = block([*_shape_parts(axis.shapes), *_code_parts(axis, axis.shapes.level)])
        if text not in texts:
            texts[text] = f"shapes-{number}"
            made.blocks.append((texts[text], text))
        made.axes.append(
            {
                "axis": number,
                "block": texts[text],
                "level": axis.shapes.level,
                "geographic": axis.shapes.geographic,
                "scale": axis.shapes.scale,
                "translate": axis.shapes.translate,
            }
        )
    return made


def _shape_parts(shapes: Shapes) -> list[bytes]:
    """Return borders and the rings that they make: sizes, steps from point to point, and numbers.

    Polygons of each area, rings of each polygon, arcs of each ring, and these: ~i is arc i, turned.
    """
    steps = np.diff(shapes.points, axis=0, prepend=0)
    first = shapes.arc_start[:-1]
    steps[first] = np.diff(shapes.points[first], axis=0, prepend=0)
    polygons = [polygon for area in shapes.areas for polygon in area]
    rings = [ring for polygon in polygons for ring in polygon]
    return [
        varints(np.diff(shapes.arc_start)),
        varints(folded(steps[:, 0])),
        varints(folded(steps[:, 1])),
        *(varints(_sizes(each)) for each in (shapes.areas, polygons, rings)),
        varints(folded(np.array([arc for ring in rings for arc in ring], dtype=np.int64))),
    ]


def _code_parts(axis: Axis, finest: int) -> list[bytes]:
    """Return for each level down to one: family sizes, codes, and names where it has any."""
    parts: list[bytes] = []
    for level in range(1, finest + 1):
        names = axis.names_of(level)
        parts += [
            varints(np.diff(axis.child_start[level - 1])),
            "\n".join(visible_labels(axis.labels[level - 1])).encode(),
            b"" if names is None else "\n".join(visible_labels(names.fill_null(""))).encode(),
        ]
    return parts


def _sizes(parts: Iterable[Any]) -> Int64:
    return np.array([len(one) for one in parts], dtype=np.int64)
