"""Chooses the columns that identify the rows of a table in the templates of a run.

By default, the primary key identifies a row. If a condition compares other columns with constants
(``room = 7``), these columns are added, so that a statement on room 7 does not conflict with one on
another room. If such a condition names all columns of a unique index, they identify the rows
instead of the primary key, so that two transactions cannot both insert such a row.

SOUND BECAUSE: only columns are used that no transaction of the run changes, so each row has one
value of them. A condition on other columns is ignored, so that a read may return more rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

from isolang.errors import HistoryError, UnsupportedError
from isolang.history.edn import forms
from isolang.history.values import Keyword, row_columns, value_text

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.history.transaction import Transaction

ROWS: Final = "rows"
"""The relation for keys without a table."""

MOST_ADDED: Final = 2
"""The largest number of columns to add to the key of a table."""

_MOST_KEY_COLUMNS: Final = 4  # the largest key whose columns are found by trying all orders

_OTHER_ROWS: Final = re.compile(r"\b(select|from|using)\b")

_Row: TypeAlias = tuple[int, object]  # the number of a run, and a key
Component: TypeAlias = int | str
"""A part of a row's identity: a position in the primary key, or the name of a column."""


class Condition(Struct, frozen=True):
    """The condition of a predicate read: its table, and the columns that must have a value."""

    table: str
    equal: Mapping[str, str]


