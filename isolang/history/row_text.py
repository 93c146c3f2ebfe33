"""Formats the rows read or changed by a transaction, for explanations.

A recorder that sees the rows of its transactions records them whole, and :class:`RowTexts` makes
the texts when they are shown. A wide row has many columns, and few matter: those that a write
changed, or in which the row's versions differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from isolang.history import columns as c
from isolang.history.values import OTHER, ROW_KEY, Keyword, Literal, decode, row_columns
from isolang.patterns import pattern

if TYPE_CHECKING:
    from isolang.history.described import DescribedColumns

LONGEST: Final = 40  # the largest number of characters of a value to fetch and show
_MOST: Final = 8  # the largest number of columns of a row to show
_PLAIN: Final = pattern(r"[\w.:+/@ -]+")


def value_text(value: object) -> str:
    """Return a column's value as short text. This never fails, whatever the value is.

    >>> value_text("a, b"), value_text(None), value_text(2.5)
    ('"a, b"', 'null', '2.5')
    """
    if value is None:
        return "null"
    try:
        text = str(value)
    except Exception:  # the ``__str__`` method of an application's class may raise any error
        text = f"a {type(value).__name__}"
    # Escape characters that cannot be encoded; otherwise the history could not be written.
    text = text[:LONGEST].encode(errors="backslashreplace").decode()
    text = text if len(text) < LONGEST else text[: LONGEST - 1] + "…"
    if _PLAIN.fullmatch(text.removesuffix("…")) and text == text.strip():
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _shown(columns: Sequence[str]) -> str:
    more = ["…"] * (len(columns) > _MOST)
    return "{" + ", ".join([*columns[:_MOST], *more]) + "}"


# --- rows that are recorded as values ---

ColumnForms: TypeAlias = Mapping[str, Mapping[str, str]]
"""For each table, what the numbers in some of its columns mean.

The meaning is ``date``, ``timestamp`` or ``timestamptz`` for microseconds since 1970, and ``numeric
2`` for hundredths.
"""

_VERSION: Final = "xmin"  # the column that the recorder adds to tell versions apart
CLASS_COLUMN: Final = "xmin class"
"""The column that the recorder adds to say which conditions the server found to be true."""
_INFINITE: Final = 2**63 - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMN: Final = pattern(r'\[:[^\s\[\]:]+ (?::([^\s\[\]]+)|"((?:[^"\\]|\\.)*)")')


def shown_value(value: Any, form: str = "") -> str:
    """Return a recorded value as text: a time as a time, and a decimal with its point.

    >>> shown_value(1777629600000000, "timestamptz"), shown_value(1777593600000000, "date")
    ('2026-05-01 10:00:00+00', '2026-05-01')
    >>> shown_value(1250, "numeric 2"), shown_value(2**63 - 1, "timestamp"), shown_value(None)
    ('12.50', 'infinity', 'null')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if not form or not isinstance(value, int):
        return value_text(value.text if isinstance(value, Literal) else value)
    if form.startswith("numeric "):
        return "NaN" if value == _INFINITE else str(Decimal(value).scaleb(-int(form[8:])))
    if abs(value) == _INFINITE:
        return "infinity" if value > 0 else "-infinity"
    try:
        moment = _EPOCH + timedelta(microseconds=value)
    except OverflowError:
        return str(value)
    if form == "date":
        return moment.date().isoformat()
    text = moment.replace(tzinfo=None).isoformat(" ").rstrip("0" if value % 1_000_000 else "")
    return text + ("+00" if form == "timestamptz" else "")


def table_of(history: DescribedColumns, key: int) -> str:
    """Return the table of an application's row by its key; for another key, its name.

    The key of a row is a vector or a text: ``["user" "7"]`` or ``user/7``.
    """
    match decode(*history.columns.key(key)):
        case (str() as table, *_) | (Keyword(name=table), *_):
            return table
        case str() as text if ROW_KEY.fullmatch(text):
            return text.partition("/")[0]
    return history.key(key)


