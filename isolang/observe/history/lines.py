"""Writes transactions as lines of a history, and removes predicate reads from such lines."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import compress, count
from operator import not_
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from isolang.history.not_seen import OBSERVED_FIELD
from isolang.history.possible import with_settled_facts
from isolang.history.remarks import (
    COLUMNS_COMMENT,
    REFERENCES_COMMENT,
    ROW_NOT_FOUND,
    UNIQUE_COMMENT,
    read_columns,
)
from isolang.observe.history.edn import column_edn, edn, end_of_bracket
from isolang.observe.history.evaluated import EvaluatedCondition
from isolang.observe.history.recorded import (
    RecordedVersion,
    RecordedVersions,
)
from isolang.observe.history.seen import (
    FoundKey,
    LoggedWrites,
    Observed,
    ReadRow,
    ScannedRows,
    SeenTransaction,
    WrittenRow,
)
from isolang.observe.sql.catalogue import Table
from isolang.observe.unseen import CONDITIONS, NO_ROW
from isolang.run.record.lines import ORDERED_LINE

TAB: Final = "\t"
"""The separator between the operations in a line, which contains no other tabs."""

NOTHING: Final = "[:not :true]"
"""The predicate that selects no row."""

_CALLERS: Final = ", :callers ["
_ROWS: Final = ", :rows ["
_STATEMENTS: Final = ", :statements ["
_VERSIONS: Final = ", :versions ["
_PERHAPS: Final = ", :perhaps ["
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_LEVELS: Final = {"serializable": "ser", "repeatable read": "si", "read committed": "pl-2",
                  "read uncommitted": "pl-2"}  # fmt: skip


class EvaluatedRead(Struct, frozen=True, gc=False):
    """A predicate read in a history whose condition the server evaluates at the end.

    Until then, the file has a predicate read that says nothing, and behind it a read of each
    version that was found.

    Attributes:
        line: the number of its line, from 1.
        place: the number of its operation in the line.
        rows: the numbers of the versions that were found.
        columns: the columns of these versions that count as read if the condition cannot be
            evaluated; ``None`` for all.
        number: the number of the unseen read that it then is; 0 if it cannot be harmless.
        is_loose: whether only those of the versions were found that satisfy the condition.
        where: if so, a predicate that all of them satisfy, in EDN; empty if none is known.
    """

    line: int
    place: int
    condition: EvaluatedCondition
    rows: tuple[str, ...]
    columns: tuple[str, ...] | None
    number: int
    shown: str
    caller: str
    is_loose: bool = False
    where: str = ""
    statement: str = ""


class HistoryLines:
    """The file of a history."""

    def __init__(self, path: Path, versions: RecordedVersions, *, states_versions: bool) -> None:
        """Create the file."""
        self._path = path
        self._file = path.open("xb", buffering=1 << 20)
        self._versions = versions
        self._line = count()
        self._states_versions = states_versions
        self._tables: dict[str, Table] = {}
        self.written = 0
        self.evaluated: list[EvaluatedRead] = []
        self.rests_on_versions = False  # whether some possible facts do
        self.clients: dict[int, int] = {}
        self._number = 0  # of the last line
        self._is_first = True  # no map of a transaction is in the file
        if states_versions:
            self._file.write(ORDERED_LINE)
            self._number += 1

    def begin(self, one: SeenTransaction) -> None:
        """Write the line for a transaction's begin, with its writes."""
        planned: list[tuple[str, int | None]] = []
        for operation in one.operations:
            if isinstance(operation, LoggedWrites):
                continue
            self.note_table(operation.table)
            if isinstance(operation, WrittenRow):
                planned += self._written(operation)
        one.planned = planned
        more = f", :level {edn(_LEVELS[one.level])}" if one.level in _LEVELS else ""
        if one.labels:
            named = " ".join(edn(name) for name in one.labels)
            more += f", :label {named if len(one.labels) == 1 else '[' + named + ']'}"
        more += _unit_field(one)
        value = TAB.join(text for text, _ in planned)
        self.write(one.process, "invoke", one.began, "txn", f"[{value}]", more)
        one.first_line = self._number

    def _written(self, write: WrittenRow) -> list[tuple[str, int | None]]:
        """Return a write's operations with their versions, and remember the new version.

        SOUND BECAUSE: in the history, a key has one version per write of its row, and each write
        states the version that it replaced. Therefore, a row's versions have a single order. The
        number of a version whose transaction was aborted is also the number of a later version.
        """
        table, new, old = write.table, write.version, write.old
        moved = old is not None and new is not None and old.key != new.key
        made = self._versions.version_of(write)
        reported = []
        if old is not None and (moved or made is None):
            replaced = self._versions.find(table, old, write.shown, writes=True)
            # A row whose previous version was not seen becomes a different row in the history.
            key = self._versions.new_key(table, old.key) if replaced is None else replaced.key
            reported.append((f"[:delete {key}]", 1 if replaced is None else replaced.next_rank()))
        if made is not None:
            word = "insert" if write.inserts or moved else "w"
            reported.append((f"[:{word} {made.key} {made.row}]", made.rank))
        return reported

    def end(self, one: SeenTransaction) -> tuple[int, int]:
        """Write the line for a transaction's end; return the numbers of both its lines."""
        planned = iter(one.planned)
        reported: list[tuple[str, int | None]] = []
        callers: list[str] = []
        conditions: list[str] = []
        statements: list[str] = []
        planned_statements: list[str] = []
        possible: list[str] = []
        for operation in one.operations:
            lines: list[tuple[str, int | None]]
            if isinstance(operation, LoggedWrites):
                continue
            if isinstance(operation, WrittenRow):
                moved = operation.old is not None and operation.version is not None
                twice = moved and operation.old.key != operation.version.key  # type: ignore[union-attr]
                lines = [next(planned) for _ in range(1 + twice)]
                planned_statements += [operation.statement] * len(lines)
            elif isinstance(operation, ReadRow):
                known = self._versions.find(operation.table, operation.version, operation.shown)
                lines = [] if known is None else [_read(known)]
            elif isinstance(operation, FoundKey):
                lines = self._existence(operation)
            else:
                lines = self._predicate_read_operations(operation)
            if isinstance(operation, ScannedRows) and operation.kept:
                self.rests_on_versions = True
            if not isinstance(operation, WrittenRow) and operation.perhaps:
                if isinstance(operation, ScannedRows) and operation.condition is not None:
                    unseen = self._versions.unseen
                    unseen.note(CONDITIONS, operation.shown, operation.caller)
                possible += _possible_facts(operation, len(reported), lines)
                continue
            if isinstance(operation, ScannedRows) and operation.condition is not None:
                lines = self._placeholder(one, operation, len(reported), lines)
            reported += lines
            callers += [operation.caller or operation.shown] * len(lines)
            conditions += _condition_shown(
                operation, len(lines), is_predicate_read=_is_predicate_read(lines)
            )
            statements += [operation.statement] * len(lines)
        error = f", :error {edn(one.error)}" if one.error else ""
        named = f"{_CALLERS}{TAB.join(map(edn, callers))}]" if reported else ""
        unmatched = f"{_ROWS}{TAB.join(map(edn, conditions))}]" if any(conditions) else ""
        value = f"[{TAB.join(text for text, _ in reported)}]"
        # If the outcome is not :ok, the operations are those of the invocation.
        committed = one.outcome == "ok"
        stated, sent = (reported, statements) if committed else (one.planned, planned_statements)
        noted = f"{_STATEMENTS}{TAB.join(map(edn, sent))}]" if sent else ""
        numbers = TAB.join("nil" if n is None else str(n) for _, n in stated)
        versions = f"{_VERSIONS}{numbers}]" if self._states_versions and stated else ""
        perhaps = f"{_PERHAPS}{TAB.join(possible)}]" if possible and one.outcome != "fail" else ""
        more = versions + named + unmatched + noted + perhaps + error + _unit_field(one)
        self.write(one.process, one.outcome or "info", one.ended, "txn", value, more)
        if one.client:
            self.clients[self._number] = one.client
        self.written += 1
        return one.first_line, self._number

    def _existence(self, found: FoundKey) -> list[tuple[str, int | None]]:
        """Return the read that found any version of a row, unless several rows had its key."""
        key = self._versions.single_key(found.table, found.key)
        if key is None:
            self._versions.unseen.note(NO_ROW, found.shown, found.caller)
            return []
        return [(f"[:r-not-in {key} [nil]]", None)]

    def _placeholder(
        self,
        one: SeenTransaction,
        scan: ScannedRows,
        place: int,
        reads: list[tuple[str, int | None]],
    ) -> list[tuple[str, int | None]]:
        """Return the operations that stand for a predicate read until its condition is evaluated.

        Args:
            reads: the reads of the rows that were found.
        """
        if one.outcome != "ok" or len(reads) < len(scan.rows) or scan.condition is None:
            return [] if scan.is_loose else reads
        numbers = tuple(version.number for version in scan.rows)
        self.evaluated.append(
            EvaluatedRead(
                self._number + 1, place, scan.condition, numbers, scan.columns, scan.number,
                scan.shown, scan.caller, scan.is_loose, scan.where, scan.statement,
            )
        )  # fmt: skip
        return [(f"[:rp {{:table {edn(scan.table.name)} :where {NOTHING}}} {{}}]", None), *reads]

    def _predicate_read_operations(self, scan: ScannedRows) -> list[tuple[str, int | None]]:
        rows = [self._versions.find(scan.table, one, scan.shown) for one in scan.rows]
        known = [one for one in rows if one is not None]
        if len(known) < len(rows) or scan.condition is not None:
            return [*map(_read, known)]
        where = scan.where
        last: list[RecordedVersion] = []
        if scan.order is not None:
            column, descends = scan.order
            values = [one.columns[column] for one in known]
            end = min(values) if descends else max(values)
            last = [one for one in known if one.columns[column] == end]
            known = [one for one in known if one.columns[column] != end]
            where = f"[:and {where} [:{'>' if descends else '<'} {column_edn(column)} {edn(end)}]]"
        found = " ".join(f"{one.key} {one.row}" for one in known)
        predicate = f"{{:table {edn(scan.table.name)} :where {where}}}"
        # The rows of a predicate read are checked by their values.
        return [(f"[:rp {predicate} {{{found}}}]", None), *map(_read, last)]

    def write(  # noqa: PLR0917 - the parts of a line
        self, process: int, kind: str, when: int, what: str, value: str, more: str = ""
    ) -> None:
        """Write a line."""
        self._number += 1
        observed, self._is_first = f"{OBSERVED_FIELD}, " * self._is_first, False
        self._file.write(
            f"{{:index {next(self._line)}, :type :{kind}, :process {process}, :time {when}, "
            f"{observed}:f :{what}, :value {value}{more}}}\n".encode(errors="backslashreplace")
        )

    def note_table(self, table: Table) -> None:
        """Remember a table, whose columns the last line describes."""
        self._tables.setdefault(table.name, table)

    def copied(self, into: Path, memo: dict[int, Any]) -> HistoryLines:
        """Return a copy that continues the lines in another file, which must not exist."""
        self._file.flush()
        shutil.copyfile(self._path, into)
        memo[id(self._line)] = self._line
        memo[id(self._file)] = into.open("ab", buffering=1 << 20)
        made = deepcopy(self, memo)
        made._path = into
        return made

    def discard(self) -> None:
        """Write all further lines to no file."""
        self._file.close()
        self._file = Path(os.devnull).open("wb", buffering=1 << 20)  # noqa: SIM115

    def flush(self) -> None:
        """Make the lines visible to other processes."""
        self._file.flush()

    def close(self) -> None:
        """Write comments about the tables, and close the file.

        They name the unique indexes and foreign keys, for predictions and templates, and say what
        the numbers in columns mean, for reports.
        """
        unique = {
            name: sorted(sorted(index) for index in table.unique)
            for name, table in self._tables.items()
            if table.unique
        }
        if unique:
            self._file.write(f"{UNIQUE_COMMENT}{json.dumps(unique)}\n".encode())
        tables = {table.oid: table for table in self._tables.values()}
        references = {
            table.name: [
                (key.columns, parent.name, [parent.names[number] for number in key.referenced])
                for key in table.foreign_keys
                if (parent := tables.get(key.parent)) is not None
                and len(key.columns) == len(key.referenced)
                and all(number in parent.names for number in key.referenced)
            ]
            for table in self._tables.values()
        }
        if known_keys := {name: keys for name, keys in references.items() if keys}:
            self._file.write(f"{REFERENCES_COMMENT}{json.dumps(known_keys)}\n".encode())
        forms = {
            name: {column.name: column.form for column in table.columns.values() if column.form}
            for name, table in self._tables.items()
        }
        if known := {name: of for name, of in forms.items() if of}:
            self._file.write(f"{COLUMNS_COMMENT}{json.dumps(known)}\n".encode())
        self._file.close()


