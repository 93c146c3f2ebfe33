"""A part of a history: only some operations, with the labels and places they had."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from isolang.errors import HistoryError
from isolang.history import columns as c

if TYPE_CHECKING:
    from isolang.history.history import History


def sub_history(history: History, keep_ops: Iterable[int]) -> History:
    """Give the history that has only the given operations.

    Transactions that keep no operation vanish; the others keep status, label, time, session and
    place. Initial values stay those of the whole history, also where they come from a declared
    initial transaction that vanishes. A read whose explicit source vanishes has a missing source,
    as a read by value would find no writer.

    Args:
        history: the whole.
        keep_ops: operation numbers, in any order.

    Raises:
        HistoryError: if a number is no operation of the history.
    """
    import numpy as np

    from isolang._native import Columns

    old = history.columns
    keep = np.array(sorted(set(keep_ops)), dtype=np.int64)
    if len(keep) and not 0 <= keep[0] <= keep[-1] < old.operations():
        msg = (
            f"{history.name}: no such operation (got {keep[0] if keep[0] < 0 else keep[-1]}, "
            f"expected 0 … {old.operations() - 1})"
        )
        raise HistoryError(msg)
    txn_of = np.searchsorted(old.op_start, keep, side="right") - 1
    new = Columns()
    keys: dict[int, int] = {}
    values: dict[int, int] = {c.UNKNOWN_VALUE: c.UNKNOWN_VALUE}
    sessions: dict[int, int] = {}

    def value(atom: int) -> int:
        if atom not in values:
            values[atom] = new.intern_value(*old.value(atom))
        return values[atom]

    # Whole columns at a time: to look up a number in one costs more than to add an operation.
    sources = old.op_source[keep]
    places = np.searchsorted(keep, sources)
    kept = (places < len(keep)) & (keep[np.minimum(places, len(keep) - 1)] == sources)
    sources = np.where(sources < 0, sources, np.where(kept, places, c.SOURCE_MISSING))
    begins = np.flatnonzero(np.diff(txn_of, prepend=-1))
    txns, counts = txn_of[begins], np.diff(begins, append=len(txn_of))
    of_txn = (
        old.txn_session, old.txn_status, old.txn_label, old.txn_position, old.txn_file,
        old.txn_begin, old.txn_end,
    )  # fmt: skip
    of_op = (old.op_kind, old.op_key, old.op_value, old.op_position, old.op_ok)
    ops = zip(*(column[keep].tolist() for column in of_op), sources.tolist(), strict=True)
    for (session, *rest), count in zip(
        zip(*(column[txns].tolist() for column in of_txn), strict=True),
        counts.tolist(),
        strict=True,
    ):
        new.begin_transaction(sessions.setdefault(session, len(sessions)), *rest)
        for kind, key, atom, position, ok, source in islice(ops, count):
            if key not in keys:
                keys[key] = new.intern_key(*old.key(key), value(int(old.initial_value[key])))
            if kind == c.READ_LIST and atom != c.UNKNOWN_VALUE:
                start = old.list_start
                elements = old.list_values[start[atom] : start[atom + 1]].tolist()
                number = new.add_list([value(v) for v in elements])
            else:
                number = value(atom)
            new.add_op(kind, keys[key], number, position, bool(ok), source)
    new.has_time = old.has_time
    new.validate()
    digest = hashlib.sha256(f"part of {history.sha256}:".encode() + keep.tobytes()).hexdigest()
    return replace(
        history,
        columns=new,
        ignored=(),
        sha256=digest,
        session_names=tuple(history.session_name(s) for s in sessions),
        _lazy={},
    )
