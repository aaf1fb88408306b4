"""The synthetic tables are the paper's own."""

from studies.boninsegna.tables import synthetic_tables

USERS = {
    "binary complete": 1_051_271,
    "binary dense": 734_688,
    "binary sparse": 23_302,
    "random complete": 2_019_580,
    "random dense": 1_003_943,
    "random sparse": 67_840,
}


def test_the_synthetic_tables_have_the_users_of_table_1():
    assert {table.name: table.counts.total for table in synthetic_tables()} == USERS