def _unit_field(one: SeenTransaction) -> str:
    unit = one.unit()
    return f", :unit {edn(unit)}" if unit else ""


def _condition_shown(operation: Observed, lines: int, *, is_predicate_read: bool) -> list[str]:
    """Return the remark about each line of an operation.

    It is the statement of a predicate read, which takes the caller's place if that is unknown;
    and the columns of a read of some columns.
    """
    if isinstance(operation, ReadRow):
        return [read_columns(operation.columns) if operation.columns else ""] * lines
    first = ""
    if is_predicate_read and isinstance(operation, ScannedRows):
        asks = operation.caller or operation.condition is not None
        first = f"{ROW_NOT_FOUND}{operation.shown}" if asks else ""
    return [first, *[""] * (lines - 1)] if lines else []


def _possible_facts(
    operation: ReadRow | ScannedRows | FoundKey,
    before: int,
    lines: Sequence[tuple[str, int | None]],
) -> Iterator[str]:
    """Yield the operations of a read that only may have decided an answer, each with its place.

    The place is the number of the transaction's other operations before it. The statement, the
    caller and the remark follow, as the other operations have them in fields of their own; then the
    versions on which the read rests, if it rests on any (:func:`settle_possible_facts`).
    """
    kept = operation.kept if isinstance(operation, ScannedRows) else ()
    rests = f" {edn([*kept])}" if kept else ""
    caller = edn(operation.caller or operation.shown)
    shown = _condition_shown(operation, len(lines), is_predicate_read=_is_predicate_read(lines))
    for (text, _), remark in zip(lines, shown, strict=True):
        yield f"[{before} {text} {edn(operation.statement)} {caller} {edn(remark)}{rests}]"


