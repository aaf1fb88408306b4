"""Table 1: the sizes of the six synthetic tables."""

from studies.boninsegna.tables import synthetic_tables
from studies.page import Row, Study

PRINTED = {
    "binary complete": (1_051_271, 65_536),
    "binary dense": (734_688, 32_768),
    "binary sparse": (23_302, 655),
    "random complete": (2_019_580, 189_225),
    "random dense": (1_003_943, 95_612),
    "random sparse": (67_840, 1_892),
}
MISPRINT = "a misprint: half of 189,225 pairs is 94,612, and so many give the printed users exactly"

TEXT = """Binary: 8 levels of two areas each. Random: 4 levels, 2 to 10 areas in each family. Flows
are Pareto, scaled to 1 … 1,000 and rounded down, on all pairs, half of them, or 1 %. We draw them
with the seeds of the authors' published program, so these are the paper's own tables, not only
tables of the same shape: the numbers of users agree exactly."""


def main() -> Study:
    """Write the page."""
    rows = []
    for table in synthetic_tables():
        users, pairs = PRINTED[table.name]
        found = len(table.counts.values)
        rows.append(Row(f"{table.name}: users", users, table.counts.total))
        reason = MISPRINT if found != pairs else ""
        rows.append(Row(f"{table.name}: pairs with a flow", pairs, found, reason=reason))
    return Study("Boninsegna, Table 1", "the synthetic tables", TEXT, rows)
