"""Finds transactions that appear to have loaded the database but are not declared initial."""

from __future__ import annotations

from operator import sub
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from isolang.arrays import np
from isolang.history import columns as c

if TYPE_CHECKING:
    from isolang._native import Columns
    from isolang.history.history import History

# Pairs of thresholds: a look-alike writes at least this share of all keys, and at least this many
# times as many keys as the median transaction. The second pair is for converters that write only
# the values that are read.
_UNUSUAL = ((0.9, 3), (0.25, 20))
_FEWEST_KEYS = 4  # with fewer keys than this, every transaction would look like an initial one


class LookAlike(Struct, frozen=True, kw_only=True):
    """A transaction that looks like an initial one, but is not declared as such.

    Attributes:
        number: the number with which ``--initial`` declares the transaction.
        name: the name of the transaction in messages.
        where: the place of the transaction in the input.
        keys: how many keys the transaction writes.
    """

    number: int
    name: str
    where: str
    keys: int


def find_look_alikes(history: History) -> tuple[LookAlike, ...]:
    """Return up to three transactions that look like an initial transaction.

    Such a transaction writes very many keys, reads none, is the first of its session, and is read
    from by other transactions. Histories converted from other formats often represent the initial
    state by such a transaction. Unless the user declares it initial, nothing orders it before other
    sessions.
    """
    columns = history.columns
    n, n_keys = columns.transactions(), columns.n_keys()
    if n < 2 or n_keys < _FEWEST_KEYS or history.initial_transaction is not None:
        return ()
    least = min(share for share, _ in _UNUSUAL) * n_keys
    if columns.most_operations() < max(least, 3):  # in most histories, no transaction is so large
        return ()
    starts = columns.op_start.tolist()
    sizes = list(map(sub, starts[1:], starts))
    large = [t for t, size in enumerate(sizes) if size >= least]
    large = [t for t in large if columns.txn_status[t] == c.COMMITTED and _only_writes(columns, t)]
    first: dict[int, int] = {}
    for t, session in enumerate(columns.txn_session.tolist() if large else ()):
        first.setdefault(session, t)
    large = [t for t in large if first[columns.txn_session[t]] == t]
    if not large:
        return ()
    good = np.zeros(n, bool)
    good[large] = True
    txn = np.repeat(np.arange(n), sizes)
    is_read = (columns.op_kind != c.WRITE) & (columns.op_kind != c.APPEND)
    keys_per = keys_per_transaction(txn, columns.op_key.astype(np.int64), n, n_keys)
    usual = float(np.median(keys_per))
    wide = [(keys_per >= s * n_keys) & (keys_per >= times * usual) for s, times in _UNUSUAL]
    good &= np.logical_or.reduce(wide)
    found = []
    for t in np.flatnonzero(good)[:3].tolist():
        if _is_read_from(history, t, txn, is_read):
            number = int(columns.txn_number[t])
            name, where = history.name_of(t), history.where(t)
            found.append(LookAlike(number=number, name=name, where=where, keys=int(keys_per[t])))
    return tuple(found)


def _only_writes(columns: Columns, t: int) -> bool:
    kinds = columns.op_kind[int(columns.op_start[t]) : int(columns.op_start[t + 1])]
    return all(kind in (c.WRITE, c.APPEND) for kind in kinds)


def _is_read_from(history: History, t: int, txn: Any, is_read: Any) -> bool:
    columns = history.columns
    ops = history.operations_of(t)
    span = columns.n_values() + 1
    pair = columns.op_key.astype(np.int64) * span + columns.op_value
    by_value = is_read & (columns.op_source == c.SOURCE_BY_VALUE) & (txn != t)
    if np.isin(pair[by_value], pair[ops.start : ops.stop]).any():
        return True
    return bool(((columns.op_source >= ops.start) & (columns.op_source < ops.stop)).any())


def keys_per_transaction(txn: Any, key: Any, n: int, n_keys: int) -> Any:
    """Return the number of distinct keys that each transaction accesses."""
    distinct = np.unique(txn * max(n_keys, 1) + key)
    return np.bincount(distinct // max(n_keys, 1), minlength=n)
