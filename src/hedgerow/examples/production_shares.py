"""The shares of the 2020 census's redistricting file, and a release file that measures with them.

Source: the Bureau's production code (``uscensusbureau/DAS_2020_Redistricting_Production_Code``) and
its certificate: ρ = 293764/114921 = (542/339)² in all, divided among geography levels, and within
each level among queries. Neighbours differ in one replaced record; σ² = 1/(ρ × both shares).
"""

from fractions import Fraction

RHO = Fraction(293764, 114921)

LEVEL_SHARES = {
    "total": 104, "state": 1440, "county": 447, "tract": 687, "block_group": 1256, "block": 165,
}  # fmt: skip
"""4,099ths of ρ; the total of the levels is the United States."""

OF_LEVELS = 4099

QUERY_SHARES = {
    "total": (0, 3773, 3126, 1567, 1705, 5),
    "cenrace": (52, 6, 10, 8, 3, 9),
    "hispanic": (26, 6, 10, 5, 3, 5),
    "votingage": (26, 6, 10, 5, 3, 5),
    "inst": (26, 6, 10, 5, 3, 5),
    "hhgq": (26, 6, 10, 5, 3, 5),
    "hispanic × cenrace": (130, 12, 28, 1933, 1055, 21),
    "votingage × cenrace": (130, 12, 28, 20, 9, 21),
    "votingage × hispanic": (26, 6, 10, 5, 3, 5),
    "votingage × hispanic × cenrace": (442, 34, 101, 67, 24, 71),
    "hhgq × votingage × hispanic × cenrace": (3213, 230, 754, 482, 1288, 3945),
}
"""By level, in parts of `OF_QUERIES`. The total of the United States is public."""

OF_QUERIES = (4097, 4097, 4097, 4102, 4099, 4097)

AXIS_OF = {"inst": "hhgq"}
"""The axis of a level that is not called like it."""


def queries_of(level: str) -> dict[str, Fraction]:
    """Return the shares of the queries within a level, which sum to 1."""
    place = list(LEVEL_SHARES).index(level)
    return {
        query: Fraction(parts[place], OF_QUERIES[place])
        for query, parts in QUERY_SHARES.items()
        if parts[place]
    }


def parts_of(*, several: bool) -> dict[tuple[str, str], Fraction]:
    """Return the part of ρ of each level and query that is measured.

    A single state has no level above it, and its total is public as the nation's is.
    """
    return {
        (level, query): Fraction(parts, OF_LEVELS) * share
        for level, parts in LEVEL_SHARES.items()
        for query, share in queries_of(level).items()
        if several or (level != "total" and (level, query) != ("state", "total"))
    }


def noise_parameters() -> dict[tuple[str, str], Fraction]:
    """Return σ² of each level and query that the census measured, the United States included.

    A record that is replaced changes two counts of a query by one, so σ² = 1 / (ρ · level share ·
    query share) costs ρ · level share · query share.
    """
    return {place: 1 / (RHO * part) for place, part in parts_of(several=True).items()}


def rho_of(*, several: bool) -> Fraction:
    """Return what the levels of one state cost, or those of the nation."""
    return RHO * (1 - (0 if several else Fraction(LEVEL_SHARES["total"], OF_LEVELS)))


def cuboid_of(level: str, query: str) -> str:
    """Return the name of the cuboid of a query at a level: every level with its axis."""
    words = [] if level == "total" else [f"geography.{level}"]
    if query != "total":
        words += [f"{AXIS_OF.get(word, word)}.{word}" for word in query.split(" × ")]
    return " × ".join(words)


def production_sections(*, several: bool) -> str:
    """Return the sections of a release file on the workload, the budget and the shares."""
    parts = parts_of(several=several)
    levels = dict.fromkeys(level for level, _ in parts)
    shares = ", ".join(f'{level} = "{LEVEL_SHARES[level]}/{OF_LEVELS}"' for level in levels)
    left_out = "" if several else " less the parts of the United States and of the state's total"
    return _SECTIONS.format(
        cuboids="".join(f'    "{cuboid_of(*place)}",\n' for place in parts),
        rho=RHO * sum(parts.values()),
        left_out=left_out,
        shares=shares,
        tables="".join(
            f"\n[allocation.queries.{level}]\n"
            + "".join(
                f'"{query}" = "{QUERY_SHARES[query][place]}/{OF_QUERIES[place]}"\n'
                for query in queries_of(level)
            )
            for place, level in enumerate(LEVEL_SHARES)
            if level in levels
        ),
    )


_SECTIONS = """\
[workload]
cuboids = [                     # level × query; a level of geography is a geolevel
{cuboids}]

[privacy]
neighbours    = "replace"       # protects what a person's record says; their number is public
contributions = 1
mechanism     = "discrete-gaussian"
# 293764/114921 = (542/339)^2{left_out}:
rho           = "{rho}"

[allocation]
method = "shares"               # of rho: by level, and within a level by query
levels = {{ {shares} }}
{tables}"""
