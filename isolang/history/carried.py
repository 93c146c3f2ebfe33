"""Carries reads from one transaction of a request to a later one that writes.

A program may check something in one transaction and act on it in another. Each transaction alone is
then in order, and no level forbids the race between two such requests. With ``--unit request``, a
transaction that writes also has the reads that its request made before, of the rows that it writes
and by the predicates that its writes change, unless the request has seen the row again since. The
transactions stay as they are, in the order of their sessions. docs/language.md has the definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from isolang.arrays import np
from isolang.history import columns as c
from isolang.history.carrying import CarriedRead, Carrying, Kind
from isolang.history.inserted import InsertedRead, InsertedScan, with_inserted
from isolang.history.objects import numbered_operations
from isolang.history.session_tables import is_session_key, is_session_predicate

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.history.statements import SentStatement

_WRITES: Final = frozenset({c.WRITE, c.APPEND})
_MOST: Final = 5_000_000  # the rows that one call may list that predicate reads did not return
_CHUNK: Final = 200  # the predicate reads of one such call


def with_carried_reads(history: History, *, everything: bool = False) -> History:
    """Return the history with the reads that its units carry, as ``--unit request`` reads it.

    Args:
        everything: whether a transaction also has its unit's reads of rows that it does not write
            (``--carry all``).

    Raises:
        HistoryError: the recorded units or statements are malformed.
    """
    units, unclear, without = _units_of(history)
    reads: list[CarriedRead] = []
    matching = _Matching(history, units)
    for txns in units.values():
        reads += _Unit(history, matching).carried(txns)
    reads.sort(key=lambda read: read.reader)
    judged = ("checked", "other") if everything else ("checked",)
    carrying = Carrying(
        reads=tuple(read for read in reads if read.kind in judged),
        noted=tuple(read for read in reads if read.kind not in judged),
        plain=history,
        units=len(units) + len(unclear),
        without_unit=without,
        unclear=unclear,
        names={},
    )
    options = {**history.options, "unit": "request", **({"carry": "all"} if everything else {})}
    made = _inserted(history, carrying, carrying.reads, matching)
    if read := made._lazy.get("all facts"):
        made._lazy["all facts"] = partial(_carried_in_all, read, everything=everything)
    return replace(made, options=options)


def _carried_in_all(read: Callable[[], History], *, everything: bool) -> History:
    return with_carried_reads(read(), everything=everything)


def with_noted_reads(history: History, kinds: Sequence[Kind]) -> History:
    """Return a history with carried reads, with the noted ones of some kinds in addition."""
    assert history.carrying is not None
    carrying, plain = history.carrying, history.carrying.plain
    more = [read for read in carrying.noted if read.kind in kinds]
    reads = sorted([*carrying.reads, *more], key=lambda read: read.reader)
    carrying = replace(carrying, reads=tuple(reads))
    units, _, _ = _units_of(plain)
    made = _inserted(plain, carrying, reads, _Matching(plain, units))
    return replace(made, options=history.options)


# --- units ---


def _units_of(history: History) -> tuple[dict[str, list[int]], tuple[str, ...], int]:
    """Return the transactions of each unit in order, the unordered units, and who is in none."""
    by_name: dict[str, list[int]] = {}
    without = 0
    for txn in range(history.columns.transactions()):
        if unit := history.unit_of(txn):
            by_name.setdefault(unit, []).append(txn)
        else:
            without += int(history.columns.txn_status[txn]) == c.COMMITTED
    ordered = {name: _in_order(history, txns) for name, txns in by_name.items()}
    unclear = tuple(name for name, txns in ordered.items() if txns is None)
    return {name: txns for name, txns in ordered.items() if txns is not None}, unclear, without


def _in_order(history: History, txns: list[int]) -> list[int] | None:
    """Return a unit's transactions in order, or ``None`` if two overlap or have no known order."""
    columns = history.columns
    if len({int(columns.txn_session[txn]) for txn in txns}) == 1:
        return txns
    if not columns.has_time:
        return None
    txns = sorted(txns, key=lambda txn: int(columns.txn_begin[txn]))
    latest = c.UNKNOWN_BEGIN
    for txn in txns:
        if not latest < int(columns.txn_begin[txn]):
            return None
        latest = max(latest, int(columns.txn_end[txn]))
    return txns


# --- which reads are carried ---


class _Scan(Struct):
    """A predicate read that a later transaction of the unit may have, too."""

    number: int
    source: int
    moment: int


