"""Derives carried reads from a history again, and compares them with those of a verdict.

The code follows docs/language.md ("Requests of several transactions") pair by pair, and shares
nothing with the code that carries reads when a history is read (:mod:`isolang.history.carried`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from isolang.certify.errors import CertificateRejected
from isolang.certify.facts import Facts
from isolang.certify.history_index import COMMITTED
from isolang.certify.statements import StatedRows
from isolang.history.columns import (
    ABORTED,
    APPEND,
    LISTS,
    PARTLY_KNOWN,
    READ_NONE_OF,
    UNKNOWN_VALUE,
    WRITE,
)
from isolang.history.objects import numbered_operations

if TYPE_CHECKING:
    from isolang.history.carrying import Carrying
    from isolang.history.history import History

_UNKNOWN_END: Final = 2**63 - 1
_SESSIONS: Final = frozenset(
    [
        "active_sessions",
        "django_session",
        "http_sessions",
        "session",
        "sessions",
        "spring_session",
        "spring_session_attributes",
    ]
)

Carried: TypeAlias = tuple[int, int, int, int, tuple[int, ...]]
"""The reader, the source, the read or -1, the predicate read or -1, and the keys left out."""


def check_stated_reads(history: History, stated: Sequence[Sequence[Any]]) -> None:
    """Check that a certificate states the carried reads of a history.

    Whether the history has the right ones is a matter of :func:`check_carried_reads`.

    Raises:
        CertificateRejected: if the certificate states others.
    """
    if history.carrying is None:
        if stated:
            raise CertificateRejected("carried: the history was read without --unit request")
        return
    got = sorted((*map(int, read[:4]), tuple(map(int, read[4]))) for read in stated)
    _compare("carried", got, _carried_in(history.carrying))


def check_carried_reads(history: History) -> None:
    """Check that a history has the reads that its units carry, and no others.

    Raises:
        CertificateRejected: if the history has other carried reads.
    """
    carrying = history.carrying
    if carrying is None:
        return
    rules = CarryRules(carrying.plain, everything=history.options.get("carry") == "all")
    expected = sorted(rules.carried())
    _compare("the history", _carried_in(carrying), expected)
    _check_operations(history, carrying.plain, rules, expected)


def _carried_in(carrying: Carrying) -> list[Carried]:
    return sorted((r.reader, r.source, r.op, r.scan, r.without) for r in carrying.reads)


def _compare(where: str, got: Sequence[Any], expected: Sequence[Carried]) -> None:
    more, less = set(got) - set(expected), set(expected) - set(got)
    if more or less or len(got) != len(expected):
        example = min(more or less or got)
        what = "has a read that is not carried" if more else "lacks a carried read"
        raise CertificateRejected(
            f"{where}: {what} (to transaction {example[0]} from transaction {example[1]}; got "
            f"{len(got)} carried reads, expected {len(expected)})"
        )


class CarryRules:
    """The rules of docs/language.md, for one history without carried reads."""

    def __init__(self, history: History, *, everything: bool) -> None:
        """Prepare to apply the rules; ``everything`` stands for ``--carry all``."""
        self.history, self._everything = history, everything
        self._columns = history.columns
        self._rows = StatedRows(history, Facts(history))
        self.steps = cache(self._steps_of)
        self.claims = cache(self._claims_of)

    # --- units ---

    def _units(self) -> Iterator[list[int]]:
        """Yield the transactions of each unit whose order is known, in order."""
        columns = self._columns
        named: dict[str, list[int]] = {}
        for txn in range(columns.transactions()):
            if unit := self.history.unit_of(txn):
                named.setdefault(unit, []).append(txn)
        for txns in named.values():
            if len({int(columns.txn_session[t]) for t in txns}) > 1:
                txns.sort(key=lambda t: (int(columns.txn_begin[t]), int(columns.txn_end[t])))
                ends = [
                    (int(columns.txn_end[a]), int(columns.txn_begin[b])) for a, b in pairwise(txns)
                ]
                if not columns.has_time or any(e >= b or e == _UNKNOWN_END for e, b in ends):
                    continue
            yield txns

    # --- one transaction ---

    def _steps_of(self, txn: int) -> list[tuple[str, int, frozenset[int], bool, Any]]:
        """Return the operations: kind, number, rows, whether the program saw them, statement."""
        columns, steps = self._columns, []
        numbered = [*numbered_operations(self.history, txn)]
        statements = self.history.statements_of(txn) or [None] * len(numbered)
        for (is_scan, number), sent in zip(numbered, statements, strict=True):
            ops = range(number, number + 1)
            if is_scan:
                ops = range(
                    int(columns.statement_start[number]), int(columns.statement_end[number])
                )
            live = [op for op in ops if columns.op_ok[op]]
            writes = not is_scan and columns.op_kind[number] in (WRITE, APPEND)
            rows = frozenset(
                int(columns.op_key[op])
                for op in live
                if not is_scan or columns.op_kind[op] != READ_NONE_OF
            )
            kind = "write" if writes else "scan" if is_scan else "read"
            steps.append((kind, number, rows, sent))
        writing = {
            sent.number for kind, _, _, sent in steps if kind == "write" and sent is not None
        }
        return [
            (kind, number, rows, sent is None or sent.shown or sent.number not in writing, sent)
            for kind, number, rows, sent in steps
        ]

    def _written(self, txn: int) -> frozenset[int]:
        return frozenset(
            k for kind, _, rows, *_ in self.steps(txn) if kind == "write" for k in rows
        )

    def _shown(self, txn: int, first: int = 0) -> frozenset[int]:
        """Return the rows that the transaction's reads showed, from one of its operations on."""
        steps = self.steps(txn)[first:]
        return frozenset(
            k for kind, _, rows, is_shown, _ in steps if kind != "write" and is_shown for k in rows
        )

    def _has_seen(self, txn: int) -> frozenset[int]:
        """Return the rows that the transaction has seen when it writes them."""
        written, seen = set[int](), set[int]()
        for kind, _, rows, is_shown, sent in self.steps(txn):
            if kind == "write":
                written |= rows
                seen |= rows if sent is not None and sent.shown else set()
            elif is_shown:
                seen |= rows - written
        return frozenset(seen)

    def _computes(self, txn: int, key: int) -> bool:
        """Return whether the first write of a row is by a statement that also reads it."""
        steps = self.steps(txn)
        first = next(sent for kind, _, rows, _, sent in steps if kind == "write" and key in rows)
        return first is not None and any(
            kind != "write" and key in rows and sent is not None and sent.number == first.number
            for kind, _, rows, _, sent in steps
        )

    # --- pairs of transactions ---

    def carried(self) -> Iterator[Carried]:
        """Yield the reads that count as violations."""
        for unit in self._units():
            for at, source in enumerate(unit):
                for later in range(at + 1, len(unit)):
                    yield from self._between(source, unit[at + 1 : later], unit[later])

    def _between(self, source: int, between: list[int], reader: int) -> Iterator[Carried]:
        status = self._columns.txn_status
        if int(status[source]) != COMMITTED or any(int(status[t]) == ABORTED for t in between):
            return
        if int(status[reader]) != COMMITTED or not self._written(reader):
            return
        old = self._has_seen(reader) | self._written(source)
        for txn in between:
            old |= self._shown(txn) | self._written(txn)
        for place, (kind, number, rows, is_shown, _) in enumerate(self.steps(source)):
            if kind == "write" or not is_shown:
                continue
            excluded = old | self._shown(source, place + 1)
            if kind == "read":
                known = int(self._columns.op_value[number]) != UNKNOWN_VALUE
                if (
                    rows
                    and known
                    and not rows & excluded
                    and self._counts(number, -1, rows, reader)
                ):
                    yield reader, source, number, -1, ()
            elif self._columns.statement_known[number] and not self._repeats(
                number, [(source, place + 1), *((t, 0) for t in (*between, reader))]
            ):
                claims = self.claims(number)
                touched = frozenset(
                    key
                    for key in self._written(reader) - excluded
                    if key in rows
                    or not claims.get(key, frozenset()).isdisjoint(self._values(reader, key))
                )
                if self._counts(-1, number, touched, reader):
                    without = tuple(sorted(key for key in claims if key in excluded))
                    yield reader, source, -1, number, without

    def _values(self, txn: int, key: int) -> set[int]:
        writes = (
            number for kind, number, rows, *_ in self.steps(txn) if kind == "write" and key in rows
        )
        return {int(self._columns.op_value[op]) for op in writes}

    def _repeats(self, scan: int, later: Sequence[tuple[int, int]]) -> bool:
        """Return whether the program saw the predicate again, in or after these operations."""
        predicates = self._columns.statement_predicate
        return int(predicates[scan]) >= 0 and any(
            kind == "scan" and is_shown and predicates[number] == predicates[scan]
            for txn, first in later
            for kind, number, _, is_shown, _ in self.steps(txn)[first:]
        )

    def _counts(self, op: int, scan: int, touched: frozenset[int], reader: int) -> bool:
        """Return whether a carried read counts as a violation."""
        if self._is_of_sessions(op, scan):
            return False
        written = touched & self._written(reader)
        if not written:
            return self._everything
        return not all(self._computes(reader, key) for key in written)

    def _is_of_sessions(self, op: int, scan: int) -> bool:
        if op >= 0:
            key = self.history.key(int(self._columns.op_key[op]))
            name = key.strip("[").split(" ")[0] if key.startswith("[") else key.split("/")[0]
            if name == key:
                return False
        else:
            number = int(self._columns.statement_predicate[scan])
            text = self._columns.predicates[number] if number >= 0 else ""
            name = text[8:].split(" :where ")[0] if text.startswith("{:table ") else ""
        last = name.strip('":').split(":")[-1].split(".")[-1].split("#")[0]
        return last.strip('"') in _SESSIONS

    def _claims_of(self, scan: int) -> dict[int, frozenset[int]]:
        """Return what a predicate read says: by row, the versions that it did not see.

        The set of a row that it returned is empty.
        """
        columns = self._columns
        claims: dict[int, frozenset[int]] = {}
        ops = range(int(columns.statement_start[scan]), int(columns.statement_end[scan]))
        for op in ops:
            if columns.op_ok[op]:
                missed = columns.op_kind[op] == READ_NONE_OF
                values = self.history.list_values(int(columns.op_value[op])) if missed else ()
                claims[int(columns.op_key[op])] = frozenset(values)
        if int(columns.statement_predicate[scan]) < 0 or not columns.implicit:
            return claims
        txn, start = int(columns.statement_txn[scan]), int(columns.statement_start[scan])
        before = (op for op in self.history.operations_of(txn) if op < start)
        own = {int(columns.op_key[op]) for op in before if columns.op_kind[op] == WRITE}
        holds = self._rows.judge(scan)
        for key, value in self._rows.around(scan):
            if key not in own and holds(key, value) and (key not in claims or claims[key]):
                claims[key] = claims.get(key, frozenset()) | {value}
        return claims