def _is_predicate_read(lines: Sequence[tuple[str, int | None]]) -> bool:
    return bool(lines) and lines[0][0].startswith("[:rp ")


def _read(one: RecordedVersion) -> tuple[str, int | None]:
    """Return the read of a version in EDN, with the version's number."""
    return f"[:r {one.key} {one.row}]", one.rank


def without_predicate_reads(
    path: Path, tables: Mapping[str, str], into: Path
) -> Iterator[tuple[str, str]]:
    """Write a history without the predicate reads of some tables, and what found their keys.

    Yield the statement of each, and the ``file:line`` of its caller if that is known.
    """
    heads = tuple(
        head
        for name in tables
        for head in (f"[:rp {{:table {edn(name)} :where ", f"[:r-not-in [{edn(name)} ")
    )

    def without(operations: Sequence[str]) -> list[str]:
        return ["" if one.startswith(heads) else one for one in operations]

    with path.open(encoding="utf-8") as lines, into.open("x", encoding="utf-8") as out:
        for line in lines:
            changed = line
            if any(head in line for head in heads):
                changed, removed = changed_line(line, without, heads)
                for shown, caller in removed:
                    condition = shown.removeprefix(ROW_NOT_FOUND)
                    yield (condition, caller) if condition else (caller, "")
            out.write(changed)


