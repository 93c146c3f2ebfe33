"""Writes a history of the row versions that sessions read and wrote.

A session may see a version before the writer of the version is known, because the response to the
reader may arrive before the response to the writer. Therefore, an ended transaction waits here
until all transactions that began before its end have ended, too. Then the lines of the transactions
are written in the order of events.

SOUND BECAUSE: the writer of a version that a transaction read began before the reader ended, so all
operations of the writer are known when the reader's lines are written.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress, count
from operator import not_
from pathlib import Path
from time import monotonic_ns
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, field

from isolang.history.statements import Lock, SentStatement
from isolang.observe.catalogue import Table
from isolang.observe.edn import column_edn, edn, end_of
from isolang.observe.unseen import FOREIGN, OLD_SERVER, Unseen
from isolang.run.record.lines import ORDERED

Outcome: TypeAlias = Literal["ok", "fail", "info"]

_CALLERS: Final = ", :callers ["
_STATEMENTS: Final = ", :statements ["
_VERSIONS: Final = ", :versions ["
_FIRST_NUMBER: Final = 3  # versions of transactions with smaller numbers are older than all others
_HALF: Final = 2**31  # numbers of transactions are compared modulo 2**32
_LEVELS: Final = {"serializable": "ser", "repeatable read": "si", "read committed": "pl-2",
                  "read uncommitted": "pl-2"}  # fmt: skip


class RowVersion(Struct, frozen=True):
    """A version of a row, as the database names it.

    Attributes:
        key: the text of the primary key.
        number: the ``xmin`` and the ``ctid`` of the version, such as ``745(0,3)``.
        values: the values of the primary key's columns, if they may be needed.
    """

    key: str
    number: str
    values: tuple[Any, ...] = ()


class ReadRow(Struct, frozen=True):
    """A row that was read.

    Attributes:
        statement: the statement that read it, as the history names it; empty if unknown.
    """

    table: Table
    version: RowVersion
    shown: str
    statement: str = ""


class ScannedRows(Struct, frozen=True):
    """A predicate read: the rows that a condition found, and no others.

    Attributes:
        where: the predicate, in EDN.
        order: the column by which LIMIT chose the rows, and whether the order descends. All rows
            before the last returned row were returned, but perhaps not all rows that equal it in
            this column. ``None`` if no LIMIT applied.
        statement: the statement that read the rows, as the history names it.
    """

    table: Table
    where: str
    rows: tuple[RowVersion, ...]
    shown: str
    order: tuple[str, bool] | None = None
    statement: str = ""


class WrittenRow(Struct, frozen=True):
    """A version that was written.

    Attributes:
        row: the values of the version's columns; ``None`` for a deletion.
        old: the version that it replaced; ``None`` for an INSERT, or if it is not known.
        inserts: whether the row did not exist before.
        same_key: whether the replaced version, which is not known, had the same key.
        statement: the statement that wrote it, as the history names it.
    """

    table: Table
    version: RowVersion | None
    row: Mapping[str, Any] | None
    old: RowVersion | None
    shown: str
    inserts: bool = False
    statement: str = ""
    same_key: bool = False


Observed: TypeAlias = ReadRow | ScannedRows | WrittenRow


class SeenTransaction(Struct, kw_only=True):
    """A transaction of a session.

    Attributes:
        process: the number of the session in the history.
        begin: the position of the transaction's first event.
        began: the time of the transaction's first event.
        level: the isolation level, in PostgreSQL's words.
        labels: the names that the application gave the transaction.
        operations: what the transaction read and wrote.
        sent: how many statements were executed.
        statement: the current statement, as the history names it; empty if it is not complete.
        cut: the SELECTs whose rows the application has not all requested yet.
        number: the database's number for the transaction, modulo 2**32; 0 if it is not known.
        unclear: whether the transaction may have written something that was not seen.
        outcome: how the transaction ended; ``None`` before its end.
        end: the position of the transaction's last event.
        error: the message of the error that ended it.
    """

    process: int
    begin: int
    began: int
    implicit: bool = False
    level: str = ""
    labels: tuple[str, ...] = ()
    operations: list[Observed] = field(default_factory=list)
    sent: int = 0
    statement: str = ""
    savepoints: list[tuple[str, int]] = field(default_factory=list)
    own: dict[tuple[str, str], str] = field(default_factory=dict)
    seen: set[tuple[str, str]] = field(default_factory=set)
    failed: bool = False
    altered: bool = False
    cut: dict[int, Any] = field(default_factory=dict)
    number: int = 0
    unclear: bool = False
    outcome: Outcome | None = None
    end: int = -1
    ended: int = 0
    error: str = ""
    planned: list[tuple[str, int | None]] = field(default_factory=list)

    def read(self, table: Table, version: RowVersion, shown: str) -> None:
        """Note that a row was read, unless the transaction has already read the same version."""
        one = table.name, version.number
        if one not in self.seen:
            self.seen.add(one)
            self.operations.append(ReadRow(table, version, shown, self.statement))

    def write(self, operation: WrittenRow) -> None:
        """Note a write."""
        self.operations.append(operation)
        if operation.version is not None:
            self.seen.discard((operation.table.name, operation.version.number))

    def versions(self) -> Iterator[tuple[Table, RowVersion]]:
        """Yield the versions of rows that the transaction read, replaced or wrote."""
        for one in self.operations:
            found: Sequence[RowVersion | None]
            if isinstance(one, WrittenRow):
                found = one.old, one.version
            else:
                found = one.rows if isinstance(one, ScannedRows) else (one.version,)
            yield from ((one.table, version) for version in found if version is not None)

    def execute(self, lock: Lock = "") -> None:
        """Note that a statement was executed, and how it locked the rows that it read."""
        self.sent += 1
        self.statement = str(SentStatement(self.sent, lock))

    def roll_back_to(self, name: str) -> None:
        """Remove the operations after a savepoint."""
        for place in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[place][0] == name:
                del self.operations[self.savepoints[place][1] :]
                del self.savepoints[place + 1 :]
                self.seen = {
                    (o.table.name, o.version.number)
                    for o in self.operations
                    if isinstance(o, ReadRow)
                }
                self.failed = False
                self.cut.clear()
                return

    def release(self, name: str) -> None:
        """Remove a savepoint and all savepoints that were set after it."""
        for place in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[place][0] == name:
                del self.savepoints[place:]
                return


class _Known(Struct):
    """A version whose writer is known.

    Attributes:
        key: the key of its row in the history.
        row: the row in EDN.
        columns: the columns of the row.
        rank: how many versions of the row came before it; ``None`` if that is not known.
    """

    key: str
    row: str
    columns: Mapping[str, Any]
    rank: int | None = 0

    def next_rank(self) -> int | None:
        """Return the rank of the version that replaces this version."""
        return None if self.rank is None else self.rank + 1


class ObservedHistory:
    """The file of a history, and the transactions that are not written yet.

    Attributes:
        unseen: what was not recorded.
        before: the oldest transaction that ran when the observation began.
        live: for each table, maps the last version of each row to the text of the row's key.
        dead: versions that were replaced before their writer's end was seen.
        perhaps: versions that transactions of unknown outcome wrote or replaced.
        oldest: a function that returns the position of the first event that may still come.
        outcomes: the number of transactions by outcome.
        unaudited: the tables with predicate reads since their last audit, by name.
        written: the number of transactions in the file.
        initial: if versions are stated, the rows at the start, by table and key.
        unclear: whether an unknown transaction may have written something unseen.
        is_old: whether the server does not return the old versions of writes.
        unordered: the tables with writes whose old versions were not returned; the current versions
            of these tables are not tracked.
        doubtful: the tables with writes that were not seen, each with an example.
    """

    def __init__(self, path: Path, *, most_rows: int, versions: bool = False) -> None:
        """Create the file.

        Args:
            path: the file to write.
            most_rows: the largest number of rows in a predicate read.
            versions: whether operations state the numbers of their versions. If so, no line is
                written before the end.
        """
        self.path = path
        self._file = path.open("xb", buffering=1 << 20)
        self._states_versions = versions
        if versions:
            self._file.write(ORDERED)
        self._most = most_rows
        self.unseen = Unseen()
        self.outcomes: Counter[str] = Counter()
        self.unaudited: dict[str, Table] = {}
        self.doubtful: dict[str, str] = {}
        self.before = 0
        self.written = 0
        self.initial: dict[tuple[str, str], RowVersion] = {}
        self.unclear = self.is_old = False
        self.unordered: set[str] = set()
        self._deleted: set[tuple[str, str]] = set()
        self.live: dict[str, dict[str, str]] = {}
        self.dead: dict[str, set[str]] = {}
        self.perhaps: dict[str, set[str]] = {}
        self.oldest: Callable[[], int] = lambda: 1 << 62
        self._indices = count()
        self._processes = count()
        self._line = count()
        self._began = monotonic_ns()
        self._events: list[tuple[int, int, SeenTransaction]] = []
        self._known: dict[tuple[str, str], _Known] = {}
        self._pending: dict[tuple[str, str], WrittenRow] = {}
        self._incarnations: Counter[tuple[str, str]] = Counter()
        self._obsolete: deque[tuple[int, tuple[str, str]]] = deque()
        self._unfinished: set[int] = set()

    # --- calls by sessions ---

    def process(self) -> int:
        """Return the number of a new session."""
        return next(self._processes)

    def ticket(self) -> tuple[int, int]:
        """Return the position and the time of an event that happens now."""
        return next(self._indices), monotonic_ns() - self._began

    def begin(
        self, process: int, ticket: tuple[int, int], *, implicit: bool = False
    ) -> SeenTransaction:
        """Return a new transaction that began at the position of an event."""
        made = SeenTransaction(process=process, begin=ticket[0], began=ticket[1], implicit=implicit)
        insort(self._events, (made.begin, 0, made), key=lambda event: event[0])
        return made

    def end(self, one: SeenTransaction, outcome: Outcome, error: str = "") -> None:
        """Note the end of a transaction."""
        self.outcomes[outcome] += 1
        self._ended(one, outcome, error)
        self._events.append((one.end, 1, one))

    def recorded(self) -> Iterator[SeenTransaction]:
        """Yield the transactions that are not written yet."""
        for _, what, one in self._events:
            if not what:
                yield one

    def add(self, writes: Sequence[WrittenRow]) -> None:
        """Add an unobserved transaction, which begins before and ends after all others."""
        begin = min(self._events[0][0], 0) - 1 if self._events else -1
        made = SeenTransaction(process=self.process(), begin=begin, began=0, operations=[*writes])
        self._ended(made, "ok", "")
        self._events.insert(0, (begin, 0, made))
        self._events.append((made.end, 1, made))

    def _ended(self, one: SeenTransaction, outcome: Outcome, error: str) -> None:
        one.end, one.ended = self.ticket()
        one.outcome, one.error = outcome, error
        for operation in one.operations:
            if isinstance(operation, WrittenRow):
                if operation.version is not None:
                    self._pending[operation.table.name, operation.version.number] = operation
                self._follow(one, operation)
            elif isinstance(operation, ScannedRows):
                self.unaudited[operation.table.name] = operation.table

    def initially(self, rows: Sequence[tuple[Table, RowVersion, Mapping[str, Any]]]) -> None:
        """Write the rows that exist before the first transaction."""
        reported = []
        for table, version, row in rows:
            known = self._register(table, version, row, rank=0)
            self.live.setdefault(table.name, {})[version.number] = version.key
            if self._states_versions:
                self.initial[table.name, version.key] = version
            reported.append(f"{known.key} {known.row}")
        if reported:
            process = self.process()
            for kind in ("invoke", "ok"):
                self._write(process, kind, 0, "init", "{" + " ".join(reported) + "}")

    # --- the file ---

    def flush(self, *, everything: bool = False) -> None:
        """Write all events that come before every event of a transaction that is still open."""
        if everything:
            for _, _, one in list(self._events):
                if one.outcome is None:
                    self.end(one, "info", "the observation ended")
        elif self._states_versions:  # other writers are known only at the end
            self._file.flush()
            return
        oldest = 1 << 62 if everything else self.oldest()
        done = 0
        for _, what, one in self._events:
            if one.outcome is None or one.end >= oldest:
                break
            done += 1
            if what:
                self._completed(one)
            else:
                self._invoked(one)
        del self._events[:done]
        self._forget()
        self._file.flush()

    def close(self) -> None:
        """Write the remaining events, and close the file."""
        self.flush(everything=True)
        self._file.close()

    def _invoked(self, one: SeenTransaction) -> None:
        if not one.operations:
            return
        self._unfinished.add(one.begin)
        planned = []
        for operation in one.operations:
            if isinstance(operation, WrittenRow):
                planned += self._written(operation)
        one.planned = planned
        more = f", :level {edn(_LEVELS[one.level])}" if one.level in _LEVELS else ""
        if one.labels:
            named = " ".join(edn(name) for name in one.labels)
            more += f", :label {named if len(one.labels) == 1 else '[' + named + ']'}"
        value = TAB.join(text for text, _ in planned)
        self._write(one.process, "invoke", one.began, "txn", f"[{value}]", more)

    def _written(self, operation: WrittenRow) -> list[tuple[str, int | None]]:
        """Return the operations of a write with their versions, and remember the new version.

        SOUND BECAUSE: in the history, a key has a version for each write of its row, and each write
        states the version that it replaced. Therefore, the versions of a row have one order. The
        number of a version whose transaction was aborted is also the number of a later version.
        """
        table, new, old = operation.table, operation.version, operation.old
        moved = old is not None and new is not None and old.key != new.key
        made = None
        if new is not None:
            made = self._known.get((table.name, new.number))
        if made is None and new is not None:
            made = self._made(operation)
        reported = []
        if old is not None and (moved or made is None):
            replaced = self._known_version(table, old, operation.shown, writes=True)
            # A row whose previous version was not seen is a different row in the history.
            key = self._key(table, old.key) if replaced is None else replaced.key
            reported.append((f"[:delete {key}]", 1 if replaced is None else replaced.next_rank()))
        if made is not None:
            word = "insert" if operation.inserts or moved else "w"
            reported.append((f"[:{word} {made.key} {made.row}]", made.rank))
        return reported

    def _made(self, operation: WrittenRow) -> _Known:
        """Remember the version that a write created, and return its key and row."""
        table, new, old = operation.table, operation.version, operation.old
        assert new is not None
        assert operation.row is not None
        before = None
        if old is not None and old.key == new.key:
            before = self._known_version(table, old, operation.shown, writes=True)
        elif operation.same_key:
            before = self._unordered(operation, new.key)
        return self._register(table, new, operation.row, before)

    def _unordered(self, operation: WrittenRow, key: str) -> _Known | None:
        """Return a placeholder for the version that a write replaced, if one row had its key.

        Return ``None`` if several rows had this key, one after the other.

        SOUND BECAUSE: the deletion of a row ended before another row with the same key was updated,
        so the deletion is known when the lines of that update are written.
        """
        name = operation.table.name, key
        if name in self._deleted or self._incarnations[name] > 1:
            self.unseen.note(OLD_SERVER, operation.shown)
            return None
        if not self._incarnations[name]:
            return None
        return _Known(f"[{edn(operation.table.name)} {edn(key)}]", "", {}, None)

    def _register(
        self,
        table: Table,
        version: RowVersion,
        row: Mapping[str, Any],
        before: _Known | None = None,
        *,
        rank: int = 1,
    ) -> _Known:
        """Remember a version under the key of the version that it replaces, or under a new key."""
        shown = edn({**row, "xmin": version.number})
        made = (
            _Known(self._key(table, version.key), shown, row, rank)
            if before is None
            else _Known(before.key, shown, row, before.next_rank())
        )
        self._known[table.name, version.number] = made
        return made

    def _key(self, table: Table, key: str) -> str:
        """Return a new key for a row that did not exist before.

        SOUND BECAUSE: at REPEATABLE READ, PostgreSQL lets an INSERT pass a concurrent DELETE of the
        same primary key, so a row that is inserted again is a different row: ``7#2``.
        """
        self._incarnations[table.name, key] += 1
        number = self._incarnations[table.name, key]
        return f"[{edn(table.name)} {edn(key if number == 1 else f'{key}#{number}')}]"

    def _known_version(
        self, table: Table, version: RowVersion, shown: str, *, writes: bool = False
    ) -> _Known | None:
        """Return what is known about a version; ``None`` if its writer was not seen."""
        # The writer may have ended without having its lines in the file yet.
        chain: list[WrittenRow] = []
        name = table.name, version.number
        while name not in self._known and name in self._pending:
            chain.append(self._pending[name])
            if chain[-1].old is None:
                break
            name = table.name, chain[-1].old.number
        for write in reversed(chain):
            self._made(write)
        found = self._known.get((table.name, version.number))
        if found is not None:
            return found
        if self._initial(version.number) and not table.rows_known:
            return self._loaded(table, version)
        what = "an UPDATE or DELETE of" if writes else "a read of"
        self.unseen.note(FOREIGN, f"{what} {table.name}/{version.key}: {shown}")
        self.doubtful.setdefault(table.name, f"{table.name}/{version.key}")
        return None

    def _initial(self, number: str) -> bool:
        xmin = int(number.partition("(")[0])
        return xmin < _FIRST_NUMBER or 0 < (self.before - xmin) % 2**32 < _HALF

    def _loaded(self, table: Table, version: RowVersion) -> _Known:
        """Write a row that a large table contained from the beginning, as a separate transaction.

        SOUND BECAUSE: no other transaction has accessed the row before, and conditions use only the
        primary key of the row.
        """
        made = self._register(table, version, table.key_row(version.values))
        self._appeared(table.name, version)
        process = self.process()
        for kind in ("invoke", "ok"):
            self._write(process, kind, 0, "txn", f"[[:insert {made.key} {made.row}]]")
        return made

    def _completed(self, one: SeenTransaction) -> None:
        if not one.operations:
            return
        self._unfinished.discard(one.begin)
        planned = iter(one.planned)
        reported: list[tuple[str, int | None]] = []
        shown: list[str] = []
        statements: list[str] = []
        for operation in one.operations:
            lines: list[tuple[str, int | None]]
            if isinstance(operation, WrittenRow):
                moved = operation.old is not None and operation.version is not None
                twice = moved and operation.old.key != operation.version.key  # type: ignore[union-attr]
                lines = [next(planned) for _ in range(1 + twice)]
            elif isinstance(operation, ReadRow):
                known = self._known_version(operation.table, operation.version, operation.shown)
                lines = [] if known is None else [_read(known)]
            else:
                lines = self._scanned(operation)
            reported += lines
            shown += [operation.shown] * len(lines)
            statements += [operation.statement] * len(lines)
        error = f", :error {edn(one.error)}" if one.error else ""
        callers = f"{_CALLERS}{TAB.join(map(edn, shown))}]" if reported else ""
        noted = f"{_STATEMENTS}{TAB.join(map(edn, statements))}]" if reported else ""
        value = f"[{TAB.join(text for text, _ in reported)}]"
        # If the outcome is not :ok, the operations are those of the invocation.
        stated = reported if one.outcome == "ok" else one.planned
        numbers = TAB.join("nil" if n is None else str(n) for _, n in stated)
        versions = f"{_VERSIONS}{numbers}]" if self._states_versions and stated else ""
        more = versions + callers + noted + error
        self._write(one.process, one.outcome or "info", one.ended, "txn", value, more)
        self.written += 1

    def _scanned(self, scan: ScannedRows) -> list[tuple[str, int | None]]:
        rows = [self._known_version(scan.table, one, scan.shown) for one in scan.rows]
        known = [one for one in rows if one is not None]
        if len(known) < len(rows):
            return [*map(_read, known)]
        where = scan.where
        last: list[_Known] = []
        if scan.order is not None:
            column, descends = scan.order
            values = [one.columns[column] for one in known]
            end = min(values) if descends else max(values)
            last = [one for one in known if one.columns[column] == end]
            known = [one for one in known if one.columns[column] != end]
            where = f"[:and {where} [:{'>' if descends else '<'} {column_edn(column)} {edn(end)}]]"
        found = " ".join(f"{one.key} {one.row}" for one in known)
        predicate = f"{{:table {edn(scan.table.name)} :where {where}}}"
        # Checks judge the rows of a predicate read by their values.
        return [(f"[:rp {predicate} {{{found}}}]", None), *map(_read, last)]

    def _follow(self, one: SeenTransaction, operation: WrittenRow) -> None:
        """Track the last version of each row, for the audit at the end."""
        table = operation.table.name
        if one.outcome == "fail":
            if operation.version is not None:
                self._obsolete.append((one.end, (table, operation.version.number)))
            return
        if one.outcome == "info":
            doubtful = self.perhaps.setdefault(table, set())
            doubtful.update(v.number for v in (operation.version, operation.old) if v is not None)
            if self.is_old and operation.old is not None:
                self._deleted.add((table, operation.old.key))
            return
        live, dead = self.live.setdefault(table, {}), self.dead.setdefault(table, set())
        if operation.version is not None:
            self._appeared(table, operation.version)
        if operation.old is not None:
            if self.is_old and (
                operation.version is None or operation.version.key != operation.old.key
            ):
                self._deleted.add((table, operation.old.key))
            number = operation.old.number
            if live.pop(number, None) is None:
                dead.add(number)
            self._obsolete.append((one.end, (table, number)))

    def _appeared(self, table: str, version: RowVersion) -> None:
        """Note that a version is in the database, unless it has already been replaced."""
        dead = self.dead.setdefault(table, set())
        if version.number in dead:
            dead.discard(version.number)
        else:
            self.live.setdefault(table, {})[version.number] = version.key

    def _forget(self) -> None:
        """Forget versions that no transaction can read any more."""
        horizon = min(
            self._events[0][0] if self._events else self.oldest(),
            min(self._unfinished, default=1 << 62),
            self.oldest(),
        )
        while self._obsolete and self._obsolete[0][0] < horizon:
            _, name = self._obsolete.popleft()
            self._known.pop(name, None)
            self._pending.pop(name, None)

    def _write(  # noqa: PLR0917 - the parts of a line
        self, process: int, kind: str, when: int, what: str, value: str, more: str = ""
    ) -> None:
        self._file.write(
            f"{{:index {next(self._line)}, :type :{kind}, :process {process}, :time {when}, "
            f":f :{what}, :value {value}{more}}}\n".encode(errors="backslashreplace")
        )


def _read(one: _Known) -> tuple[str, int | None]:
    """Return the read of a version in EDN, with the number of the version."""
    return f"[:r {one.key} {one.row}]", one.rank


TAB: Final = "\t"
"""The separator of the operations in a line, which contains no other tabs."""


def without_scans(path: Path, tables: Mapping[str, str], into: Path) -> Iterator[str]:
    """Write a history without the predicate reads of some tables.

    Yields:
        The statement of each removed predicate read.
    """
    heads = tuple(f"[:rp {{:table {edn(name)} :where " for name in tables)
    with path.open(encoding="utf-8") as lines, into.open("x", encoding="utf-8") as out:
        for line in lines:
            changed = line
            if "[:rp " in line and heads:
                head, value, rest = _cut(line, ":value [")
                operations = value.split(TAB)
                keep = [not one.startswith(heads) for one in operations]
                if not all(keep):
                    made = [head, TAB.join(compress(operations, keep))]
                    for begin in (_VERSIONS, _CALLERS, _STATEMENTS):
                        if not rest.startswith(f"]{begin}"):
                            continue
                        frame, inside, rest = _cut(rest, begin)
                        texts = inside.split(TAB)
                        if begin == _CALLERS:
                            yield from compress(texts, map(not_, keep))
                        # If the outcome is not :ok, the versions are those of the invocation, which
                        # has no reads.
                        if begin != _VERSIONS or ":type :ok" in head:
                            texts = list(compress(texts, keep))
                        made += [frame, TAB.join(texts)]
                    changed = "".join([*made, rest])
            out.write(changed)


def _cut(line: str, begin: str) -> tuple[str, str, str]:
    """Split a line into the parts before, inside and after the brackets of a vector."""
    at = line.index(begin) + len(begin)
    end = end_of(line, at - 1)
    return line[:at], line[at : end - 1], line[end - 1 :]
