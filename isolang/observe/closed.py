"""Turns conditions of observed statements into predicate reads, and versions into whole rows.

During a recording, a read names a row's version (``xmin``), and a condition is kept together with
the versions that satisfied it. A predicate read also claims that no other row matched. Checking
this claim takes all versions of the table, with their columns. After the recording, either all
versions are known, or it is known that some are missing, because each recorded write states the
version that it replaced (``RETURNING old.xmin``, since PostgreSQL 18), and the table itself
contains the last versions.

SOUND BECAUSE: suppose that a writer was not recorded. The versions of a key form one path, from its
first version to its last version or to no row. A maximal stretch of unrecorded steps on this path
ends in one of three ways. First, if it ends at the last version, that version is neither initial
nor recorded. Second, if it ends at a recorded write, the version that this write replaced is
neither initial nor recorded. Third, it ends at no row. If it then began at a recorded or initial
version, no recorded write replaced that version, and that version is not the last. If it both began
and ended at no row, it made no version that a recorded read saw, and the key has no row before and
after. Therefore, a table is closed if each committed or initial version is replaced by exactly one
recorded write or is the last version, and each replaced or last version is committed or initial.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct

from isolang.files import open_replacement
from isolang.history.remarks import ROW_NOT_FOUND
from isolang.observe.history.edn import edn, end_of_bracket, predicate_edn
from isolang.observe.sql.predicates import Predicate, columns_in
from isolang.observe.unseen import shortened
from isolang.run.operation import DELETED
from isolang.run.outcome import Outcome
from isolang.run.record import lines

Cells: TypeAlias = Mapping[str, Any]
"""The comparable columns of a row, by name."""

_VERSION: Final = "xmin"  # the column of the version, which makes values unique
_NOTES: Final = re.compile(r", :(?:callers|:?rows|statements) \[(?:\"(?:[^\"\\]|\\.)*\"|\s)*\]")
_INDEX: Final = re.compile(rb":index (-?\d+), :type :(\w+), :process (\d+)")
_VALUE: Final = ":value ["


class KnownVersion(Struct, frozen=True):
    """A version of a row.

    Attributes:
        key: the key of the row in the history, starting with the table.
        number: the number of the version's writer.
        cells: the comparable columns.
    """

    key: str
    number: int
    cells: Cells = {}


class TracedRead(Struct, frozen=True, kw_only=True):
    """A read of a row's version."""

    table: str
    key: str
    number: int
    value: int | None
    caller: str = ""
    shown: str = ""
    statement: str = ""


class TracedWrite(Struct, frozen=True, kw_only=True):
    """A write of a row.

    Attributes:
        number: the number of the new version; ``None`` for a deletion.
        cells: the comparable columns of the new version.
        old: the replaced version; ``None`` if there was no row.
        old_known: whether ``old`` is known.
    """

    table: str
    key: str
    number: int | None
    cells: Cells
    old: KnownVersion | None
    old_known: bool
    caller: str = ""
    shown: str = ""
    statement: str = ""


class TracedCondition(Struct, frozen=True, kw_only=True):
    """A statement's condition, with all rows that satisfied it.

    Attributes:
        rows: the key and number of each version.
        covers: the number of preceding steps that are reads of these rows.
        kind: the kind of unseen activity that the condition counts as if it cannot be recorded.
        text: the text of the statement.
        shown: the text of the statement, including values.
    """

    table: str
    predicate: Predicate
    rows: tuple[tuple[str, int], ...]
    covers: int
    kind: str
    text: str
    shown: str
    caller: str = ""
    statement: str = ""


Step: TypeAlias = TracedRead | TracedWrite | TracedCondition


class Trace(Struct, frozen=True):
    """A recorded transaction in more detail than its lines in the history.

    Attributes:
        begin: the index of the invocation.
        end: the index of the completion.
        outcome: how the transaction ended.
        steps: the reads and writes of the transaction.
    """

    begin: int
    end: int
    outcome: Outcome
    steps: tuple[Step, ...]


