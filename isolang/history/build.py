"""Builds columns from Python transactions, for ``History.from_transactions``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import UNSET

from isolang._native import Columns, add_plain_operations, add_plain_rows
from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.clock import Clock
from isolang.history.fields import (
    add_group,
    add_names,
    add_times,
    add_versions,
    failed_operations,
    is_sequence,
    require_sequence,
    status_code,
    transaction_number,
)
from isolang.history.initial import has_rows, replace_nil_if_rows
from isolang.history.predicates import derive_set_reads, predicate_text
from isolang.history.readers.reading import Reading
from isolang.history.transaction import Transaction
from isolang.history.values import UNKNOWN, encode, preview

_FORMS = (
    'expected ("r", key, result), ("w", key, value), ("append", key, value), '
    '("r-in", key, values) or ("r-not-in", key, values); '
    'an "r" may have its source as a fourth element'
)
_SCAN = 'expected ("scan", predicate, {key: row})'
_SET_READS: Final = {"r-in": c.READ_ONE_OF, "r-not-in": c.READ_NONE_OF}


def build(
    transactions: Sequence[Transaction], *, initial: object, versions: object = None, name: str
) -> Reading:
    """Build the columns of a history; ``History.from_transactions`` describes the arguments."""
    for index, transaction in enumerate(transactions):
        if not isinstance(transaction, Transaction):
            got = type(transaction).__name__
            where = f"{name} transaction {index + 1}"
            msg = f"{where}: not a Transaction (got {got}, expected Transaction)"
            raise HistoryError(msg)
    own_sessions = _has_no_sessions(transactions, name)
    builder = _ColumnsBuilder(transactions, initial, name)
    builder.columns.versions_ordered = _has_ordered_versions(versions, name)
    for index, transaction in enumerate(transactions):
        builder.add(index, transaction)
    session = (
        "each transaction is a session of its own, because none names a session"
        if own_sessions
        else "as given"
    )
    return Reading(
        columns=builder.finish(),
        position_unit="record",
        initial=builder.initial_sentence(),
        session=session if transactions else "",
        real_time=builder.time_sentence(),
        ignored=builder.ignored(),
        session_names=() if own_sessions else tuple(str(s) for s in builder.sessions),
    )


def _has_ordered_versions(versions: object, name: str) -> bool:
    if versions not in (None, "ordered"):
        got = preview(versions)
        msg = f'{name}: wrong value of versions= (got {got}, expected "ordered" or None)'
        raise HistoryError(msg)
    return versions == "ordered"


def _has_no_sessions(transactions: Sequence[Transaction], name: str) -> bool:
    """Return whether each transaction gets its own session because none of them names one.

    The session of a declared initial transaction, if any, is ignored.
    """
    ordinary = [(i, t) for i, t in enumerate(transactions, 1) if t.status != "initial"]
    without = [i for i, t in ordinary if t.session is UNSET]
    if without and len(without) < len(ordinary):
        some = next(i for i, t in ordinary if t.session is not UNSET)
        msg = (
            f"{name} transaction {without[0]}: the transaction names no session, but "
            f"transaction {some} does; name a session for all transactions or for none (then "
            "each is a session of its own)"
        )
        raise HistoryError(msg)
    return bool(without)


class _ColumnsBuilder:
    """Checks transactions one at a time, and adds them to the columns."""

    def __init__(self, transactions: Sequence[Transaction], initial: object, name: str) -> None:
        self.columns = Columns()
        self.transactions = transactions
        self.name = name
        self.clock = Clock()
        self.sessions: dict[Any, int] = {}
        self.scalar = 0  # the initial value, as an atom, of all keys that are not in by_key
        self.by_key: dict[tuple[int, Any], int] = {}
        self.initial_value = initial
        self.used: set[tuple[int, Any]] = set()
        self.keys: dict[tuple[int, Any], int] = {}
        self.sources: list[tuple[int, str, int, Any]] = []
        self.initial_at: int | None = None
        if isinstance(initial, Mapping):
            for key, value in initial.items():
                where = f"{name}: the initial value of {preview(key)}"
                self.by_key[encode(key, where)] = self.value(value, where)
        else:
            self.scalar = self.value(initial, f"{name}: the initial value")

    def value(self, value: object, where: str) -> int:
        return self.columns.intern_value(*encode(value, where))

    def key(self, key: object, where: str) -> int:
        atom = encode(key, where)
        known = self.keys.get(atom)
        if known is None:
            initial = self.by_key.get(atom, self.scalar)
            known = self.keys[atom] = self.columns.intern_key(*atom, initial)
        return known

    def add(self, index: int, transaction: Transaction) -> None:
        where = f"{self.name} transaction {index + 1}"
        status = status_code(transaction.status, where)
        if status == c.INITIAL:
            if self.initial_at is not None:
                raise HistoryError(
                    f"{where}: only one transaction can be the initial one, and transaction "
                    f"{self.initial_at + 1} already is"
                )
            self.initial_at = index
        begin = self.clock.time(transaction.begin, c.UNKNOWN_BEGIN, f"{where}: begin")
        end = self.clock.time(transaction.end, c.UNKNOWN_END, f"{where}: end")
        if begin > end:
            raise HistoryError(
                f"{where}: the transaction ends before it begins (got begin {transaction.begin}, "
                f"end {transaction.end})"
            )
        ops = require_sequence(transaction.ops, f"{where}: the operations")
        failed = failed_operations(transaction.failed, len(ops), where)
        session = self.session(transaction.session, where)
        number = transaction_number(transaction.number, index + 1, where)
        self.columns.begin_transaction(session, status, number, index + 1, 0, begin, end)
        last_write: dict[int, int] = {}
        plain = not failed and status != c.INITIAL and not self.by_key
        i = -1
        while (i := i + 1) < len(ops):
            if plain and (i := add_plain_operations(self.columns, ops, i, self.scalar)) == len(ops):
                break
            op, at = ops[i], f"{where}, operation {i + 1}"
            if is_sequence(op) and op and op[0] == "scan":
                if status == c.INITIAL:
                    raise HistoryError(
                        f"{at}: the initial transaction cannot contain a predicate read"
                    )
                self.scan(op, at, i + 1, ok=i not in failed)
                continue
            kind, key, value = self.op(op, at)
            ok = i not in failed
            if status == c.INITIAL and kind != c.WRITE and ok:
                what = "an append" if kind == c.APPEND else "a read"
                why = (
                    "lists start empty"
                    if kind == c.APPEND
                    else "it precedes all other transactions"
                )
                raise HistoryError(
                    f"{at}: the initial transaction cannot contain {what} ({why}, expected only "
                    "writes)"
                )
            if kind == c.WRITE and ok:
                last_write[key] = value
            if len(op) == 4 and op[3] is not None:
                if kind not in (c.READ, c.READ_LIST):
                    what = "a set-read" if kind in c.SET_READS else "an operation other than a read"
                    raise HistoryError(
                        f"{at}: only a read has a source, not {what} (got {preview(op)})"
                    )
                self.sources.append((self.columns.operations(), at, key, op[3]))
            self.columns.add_op(kind, key, value, i + 1, ok)
        add_times(self.columns, self.clock, index, transaction, where)
        add_group(self.columns, index, transaction, where)
        add_versions(self.columns, index, transaction, where)
        add_names(self.columns, index, transaction, where)
        if status == c.INITIAL:
            for key, value in last_write.items():
                self.columns.set_initial_value(key, value)

    def session(self, session: object, where: str) -> int:
        try:
            name = object() if session is UNSET else session
            return self.sessions.setdefault(name, len(self.sessions))
        except TypeError:
            raise HistoryError(
                f"{where}: the session is not hashable (got {preview(session)}); use a number or a "
                "string"
            ) from None

    def scan(self, op: Sequence[Any], at: str, position: int, *, ok: bool) -> None:
        """Add a predicate read. Set-reads for the rows it did not return are derived later."""
        if len(op) != (4 if len(op) > 1 and op[1] is None else 3):
            raise HistoryError(f"{at}: not a predicate read (got {preview(op)}, {_SCAN})")
        rows, columns = op[2], self.columns
        if rows is not UNKNOWN and not isinstance(rows, Mapping):
            raise HistoryError(
                f"{at}: the rows are not a dictionary (got {preview(rows)}, {_SCAN})"
            )
        text = "" if op[1] is None else predicate_text(op[1], at)
        try:
            columns.begin_statement(text, position, rows is not UNKNOWN)
        except ValueError as error:
            raise HistoryError(f"{at}: {error}") from None
        found: Mapping[Any, Any] = {} if rows is UNKNOWN else rows
        plain = type(found) is dict and ok and not self.by_key
        if plain and add_plain_rows(columns, found, position, self.scalar):
            found = {}
        for key, row in found.items():
            if row is None:
                raise HistoryError(
                    f"{at}: a returned row must not be None (the row of key {preview(key)})"
                )
            columns.add_op(c.READ, self.key(key, at), self.value(row, at), position, ok)
        for key, values in op[3].items() if len(op) == 4 else ():
            missed = columns.add_list([self.value(v, at) for v in values])
            columns.add_op(c.READ_NONE_OF, self.key(key, at), missed, position, ok)
        columns.end_statement()

    def op(self, op: object, at: str) -> tuple[int, int, int]:
        if is_sequence(op) and len(op) == 2 and op[0] == "delete":
            return c.WRITE, self.key(op[1], at), self.columns.deleted_atom()
        if not is_sequence(op) or len(op) not in (3, 4):
            raise HistoryError(f"{at}: not an operation (got {preview(op)}, {_FORMS})")
        name, key, value = op[0], self.key(op[1], at), op[2]
        if name == "r":
            if value is UNKNOWN:
                return c.READ, key, c.UNKNOWN_VALUE
            if isinstance(value, list):
                return c.READ_LIST, key, self.columns.add_list([self.value(v, at) for v in value])
            return c.READ, key, self.value(value, at)
        if name in _SET_READS:
            if value is UNKNOWN:
                return _SET_READS[name], key, c.UNKNOWN_VALUE
            values = require_sequence(value, f"{at}: the values of a set-read")
            return _SET_READS[name], key, self.columns.add_list([self.value(v, at) for v in values])
        if name in ("w", "append", "insert"):
            if value is UNKNOWN:
                raise HistoryError(
                    f"{at}: the write has no value; every write must state its value"
                )
            return c.APPEND if name == "append" else c.WRITE, key, self.value(value, at)
        raise HistoryError(f"{at}: unknown operation (got {preview(name)}, {_FORMS})")

    def finish(self) -> Any:
        """Resolve explicit sources, determine whether times are known, and check the columns."""
        for op, at, key, source in self.sources:
            self.columns.set_source(op, self.source(source, key, at))
        replace_nil_if_rows(self.columns)
        self.columns.has_time = self.timed()
        if (found := self.columns.contradicting_times()) is not None:
            txn, what = found
            raise HistoryError(
                f"{self.name} transaction {txn + 1}: the times contradict each other: {what} "
                "(expected operations one after the other, in order)"
            )
        derive_set_reads(
            self.columns, lambda txn, op: f"{self.name} transaction {txn + 1}, operation {op}"
        )
        self.columns.name_sources()
        self.columns.validate()
        return self.columns

    def source(self, source: object, key: int, at: str) -> int:
        if source == "initial":
            return c.SOURCE_INITIAL
        if source == "missing":
            return c.SOURCE_MISSING
        match source:
            case (int(txn), int(op)) if 0 <= txn < len(self.transactions):
                if 0 <= op < len(self.transactions[txn].ops):
                    kind, its_key = self.transactions[txn].ops[op][:2]
                    if (
                        kind not in ("w", "append", "insert", "delete")
                        or self.key(its_key, at) != key
                    ):
                        raise HistoryError(
                            f"{at}: the source of the read is not a write of the same key "
                            f"(got {source!r})"
                        )
                    return self.columns.operation_at(txn, op + 1)
        raise HistoryError(
            f"{at}: not a source (got {preview(source)}, expected (transaction, operation) counted "
            'from 0, "initial" or "missing")'
        )

    def timed(self) -> bool:
        """Return whether the history has real time.

        The history has real time if some transaction has a begin, and each committed transaction
        has both a begin and an end.
        """
        committed = [t for t in self.transactions if t.status == "committed"]
        has_begins = any(t.begin is not None for t in self.transactions)
        return has_begins and all(t.begin is not None and t.end is not None for t in committed)

    def time_sentence(self) -> str:
        if self.columns.has_time:
            return "the begin and the end of each transaction, as stated"
        some = sum(t.begin is not None or t.end is not None for t in self.transactions)
        if some:
            return (
                "none, because not every committed transaction has both a begin and an end "
                f"({some} of {len(self.transactions)} transactions have at least one of them)"
            )
        return "none given"

    def initial_sentence(self) -> str:
        parts = ["nil"]
        if isinstance(self.initial_value, Mapping):
            if self.initial_value:
                parts.append("the stated initial value of the key")
        elif self.initial_value is not None:
            parts.append(preview(self.initial_value))
        if self.initial_at is not None:
            parts.append("what the declared initial transaction wrote")
        if len(parts) > 1 and has_rows(self.columns):
            return f"a read of {' or '.join(parts[1:])}; of nil only for a row that did not exist"
        return "a read of " + " or ".join(parts)

    def ignored(self) -> tuple[str, ...]:
        notes = []
        unused = sum(key not in self.keys for key in self.by_key)
        if unused:
            notes.append(f"{unused} initial values for keys that no transaction uses")
        failed = sum(len(set(t.failed)) for t in self.transactions)
        if failed:
            notes.append(f"{failed} failed operations")
        if not self.columns.has_time:
            some = sum(t.begin is not None or t.end is not None for t in self.transactions)
            if some:
                notes.append(f"the times of {some} transactions")
        return tuple(notes)
