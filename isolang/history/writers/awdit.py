"""Writes AWDIT's text format, in which each line is an operation such as ``r key value``.

Lines of ``-`` separate transactions, and lines of ``=`` separate sessions. The format has no
initial state. If the history reads the initial state of some keys, the file begins with a
transaction in its own session that writes 0 to these keys. A note tells the user to declare this
transaction when reading the file (``initial=1``, ``--initial 1``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.history.writers.numbers import number_history
from isolang.history.writers.outline import FormatFeatures
from isolang.history.writers.report import Contents, WriteReport

if TYPE_CHECKING:
    from isolang.history.history import History

_TARGET = FormatFeatures(name="AWDIT text", aborted=False)


def encode(
    history: History, *, renumber: bool, drop: frozenset[str]
) -> tuple[Contents, WriteReport]:
    """Encode a history in AWDIT's text format.

    Raises:
        HistoryError: the format cannot express the history.
    """
    found = number_history(
        history, _TARGET, bits=64, zero_writable=False, renumber=renumber, drop=drop
    )
    initial = sorted(set(found.keys[found.values == 0].tolist()))
    sessions = [
        "-----\n".join(
            "".join(f"{'w' if write else 'r'} {key} {value}\n" for write, key, value in row.ops)
            for row in session
        )
        for session in found.sessions()
    ]
    notes = []
    if initial:
        sessions.insert(0, "".join(f"w {key} 0\n" for key in initial))
        notes.append(
            "transaction 1 is the initial state: declare it with --initial 1 when you read the file"
        )
    return "=====\n".join(sessions).encode(), found.report("awdit", *notes)