class _Unit:
    """Goes through the transactions of a unit, with what the program has seen before each."""

    def __init__(self, history: History, matching: _Matching) -> None:
        self._history, self._matching = history, matching
        self._moment = 0
        self._rows: dict[int, tuple[int, int]] = {}  # by key: the read, and its transaction
        self._scans: dict[object, _Scan] = {}  # by predicate
        self._touched: dict[int, int] = {}  # by key: when it was last seen or written

    def carried(self, txns: Sequence[int]) -> Iterator[CarriedRead]:
        """Yield the reads carried between the transactions of a unit."""
        for txn in txns if len(txns) > 1 else ():
            status = int(self._history.columns.txn_status[txn])
            if status == c.ABORTED:
                self._rows.clear()
                self._scans.clear()
                continue
            steps = _Steps(self._history, txn)
            if status == c.COMMITTED and steps.writes:
                yield from self._rows_for(txn, steps)
                yield from self._scans_for(txn, steps)
            self._note(txn, steps, is_committed=status == c.COMMITTED)

    def _rows_for(self, txn: int, steps: _Steps) -> Iterator[CarriedRead]:
        for key, (op, source) in self._rows.items():
            if key in steps.seen:
                continue
            kind: Kind = "other"
            if key in steps.writes:
                kind = "computed" if key in steps.computed else "checked"
            if is_session_key(self._history, key):
                kind = "session"
            yield CarriedRead(reader=txn, source=source, op=op, kind=kind)

    def _scans_for(self, txn: int, steps: _Steps) -> Iterator[CarriedRead]:
        for name, scan in self._scans.items():
            if name in steps.predicates:
                continue
            old = {key for key, moment in self._touched.items() if moment > scan.moment}
            old |= steps.seen
            changed = [
                key
                for key, values in steps.writes.items()
                if key not in old and self._matching.selects(scan.number, key, values)
            ]
            kind: Kind = "checked" if changed else "other"
            if changed and steps.computed.issuperset(changed):
                kind = "computed"
            if is_session_predicate(self._history, scan.number):
                kind = "session"
            without = tuple(sorted(self._matching.rows_of(scan.number, old)))
            yield CarriedRead(
                reader=txn, source=scan.source, scan=scan.number, without=without, kind=kind
            )

    def _note(self, txn: int, steps: _Steps, *, is_committed: bool) -> None:
        """Note what the program saw and wrote in a transaction."""
        for read in steps.reads:
            self._moment += 1
            for key in read.keys:
                self._touched[key] = self._moment
                self._rows.pop(key, None)
            is_known = is_committed and read.is_known
            if read.scan < 0 and is_known:
                self._rows[read.keys[0]] = read.op, txn
            elif read.scan >= 0:
                name = _predicate_of(self._history, read.scan)
                self._scans.pop(name, None)
                if is_known:
                    self._scans[name] = _Scan(read.scan, txn, self._moment)
        self._moment += 1
        for key in steps.writes:
            self._touched[key] = self._moment
            self._rows.pop(key, None)


class _Read(Struct):
    """A read by which the program saw rows: a row by its key, or the rows of a predicate."""

    keys: list[int]
    op: int = -1
    scan: int = -1
    is_known: bool = True


class _Steps:
    """The reads and writes of a transaction.

    Attributes:
        reads: what the program saw, in order; not what only a statement that writes has read.
        writes: the values written, by key.
        seen: the keys that the program saw before it wrote them, or by a statement that wrote them.
        computed: the keys whose first write is by a statement that also reads the row.
        predicates: the predicates of what the program saw.
    """

    def __init__(self, history: History, txn: int) -> None:
        self.reads: list[_Read] = []
        self.writes: dict[int, list[int]] = {}
        self.seen: set[int] = set()
        self.computed: set[int] = set()
        steps = [*numbered_operations(history, txn)]
        statements = history.statements_of(txn) or [None] * len(steps)
        reads = [_read(history, number, is_scan=is_scan) for is_scan, number in steps]
        writing = {
            sent.number
            for read, sent in zip(reads, statements, strict=True)
            if read is None and sent is not None
        }
        read_by = {
            (sent.number, key)
            for read, sent in zip(reads, statements, strict=True)
            if read is not None and sent is not None
            for key in read.keys
        }
        for (_, number), read, sent in zip(steps, reads, statements, strict=True):
            if read is None:
                self._write(history, number, sent, read_by)
            elif sent is None or sent.shown or sent.number not in writing:
                self.reads.append(read)
                self.seen.update(key for key in read.keys if key not in self.writes)
        scans = (read.scan for read in self.reads if read.scan >= 0)
        self.predicates = {_predicate_of(history, scan) for scan in scans}

    def _write(
        self, history: History, op: int, sent: SentStatement | None, read_by: set[tuple[int, int]]
    ) -> None:
        columns = history.columns
        if not columns.op_ok[op]:
            return
        key = int(columns.op_key[op])
        if sent is not None and sent.shown:
            self.seen.add(key)
        if key not in self.writes and sent is not None and (sent.number, key) in read_by:
            self.computed.add(key)
        self.writes.setdefault(key, []).append(int(columns.op_value[op]))


def _read(history: History, number: int, *, is_scan: bool) -> _Read | None:
    """Return a read with the rows that it returned, or ``None`` for a write."""
    columns = history.columns
    if not is_scan:
        if int(columns.op_kind[number]) in _WRITES:
            return None
        known = int(columns.op_value[number]) != c.UNKNOWN_VALUE
        is_ok = bool(columns.op_ok[number])
        return _Read(
            [int(columns.op_key[number])] if is_ok else [], number, is_known=known and is_ok
        )
    ops = range(int(columns.statement_start[number]), int(columns.statement_end[number]))
    rows = [
        int(columns.op_key[op])
        for op in ops
        if columns.op_ok[op] and int(columns.op_kind[op]) != c.READ_NONE_OF
    ]
    return _Read(rows, scan=number, is_known=bool(columns.statement_known[number]))


