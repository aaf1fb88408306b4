"""Public tables that say exactly what the confidential one does, told on a terminal alone."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.plan.facts.facts import PublicTable
from hedgerow.release.preflight import copies_of_the_table
from tests.made import plain_plan
from tests.plan.test_fixed import COPY, TREE, plan_with

TABLE = hr.Counts.from_frame(TREE, COPY, count="n")
STATES = pl.DataFrame({"state": ["A", "B"], "n": [9, 4], "m": [10, 5]})
HELD, EMPTY = COPY.filter(pl.col("n") > 0), COPY.filter(pl.col("n") == 0)
COUNTED, CELLS = "is exactly what the table counts", "leaves exactly the cells"


@pytest.mark.parametrize(
    ("rows", "says", "said"),
    [
        (STATES, {"at_least": "n"}, [COUNTED]),
        (STATES, {"at_least": "n", "at_most": "m"}, [COUNTED]),
        (STATES, {"at_least": "n", "at_most": "n"}, [COUNTED] * 2),
        (STATES, {"at_most": "m"}, []),
        (COPY[1:], {"at_most": "n"}, [COUNTED]),
        (EMPTY, {"at_most": "n"}, []),
        (HELD, {"zeros": "unlisted"}, [CELLS]),
        (EMPTY, {"zeros": "listed"}, [CELLS]),
        (HELD[1:], {"zeros": "unlisted"}, []),
        (COPY, {"zeros": "unlisted"}, []),
        (pl.concat([HELD[1:], EMPTY]), {"zeros": "unlisted"}, []),
        (HELD[:1], {"zeros": "listed"}, []),
        (HELD, {"zeros": "unlisted", "at_least": "n"}, [COUNTED, CELLS]),
    ],
)
def test_bounds_and_lists_that_equal_the_table_are_known(rows, says, said):
    found = copies_of_the_table(TABLE, plan_with(PublicTable(rows, **says)))
    assert len(found) == len(said)
    assert all(words in clause for words, clause in zip(said, found, strict=True))


def test_sums_over_any_columns_of_a_product_are_compared():
    kinds, ages = {"kind": ["x", "y"]}, {"age": ["minor", "adult"]}
    person = hr.Axis.from_product("person", [kinds, ages], ["age", "kind"], attribute=True)
    tree = hr.Tree([TREE.axes[0], person])
    rng = np.random.default_rng(1)
    records = pl.DataFrame(
        {
            "town": rng.choice(["A1", "A2", "B1"], 60),
            "kind": rng.choice(["x", "y"], 60),
            "age": rng.choice(["minor", "adult"], 60),
        }
    )
    counts = hr.Counts.from_frame(tree, records)
    rows = records.with_columns(state=pl.col("town").str.head(1)).group_by("state", "age").len("n")
    for change, said in ((0, 1), (1, 0)):
        public = PublicTable(rows.with_columns(pl.col("n") - change), at_least="n")
        plan = plain_plan(tree, budget=hr.Rho(1), workload=hr.Cube(), public=[public])
        assert len(copies_of_the_table(counts, plan)) == said
