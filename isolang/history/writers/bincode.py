"""dbcop's bincode: sessions of transactions over numbers, 0 being the initial state."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from isolang.history import columns as c
from isolang.history.writers import WriteReport
from isolang.history.writers.numbers import as_numbers, report_of
from isolang.history.writers.outline import Target, outline

if TYPE_CHECKING:
    from isolang.history.history import History

_TARGET = Target(name="dbcop bincode", failed=True, empty=True)
_DATE = b"1970-01-01T00:00:00+00:00"  # the format wants dates of the run; the columns have none
_EVENT = struct.Struct("<?QQ?")


def encode(history: History, *, renumber: bool, drop: frozenset[str]) -> tuple[bytes, WriteReport]:
    """Encode a history.

    Raises:
        HistoryError: if bincode cannot express it.
    """
    part = outline(history, _TARGET, drop)
    numbers = as_numbers(part, target=_TARGET.name, bits=64, zero_writable=True, renumber=renumber)
    sessions, operations = part.by_session(), part.count()
    keys = len({part.key[op] for t in part.transactions for op in part.ops(t)})
    out = [struct.pack("<5Q", 0, len(sessions), keys, len(part.transactions), operations)]
    for text in (b"isolang", _DATE, _DATE):
        out += [struct.pack("<Q", len(text)), text]
    out.append(struct.pack("<Q", len(sessions)))
    for session in sessions:
        out.append(struct.pack("<Q", len(session)))
        for txn in session:
            ops = part.ops(txn)
            out.append(struct.pack("<Q", len(ops)))
            for op in ops:
                write, key = part.kind[op] == c.WRITE, numbers.key(part.key[op])
                out.append(_EVENT.pack(write, key, numbers.value(op), part.ok[op]))
            out.append(struct.pack("<?", part.status[txn] == c.COMMITTED))
    return b"".join(out), report_of("dbcop", part, numbers)