class _TableVersions:
    """The known versions of a table."""

    def __init__(
        self,
        name: str,
        traces: Sequence[Trace],
        last: Mapping[str, KnownVersion] | None,
        is_initial: Callable[[int], bool],
    ) -> None:
        self.name = name
        self.initial: dict[tuple[str, int], Cells] = {}
        self._made: dict[tuple[str, int], TracedWrite] = {}  # the last write of each version
        self._names: dict[int, str] = {}  # maps each write's identity to its row's name
        self._traces = traces
        self._last = last
        self._is_initial = is_initial
        self.closed = last is not None and self._is_closed(last)
        if self.closed:
            self._name_rows()

    def _is_closed(self, last: Mapping[str, KnownVersion]) -> bool:
        replaced: Counter[tuple[str, int]] = Counter()
        committed: set[tuple[str, int]] = set()
        for trace in self._traces:
            own: dict[str, TracedWrite] = {}
            for step in trace.steps:
                if not isinstance(step, TracedWrite) or step.table != self.name:
                    continue
                if trace.outcome == "maybe":
                    return False
                previous = own.get(step.key)
                own[step.key] = step
                if step.number is not None:
                    self._made[step.key, step.number] = step
                if trace.outcome == "aborted" or previous is not None:
                    continue
                if not step.old_known:
                    return False
                if step.old is not None:
                    replaced[step.old.key, step.old.number] += 1
                    self._note_initial(step.old)
            if trace.outcome == "committed":
                committed |= {(k, w.number) for k, w in own.items() if w.number is not None}
        for version in last.values():
            self._note_initial(version)
        final = {(version.key, version.number) for version in last.values()}
        known = committed | self.initial.keys()
        read = {
            (step.key, step.number)
            for trace in self._traces
            if trace.outcome == "committed"
            for step in trace.steps
            if isinstance(step, TracedRead) and step.table == self.name and step.value is None
        }
        return (
            known == final | replaced.keys()
            and not final & replaced.keys()
            and all(number == 1 for number in replaced.values())
            and read <= known
        )

    def _note_initial(self, version: KnownVersion) -> None:
        if self._is_initial(version.number):
            self.initial[version.key, version.number] = version.cells

    def _name_rows(self) -> None:
        """Name the row of each write. A key that is inserted again names a different row.

        SOUND BECAUSE: PostgreSQL lets an INSERT pass a DELETE of the same key that is not in its
        snapshot, even at REPEATABLE READ. The two rows do not replace each other.
        """
        rows: Counter[str] = Counter(key for key, _ in self.initial)
        first: dict[
            int, TracedWrite
        ] = {}  # for each write, the transaction's first write of the row
        for trace in self._traces:
            own: dict[str, TracedWrite] = {}
            for step in trace.steps:
                if isinstance(step, TracedWrite) and step.table == self.name:
                    inserted = step.old is None and step.old_known
                    own[step.key] = step if inserted else own.get(step.key, step)
                    first[id(step)] = own[step.key]

        def name_of(write: TracedWrite) -> str:
            while write.old is not None:
                earlier = self._made.get((write.old.key, write.old.number))
                if earlier is None:
                    return write.key
                write = first[id(earlier)]
            if id(write) not in self._names:
                rows[write.key] += 1
                again = "" if rows[write.key] == 1 else f"#{rows[write.key]}"
                self._names[id(write)] = write.key + again
            return self._names[id(write)]

        for trace in self._traces:
            for step in trace.steps:
                if id(step) in first:
                    self._names[id(step)] = name_of(first[id(step)])

    def row_of(self, write: TracedWrite) -> str:
        """Return the name of the row written by a write."""
        return self._names[id(write)]

    def version(
        self, key: str, number: int, own: Mapping[str, TracedWrite]
    ) -> tuple[str, TracedWrite | None]:
        """Return the row that a read version belongs to, and the recorded write of that version.

        Args:
            key: the key of the row, starting with its table.
            number: the number of the version.
            own: for each key, the reading transaction's own last write.

        Returns:
            The name of the row, and the write; the key and ``None`` if no write of the version was
            recorded.
        """
        previous = own.get(key)
        if previous is not None and previous.number == number:
            return self.row_of(previous), previous
        made = self._made.get((key, number))
        return (key, None) if made is None else (self.row_of(made), made)


