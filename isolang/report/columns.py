"""Packs a history for a page, as columns of small numbers and tables of keys and values.

If the list returned by a read is a prefix of its key's longest list, only the length of the prefix
is stored, so a long list takes no more space than a short one. Long values are cut, and their
length is added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct
from numpy.typing import NDArray

from isolang.arrays import np
from isolang.history import columns as c

if TYPE_CHECKING:
    from isolang.history.history import History

Ints: TypeAlias = NDArray[np.signedinteger[Any]]

LONGEST_VALUE: Final = 1024
"""The maximum number of characters in a value that a page shows in full."""

MOST_TRANSACTIONS: Final = 200_000
"""The maximum number of transactions on a page. If a history has more, only a part is shown,
with a remark.
"""

_STATUS_OF: Final = {c.COMMITTED: "c", c.ABORTED: "a", c.INDETERMINATE: "m", c.INITIAL: "i"}
_KIND_OF: Final = {
    c.READ: "r", c.WRITE: "w", c.APPEND: "a", c.READ_LIST: "l",
    c.READ_ONE_OF: "s", c.READ_NONE_OF: "s",
}  # fmt: skip


class Columns(Struct, frozen=True, kw_only=True):
    """A history, or a part of one, in the form required by a page.

    Attributes:
        numbers: for each transaction on the page, its number in the whole history; empty if the
            page has all transactions.
        labels: each transaction's name in messages; empty if the names are T1, T2 and so on.
        session: for each transaction, its session as an index of ``sessions``; -1 for the initial
            transaction.
        status: for each transaction, a letter: c (committed), a (aborted), m (indeterminate) or i
            (initial).
        begin: when each transaction began, counted from the first begin; empty if the history has
            no times.
        end: when each transaction ended; ``None`` if unknown.
        first: for each transaction, the index of its first operation; a final entry marks the end
            of the operations.
        file: the file of each transaction as an index of ``files``; empty for a single file.
        unit: the unit of positions: ``line``, ``byte`` or ``record``.
        kind: for each operation, a letter: r (read), w (write), a (append), l (list read), d
            (delete) or s (set-read).
        value: the value of each operation as an index of ``values`` (of ``lists`` for a list read);
            -1 if unknown.
        statements: for each predicate read, the index of its first operation, the index after its
            last, and the predicate.
        sent: for each operation, the time from its transaction's begin until it was sent; ``None``
            if unknown. The column is empty if no operation has times from the transactions' clock.
        took: for each operation, the time from its request to its answer.
        commit: for each transaction, the time from its begin until it sent COMMIT.
        lists: the lists returned by reads, each as the length of a prefix of its key's longest
            list, or as indices of ``values``.
        longest: for each key with list reads, its longest list as indices of ``values``.
        rows: for operations on a recorded application's rows, the columns of the row as text.
    """

    of: int
    numbers: tuple[int, ...]
    labels: tuple[str, ...]
    sessions: tuple[str, ...]
    session: list[int]
    status: str
    begin: list[int]
    end: list[int | None]
    first: list[int]
    place: list[int]
    file: list[int]
    files: tuple[str, ...]
    unit: str
    kind: str
    key: list[int]
    value: list[int]
    failed: list[int]
    statements: list[tuple[int, int, str]]
    sent: list[int | None]
    took: list[int | None]
    commit: list[int | None]
    place_of: list[int]
    keys: list[str]
    values: list[str]
    lists: list[list[int] | int]
    longest: dict[int, list[int]]
    rows: dict[int, str]


def pack(history: History, *, around: tuple[int, ...] = ()) -> Columns:
    """Pack a history for a page.

    Args:
        around: the numbers of transactions that the page must show. If the history is too long for
            a page, the transactions nearest to these in the file are shown.
    """
    columns = history.columns
    total = columns.transactions()
    txns = _shown_transactions(total, around)
    starts = np.asarray(columns.op_start)
    ops = np.concatenate([np.arange(starts[t], starts[t + 1]) for t in txns] or [np.arange(0)])
    ops = ops.astype(np.int64)
    keys, key = _renumber(np.asarray(columns.op_key)[ops])
    kind = np.asarray(columns.op_kind)[ops]
    values, value, lists, longest = _values(history, ops, kind, key)
    sessions, session = _renumber(np.asarray(columns.txn_session)[txns])
    status = np.asarray(columns.txn_status)[txns]
    session = np.where(status == c.INITIAL, -1, session)
    file = np.asarray(columns.txn_file)[txns]
    begin, end = _times(history, txns)
    sent, took, commit = _moments(history, txns, ops)
    deletes = (kind == c.WRITE) & (np.asarray(columns.op_value)[ops] == columns.deleted)
    letters = np.array([_KIND_OF[k] for k in range(len(_KIND_OF))])[kind]
    labels = tuple(history.name_of(int(t)) for t in txns)
    return Columns(
        of=total,
        numbers=() if len(txns) == total else tuple(txns.tolist()),
        labels=() if _has_default_names(labels) else labels,
        sessions=tuple(cut(history.session_name(int(s))) for s in sessions),
        session=session.tolist(),
        status="".join(_STATUS_OF[int(s)] for s in status),
        begin=begin,
        end=end,
        first=[0, *np.cumsum(starts[txns + 1] - starts[txns]).tolist()],
        place=np.asarray(columns.txn_position)[txns].tolist(),
        file=file.tolist() if len(history.files) > 1 else [],
        files=history.files,
        unit=history.position_unit,
        kind="".join(np.where(deletes, "d", letters).tolist()),
        key=key.tolist(),
        value=value,
        statements=_statements(history, ops),
        sent=sent,
        took=took,
        commit=commit,
        failed=np.flatnonzero(~np.asarray(columns.op_ok)[ops].astype(bool)).tolist(),
        place_of=np.asarray(columns.op_position)[ops].tolist(),
        keys=[cut(history.key(int(k))) for k in keys],
        values=values,
        lists=lists,
        longest=longest,
        rows=_rows(history, ops),
    )


def _rows(history: History, ops: Ints) -> dict[int, str]:
    """Return the operations' recorded rows by the indices of the operations on the page."""
    if not history.remarks():
        return {}
    rows = ((i, history.recorded_row(op)) for i, op in enumerate(ops.tolist()))
    return {i: cut(row) for i, row in rows if row}


