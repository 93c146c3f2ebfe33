"""Which parameters of a test run in the quick tests, and which run later."""

from collections.abc import Iterable

import pytest


def quick_first(rows: Iterable[object], quick: int = 1, *, rest: str = "slow") -> list[object]:
    """Return the rows of a parametrized test, all but the first few marked as slow, or as ``rest``.

    Tests that repeat a comparison with other random inputs run a few times with each change, and
    with all inputs once a week (``campaign``).
    """
    marks = [pytest.mark.slow, getattr(pytest.mark, rest)]
    return [
        row
        if number < quick
        else pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=marks)
        for number, row in enumerate(rows)
    ]
