"""Replays the log's changes on the rows of a snapshot.

SOUND BECAUSE: a transaction holds the locks of the rows that it wrote until its group is in the
log, so the log contains the versions of each row in their order.

InnoDB writes the children of foreign keys with CASCADE and SET NULL, and no log contains these
writes. The replay makes them again. Each before-image in the log shows whether the replayed row was
right; :meth:`LogReplay.differences` compares all rows with those of a later snapshot. A problem
does not say which transaction is wrong, so it convicts none; but a run with a problem is not VALID.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from isolang.observe.log.tables import Foreign, LoggedTable, Name, Row

Key = tuple[Any, ...]
Rows = dict[Name, dict[Key, Row]]

_EXAMPLES: Final = 3  # how many examples of each kind of problem are kept
_DEPTH: Final = 15  # InnoDB's limit for cascades


class ReplayedChange(Struct, eq=False):
    """A change of one row in a committed transaction.

    Attributes:
        kind: ``insert``, ``update`` or ``delete``; ``unknown`` if the table cannot be observed.
        before: the row before the change; ``None`` for an insert.
        direct: whether the log contains the change; false for those of foreign keys.
        moved: whether the delete and the insert are those of an update of the key.
        number: grows with the versions of its key, by one as long as the row exists; a snapshot's
            versions have number 0.
    """

    kind: str
    table: LoggedTable
    key: Key = ()
    before: Row | None = None
    after: Row | None = None
    direct: bool = True
    moved: bool = False
    number: int = 0


class LogProblem(Struct, frozen=True):
    """A contradiction between the log and the rows.

    Attributes:
        kind: the same words for all problems of a kind.
        table: the name of the table; empty if all tables may be concerned.
        text: the row, with its values.
    """

    kind: str
    table: str
    text: str


DIFFERENT: Final = "rows that differ from the log's"
BEFORE: Final = "rows that were not as the log had left them"
MISSING_COLUMNS: Final = "rows that the log contains only in part"
STATEMENTS: Final = "statements that are not logged as rows"
COMMENTS: Final = "rows whose statement the log does not contain"
DEFINITIONS: Final = "changes of definitions that the log does not explain"
EVENTS: Final = "events of the log that are not understood"


class LogProblems:
    """The problems of an observation: their number for each kind, and a few examples.

    Attributes:
        tables: the names of all tables that have a problem; empty for one that may concern all.
    """

    def __init__(self) -> None:
        """Start without problems."""
        self.counts: Counter[str] = Counter()
        self.examples: list[LogProblem] = []
        self.tables: set[str] = set()

    def add(self, kind: str, table: LoggedTable | None, text: str) -> None:
        """Count a problem."""
        self.store(LogProblem(kind, "" if table is None else table.name, text))

    def store(self, problem: LogProblem) -> None:
        """Count a problem, and keep the first ones of its kind."""
        self.counts[problem.kind] += 1
        self.tables.add(problem.table)
        if self.counts[problem.kind] <= _EXAMPLES:
            self.examples.append(problem)


class LogReplay:
    """The rows at a position of the log.

    Attributes:
        tables: the tables as they are defined at this position.
        rows: the rows of each observed table by their keys.
    """

    def __init__(
        self, tables: Mapping[Name, LoggedTable], foreign: Iterable[Foreign], rows: Rows
    ) -> None:
        """Store the rows of a snapshot."""
        self.tables = dict(tables)
        self.rows: Rows = {name: dict(by_key) for name, by_key in rows.items()}
        self.problems = LogProblems()
        self._numbers: dict[Name, dict[Key, int]] = {}
        self._deleted: Counter[Name] = Counter()  # the largest number of a deleted row
        self.set_foreign_keys(foreign)

    def set_foreign_keys(self, foreign: Iterable[Foreign]) -> None:
        """Replace the foreign keys, and index the children of those that cascade."""
        self._children: dict[Name, list[_Children]] = defaultdict(list)
        self._parents: dict[Name, list[_Children]] = defaultdict(list)
        for key in foreign:
            child = self.tables.get(key.table)
            if not key.cascades or child is None or child.why or key.parent not in self.tables:
                continue
            children = _Children(key, child)
            for each, row in self.rows.get(key.table, {}).items():
                children.add(each, row)
            self._children[key.table].append(children)
            self._parents[key.parent].append(children)

    def apply(
        self,
        table: LoggedTable,
        before: Row | None,
        after: Row | None,
        *,
        cascades: bool = True,
    ) -> list[ReplayedChange]:
        """Apply a change from the log, and return it with the changes that it causes.

        Args:
            before: the columns before the change, as many as the log contains.
            after: the columns after the change; the others did not change.
            cascades: whether the session enforced foreign keys.
        """
        if table.why:
            return [ReplayedChange("unknown", table)]
        before, after = self._complete(table, before, after)
        changes: list[ReplayedChange] = []
        self._write(changes, table, before, after, direct=True, depth=0 if cascades else _DEPTH)
        return changes

    def _complete(
        self, table: LoggedTable, before: Row | None, after: Row | None
    ) -> tuple[Row | None, Row | None]:
        """Return whole rows, and compare the row before the change with the replayed row."""
        names = [column.name for column in table.logged]
        rows = self.rows.setdefault((table.schema, table.name), {})
        if before is not None:
            known = rows.get(table.key_of(before))
            if known is None or any(known[name] != value for name, value in before.items()):
                self.problems.add(BEFORE, table, difference(table, before, known))
            before = {**(known or {}), **before}
            after = None if after is None else {**before, **after}
        elif after is not None and (key := table.key_of(after)) in rows:
            self.problems.add(BEFORE, table, f"{_key_text(table, key)} was inserted again")
        for row in (before, after):
            if row is not None and len(row) < len(names):
                lost = [name for name in names if name not in row]
                self.problems.add(MISSING_COLUMNS, table, f"no value of {', '.join(lost)}")
                row.update((name, None) for name in lost)
        return before, after

    def _write(
        self,
        changes: list[ReplayedChange],
        table: LoggedTable,
        before: Row | None,
        after: Row | None,
        *,
        direct: bool,
        depth: int,
    ) -> None:
        name = table.schema, table.name
        rows = self.rows.setdefault(name, {})
        old = None if before is None else table.key_of(before)
        new = None if after is None else table.key_of(after)
        moved = old is not None and new is not None and old != new
        if old is not None and old != new:
            exists = rows.pop(old, None) is not None
            number = self._next_number(name, old, exists=exists, stays=False)
            changes.append(
                ReplayedChange("delete", table, old, before, None, direct, moved, number)
            )
        if new is not None and after is not None:
            number = self._next_number(name, new, exists=new in rows, stays=True)
            rows[new] = after
            kind = "update" if old == new else "insert"
            seen = before if kind == "update" else None
            changes.append(ReplayedChange(kind, table, new, seen, after, direct, moved, number))
        for children in self._children.get(name, ()):
            if old is not None and before is not None:
                children.remove(old, before)
            if new is not None and after is not None:
                children.add(new, after)
        if before is not None and depth < _DEPTH:
            for children in self._parents.get(name, ()):
                self._cascade(changes, children, before, after, depth + 1)

    def _next_number(self, name: Name, key: Key, *, exists: bool, stays: bool) -> int:
        """Return the number of a row's next version; deleted rows are forgotten.

        SOUND BECAUSE: a row that is inserted again begins above all rows that were deleted before.
        """
        numbers = self._numbers.setdefault(name, {})
        number = numbers.pop(key, 0 if exists else self._deleted[name]) + 1
        if stays:
            numbers[key] = number
        else:
            self._deleted[name] = max(number, self._deleted[name])
        return number

    def _cascade(
        self,
        changes: list[ReplayedChange],
        children: _Children,
        before: Row,
        after: Row | None,
        depth: int,
    ) -> None:
        """Write the children of a parent as InnoDB does."""
        key, table = children.foreign, children.table
        old = [before[name] for name in key.parents]
        new = None if after is None else [after[name] for name in key.parents]
        rule = key.on_delete if new is None else key.on_update
        if old == new or None in old or rule not in ("CASCADE", "SET NULL"):
            return
        rows = self.rows.get(key.table, {})
        for each in children.of(old):
            row = rows[each]
            if new is None and rule == "CASCADE":
                self._write(changes, table, row, None, direct=False, depth=depth)
            else:
                values = new if new is not None and rule == "CASCADE" else [None] * len(old)
                changed = row | dict(zip(key.columns, values, strict=True))
                self._write(changes, table, row, changed, direct=False, depth=depth)

    def empty(self, table: LoggedTable) -> list[ReplayedChange]:
        """Remove all rows of a table, as TRUNCATE and DROP do."""
        changes: list[ReplayedChange] = []
        for row in [*self.rows.get((table.schema, table.name), {}).values()]:
            self._write(changes, table, row, None, direct=True, depth=_DEPTH)
        return changes

    def differences(self, rows: Rows) -> Iterator[LogProblem]:
        """Yield the rows that differ from those of a snapshot at the same position of the log."""
        for name, table in self.tables.items():
            replayed, actual = self.rows.get(name, {}), rows.get(name)
            if table.why or replayed == actual:
                continue
            if actual is None:
                yield LogProblem(DIFFERENT, table.name, f"{table.name} cannot be read any more")
                continue
            for key in sorted({*replayed, *actual}, key=repr):
                if replayed.get(key) != actual.get(key):
                    text = difference(table, actual.get(key), replayed.get(key))
                    yield LogProblem(DIFFERENT, table.name, text)


class _Children:
    """The rows of a table by the values of a foreign key."""

    def __init__(self, foreign: Foreign, table: LoggedTable) -> None:
        self.foreign, self.table = foreign, table
        self._columns = [table.columns[name] for name in foreign.columns]
        self._keys: dict[Key, dict[Key, None]] = {}

    def _value(self, values: Iterable[Any]) -> Key:
        # The collation of the child's column compares texts.
        return tuple(
            column.recorded(value) for column, value in zip(self._columns, values, strict=True)
        )

    def _of(self, row: Row) -> Key:
        return self._value(row[name] for name in self.foreign.columns)

    def add(self, key: Key, row: Row) -> None:
        self._keys.setdefault(self._of(row), {})[key] = None

    def remove(self, key: Key, row: Row) -> None:
        value = self._of(row)
        keys = self._keys.get(value, {})
        keys.pop(key, None)
        if not keys:
            self._keys.pop(value, None)

    def of(self, parent: Iterable[Any]) -> list[Key]:
        return [*self._keys.get(self._value(parent), ())]


def _key_text(table: LoggedTable, key: Key) -> str:
    return f"{table.name}/{','.join(map(str, key))}"


def difference(table: LoggedTable, actual: Row | None, replayed: Row | None) -> str:
    """Return a row's name and the values that differ: first the actual ones."""
    row = actual if actual is not None else replayed
    assert row is not None
    name = _key_text(table, table.key_of(row))
    if replayed is None:
        return f"{name} exists, but no log contains it"
    if actual is None:
        return f"{name} does not exist, but no log contains its deletion"
    different = [column for column, value in actual.items() if replayed.get(column) != value]
    texts = ", ".join(
        f"{column} is {actual[column]!r:.40}, in the log {replayed.get(column)!r:.40}"
        for column in different
    )
    return f"{name}: {texts}"
