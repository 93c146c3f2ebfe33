"""Writes dbcop's three formats: bincode, JSON and ``.hist`` text.

In bincode, the initial state is the value 0. The other formats have a special name for the initial
state.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from isolang.history.writers.numbers import NumberedTransaction, number_history
from isolang.history.writers.outline import FormatFeatures
from isolang.history.writers.report import Contents, Sink, WriteReport

if TYPE_CHECKING:
    from isolang.history.history import History

_BINCODE = FormatFeatures(name="dbcop bincode", failed=True, empty=True)
_JSON = FormatFeatures(name="dbcop JSON", empty=True)
_HIST = FormatFeatures(name=".hist")


def bincode(
    history: History, *, renumber: bool, drop: frozenset[str]
) -> tuple[Contents, WriteReport]:
    """Encode a history in dbcop's bincode.

    Raises:
        HistoryError: the format cannot express the history.
    """
    from isolang import _native

    found = number_history(
        history, _BINCODE, bits=64, zero_writable=True, renumber=renumber, drop=drop
    )
    part = found.part

    def write(sink: Sink) -> None:
        _native.write_bincode(
            history.columns, part.txns, part.start, part.ops, found.keys, found.values, sink
        )

    return write, found.report("dbcop")


def to_json(
    history: History, *, renumber: bool, drop: frozenset[str]
) -> tuple[Contents, WriteReport]:
    """Encode a history in dbcop's JSON: a list of sessions.

    Raises:
        HistoryError: the format cannot express the history.
    """
    # Version 0 is the initial version if no transaction writes it, so no transaction may write 0.
    found = number_history(
        history, _JSON, bits=64, zero_writable=False, renumber=renumber, drop=drop
    )

    def transaction(row: NumberedTransaction) -> dict[str, object]:
        events = [
            {"Write" if write else "Read": {"variable": key, "version": version or None}}
            for write, key, version in row.ops
        ]
        return {"events": events, "committed": row.committed}

    sessions = [[transaction(row) for row in session] for session in found.sessions()]
    return (json.dumps(sessions) + "\n").encode(), found.report("dbcop-json")


def hist(history: History, *, renumber: bool, drop: frozenset[str]) -> tuple[Contents, WriteReport]:
    """Encode a history as ``.hist`` text, with one transaction per line.

    Raises:
        HistoryError: the format cannot express the history.
    """
    found = number_history(
        history, _HIST, bits=64, zero_writable=False, renumber=renumber, drop=drop
    )

    def line(row: NumberedTransaction) -> str:
        events = (f"{k}:={v}" if write else f"{k}=={v or '?'}" for write, k, v in row.ops)
        return f"[{' '.join(events)}]{'' if row.committed else '!'}\n"

    sessions = ("".join(map(line, session)) for session in found.sessions())
    return "---\n".join(sessions).encode(), found.report("hist")