class RunRows:
    """The rows in runs of an application, and the columns that identify them.

    Each run begins with a database of its own.

    Attributes:
        run: the number of the run that keys belong to.
        initial: the keys of the rows that were there at the start of each run.
    """

    def __init__(
        self,
        runs: Sequence[tuple[History, Sequence[Transaction]]],
        unique: Mapping[str, Sequence[Sequence[str]]],
        columns: Mapping[str, tuple[str, ...]],
    ) -> None:
        """Read the rows of the runs.

        Args:
            unique: the columns of the unique indexes, by table.
            columns: the columns of each table's primary key, as far as they are known.
        """
        self._columns = dict(columns)
        self.run = 0
        self.initial = [frozenset(history.initial_values()) for history, _ in runs]
        self._rows: dict[str, dict[_Row, Mapping[str, Any]]] = {}  # by table and row
        self._values: dict[str, dict[str, dict[_Row, set[str]]]] = {}
        self._contents: dict[str, dict[_Row, set[str]]] = {}
        self._conditions: dict[str, Condition | None] = {}
        self._tested: Counter[tuple[str, frozenset[str]]] = Counter()
        self._written: set[str] = set()
        self._writes: Counter[_Row] = Counter()  # and of its first versions
        self._partial: dict[str, set[str]] = {}  # by table, the columns that are NULL in some row
        self._unlisted: set[str] = set()
        self._versions: set[tuple[str, str]] = set()  # the columns that compared() returned
        for self.run, (history, transactions) in enumerate(runs):
            self._read(history, transactions)
        for table, indexes in unique.items():
            if table not in self._columns and (key := self._primary_key(table, indexes)):
                self._columns[table] = key
        self._identity = {
            table: identity
            for table in {table for table, _ in self._tested}
            if (identity := self._chosen(table, unique.get(table, ())))
        }

    def _read(self, history: History, transactions: Sequence[Transaction]) -> None:
        """Read the rows, the conditions and the written tables of a run."""
        present: set[object] = set(self.initial[self.run])
        for key, value in history.initial_values().items():
            self._note(key, value)
            self._writes[self.run, key] += 1
        for transaction in transactions:
            for op in transaction.ops:
                if op[0] == "w":
                    present.add(op[1])
                elif (op[0] == "delete" or (op[0] == "r" and _is_shown(op))) and (
                    op[1] not in present
                ):
                    self._unlisted.add(self._table(op[1]))
                if op[0] == "scan":
                    condition = self.condition(op[1])
                    self._tested[condition.table, frozenset(condition.equal)] += 1
                elif op[0] in ("r", "w", "insert") and len(op) > 2:
                    self._note(op[1], op[2])
                    if op[0] != "r":
                        self._written.add(self._table(op[1]))
                        is_lasting = transaction.status not in ("initial", "aborted")
                        self._writes[self.run, op[1]] += is_lasting

    # --- what identifies a row ---

    def row(self, key: object) -> tuple[str, tuple[str | None, ...]]:
        """Return the table of a key, and the values that identify its row; ``None`` if unknown."""
        table, values = self._split(key)
        identity = self._identity.get(table)
        if identity is None:
            return table, values
        row = self._rows.get(table, {}).get((self.run, key), {})
        return table, tuple(
            values[component] if isinstance(component, int) else _text_or_none(row.get(component))
            for component in identity
        )

    def is_row(self, key: object, value: object) -> bool:
        """Return whether a value is a row with columns, so that writing the first one inserts it.

        SOUND BECAUSE: if the run shows a row that it neither declares at the start nor inserts,
        others may exist, too. Then nothing inserts rows of the table.
        """
        return self._table(key) not in self._unlisted and _columns(value) is not None

    def selected(self, condition: Condition) -> tuple[str | None, ...]:
        """Return the values that identify the rows that a condition may select."""
        identity = self._identity.get(condition.table)
        if identity is None:
            names = self._columns.get(condition.table, ())
            values = tuple(condition.equal.get(name) for name in names)
            return values if any(values) else (None,) * self._width(condition.table)
        return tuple(
            condition.equal.get(self.column(condition.table, component)) for component in identity
        )

    def identity(self, table: str) -> tuple[Component, ...] | None:
        """Return the components of the rows' identity; ``None`` for the primary key alone."""
        return self._identity.get(table)

    def column(self, table: str, component: Component) -> str:
        """Return the name of the column of a component; empty if it is unknown."""
        if isinstance(component, str):
            return component
        names = self._columns.get(table, ())
        return names[component] if component < len(names) else ""

    def position(self, table: str, column: str) -> Component:
        """Return the component of a column: its position in the primary key, or its name."""
        names = self._columns.get(table, ())
        return names.index(column) if column in names else column

    def assumptions(self) -> Iterator[str]:
        """Yield the conditions that the use of columns adds to the answer ``robust``."""
        for table, column in sorted(self._versions):
            yield f"each write of a row of {table} gives {column} a value that the row never had"
        for table, identity in sorted(self._identity.items()):
            names = [component for component in identity if isinstance(component, str)]
            if names and table in self._written:
                listed = " and ".join((", ".join(names[:-1]), names[-1]) if names[1:] else names)
                yield f"no statement changes {listed} of a row of {table}"
                if all(isinstance(component, str) for component in identity):
                    yield f"a unique index holds {listed} of {table}"

    def condition(self, predicate: object) -> Condition:
        """Return the condition of a predicate read.

        Raises:
            UnsupportedError: the predicate names no table.
        """
        text = str(predicate)
        if text not in self._conditions:
            self._conditions[text] = _condition_of(predicate, text)
        known = self._conditions[text]
        if known is None:
            raise UnsupportedError(
                f"a predicate read names no table (got {text!r:.60}), so no template can state it"
            )
        return known

    def tested(self, ops: Sequence[Sequence[Any]], place: int) -> tuple[Condition | None, bool]:
        """Return the condition of an operation, if it has one, and whether it found no row."""
        if place < 0:  # it only takes a lock
            return None, False
        op = ops[place]
        if op[0] == "scan":
            return self.condition(op[1]), not op[2]
        is_absent = op[0] == "r" and len(op) > 2 and op[2] is None
        return None, is_absent and self._table(op[1]) in self._rows

    def tables(self) -> frozenset[str]:
        """Return the tables of the rows and of the conditions."""
        return frozenset({*self._rows, *(table for table, _ in self._tested)})

    def repeats(self, table: str, columns: Sequence[str]) -> bool:
        """Return whether two rows of the run have the same values of some columns, or lack one."""
        seen: dict[tuple[object, ...], object] = {}
        for (run, key), row in self._rows.get(table, {}).items():
            values = tuple(_text_or_none(row.get(name)) for name in columns)
            if None in values or seen.setdefault((run, *values), key) != key:
                return True
        return False

    def compared(self, key: object, sql: str) -> str:
        """Return a column that an UPDATE compares, and that tells all versions of a row apart.

        Return an empty string if there is none. The UPDATE finds the row only if it has not been
        written since the program read the value.
        """
        before, _, where = sql.lower().partition("/*")[0].rpartition(" where ")
        # At READ COMMITTED, only the row that an UPDATE waited for is read and compared again.
        is_of_others = _OTHER_ROWS.search(before) or _OTHER_ROWS.search(where)
        is_cut_off = where.endswith("…")
        if not where or is_of_others or is_cut_off or re.search(r"\b(or|not)\b", where):
            return ""
        table = self._table(key)
        for column, of_rows in self._values.get(table, {}).items():
            if (
                re.search(rf'(?<![\w"]){re.escape(column.lower())}"?\s*=', where.replace('."', "."))
                and column not in self._columns.get(table, ())
                and column not in self._partial.get(table, ())
                and all(
                    len(of_rows.get(row, ())) == len(contents) >= self._writes[row]
                    for row, contents in self._contents[table].items()
                )
            ):
                self._versions.add((table, column))
                return column
        return ""

    # --- how it is chosen ---

    def _chosen(self, table: str, indexes: Sequence[Sequence[str]]) -> tuple[Component, ...] | None:
        if table not in self._written:
            return None
        key = self._columns.get(table, ())
        tested: Counter[str] = Counter()
        for (of, columns), count in self._tested.items():
            if of == table:
                tested.update(dict.fromkeys(columns, count))
        fixed = [name for name, _ in tested.most_common() if self._is_fixed(table, name)]
        for index in indexes:
            covers = any(of == table and set(index) <= some for of, some in self._tested)
            if set(index) != set(key) and covers and set(index) <= set(fixed):
                return tuple(index)
        added = [name for name in fixed if name not in key][:MOST_ADDED]
        if not added:
            return None
        return (*range(self._width(table)), *added)

    def _is_fixed(self, table: str, column: str) -> bool:
        """Return whether each row of the run has one value of a column, which is never NULL."""
        if column in self._partial.get(table, ()):
            return False
        of_rows = self._values.get(table, {}).get(column, {})
        rows = len(self._rows.get(table, ()))
        return len(of_rows) == rows > 0 and all(len(values) == 1 for values in of_rows.values())

    def _primary_key(self, table: str, indexes: Sequence[Sequence[str]]) -> tuple[str, ...]:
        """Return the columns of the unique index whose values are the keys of the run's rows."""
        rows = self._rows.get(table, {}).items()
        for index in indexes:
            if not rows or len(index) > _MOST_KEY_COLUMNS:
                continue
            for columns in permutations(index):
                if all(
                    ",".join(_text(row.get(name)) for name in columns) == _key_text(key)
                    for (_, key), row in rows
                ):
                    return columns
        return ()

    def _note(self, key: object, value: object) -> None:
        row = _columns(value)
        if row is None:
            return
        table = self._table(key)
        of_run = self.run, key
        self._rows.setdefault(table, {})[of_run] = row
        self._contents.setdefault(table, {}).setdefault(of_run, set()).add(str(value))
        of_table = self._values.setdefault(table, {})
        for column, content in row.items():
            text = _text_or_none(content)
            if text is None:
                self._partial.setdefault(table, set()).add(column)
            else:
                of_table.setdefault(column, {}).setdefault(of_run, set()).add(text)

    def _table(self, key: object) -> str:
        return self._split(key)[0]

    def _width(self, table: str) -> int:
        if table in self._columns:
            return len(self._columns[table])
        return next((len(self._split(key)[1]) for _, key in self._rows.get(table, ())), 1)

    def _split(self, key: object) -> tuple[str, tuple[str, ...]]:
        """Split a key of a history into the table and the primary key values.

        In an observed history, these values are one text, with commas in between.
        """
        if isinstance(key, tuple | list) and len(key) > 1:
            values = tuple(map(str, key[1:]))
            number = len(self._columns.get(str(key[0]), ()))
            listed = tuple(values[0].split(","))
            return str(key[0]), listed if len(values) == 1 and len(listed) == number else values
        table, slash, row = str(key).partition("/")
        return (table, tuple(row.split("/"))) if slash else (ROWS, (str(key),))


