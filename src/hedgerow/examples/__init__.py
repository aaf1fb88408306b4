"""Synthetic tables to try a release on: a census, its redistricting file, trips, incomes.

Nobody lives in them. They have the sizes and the unevenness of real ones, and a fixed seed, so two
people who write the same example hold the same files.
"""

from collections.abc import Callable
from pathlib import Path

from hedgerow.examples.census import CENSUS_SIZES, write_census
from hedgerow.examples.commuting import COMMUTING_SIZES, write_commuting
from hedgerow.examples.files import INCOME_SIZES, write_incomes
from hedgerow.examples.redistricting import write_redistricting

EXAMPLES: dict[str, Callable[[Path, str], Path]] = {
    "census": write_census,
    "commuting": write_commuting,
    "incomes": write_incomes,
    "redistricting": write_redistricting,
}
"""Name → what writes it: directory and size → the release file."""

SIZES = {
    "census": [*CENSUS_SIZES],
    "commuting": [*COMMUTING_SIZES],
    "incomes": [*INCOME_SIZES],
    "redistricting": ["state", "nation", "small"],
}
"""The sizes of each, the usual one first."""