def settle_possible_facts(path: Path, is_kept: Callable[[str, str], bool], into: Path) -> None:
    """Write a history whose possible facts rest on no versions any more.

    Those that rest only on versions that were kept become certain; others on versions are dropped.
    """
    with path.open("rb") as lines, into.open("xb") as out:
        for line in lines:
            out.write(with_settled_facts(line, is_kept))


def changed_line(
    line: str,
    change: Callable[[Sequence[str]], Sequence[str]],
    heads: tuple[str, ...] = (),
    remarks: Mapping[int, str] = {},
) -> tuple[str, list[tuple[str, str]]]:
    """Return a line with other operations, and the remark and caller of each removed one.

    Args:
        change: returns the operations to write in the place of each; empty for none.
        heads: how the operations begin that are removed from ``:perhaps``.
        remarks: the remarks in the ``:rows`` of some operations.
    """
    head, value, rest = _split_at_vector(line, ":value [")
    operations = [*change(value.split(TAB))]
    keep = [*map(bool, operations)]
    written = [head, TAB.join(filter(None, operations))]
    removed: list[list[str]] = [[], []]
    for begin in (_VERSIONS, _CALLERS, _ROWS, _STATEMENTS):
        if not rest.startswith(f"]{begin}"):
            continue
        frame, inside, rest = _split_at_vector(rest, begin)
        texts = inside.split(TAB)
        if begin in (_CALLERS, _ROWS):
            removed[begin == _ROWS] = [_text_of(one) for one in compress(texts, map(not_, keep))]
        if begin == _ROWS:
            texts = [edn(remarks[n]) if n in remarks else one for n, one in enumerate(texts)]
        # If the outcome is not :ok, these are about the invocation, which has no reads.
        if begin not in (_VERSIONS, _STATEMENTS) or ":type :ok" in head:
            texts = list(compress(texts, keep))
        written += [frame, TAB.join(texts)]
    callers, shown = removed
    texts_of = [*zip(shown or [""] * len(callers), callers, strict=True)]
    if rest.startswith(f"]{_PERHAPS}"):
        frame, inside, rest = _split_at_vector(rest, _PERHAPS)
        possible = []
        for entry in inside.split(TAB):
            place, _, fact = entry[1:].partition(" ")
            if heads and fact.startswith(heads):
                named = ", ".join(_strings_after(fact)[:3])
                _, caller, remark = json.loads(f"[{named}]", strict=False)
                texts_of.append((remark, caller))
            else:
                possible.append(f"[{int(place) - keep[: int(place)].count(False)} {fact}")
        written += [frame, TAB.join(possible)]
    return "".join([*written, rest]), texts_of


