"""Sets of numbers and of rows in arrays."""

from __future__ import annotations

import numpy as np
import pytest

from isolang.problem.distinct import distinct, distinct_rows, is_among


@pytest.mark.parametrize("most", [1, 5, 2**31 - 1])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_rows_are_distinct_whatever_their_numbers_are(most, columns):
    """Those that fit one number, and those that do not, are as numpy sorts them."""
    rng = np.random.default_rng(columns)
    rows = rng.integers(-most, most, (200, columns), np.int32, endpoint=True)
    rows = np.concatenate([rows, rows[:50]])
    found = distinct_rows(rows)
    assert found.dtype == rows.dtype
    assert (found == np.unique(rows, axis=0)).all()
    assert len(found) == len(np.unique(rows, axis=0))


def test_nothing_has_no_rows_and_no_numbers():
    assert distinct_rows(np.zeros((0, 3), np.int32)).shape == (0, 3)
    assert not len(distinct(np.zeros(0, np.int32)))
    assert is_among(np.arange(3), np.zeros(0, np.int64)).tolist() == [False] * 3