class RowTexts:
    """Makes the texts of the rows that a proxy recorded as values.

    Attributes:
        forms: what the numbers in the columns of the recorded tables mean.
    """

    def __init__(self, history: DescribedColumns) -> None:
        """Prepare to format the rows of a history."""
        from isolang.history.remarks import read_column_forms

        self.forms = read_column_forms(history.files[0]) if history.is_recording() else {}
        self._history, self._columns = history, history.columns
        self._rows: dict[int, Mapping[str, Any] | None] = {}
        self._differing: dict[int, list[str]] = {}
        self._versions: dict[int, list[int]] = {}  # the values of each key
        self._in_conditions: dict[str, None] = {}

    def of(self, op: int) -> str:
        """Return the columns that matter of the row read or written by an operation.

        For a write, these are the columns that it changed, if the transaction has seen the row
        before. Otherwise, they are those in which versions of the row differ. A row with a single
        version is shown with its first columns, those in conditions before others. The result is
        empty if the operation is about no recorded row.
        """
        columns = self._columns
        if int(columns.op_kind[op]) not in (c.READ, c.WRITE):
            return ""
        row = self._row(int(columns.op_value[op]))
        if row is None:
            return ""
        key = int(columns.op_key[op])
        before, later = self._around(op)
        forms = self.forms.get(table_of(self._history, key), {})

        def shown(name: str) -> str:
            value = shown_value(row[name], forms.get(name, ""))
            if name in changed:
                return f"{name}: {shown_value(before[name], forms.get(name, ''))} → {value}"
            return f"{name}: {value}"

        changed = [name for name in row if name in before and before[name] != row[name]]
        names = changed
        if not changed:
            names = [name for name in later if name in row]
            names += [n for n in self._differing_columns(key) if n in row and n not in names]
        if not names:
            self._read_conditions()
            names = sorted(row, key=lambda name: name not in self._in_conditions)
        return _shown([shown(name) for name in names])

    def _row(self, atom: int) -> Mapping[str, Any] | None:
        """Return the columns of a recorded row without its version; ``None`` for another value."""
        if atom not in self._rows:
            kind, text = self._columns.value(atom) if atom >= 0 else (c.NIL_ATOM, "")
            recorded = kind == OTHER and f'"{_VERSION}" ' in text
            row = row_columns(text) if recorded else {}
            known = len(row) > 1 and _VERSION in row
            added = (_VERSION, CLASS_COLUMN)
            without_version = {name: value for name, value in row.items() if name not in added}
            self._rows[atom] = without_version if known else None
        return self._rows[atom]

    def _around(self, op: int) -> tuple[Mapping[str, Any], list[str]]:
        """Return what the transaction knew of a row before a write, or changed after a read.

        The first is the row as the transaction last read or wrote it; empty for a read. The second
        are the names of the columns that the transaction's next write of the row changed.
        """
        columns = self._columns
        others = [
            other
            for other in self._history.operations_of(self._history.transaction_of(op))
            if columns.op_key[other] == columns.op_key[op]
            and int(columns.op_kind[other]) in (c.READ, c.WRITE)
        ]
        rows = {other: self._row(int(columns.op_value[other])) or {} for other in others}
        if int(columns.op_kind[op]) == c.WRITE:
            return next((rows[other] for other in reversed(others) if other < op), {}), []
        write = next((o for o in others if o > op and int(columns.op_kind[o]) == c.WRITE), op)
        return {}, [name for name, v in rows[write].items() if rows[op].get(name, v) != v]

    def _differing_columns(self, key: int) -> list[str]:
        """Return the columns in which the versions of a row differ."""
        if not self._versions:
            columns = self._columns
            plain = ((columns.op_kind == c.READ) | (columns.op_kind == c.WRITE)) & (
                columns.op_value >= 0
            )
            initial = enumerate(columns.initial_value.tolist())
            pairs = zip(
                columns.op_key[plain].tolist(), columns.op_value[plain].tolist(), strict=True
            )
            for one, atom in dict.fromkeys((*initial, *pairs)):
                self._versions.setdefault(one, []).append(atom)
        if key not in self._differing:
            rows = [row for atom in self._versions.get(key, ()) if (row := self._row(atom))]
            names = dict.fromkeys(name for row in rows for name in row)
            self._differing[key] = [
                name for name in names if any(row.get(name) != rows[0].get(name) for row in rows)
            ]
        return self._differing[key]

    def _read_conditions(self) -> None:
        """Collect the names of the columns in the history's conditions."""
        if not self._in_conditions:
            names = (n for text in self._columns.predicates for n in _COLUMN.findall(text))
            self._in_conditions = dict.fromkeys(map("".join, names), None) or {"": None}
