"""Writes the history of an observation."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import BinaryIO, Final

from isolang.history.not_seen import OBSERVED_FIELD, unseen_line
from isolang.history.remarks import COLUMNS_COMMENT, UNIQUE_COMMENT
from isolang.observe.history.edn import edn
from isolang.observe.history.lines import TAB
from isolang.observe.mariadb.contents import NamedTable
from isolang.observe.mariadb.merge import MergedTransaction
from isolang.observe.mariadb.reads import SeenOperation
from isolang.observe.sql.units import unit_named
from isolang.observe.unseen import Unseen, unseen_phrases
from isolang.run.record.lines import ORDERED_LINE

_LEVELS: Final = {"serializable": "ser", "read committed": "pl-2", "read uncommitted": "pl-1"}


def write_history(
    path: Path,
    initial: Sequence[tuple[str, str]],
    merged: Iterable[MergedTransaction],
    *,
    doubtful: Collection[str],
    keeps_snapshots: bool,
    processes: int,
) -> int:
    """Write the lines of a history, and return the number of transactions.

    Args:
        initial: the rows from before the observation, each with the label of its table.
        doubtful: the labels of the tables to leave out.
        keeps_snapshots: whether REPEATABLE READ is snapshot isolation.
        processes: a number above those of all sessions.
    """
    with path.open("xb", buffering=1 << 20) as file:
        lines = _Lines(file)
        rows = " ".join(text for label, text in initial if label not in doubtful)
        if rows:
            for kind in ("invoke", "ok"):
                lines.write(processes, kind, 0, "init", f"{{{rows}}}")
        level = {"repeatable read": "si" if keeps_snapshots else "pl-2"} | _LEVELS
        return _write_transactions(lines, merged, doubtful, level, processes + 1)


def _write_transactions(
    lines: _Lines,
    merged: Iterable[MergedTransaction],
    doubtful: Collection[str],
    levels: dict[str, str],
    process: int,
) -> int:
    """Write the transactions in the order of their events."""
    events: list[tuple[int, int, str, int, str, str]] = []
    foreign: list[tuple[int, str, str]] = []
    number = latest = 0
    for transaction in merged:
        all_operations = [op for op in transaction.operations if op.table not in doubtful]
        operations = [op for op in all_operations if not op.perhaps]
        if not all_operations:
            continue
        number += 1
        value = f"[{TAB.join(op.text for op in operations)}]"
        more, seen = _remarks(operations) + _possible_facts(all_operations), transaction.seen
        if seen is None:
            foreign.append((process, value, more))
            process += 1
            continue
        writes = TAB.join(op.text for op in operations if op.writes)
        level = f", :level {edn(levels[seen.level])}" if seen.level in levels else ""
        if seen.labels:
            named = " ".join(map(edn, seen.labels))
            level += f", :label {named if len(seen.labels) == 1 else f'[{named}]'}"
        unit = unit_named(seen.units)
        if unit:
            level += f", :unit {edn(unit)}"
            more += f", :unit {edn(unit)}"
        events += [
            (seen.begin, seen.process, "invoke", seen.began, f"[{writes}]", level),
            (seen.end, seen.process, "ok", seen.ended, value, more),
        ]
        latest = max(latest, seen.ended)
    for who, value, _ in foreign:
        lines.write(who, "invoke", 0, "txn", value)
    for _, who, kind, when, value, more in sorted(events):
        lines.write(who, kind, when, "txn", value, more)
    for who, value, more in foreign:
        lines.write(who, "ok", latest, "txn", value, more)
    return number


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


class _Lines:
    """The lines of transactions in a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._line, self._is_first = file, count(), True
        file.write(ORDERED_LINE)

    def write(  # noqa: PLR0917 - the parts of a line
        self, process: int, kind: str, when: int, what: str, value: str, more: str = ""
    ) -> None:
        observed, self._is_first = f"{OBSERVED_FIELD}, " * self._is_first, False
        self._file.write(
            f"{{:index {next(self._line)}, :type :{kind}, :process {process}, :time {when}, "
            f"{observed}:f :{what}, :value {value}{more}}}\n".encode(errors="backslashreplace")
        )
