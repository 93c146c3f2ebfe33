"""Makes sub-histories, which contain only some of a history's operations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from isolang.arrays import int32_column, int64_column
from isolang.digests import sha256
from isolang.errors import HistoryError

if TYPE_CHECKING:
    from isolang.history.history import History


def sub_history(
    history: History, keep_ops: Iterable[int], keep_txns: Iterable[int] = ()
) -> History:
    """Return a history with only the given operations.

    A transaction that loses all its operations is removed, unless ``keep_txns`` contains it. All
    other transactions keep their status, number, time, session and place. Initial values are those
    of the whole history, even if the declared initial transaction that wrote them is removed. If a
    read's explicit source is removed, its source becomes missing, just as a read by value would
    find no writer.

    Raises:
        HistoryError: the history has no operation or transaction with one of the given numbers.
    """
    old = history.columns
    keep = sorted(set(keep_ops))
    if keep and not 0 <= keep[0] <= keep[-1] < old.operations():
        msg = (
            f"{history.name}: no operation has this number (got "
            f"{keep[0] if keep[0] < 0 else keep[-1]}, expected 0 to {old.operations() - 1})"
        )
        raise HistoryError(msg)
    txns = sorted(set(keep_txns))
    if txns and not 0 <= txns[0] <= txns[-1] < old.transactions():
        msg = (
            f"{history.name}: no transaction has this number (got "
            f"{txns[0] if txns[0] < 0 else txns[-1]}, expected 0 to {old.transactions() - 1})"
        )
        raise HistoryError(msg)
    ops_column, txns_column = int64_column(keep), int32_column(txns)
    new, sessions = old.part(ops_column, txns_column)
    kept = f"part of {history.sha256}:".encode() + bytes(ops_column) + bytes(txns_column)
    digest = sha256(len(kept))
    digest.update(kept)
    return replace(
        history,
        columns=new,
        ignored=(),
        sha256=digest.hexdigest(),
        session_names=tuple(history.session_name(s) for s in sessions),
        # The file has a statement for each operation of the whole history.
        _lazy={**history.about_the_file(), "statements": {}},
    )
