"""Writes the history of an observation while it goes on."""

from __future__ import annotations

import json
import re
import shutil
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from typing import Final

from msgspec import Struct

from isolang.history.not_seen import OBSERVED_FIELD, unseen_line
from isolang.history.remarks import (
    COLUMNS_COMMENT,
    DATABASE_COMMENT,
    REFERENCES_COMMENT,
    UNIQUE_COMMENT,
)
from isolang.observe.history.edn import edn
from isolang.observe.history.lines import (
    TAB,
    EvaluatedRead,
    changed_line,
    settle_possible_facts,
)
from isolang.observe.log.tables import Foreign, Name
from isolang.observe.mariadb.contents import NamedTable
from isolang.observe.mariadb.merge import MergedTransaction
from isolang.observe.mariadb.reads import SeenOperation
from isolang.observe.mariadb.recording import Recording
from isolang.observe.sql.units import unit_named
from isolang.observe.unseen import Unseen, unseen_phrases
from isolang.run.record.lines import ORDERED_LINE

_LEVELS: Final = {"serializable": "ser", "read committed": "pl-2", "read uncommitted": "pl-1"}
_WORDS: Final = ("r", "w", "insert", "delete", "r-not-in")
_LINE: Final = re.compile(
    r"\{:index \d+, :type :(?P<kind>\w+), :process (?P<process>\d+), :time (?P<time>\d+), "
    rf"(?:{OBSERVED_FIELD}, )?:f :(?P<f>\w+), "
)
_END: Final = 1 << 62


class _Event(Struct, frozen=True, order=True):
    """The begin or the end of a transaction.

    Attributes:
        more: further fields of its line.
        evaluated: the predicate reads whose conditions the server evaluates, each with its place.
        client: the number of the application's call that ends with it; 0 if none does.
    """

    position: int
    process: int
    kind: str
    when: int
    value: str
    more: str = ""
    evaluated: tuple[tuple[int, SeenOperation], ...] = ()
    client: int = 0