def operations_of(line: str) -> list[str]:
    """Return the operations in a line."""
    return _split_at_vector(line, ":value [")[1].split(TAB)


def with_possible_facts(line: str, facts: Sequence[str]) -> str:
    """Return a line with more entries in ``:perhaps``."""
    head, value, rest = _split_at_vector(line, ":value [")
    written, added = [head, value], TAB.join(facts)
    for begin in (_VERSIONS, _CALLERS, _ROWS, _STATEMENTS, _PERHAPS):
        if rest.startswith(f"]{begin}"):
            frame, inside, rest = _split_at_vector(rest, begin)
            if begin == _PERHAPS:
                inside, added = f"{inside}{TAB}{added}", ""
            written += [frame, inside]
    more = f"{_PERHAPS}{added}]" if added else ""
    return "".join([*written, rest[:1], more, rest[1:]])


def possible_fact(place: int, operation: str, read: EvaluatedRead) -> str:
    """Return an entry of ``:perhaps`` for a read whose condition could not be evaluated."""
    caller, remark = read.caller or read.shown, f"{ROW_NOT_FOUND}{read.shown}"
    return f"[{place} {operation} {edn(read.statement)} {edn(caller)} {edn(remark)}]"


def _strings_after(fact: str) -> list[str]:
    """Return the strings after an operation in an entry of ``:perhaps``, as they are written."""
    return _STRING.findall(fact, end_of_bracket(fact, 0))


def _text_of(shown: str) -> str:
    """Return the text of a string in EDN."""
    return str(json.loads(shown, strict=False)) if shown else ""


def _split_at_vector(line: str, begin: str) -> tuple[str, str, str]:
    """Split a line into the parts before, inside and after a vector's brackets."""
    at = line.index(begin) + len(begin)
    end = end_of_bracket(line, at - 1)
    return line[:at], line[at : end - 1], line[end - 1 :]