class ClosedHistory(Struct, frozen=True):
    """The result of :func:`close`.

    Attributes:
        path: the history with predicate reads; ``None`` if it has none.
        unseen: the conditions that could not be recorded.
    """

    path: Path | None
    unseen: tuple[TracedCondition, ...]


def close(
    path: Path,
    traces: Sequence[Trace],
    last_versions: Callable[[str], Mapping[str, KnownVersion] | None],
    *,
    is_initial: Callable[[int], bool],
    into: Path,
) -> ClosedHistory:
    """Write a history with predicate reads of the tables whose versions are all known.

    Args:
        path: the recorded history.
        traces: the observed transactions of the history.
        last_versions: a function that returns the current versions in a table, by key; ``None`` if
            they are unknown.
        is_initial: a function that returns whether a transaction ended before the recording began.
        into: the file to write.
    """
    conditions = [
        step
        for trace in traces
        if trace.outcome != "aborted"  # no level restricts the reads of aborted transactions
        for step in trace.steps
        if isinstance(step, TracedCondition)
    ]
    others = _other_lines(path, traces) if conditions else b""
    tables = {
        name: _TableVersions(name, traces, last_versions(name), is_initial)
        for name in sorted({one.table for one in conditions})
        # If other recorders record rows of the table, they use different keys and values.
        if lines.to_edn(f"{name}/")[:-1].encode() not in others
    }
    recorded = {id(one) for one in conditions if one.table in tables and tables[one.table].closed}
    unseen = tuple(one for one in conditions if id(one) not in recorded)
    used: defaultdict[str, set[str]] = defaultdict(set)
    for one in conditions:
        if id(one) in recorded:
            used[one.table] |= columns_in(one.predicate)
    if not recorded:
        return ClosedHistory(None, unseen)
    _PredicateReadWriter({name: tables[name] for name in used}, used, recorded).write(
        path, traces, into
    )
    return ClosedHistory(into, unseen)


