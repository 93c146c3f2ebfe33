"""From Python transactions to columns: ``History.from_transactions``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.readers.reading import Reading
from isolang.history.transaction import Transaction
from isolang.history.values import UNKNOWN, encode

_FORMS = (
    'expected ("r", key, result), ("w", key, value) or ("append", key, value); '
    "a read may have its source as a fourth element"
)


def build(given: Sequence[Transaction], *, initial: object, name: str) -> Reading:
    """Build the columns of a history; see ``History.from_transactions``."""
    builder = _Builder(given, initial, name)
    for index, transaction in enumerate(given):
        builder.add(index, transaction)
    return Reading(
        columns=builder.finish(),
        position_unit="record",
        initial=builder.initial_sentence(),
        session="as given" if given else "",
        real_time=builder.time_sentence(),
        ignored=builder.ignored(),
        session_names=tuple(str(s) for s in builder.sessions),
    )


class _Builder:
    """Fills the columns, one transaction at a time, and checks what it is given."""

    def __init__(self, given: Sequence[Transaction], initial: object, name: str) -> None:
        from isolang._native import Columns

        self.columns = Columns()
        self.given = given
        self.name = name
        self.sessions: dict[Any, int] = {}
        self.scalar = 0  # the atom that T0 wrote to keys without one of their own
        self.by_key: dict[tuple[int, Any], int] = {}
        self.given_initial = initial
        self.used: set[tuple[int, Any]] = set()
        self.keys: dict[tuple[int, Any], int] = {}
        self.first_op: list[int] = []
        self.sources: list[tuple[int, str, int, Any]] = []
        self.initial_at: int | None = None
        if isinstance(initial, Mapping):
            for key, value in initial.items():
                where = f"{name}: the initial value of {key!r}"
                self.by_key[encode(key, where)] = self.value(value, where)
        else:
            self.scalar = self.value(initial, f"{name}: the initial value")

    def value(self, value: object, where: str) -> int:
        return self.columns.intern_value(*encode(value, where))

    def key(self, key: object, where: str) -> int:
        atom = encode(key, where)
        if atom not in self.keys:
            initial = self.by_key.get(atom, self.scalar)
            self.keys[atom] = self.columns.intern_key(*atom, initial)
        return self.keys[atom]

    def fail(self, where: str, what: str) -> HistoryError:
        return HistoryError(f"{where}: {what}")

    def add(self, index: int, transaction: Transaction) -> None:
        where = f"{self.name} transaction {index + 1}"
        if not isinstance(transaction, Transaction):
            raise self.fail(
                where, f"not a Transaction (got {type(transaction).__name__}, expected Transaction)"
            )
        if transaction.status not in c.STATUS_NAMES:
            raise self.fail(
                where,
                f"unknown status (got {transaction.status!r}, expected one of "
                f"{', '.join(c.STATUS_NAMES)})",
            )
        status = c.STATUS_NAMES.index(transaction.status)
        if status == c.INITIAL:
            if self.initial_at is not None:
                raise self.fail(
                    where, f"a second initial transaction (the first is {self.initial_at + 1})"
                )
            self.initial_at = index
        begin = self.time(transaction.begin, c.UNKNOWN_BEGIN, f"{where}: begin")
        end = self.time(transaction.end, c.UNKNOWN_END, f"{where}: end")
        if begin > end:
            raise self.fail(where, f"it ends before it begins (got begin {begin}, end {end})")
        label = index + 1 if transaction.label is None else transaction.label
        try:
            session = self.sessions.setdefault(transaction.session, len(self.sessions))
        except TypeError:
            raise self.fail(
                where,
                f"a session that is not hashable (got {transaction.session!r}); "
                "use a number or a string",
            ) from None
        self.first_op.append(self.columns.operations())
        self.columns.begin_transaction(session, status, label, index + 1, 0, begin, end)
        failed = set(transaction.failed)
        last_write: dict[int, int] = {}
        for i, op in enumerate(transaction.ops):
            at = f"{where}, operation {i + 1}"
            kind, key, value = self.op(op, at)
            ok = i not in failed
            if status == c.INITIAL and ok and kind == c.APPEND:
                raise self.fail(
                    at, "an append in the initial transaction (lists start empty); append it later"
                )
            if kind == c.WRITE and ok:
                last_write[key] = value
            if len(op) == 4 and op[3] is not None:
                if kind in (c.WRITE, c.APPEND):
                    raise self.fail(at, f"a source for an operation that is no read (got {op!r})")
                self.sources.append((self.columns.operations(), at, key, op[3]))
            self.columns.add_op(kind, key, value, i + 1, ok)
        if failed and not failed <= set(range(len(transaction.ops))):
            raise self.fail(where, f"failed names operations that are not there (got {failed})")
        if status == c.INITIAL:
            for key, value in last_write.items():
                self.columns.set_initial_value(key, value)

    def time(self, value: object, unknown: int, where: str) -> int:
        if value is None:
            return unknown
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise self.fail(
                where, f"not an integer (got {value!r}); give times as integers, e.g. nanoseconds"
            )
        number = int(value.__index__())
        if not c.UNKNOWN_BEGIN < number < c.UNKNOWN_END:
            raise self.fail(where, f"a time outside 64 bits (got {number})")
        return number

    def op(self, op: object, at: str) -> tuple[int, int, int]:
        if not isinstance(op, Sequence) or isinstance(op, str) or len(op) not in (3, 4):
            raise self.fail(at, f"not an operation (got {op!r}, {_FORMS})")
        name, key, value = op[0], self.key(op[1], at), op[2]
        if name == "r":
            if value is UNKNOWN:
                return c.READ, key, c.UNKNOWN_VALUE
            if isinstance(value, list):
                return c.READ_LIST, key, self.columns.add_list([self.value(v, at) for v in value])
            return c.READ, key, self.value(value, at)
        if name in ("w", "append"):
            if value is UNKNOWN:
                raise self.fail(at, "a write of an unknown value; a write's value must be given")
            return c.WRITE if name == "w" else c.APPEND, key, self.value(value, at)
        raise self.fail(at, f"unknown operation (got {name!r}, {_FORMS})")

    def finish(self) -> Any:
        """Resolve explicit sources, decide whether there is real time, check the columns."""
        for op, at, key, source in self.sources:
            self.columns.set_source(op, self.source(source, key, at))
        self.columns.has_time = self.timed()
        self.columns.validate()
        return self.columns

    def source(self, source: object, key: int, at: str) -> int:
        if source == "initial":
            return c.SOURCE_INITIAL
        if source == "missing":
            return c.SOURCE_MISSING
        match source:
            case (int(txn), int(op)) if 0 <= txn < len(self.given):
                if 0 <= op < len(self.given[txn].ops):
                    number = self.first_op[txn] + op
                    kind, its_key = self.given[txn].ops[op][:2]
                    if kind == "r" or self.keys[encode(its_key, at)] != key:
                        raise self.fail(
                            at, f"its source is no write of the same key (got {source!r})"
                        )
                    return number
        raise self.fail(
            at,
            f"not a source (got {source!r}, expected (transaction, operation) counted from 0, "
            '"initial" or "missing")',
        )

    def timed(self) -> bool:
        committed = [t for t in self.given if t.status == "committed"]
        return bool(committed) and all(t.begin is not None and t.end is not None for t in committed)

    def time_sentence(self) -> str:
        if self.columns.has_time:
            return "begin and end of each transaction, as given"
        some = sum(t.begin is not None or t.end is not None for t in self.given)
        if some:
            return (
                "none: not every committed transaction has both a begin and an end "
                f"({some} of {len(self.given)} have one of them)"
            )
        return "none given"

    def initial_sentence(self) -> str:
        parts = ["nil"]
        if isinstance(self.given_initial, Mapping):
            if self.given_initial:
                parts.append("the given initial value of its key")
        elif self.given_initial is not None:
            parts.append(repr(self.given_initial))
        if self.initial_at is not None:
            parts.append("what the declared initial transaction wrote")
        return "a read of " + " or ".join(parts)

    def ignored(self) -> tuple[str, ...]:
        notes = []
        unused = sum(key not in self.keys for key in self.by_key)
        if unused:
            notes.append(f"{unused} initial values of keys that no transaction uses")
        failed = sum(len(t.failed) for t in self.given)
        if failed:
            notes.append(f"{failed} failed operations")
        if not self.columns.has_time:
            some = sum(t.begin is not None or t.end is not None for t in self.given)
            if some:
                notes.append(f"the times of {some} transactions")
        return tuple(notes)