def _has_default_names(labels: tuple[str, ...]) -> bool:
    return all(label == f"T{i}" for i, label in enumerate(labels, 1))


def cut(text: str) -> str:
    """Return a text, or only its beginning and its length if it is too long for a page."""
    if len(text) <= LONGEST_VALUE:
        return text
    return f"{text[: LONGEST_VALUE // 4]}… ({len(text):,} characters)"


def _shown_transactions(total: int, around: tuple[int, ...]) -> Ints:
    """Return the numbers of the transactions shown on the page, in file order."""
    if total <= MOST_TRANSACTIONS:
        return np.arange(total)
    centres = np.array([t for t in around if 0 <= t < total] or [0])
    distance = np.abs(np.arange(total)[:, None] - centres[None, :64]).min(axis=1)
    return np.sort(np.argpartition(distance, MOST_TRANSACTIONS)[:MOST_TRANSACTIONS])


def _renumber(column: Ints) -> tuple[Ints, Ints]:
    """Return the distinct numbers in a column, and for each entry its index among them."""
    distinct, places = np.unique(column, return_inverse=True)
    return distinct, places


def _values(
    history: History, ops: Ints, kind: Ints, key: Ints
) -> tuple[list[str], list[int], list[list[int] | int], dict[int, list[int]]]:
    """Return the columns ``values``, ``value``, ``lists`` and ``longest``."""
    columns = history.columns
    value = np.asarray(columns.op_value)[ops]
    numbers: dict[int | str, int] = {}
    texts: list[str] = []

    def number(atom: int | str) -> int:
        if atom not in numbers:
            numbers[atom] = len(texts)
            texts.append(cut(history.value(atom) if isinstance(atom, int) else atom))
        return numbers[atom]

    starts, elements = columns.list_start, columns.list_values
    read: dict[tuple[int, int], list[int]] = {}
    longest: dict[int, list[int]] = {}
    is_list = (kind == c.READ_LIST) & (value != c.UNKNOWN_VALUE)
    for k, v in zip(key[is_list].tolist(), value[is_list].tolist(), strict=True):
        if (k, v) not in read:
            items = elements[starts[v] : starts[v + 1]].tolist()
            read[k, v] = items
            if len(items) > len(longest.get(k, [])):
                longest[k] = items
            longest.setdefault(k, [])
    lists: list[list[int] | int] = []
    place: dict[tuple[int, int], int] = {}
    for (k, v), items in read.items():
        place[k, v] = len(lists)
        prefix = longest.get(k, [])[: len(items)] == items
        lists.append(len(items) if prefix else [number(atom) for atom in items])
    is_set = np.isin(kind, c.SET_READS) & (value != c.UNKNOWN_VALUE)
    out = [
        -1 if v == c.UNKNOWN_VALUE or a_set else place[k, v] if a_list else number(v)
        for k, v, a_list, a_set in zip(
            key.tolist(), value.tolist(), is_list.tolist(), is_set.tolist(), strict=True
        )
    ]
    for i in np.flatnonzero(is_set).tolist():
        out[i] = number(history.op_value(int(ops[i])))
    return texts, out, lists, {k: [number(a) for a in items] for k, items in longest.items()}


