"""Synthetic tables to try a release on: a census, trips by origin and destination, incomes.

Nobody lives in them. They have the sizes and the unevenness of real ones, and a fixed seed, so two
people who write the same example hold the same files.
"""

from collections.abc import Callable
from pathlib import Path

from hedgerow.examples.census import write_census
from hedgerow.examples.commuting import write_commuting
from hedgerow.examples.incomes import write_incomes

EXAMPLES: dict[str, Callable[[Path, str], Path]] = {
    "census": write_census,
    "commuting": write_commuting,
    "incomes": write_incomes,
}
"""Name → what writes it: directory and size → the release file."""
