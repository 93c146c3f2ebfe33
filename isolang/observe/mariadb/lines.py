"""Writes the history of an observation while it goes on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from typing import Final

from msgspec import Struct

from isolang.history.not_seen import OBSERVED_FIELD, unseen_line
from isolang.history.remarks import COLUMNS_COMMENT, UNIQUE_COMMENT
from isolang.observe.history.edn import edn
from isolang.observe.history.lines import TAB, changed_line, settle_possible_facts
from isolang.observe.mariadb.contents import NamedTable
from isolang.observe.mariadb.merge import MergedTransaction
from isolang.observe.mariadb.reads import SeenOperation
from isolang.observe.mariadb.recording import Recording
from isolang.observe.sql.units import unit_named
from isolang.observe.unseen import Unseen, unseen_phrases
from isolang.run.record.lines import ORDERED_LINE

_LEVELS: Final = {"serializable": "ser", "read committed": "pl-2", "read uncommitted": "pl-1"}
_WORDS: Final = ("r", "w", "insert", "delete", "r-not-in")
_HEAD: Final = 120  # the beginning of a line, which says what it is about
_END: Final = 1 << 62


class _Event(Struct, frozen=True, order=True):
    """The begin or the end of a transaction.

    Attributes:
        more: further fields of its line.
    """

    position: int
    process: int
    kind: str
    when: int
    value: str
    more: str = ""


class GrowingHistory:
    """The file of a history, to which transactions are added while the observation goes on.

    Attributes:
        written: the number of transactions in the file.
    """

    def __init__(self, path: Path, recording: Recording) -> None:
        """Create the file."""
        self._path, self._recording = path, recording
        self._file = path.open("xb", buffering=1 << 20)
        self._file.write(ORDERED_LINE)
        self._line, self._is_first = count(), True
        self._events: list[_Event] = []
        self._rests = False  # whether possible facts rest on versions
        self.written = 0

    def write_initial(self, initial: Sequence[tuple[str, str]]) -> None:
        """Write the rows from before the observation, each with the label of its table."""
        process, rows = self._recording.process(), TAB.join(text for _, text in initial)
        for kind in ("invoke", "ok") if rows else ():
            self._write(_Event(-1, process, kind, 0, f"{{{rows}}}"), "init")
        self._file.flush()

    def add(self, transaction: MergedTransaction, doubtful: Collection[str]) -> None:
        """Add a transaction.

        The begin of an unobserved one is unknown, so it has no line. It has ended now.

        Args:
            doubtful: the labels of the tables to leave out.
        """
        all_operations = [op for op in transaction.operations if op.table not in doubtful]
        operations = [op for op in all_operations if not op.perhaps]
        if not all_operations:
            return
        self._rests |= any(op.kept for op in all_operations)
        value = f"[{TAB.join(op.text for op in operations)}]"
        more, seen = _remarks(operations) + _possible_facts(all_operations), transaction.seen
        if seen is None:
            now, time = self._recording.ticket()
            self._add(_Event(now, self._recording.process(), "ok", time, value, more))
            return
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
        self._add(_Event(seen.end, seen.process, "ok", seen.ended, value, more))

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
        line = (
            f"{{:index {next(self._line)}, :type :{event.kind}, :process {event.process}, "
            f":time {event.when}, {observed}:f :{what}, :value {event.value}{event.more}}}\n"
        )
        self._file.write(line.encode(errors="backslashreplace"))

    def close(self, doubtful: Collection[str], is_kept: Callable[[str, str], bool]) -> None:
        """Write the remaining events, and leave out tables of which the log was wrong.

        Args:
            is_kept: whether no transaction has replaced a version of a table, by its label and number.
        """
        self.write_until(_END)
        self._file.close()
        other = self._path.with_name(f"{self._path.name}.part")
        if self._rests:
            settle_possible_facts(self._path, is_kept, other)
            shutil.move(other, self._path)
        if doubtful:
            without_tables(self._path, doubtful, other)
            shutil.move(other, self._path)


def without_tables(path: Path, labels: Collection[str], into: Path) -> None:
    """Write a history without the operations on some tables."""
    keys = tuple(f"[{edn(label)} " for label in labels)
    heads = (
        *(f"[:{word} {key}" for word in _WORDS for key in keys),
        *(f"[:rp {{:table {edn(label)} " for label in labels),
    )

    def without(operations: Sequence[str]) -> list[str]:
        return ["" if text.startswith(heads) else text for text in operations]

    with path.open(encoding="utf-8") as lines, into.open("x", encoding="utf-8") as out:
        for line in lines:
            if ":f :init, " in line[:_HEAD]:
                head, _, rows = line.partition(":value {")
                listed = rows.removesuffix("}}\n").split(TAB)
                kept = [row for row in listed if not row.startswith(keys)]
                out.write(f"{head}:value {{{TAB.join(kept)}}}}}\n")
            elif any(key in line for key in keys) or any(head in line for head in heads):
                out.write(changed_line(line, without, heads)[0])
            else:
                out.write(line)


def write_end(path: Path, tables: Iterable[NamedTable], unseen: Unseen) -> None:
    """Write comments about the tables, and about what was not seen."""
    unique, forms = {}, {}
    for table in tables:
        unique[table.label] = sorted(sorted(columns) for columns in table.table.unique)
        forms[table.label] = {
            name: column.form for name, column in table.compared.items() if column.form
        }
    with path.open("ab") as file:
        for comment, known in ((UNIQUE_COMMENT, unique), (COLUMNS_COMMENT, forms)):
            if named := {label: of for label, of in known.items() if of}:
                file.write(f"{comment}{json.dumps(named)}\n".encode())
        file.write(unseen_line(unseen_phrases(unseen)).encode())


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