def _times(history: History, txns: Ints) -> tuple[list[int], list[int | None]]:
    """Return when transactions began and ended, counted from the first begin."""
    columns = history.columns
    if not columns.has_time:
        return [], []
    begin = np.asarray(columns.txn_begin)[txns]
    end = np.asarray(columns.txn_end)[txns]
    known = begin != c.UNKNOWN_BEGIN
    zero = int(begin[known].min()) if known.any() else 0
    begins = [int(b) - zero if k else 0 for b, k in zip(begin, known, strict=True)]
    return begins, [None if int(e) == c.UNKNOWN_END else int(e) - zero for e in end]


def _moments(
    history: History, txns: Ints, ops: Ints
) -> tuple[list[int | None], list[int | None], list[int | None]]:
    """Return the columns ``sent``, ``took`` and ``commit``."""
    columns = history.columns
    if not (columns.has_time and columns.has_operation_times):
        return [], [], []
    owner = np.searchsorted(columns.op_start, ops, side="right") - 1
    began = np.asarray(columns.txn_begin)
    sent, answered = np.asarray(columns.op_begin)[ops], np.asarray(columns.op_end)[ops]
    commit = np.asarray(columns.commit_begin)[txns]
    known = (sent != c.UNKNOWN_BEGIN) & (began[owner] != c.UNKNOWN_BEGIN)
    ended = np.asarray(columns.txn_end)[owner]
    if (known & ((sent < began[owner]) | (sent > ended))).any():
        return [], [], []  # the operations' times come from another clock

    def after(moment: Ints, start: Ints, there: NDArray[np.bool_]) -> list[int | None]:
        return [
            int(m) - int(s) if yes else None for m, s, yes in zip(moment, start, there, strict=True)
        ]

    both = known & (answered != c.UNKNOWN_END)
    committing = (commit != c.UNKNOWN_BEGIN) & (began[txns] != c.UNKNOWN_BEGIN)
    return (
        after(sent, began[owner], known),
        after(answered, sent, both),
        after(commit, began[txns], committing),
    )


def _statements(history: History, ops: Ints) -> list[tuple[int, int, str]]:
    """Return the column ``statements``."""
    columns = history.columns
    if not len(columns.statement_start):
        return []
    predicates = columns.predicates
    found = []
    for start, end, which in zip(
        np.searchsorted(ops, columns.statement_start).tolist(),
        np.searchsorted(ops, columns.statement_end).tolist(),
        np.asarray(columns.statement_predicate).tolist(),
        strict=True,
    ):
        if end > start:
            found.append((start, end, cut(predicates[which]) if which >= 0 else "rows"))
    return found