# --- the operations ---


def _check_operations(
    history: History, plain: History, rules: CarryRules, carried: Sequence[Carried]
) -> None:
    """Check that each transaction has its carried reads first, and then its own operations."""
    by_reader: dict[int, list[Carried]] = {}
    for read in carried:
        by_reader.setdefault(read[0], []).append(read)
    if history.columns.transactions() != plain.columns.transactions():
        raise CertificateRejected("the history has other transactions than without carried reads")
    for txn in range(plain.columns.transactions()):
        got = [_shown_step(history, *step) for step in numbered_operations(history, txn)]
        expected = [_shown_step(plain, *step) for step in numbered_operations(plain, txn)]
        copies = [_copy(plain, rules, read) for read in by_reader.get(txn, ())]
        first, rest = got[: len(copies)], got[len(copies) :]
        if rest != expected or sorted(first, key=repr) != sorted(copies, key=repr):
            raise CertificateRejected(
                f"{history.name_of(txn)} has other operations than its own and its carried reads"
            )


def _copy(plain: History, rules: CarryRules, read: Carried) -> tuple[Any, ...]:
    """Return a carried read as it must be among the operations of its reader."""
    _, source, op, scan, without = read
    if op >= 0:
        return _shown_step(plain, False, op)
    writes = any(kind == "write" for kind, *_ in rules.steps(source))
    whole = _shown_step(plain, True, scan)
    if whole[1] != PARTLY_KNOWN and not without and not writes:
        return whole
    rows = tuple(row for row in whole[3] if row[0] not in without)
    kept = rules.claims(scan).items()
    missed = tuple(
        sorted(
            (key, tuple(sorted(values))) for key, values in kept if values and key not in without
        )
    )
    return "scan", PARTLY_KNOWN, whole[2], rows, missed


