"""Which parameters of a test run in the quick tests, and which run only with the slow ones."""

from collections.abc import Iterable

import pytest


def quick_first(rows: Iterable[object], quick: int = 1) -> list[object]:
    """Return the rows of a parametrized test, all but the first few marked as slow.

    For tests that repeat a comparison with other inputs: the quick tests run it a few times.
    """
    return [
        row
        if number < quick
        else pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=pytest.mark.slow)
        for number, row in enumerate(rows)
    ]
