"""Refusals of confidential tables: what they say inside the boundary, and outside of it nothing."""

import re
from contextlib import contextmanager

import pytest

from hedgerow.errors import OUTSIDE, TableError


def told(error):
    """The sentence of an error, with the rule that a confidential table breaks; without values."""
    if error.breaks is None:
        return str(error)
    rule, values = error.breaks
    assert OUTSIDE in str(error)
    assert rule not in str(error)
    assert error.confidential == (rule if values is None else f"{rule} ({values})")
    return rule


@contextmanager
def refused(words):
    """A table is refused for what its records say, which the rule has words for."""
    with pytest.raises(TableError) as caught:
        yield caught
    assert caught.value.breaks is not None, caught.value
    assert re.search(words, told(caught.value)), told(caught.value)
