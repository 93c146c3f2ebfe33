"""The small scopes: nothing twice, nothing that is no history, and what makes levels differ."""

from __future__ import annotations

from collections import Counter

import pytest

from oracle import definitions
from oracle.generate import well_formed
from oracle.history import History, Op
from oracle.small_scopes import small_histories


def test_nothing_is_there_twice() -> None:
    """And the tool takes all of it; a step leaves out the others."""
    found = Counter(map(_form, small_histories("statements")))
    assert max(found.values()) == 1
    assert found.total() == 2_871
    assert all(map(well_formed, small_histories("statements")))
    assert len(list(small_histories("statements", 3, 10))) == 287


def _form(history: History) -> tuple[tuple[int, tuple[Op, ...]], ...]:
    return tuple((t.session, t.ops) for t in history)


#: A scope, a level that allows some history of it and one that forbids that.
APART = (
    ("statements", "mav", "pl-2-plus"),
    ("statements", "pl-cs", "pl-2-plus"),
    ("readers", "mav", "pl-2l"),
    ("readers", "pl-msr", "pl-3u"),
    ("rows", "pl-2-99", "pl-3"),
    ("rows", "locking-repeatable-read", "pl-2-99"),
    ("rows", "pl-2", "locking-repeatable-read"),
)
_STEP = {"statements": 4, "readers": 41, "rows": 17}


@pytest.mark.parametrize("scope", _STEP)
def test_levels_differ_in_them(scope: str) -> None:
    pairs = {(weaker, stronger) for of, weaker, stronger in APART if of == scope}
    names = {name for pair in pairs for name in pair}
    for history in small_histories(scope, 0, _STEP[scope]):
        verdicts = definitions.satisfied(history, names)
        pairs = {(a, b) for a, b in pairs if not verdicts[a] or verdicts[b]}
        if not pairs:
            return
    raise AssertionError(pairs)