class _PredicateReadWriter:
    """Writes the lines of transactions with whole rows and predicate reads."""

    def __init__(
        self,
        tables: Mapping[str, _TableVersions],
        used: Mapping[str, set[str]],
        recorded: set[int],
    ) -> None:
        self._tables = tables
        self._used = {name: sorted(columns) for name, columns in used.items()}
        self._recorded = recorded

    def write(self, path: Path, traces: Sequence[Trace], into: Path) -> None:
        text = path.read_bytes().splitlines(keepends=True)
        heads = [found for line in text if (found := _INDEX.search(line))]
        by_index = {index: trace for trace in traces for index in (trace.begin, trace.end)}
        first = next((n for n, line in enumerate(text) if _INDEX.search(line)), len(text))
        with open_replacement(into) as file:
            file.write(b"".join(text[:first]))
            file.write(self._initial(heads))
            for line in text[first:]:
                found = _INDEX.search(line)
                trace = None if found is None else by_index.get(int(found[1]))
                file.write(line if trace is None else self._line(line, trace))

    def _initial(self, heads: Sequence[re.Match[bytes]]) -> bytes:
        rows = {
            self._key(table.name, key): self._value(table.name, number, cells)
            for table in self._tables.values()
            for (key, number), cells in table.initial.items()
        }
        if not rows:
            return b""
        index = min(int(found[1]) for found in heads) - 1
        process = max(int(found[3]) for found in heads) + 1
        shown = ", ".join(f"{key} {row}" for key, row in rows.items())
        return (
            f"{{:index {index}, :type :ok, :process {process}, :time 0, :f :init, "
            f":value {{{shown}}}}}\n"
        ).encode()

    def _line(self, line: bytes, trace: Trace) -> bytes:
        old = line.decode()
        begin = old.index(_VALUE)
        end = end_of_bracket(old, begin + len(_VALUE) - 1)
        completes = ":type :invoke" not in old[:begin]
        ops = list(self._operations(trace, known=completes and ":type :ok" in old[:begin]))
        value = " ".join(text for text, _ in ops)
        line = f"{old[:begin]}{_VALUE}{value}]{_NOTES.sub('', old[end:])}".encode()
        if not completes:
            return line
        return lines.with_remarks(
            line,
            [step.caller for _, step in ops],
            [_row_shown(step) for _, step in ops],
            len(ops),
            [step.statement for _, step in ops],
        )

    def _operations(self, trace: Trace, *, known: bool) -> Iterator[tuple[str, Step]]:
        """Yield each operation in EDN, together with the observed step.

        Args:
            trace: the transaction.
            known: whether the results of reads are known, as in a committed transaction.
        """
        own: dict[str, TracedWrite] = {}
        written: dict[str, str] = {}
        steps = trace.steps
        covered = {
            place
            for n, step in enumerate(steps)
            if isinstance(step, TracedCondition) and id(step) in self._recorded
            for place in range(n - step.covers, n)
        }
        for n, step in enumerate(steps):
            table = self._tables.get(step.table)
            if isinstance(step, TracedCondition):
                if id(step) in self._recorded:
                    assert table is not None
                    yield self._scan(step, table, own, known=known), step
            elif isinstance(step, TracedWrite):
                own[step.key] = step
                text = self._write(step, table)
                if written.get(step.key) != text:  # otherwise, this writes the same version again
                    yield text, step
                written[step.key] = text
            elif n not in covered:
                yield self._read(step, table, own, known=known), step

    def _scan(
        self,
        step: TracedCondition,
        table: _TableVersions,
        own: Mapping[str, TracedWrite],
        *,
        known: bool,
    ) -> str:
        predicate = f"{{:table {edn(step.table)} :where {predicate_edn(step.predicate)}}}"
        if not known:
            return f"[:rp {predicate} nil]"
        rows = dict(self._version(table, key, number, own) for key, number in step.rows)
        shown = ", ".join(f"{key} {row}" for key, row in rows.items())
        return f"[:rp {predicate} {{{shown}}}]"

    def _read(
        self,
        step: TracedRead,
        table: _TableVersions | None,
        own: Mapping[str, TracedWrite],
        *,
        known: bool,
    ) -> str:
        if table is None:
            return f"[:r {lines.to_edn(step.key)} {lines.to_edn(step.value if known else None)}]"
        key, row = self._version(table, step.key, step.number, own)
        return f"[:r {key} {row if known else edn(None)}]"

    def _write(self, step: TracedWrite, table: _TableVersions | None) -> str:
        if table is None:
            value = DELETED if step.number is None else step.number
            return f"[:w {lines.to_edn(step.key)} {lines.to_edn(value)}]"
        key = self._key(step.table, table.row_of(step))
        if step.number is None:
            return f"[:delete {key}]"
        return f"[:w {key} {self._value(step.table, step.number, step.cells)}]"

    def _version(
        self, table: _TableVersions, key: str, number: int, own: Mapping[str, TracedWrite]
    ) -> tuple[str, str]:
        """Return the key and row, in EDN, of a version that was read."""
        row, write = table.version(key, number, own)
        cells = table.initial.get((key, number), {}) if write is None else write.cells
        return self._key(table.name, row), self._value(table.name, number, cells)

    def _value(self, table: str, number: int, cells: Cells) -> str:
        return edn({**{one: cells.get(one) for one in self._used[table]}, _VERSION: number})

    @staticmethod
    def _key(table: str, row: str) -> str:
        return edn([table, row.removeprefix(f"{table}/")])


def _row_shown(step: Step) -> str:
    """Return the text shown for an operation's row."""
    if isinstance(step, TracedCondition):
        return f"{ROW_NOT_FOUND}{shortened(step.shown)}"
    return step.shown


def _other_lines(path: Path, traces: Sequence[Trace]) -> bytes:
    """Return the lines of unobserved transactions."""
    own = {index for trace in traces for index in (trace.begin, trace.end)}
    return b"".join(
        line
        for line in path.read_bytes().splitlines(keepends=True)
        if (found := _INDEX.search(line)) and int(found[1]) not in own
    )