def _is_shown(op: Sequence[Any]) -> bool:
    """Return whether a read shows a row."""
    return len(op) > 2 and _columns(op[2]) is not None


def _key_text(key: object) -> str:
    """Return the primary key in an observed key, without the number of a row with a used key."""
    values = key[1:] if isinstance(key, tuple | list) else ()
    return ",".join(map(str, values)).partition("#")[0]


def _columns(value: object) -> Mapping[str, Any] | None:
    """Return the columns of a row; ``None`` if a value is not a row with columns."""
    if isinstance(value, dict):
        return {str(getattr(name, "name", name)): content for name, content in value.items()}
    text = getattr(value, "text", "")
    return row_columns(text) or None if text.startswith("{") else None


def _text(value: object) -> str:
    return str(getattr(value, "name", value))


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _condition_of(predicate: object, text: str) -> Condition | None:
    """Return the condition of a predicate; ``None`` if it names no table."""
    try:
        shown = text if isinstance(predicate, str) else value_text(predicate, "")
        (form,) = [form for _, form in forms(shown, "")]
    except (HistoryError, ValueError):
        return None
    named = {_text(name): part for name, part in form.items()} if isinstance(form, dict) else {}
    if "table" not in named:
        return None
    return Condition(_text(named["table"]), dict(_equations(named.get("where"))))


def _equations(form: Any) -> Iterator[tuple[str, str]]:
    """Yield the columns that a condition compares with a constant, and the constants."""
    if not isinstance(form, tuple) or not form:
        return
    word, *parts = form
    if word == Keyword("and"):
        for form_inside in parts:
            yield from _equations(form_inside)
    elif word == Keyword("=") and len(parts) == 2 and _is_scalar(parts[1]):
        yield _text(parts[0]), _text(parts[1])


def _is_scalar(value: object) -> bool:
    return value is not None and not isinstance(value, tuple | list | dict)