class GrowingHistory:
    """The file of a history, to which transactions are added while the observation goes on.

    Attributes:
        written: the number of transactions in the file.
        clients: for each line that ends a transaction of a call of the application, the number of
            the call.
    """

    def __init__(self, path: Path, recording: Recording) -> None:
        """Create the file."""
        self._path, self._recording = path, recording
        self._file = path.open("xb", buffering=1 << 20)
        self._file.write(ORDERED_LINE)
        self._line, self._is_first = count(), True
        self._events: list[_Event] = []
        self._rests = False  # whether possible facts rest on versions
        self._evaluated: list[EvaluatedRead] = []
        self._unobserved = array("q")  # the processes of transactions that nobody saw
        self.written = 0
        self.clients: dict[int, int] = {}

    def write_initial(self, initial: Sequence[tuple[str, str]]) -> None:
        """Write the rows from before the observation, each with the label of its table."""
        process, rows = self._recording.process(), TAB.join(text for _, text in initial)
        for kind in ("invoke", "ok") if rows else ():
            self._write(_Event(-1, process, kind, 0, f"{{{rows}}}"), "init")
        if rows:  # otherwise the first line waits for the second one, as both say what the file is
            self._file.flush()

    def add(self, transaction: MergedTransaction, doubtful: Collection[str]) -> None:
        """Add a transaction that was seen.

        Args:
            doubtful: the labels of the tables to leave out.
        """
        all_operations = [op for op in transaction.operations if op.table not in doubtful]
        operations = [op for op in all_operations if not op.perhaps]
        seen = transaction.seen
        self._rests |= any(op.kept for op in all_operations)
        if not all_operations or seen is None:
            return
        value = f"[{TAB.join(op.text for op in operations)}]"
        more = _remarks(operations) + _possible_facts(all_operations)
        writes = TAB.join(op.text for op in operations if op.writes)
        level = _LEVELS.get(seen.level, "")
        if seen.level == "repeatable read":
            level = "si" if self._recording.keeps_snapshots else "pl-2"
        fields = f", :level {edn(level)}" if level else ""
        if seen.labels:
            named = " ".join(map(edn, seen.labels))
            fields += f", :label {named if len(seen.labels) == 1 else f'[{named}]'}"
        unit = unit_named(seen.units)
        if unit:
            fields += f", :unit {edn(unit)}"
            more += f", :unit {edn(unit)}"
        invoked = f"[{writes}]"
        self._add(_Event(seen.begin, seen.process, "invoke", seen.began, invoked, fields))
        evaluated = tuple((place, op) for place, op in enumerate(operations) if op.condition)
        self._add(
            _Event(seen.end, seen.process, "ok", seen.ended, value, more, evaluated, seen.client)
        )

    def add_unobserved(
        self,
        transaction: MergedTransaction,
        doubtful: Collection[str],
        since: tuple[int, int],
        until: tuple[int, int],
    ) -> None:
        """Add a transaction that nobody saw begin and end.

        Until the file is complete, it begins where it was still invisible. It may have begun
        earlier, so the complete file has its begin in front of all others.

        Args:
            since: a position and time at which it was not visible.
            until: those at which it was visible.
        """
        operations = [op for op in transaction.operations if op.table not in doubtful]
        if not operations:
            return
        value, process = f"[{TAB.join(op.text for op in operations)}]", self._recording.process()
        self._unobserved.append(process)
        self._add(_Event(since[0], process, "invoke", since[1], value))
        self._add(_Event(until[0], process, "ok", until[1], value, _remarks(operations)))

    def _add(self, event: _Event) -> None:
        heappush(self._events, event)

    def write_until(self, position: int) -> None:
        """Write all events before a position, in their order."""
        while self._events and self._events[0].position < position:
            event = heappop(self._events)
            self._write(event, "txn")
            self.written += event.kind == "ok"
        self._file.flush()

    def _write(self, event: _Event, what: str) -> None:
        observed, self._is_first = f"{OBSERVED_FIELD}, " * self._is_first, False
        number = next(self._line)
        if event.client:
            self.clients[number + 2] = event.client  # the first line is a comment
        for place, op in event.evaluated:
            assert op.condition is not None
            self._evaluated.append(
                EvaluatedRead(
                    number + 2, place, op.condition, op.rows, None, 0, op.shown, "",
                    statement=op.statement,
                )
            )  # fmt: skip
        line = (
            f"{{:index {number}, :type :{event.kind}, :process {event.process}, "
            f":time {event.when}, {observed}:f :{what}, :value {event.value}{event.more}}}\n"
        )
        self._file.write(line.encode(errors="backslashreplace"))

    def close(
        self,
        doubtful: Collection[str],
        is_kept: Callable[[str, str], bool],
        evaluate: Callable[[Sequence[EvaluatedRead]], None],
        tables: Iterable[NamedTable] = (),
    ) -> None:
        """Write the remaining events, and leave out tables of which the log was wrong.

        Args:
            evaluate: writes the predicate reads whose conditions the server evaluates.
            tables: all tables, of whose columns a comment says what their numbers mean.
            is_kept: whether no transaction has replaced a version, by its table and number.
        """
        self.write_until(_END)
        forms = {
            table.label: {
                name: column.form for name, column in table.compared.items() if column.form
            }
            for table in tables
        }
        if known := {label: of for label, of in forms.items() if of}:
            self._file.write(f"{COLUMNS_COMMENT}{json.dumps(known)}\n".encode())
        self._file.close()
        if self._evaluated:
            evaluate(self._evaluated)
        other = self._path.with_name(f"{self._path.name}.part")
        if self._rests:
            settle_possible_facts(self._path, is_kept, other)
            shutil.move(other, self._path)
        if doubtful or self._unobserved:
            complete(self._path, doubtful, frozenset(self._unobserved), other)
            shutil.move(other, self._path)


def complete(path: Path, labels: Collection[str], unobserved: Collection[int], into: Path) -> None:
    """Write a history without the operations on some tables.

    Args:
        labels: the labels of these tables.
        unobserved: the processes whose transactions begin in front of all others.
    """
    without = _Without(labels)
    number, observed = count(), f"{OBSERVED_FIELD}, "
    with into.open("x", encoding="utf-8") as out:
        out.write(ORDERED_LINE.decode())
        for head, rest in _in_order(path, unobserved):
            if head is None:
                out.write(rest)
                continue
            is_early = head["kind"] == "invoke" and int(head["process"]) in unobserved
            out.write(
                f"{{:index {next(number)}, :type :{head['kind']}, :process {head['process']}, "
                f":time {0 if is_early else head['time']}, {observed}:f :{head['f']}, "
                f"{without.in_fields(head['kind'], rest)}"
            )
            observed = ""