def _predicate_of(history: History, scan: int) -> object:
    """Return what two predicate reads of the same rows have in common."""
    number = int(history.columns.statement_predicate[scan])
    return number if number >= 0 else ("judged", scan)


class _Matching:
    """The rows that predicate reads returned, and the versions that they did not find."""

    def __init__(self, history: History, units: Mapping[str, Sequence[int]]) -> None:
        self._history = history
        self._operations: dict[int, dict[int, int]] = {}  # by predicate read and key
        self._columns = history.columns
        self._load(units)

    def _load(self, units: Mapping[str, Sequence[int]]) -> None:
        """Find the operations of the predicate reads that may be carried."""
        columns = self._history.columns
        if not len(columns.statement_txn):
            return
        txns = [txn for each in units.values() if len(each) > 1 for txn in each[:-1]]
        scans = np.flatnonzero(np.isin(columns.statement_txn, np.array(txns, np.int64)))
        if not columns.implicit:
            for scan in scans.tolist():
                self._add(scan)
            return
        missed = [
            columns.missed_by(scans[at : at + _CHUNK].astype(np.int32), _MOST)
            for at in range(0, len(scans), _CHUNK)
        ]
        pairs = np.concatenate(missed) if missed else np.zeros((0, 2), np.int32)
        # Each becomes an operation of the copy, whose predicate reads have the same numbers.
        self._columns = columns.with_set_reads(pairs) if len(pairs) else columns
        for scan in scans.tolist():
            self._add(scan)

    def _add(self, scan: int) -> None:
        columns = self._columns
        ops = range(int(columns.statement_start[scan]), int(columns.statement_end[scan]))
        self._operations[scan] = {int(columns.op_key[op]): op for op in ops if columns.op_ok[op]}

    def selects(self, scan: int, key: int, values: Sequence[int]) -> bool:
        """Return whether a predicate read returned a row, or would return one of its versions."""
        op = self._operations[scan].get(key)
        if op is None:
            return False
        if int(self._columns.op_kind[op]) != c.READ_NONE_OF:
            return True
        number = int(self._columns.op_value[op])
        start = self._columns.list_start
        listed = self._columns.list_values[start[number] : start[number + 1]]
        return not set(listed.tolist()).isdisjoint(values)

    def rows_of(self, scan: int, keys: set[int]) -> set[int]:
        """Return those keys of which a predicate read says something."""
        return keys & self._operations[scan].keys()

    def inserted(self, read: CarriedRead) -> InsertedScan:
        """Return a predicate read as it is carried.

        It leaves out rows that its own transaction wrote before, so then its copy is not whole.
        """
        columns = self._history.columns
        ops = self._history.operations_of(read.source)
        writes = set(columns.op_kind[ops.start : ops.stop].tolist()) & _WRITES
        known = int(columns.statement_known[read.scan])
        if known != c.PARTLY_KNOWN and not (read.without or writes):
            at, end = int(columns.statement_start[read.scan]), int(columns.statement_end[read.scan])
            return InsertedScan(read.reader, read.scan, range(at, end), columns, known=known)
        operations = self._operations[read.scan].items()
        part = [op for key, op in operations if key not in read.without]
        return InsertedScan(read.reader, read.scan, part, self._columns, known=c.PARTLY_KNOWN)


def _inserted(
    history: History, carrying: Carrying, reads: Sequence[CarriedRead], matching: _Matching
) -> History:
    """Return the history with carried reads as the first operations of their readers."""
    columns = history.columns
    is_file = history.position_unit == "line"
    names: dict[tuple[int, int], tuple[str, bool]] = {}
    inserted: list[InsertedRead | InsertedScan] = []
    for read in reads:
        # In a file, the read keeps its line, so that its remark and its place are those of it.
        position = int(columns.txn_position[read.source]) if is_file else -1 - read.source
        place = int(columns.txn_position[read.reader]), position
        is_other = read.kind == "other" and names.get(place, ("", True))[1]
        names[place] = history.name_of(read.source), is_other
        if read.scan >= 0:
            scan = matching.inserted(read)
            scan.position = position
            inserted.append(scan)
        else:
            inserted.append(InsertedRead(read.reader, read.op, position))
    lazy = history.about_the_file()
    if reads and history.has_statements():
        lazy["statements"] = _statements(history, reads)
    return replace(
        history,
        columns=with_inserted(columns, inserted) if inserted else columns,
        carrying=replace(carrying, names=names),
        _lazy=lazy,
    )


def _statements(history: History, reads: Sequence[CarriedRead]) -> dict[int, Any]:
    """Return the recorded statements, with an unknown one for each carried read."""
    statements = dict(history.statements_by_position())
    for read in reads:
        position = int(history.columns.txn_position[read.reader])
        if statements.get(position):
            statements[position] = (None, *statements[position])
    return statements
