"""dbcop's newer formats, JSON and ``.hist`` text: the initial state has a name of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from isolang.history import columns as c
from isolang.history.writers import WriteReport
from isolang.history.writers.numbers import Numbers, as_numbers, report_of
from isolang.history.writers.outline import Outline, Target, outline

if TYPE_CHECKING:
    from isolang.history.history import History

_JSON = Target(name="dbcop JSON", empty=True)
_HIST = Target(name=".hist")


def _parts(
    history: History, target: Target, *, renumber: bool, drop: frozenset[str]
) -> tuple[Outline, Numbers]:
    part = outline(history, target, drop)
    # A version 0 that nobody writes is initial: so nobody may.
    numbers = as_numbers(part, target=target.name, bits=64, zero_writable=False, renumber=renumber)
    return part, numbers


def encode_json(
    history: History, *, renumber: bool, drop: frozenset[str]
) -> tuple[bytes, WriteReport]:
    """Encode a history as dbcop JSON: a list of sessions.

    Raises:
        HistoryError: if it cannot express it.
    """
    part, numbers = _parts(history, _JSON, renumber=renumber, drop=drop)

    def event(op: int) -> dict[str, dict[str, int | None]]:
        version = numbers.value(op) or None  # 0 is the initial state
        kind = "Write" if part.kind[op] == c.WRITE else "Read"
        return {kind: {"variable": numbers.key(part.key[op]), "version": version}}

    sessions = [
        [
            {
                "events": [event(op) for op in part.ops(txn)],
                "committed": part.status[txn] == c.COMMITTED,
            }
            for txn in session
        ]
        for session in part.by_session()
    ]
    return (json.dumps(sessions) + "\n").encode(), report_of("dbcop-json", part, numbers)


def encode_hist(
    history: History, *, renumber: bool, drop: frozenset[str]
) -> tuple[bytes, WriteReport]:
    """Encode a history as ``.hist`` text: one transaction per line.

    Raises:
        HistoryError: if it cannot express it.
    """
    part, numbers = _parts(history, _HIST, renumber=renumber, drop=drop)

    def event(op: int) -> str:
        key, version = numbers.key(part.key[op]), numbers.value(op)
        return f"{key}:={version}" if part.kind[op] == c.WRITE else f"{key}=={version or '?'}"

    def line(txn: int) -> str:
        mark = "" if part.status[txn] == c.COMMITTED else "!"
        return f"[{' '.join(map(event, part.ops(txn)))}]{mark}\n"

    sessions = ("".join(map(line, session)) for session in part.by_session())
    return "---\n".join(sessions).encode(), report_of("hist", part, numbers)