def _shown_step(history: History, is_scan: bool, number: int) -> tuple[Any, ...]:
    """Return what an operation says, in terms that do not depend on numbers of operations.

    What a whole predicate read did not return follows from its predicate, and is checked elsewhere.
    """
    columns = history.columns
    if not is_scan:
        return "operation", *_stated(history, number)
    ops = range(int(columns.statement_start[number]), int(columns.statement_end[number]))
    rows = [_stated(history, op) for op in ops if columns.op_kind[op] != READ_NONE_OF]
    known, predicate = (
        int(columns.statement_known[number]),
        int(columns.statement_predicate[number]),
    )
    is_whole = known != PARTLY_KNOWN and predicate >= 0
    missed = [
        (int(columns.op_key[op]), tuple(sorted(history.list_values(int(columns.op_value[op])))))
        for op in ops
        if columns.op_kind[op] == READ_NONE_OF and columns.op_ok[op] and not is_whole
    ]
    state = min(known, 1) if is_whole else known
    return "scan", state, predicate, tuple(sorted(rows, key=repr)), tuple(sorted(missed))


def _stated(history: History, op: int) -> tuple[Any, ...]:
    columns = history.columns
    kind, value = int(columns.op_kind[op]), int(columns.op_value[op])
    values: Any = value
    if kind in LISTS and value != UNKNOWN_VALUE:
        values = tuple(history.list_values(value))
    source: Any = int(columns.op_source[op])
    if source >= 0:
        txn = history.transaction_of(source)
        writes = [o for o in history.operations_of(txn) if columns.op_kind[o] in (WRITE, APPEND)]
        source = txn, writes.index(source)
    version = int(columns.op_version[op]) if columns.has_versions else -1
    return int(columns.op_key[op]), kind, values, bool(columns.op_ok[op]), source, version
