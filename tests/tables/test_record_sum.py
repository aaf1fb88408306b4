"""The sums over records that tell tables apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.tables.ordered import record_words

CODES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30)


def sums(rows, values):
    codes = tuple(np.array(column, dtype=np.int32) for column in zip(*rows, strict=True))
    return [int(word.sum()) for word in record_words(codes, np.array(values, dtype=np.int64))]


@given(rows=CODES, data=st.data())
def test_order_and_shares_do_not_matter(rows, data):
    values = [data.draw(st.integers(1, 1 << 40)) for _ in rows]
    order = data.draw(st.permutations(range(len(rows))))
    halves = [(row, v // 2) for row, v in zip(rows, values, strict=True)]
    rest = [(rows[i], values[i] - values[i] // 2) for i in order]
    assert sums(rows, values) == sums(*zip(*[*rest, *halves], strict=True))


@pytest.mark.parametrize("i", [0, 1])
def test_one_record_in_another_leaf_changes_both_sums(i):
    rng = np.random.default_rng(1)
    leaves = rng.integers(0, 1 << 20, (500, 2), dtype=np.int64)
    words = {sums([tuple(leaf)], [1])[i] for leaf in leaves}
    assert len(words) == len({tuple(leaf) for leaf in leaves.tolist()})
    assert sums([(1, 2)], [1])[i] != sums([(2, 1)], [1])[i]
    assert sums([(0, 0)], [1])[i] != sums([(0, 0)], [2])[i] != 0