def _in_order(
    path: Path, unobserved: Collection[int]
) -> Iterator[tuple[re.Match[str] | None, str]]:
    """Yield the lines with the initial rows, then the begins of some processes, then all others.

    Each is in two parts: what it is about, and its fields. A comment has only one.
    """
    for phase in ("init", "begin", "other"):
        with path.open(encoding="utf-8") as lines:
            next(lines)
            for line in lines:
                if line.startswith(";"):
                    if phase == "other":
                        yield None, line
                    continue
                head = _LINE.match(line)
                assert head is not None
                is_begin = head["kind"] == "invoke" and int(head["process"]) in unobserved
                kind = "init" if head["f"] == "init" else "begin" if is_begin else "other"
                if kind == phase:
                    yield head, line[head.end() :]
                elif phase == "init":
                    break


class _Without:
    """Leaves the operations on some tables out of lines."""

    def __init__(self, labels: Collection[str]) -> None:
        self._keys = tuple(f"[{edn(label)} " for label in labels)
        predicates = (f"[:rp {{:table {edn(label)} " for label in labels)
        self._heads = (*(f"[:{word} {key}" for word in _WORDS for key in self._keys), *predicates)

    def in_fields(self, kind: str, fields: str) -> str:
        """Return the fields of a line of a kind without these operations."""
        if not any(mark in fields for mark in (*self._keys, *self._heads)):
            return fields
        before, is_map, rows = fields.partition(":value {")
        if before or not is_map:
            kinds = f":type :{kind}, "
            changed, _ = changed_line(f"{kinds}{fields}", self._operations, self._heads)
            return changed.removeprefix(kinds)
        kept = [row for row in rows.removesuffix("}}\n").split(TAB) if self._keeps(row)]
        return f"{is_map}{TAB.join(kept)}}}}}\n"

    def _keeps(self, row: str) -> bool:
        return not row.startswith(self._keys)

    def _operations(self, operations: Sequence[str]) -> list[str]:
        return ["" if text.startswith(self._heads) else text for text in operations]


def write_end(
    path: Path,
    tables: Iterable[NamedTable],
    unseen: Unseen,
    *,
    foreign: Iterable[Foreign] = (),
    keeps_snapshots: bool = False,
) -> None:
    """Write comments about the database and its tables, and about what was not seen."""
    unique = {}
    labels: dict[Name, str] = {}
    for table in tables:
        labels[table.table.schema, table.table.name] = table.label  # of the last definition
        unique[table.label] = sorted(sorted(columns) for columns in table.table.unique)
    with path.open("ab") as file:
        database = {"name": "MariaDB", "innodb_snapshot_isolation": keeps_snapshots}
        file.write(f"{DATABASE_COMMENT}{json.dumps(database)}\n".encode())
        for comment, known in (
            (UNIQUE_COMMENT, unique),
            (REFERENCES_COMMENT, _references(foreign, labels)),
        ):
            if named := {label: of for label, of in known.items() if of}:
                file.write(f"{comment}{json.dumps(named)}\n".encode())
        file.write(unseen_line(unseen_phrases(unseen)).encode())


def _references(
    foreign: Iterable[Foreign], labels: Mapping[Name, str]
) -> dict[str, list[tuple[list[str], str, list[str]]]]:
    """Return the foreign keys of each table, with the tables and columns that they refer to."""
    references: dict[str, list[tuple[list[str], str, list[str]]]] = {}
    for key in foreign:
        if key.table in labels and key.parent in labels:
            columns = key.columns, labels[key.parent], key.parents
            references.setdefault(labels[key.table], []).append(columns)
    return references


def _remarks(operations: Sequence[SeenOperation]) -> str:
    """Return the fields about each operation of a transaction."""
    versions = TAB.join("nil" if op.version is None else str(op.version) for op in operations)
    shown = TAB.join(edn(op.shown) for op in operations)
    sent = TAB.join(edn(op.statement) for op in operations)
    return f", :versions [{versions}], :callers [{shown}], :statements [{sent}]"


def _possible_facts(operations: Sequence[SeenOperation]) -> str:
    """Return the field with what only may have decided an answer, each with its place."""
    entries, place = [], 0
    for op in operations:
        if not op.perhaps:
            place += 1
            continue
        rests = f" {edn([*op.kept])}" if op.kept else ""
        entries.append(f'[{place} {op.text} {edn(op.statement)} {edn(op.shown)} ""{rests}]')
    return f", :perhaps [{TAB.join(entries)}]" if entries else ""
