"""The tool against brute force on some of the histories of each small scope."""

from __future__ import annotations

import pytest
from oracle.history import show
from oracle.pipeline import Levels
from oracle.small_scopes import small_histories

#: Of each scope the levels that it tells apart, and which histories are judged here; the campaign
#: judges all.
JUDGED = {
    "statements": (("rc-nosession", "pl-cs", "pl-3u", "update-atomic-nosession"), 90),
    "readers": (("rc-nosession", "pl-cs", "psi-nosession"), 900),
    "sessions": (("per-key-sequential", "per-key-causal", "mr"), 1_500),
    "rows": (("pl-2", "pl-2-99", "locking-repeatable-read", "pl-3", "psi-nosession"), 300),
}


@pytest.mark.slow
@pytest.mark.parametrize("scope", JUDGED)
def test_every_small_history(scope: str) -> None:
    names, step = JUDGED[scope]
    levels, verdicts = Levels(names, size=6), set()
    for number, history in enumerate(small_histories(scope, 11, step)):
        expected, wrong = levels.compare(history, seed=number)
        assert not wrong, f"{show(history)}: {wrong}"
        verdicts |= set(expected.items())
    assert {(name, verdict) for name in names for verdict in ("valid", "invalid")} == verdicts
