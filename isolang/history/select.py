"""A part of a history: only some operations, with the labels and places they had."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
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
    keep = np.unique(np.fromiter(keep_ops, dtype=np.int64))
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

    current = -1
    for op, txn in zip(keep.tolist(), txn_of.tolist(), strict=True):
        if txn != current:
            session = sessions.setdefault(int(old.txn_session[txn]), len(sessions))
            new.begin_transaction(
                session,
                int(old.txn_status[txn]),
                int(old.txn_label[txn]),
                int(old.txn_position[txn]),
                int(old.txn_file[txn]),
                int(old.txn_begin[txn]),
                int(old.txn_end[txn]),
            )
            current = txn
        key = int(old.op_key[op])
        if key not in keys:
            keys[key] = new.intern_key(*old.key(key), value(int(old.initial_value[key])))
        kind, atom = int(old.op_kind[op]), int(old.op_value[op])
        if kind == c.READ_LIST and atom != c.UNKNOWN_VALUE:
            start = old.list_start
            elements = old.list_values[start[atom] : start[atom + 1]].tolist()
            atom = new.add_list([value(v) for v in elements])
        else:
            atom = value(atom)
        source = int(old.op_source[op])
        if source >= 0:
            place = int(np.searchsorted(keep, source))
            found = place < len(keep) and int(keep[place]) == source
            source = place if found else c.SOURCE_MISSING
        position, ok = int(old.op_position[op]), bool(old.op_ok[op])
        new.add_op(kind, keys[key], atom, position, ok, source)
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
