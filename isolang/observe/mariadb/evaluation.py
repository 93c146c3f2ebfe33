"""Asks MariaDB which recorded rows satisfy the conditions that it must evaluate.

The rows go to the server as constants of their columns' types and collations, so no table is read.

SOUND BECAUSE: :mod:`.expressions` says what a condition may consist of. Two more checks show
defects of this: each row that a statement returned must satisfy its condition, and the condition
must select the same of the table's present rows as of what was recorded of them. A condition whose
value depends on the connection's collation is refused, because the application's is not known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import json

from isolang.errors import message_in_one_line
from isolang.observe.history.evaluated import EvaluatedCondition, EvaluatedConditions
from isolang.observe.history.images import RowImages
from isolang.observe.log.tables import TOO_LONG, LoggedColumn, Row
from isolang.observe.mariadb.contents import NamedTable
from isolang.observe.mariadb.expressions import INTEGERS, TEXTS
from isolang.observe.sql.evaluated import ROW

_MOST_WORK: Final = 10**7  # the most pairs of a condition and a row
_MOST_ROWS: Final = 200  # the most rows in a statement
_MOST_CONDITIONS: Final = 50
_SECONDS: Final = 60  # the longest time for a statement
_COLLATIONS: Final = ("utf8mb4_general_ci", "utf8mb4_bin")
_EPOCH: Final = datetime(1970, 1, 1)
_LONGEST_NAME: Final = 60_000  # the most bytes of a row's text


class UnknownRowError(Exception):
    """Raised for a row that cannot be sent to the server; the message says why."""


def keep_image(images: RowImages, table: NamedTable, number: str, row: Mapping[str, Any]) -> None:
    """Keep the values of a recorded row, whose number is its key and content in EDN."""
    is_known = len(number) <= _LONGEST_NAME // 4 and TOO_LONG not in row.values()
    image = json.encode([*row.values()]) if is_known else None
    images.add(table.label, number, image)


def evaluate(
    conditions: EvaluatedConditions,
    images: RowImages,
    tables: Mapping[str, NamedTable],
    connect: Callable[[], Any],
) -> None:
    """Evaluate all conditions; those that cannot be evaluated get the reason."""
    for described, of_table in conditions:
        table, count = tables[described.name], images.count(described.name)
        work = len(of_table) * (count or 0)
        conditions.work += work
        if count is None:
            why = "some rows are too long"
        elif conditions.work > _MOST_WORK:
            why = "too many pairs of a condition and a row"
        else:
            why = ""
        for condition in of_table:
            condition.why = condition.why or why
        if not why:
            _evaluate_table(table, of_table, images, count or 0, connect)


def _evaluate_table(
    table: NamedTable,
    conditions: Sequence[EvaluatedCondition],
    images: RowImages,
    count: int,
    connect: Callable[[], Any],
) -> None:
    """Evaluate the conditions on a table."""
    by_mode: defaultdict[str, list[EvaluatedCondition]] = defaultdict(list)
    for condition in conditions:
        by_mode[condition.condition.settings.values[0] or ""].append(condition)
    with closing(connect()) as connection:
        for mode, of_mode in by_mode.items():
            evaluation = _Evaluation(connection, table, mode)
            for begin in range(0, len(of_mode), _MOST_CONDITIONS):
                batch = of_mode[begin : begin + _MOST_CONDITIONS]
                if not evaluation.run(batch, images, count):
                    for condition in batch:
                        evaluation.run([condition], images, count)


class _Evaluation:
    """Evaluates conditions under one ``sql_mode``."""

    def __init__(self, connection: Any, table: NamedTable, mode: str) -> None:
        self._connection, self._table = connection, table
        with closing(connection.cursor()) as cursor:
            cursor.execute("SET SESSION sql_mode = %s", (mode,))
            cursor.execute(f"SET SESSION max_statement_time = {_SECONDS}")

    def run(self, conditions: Sequence[EvaluatedCondition], images: RowImages, count: int) -> bool:
        """Evaluate conditions together; return whether they are all decided."""
        import pymysql

        try:
            for rows in self._chunks(images, count):
                self._evaluate(conditions, rows)
            self._compare_present_rows(conditions)
        except (pymysql.err.MySQLError, UnknownRowError) as error:
            for condition in conditions:
                condition.matches.clear()
                condition.why = message_in_one_line(error) if len(conditions) == 1 else ""
            return False
        return True

    def _chunks(self, images: RowImages, count: int) -> Iterator[list[tuple[str, list[Any]]]]:
        rows: list[tuple[str, list[Any]]] = []
        for number, image in images.of(self._table.label, 0, count):
            rows.append((number, json.decode(image)))
            if len(rows) >= _MOST_ROWS:
                yield rows
                rows = []
        if rows:
            yield rows

    def _evaluate(
        self, conditions: Sequence[EvaluatedCondition], rows: Sequence[tuple[str, list[Any]]]
    ) -> None:
        used = frozenset[str]().union(*(c.condition.columns for c in conditions))
        columns = [
            (place, column) for place, column in enumerate(self._table.table.logged)
            if column.name in used
        ]  # fmt: skip
        selects = [
            "SELECT "
            + ",".join([
                f"{number} AS isolang_n",
                *(f"{constant_sql(column, row[place])} AS {_quoted(column.name)}"
                  for place, column in columns),
            ])
            for number, (_, row) in enumerate(rows)
        ]  # fmt: skip
        source = f"({' UNION ALL '.join(selects)}) AS {ROW}"
        for answers in self._answers(f"{ROW}.isolang_n", source, conditions):
            for number, *truths in answers:
                for condition, is_true in zip(conditions, truths, strict=True):
                    if is_true:
                        condition.matches.add(rows[int(number)][0])

    def _answers(
        self, first: str, source: str, conditions: Sequence[EvaluatedCondition]
    ) -> Iterator[Sequence[Sequence[Any]]]:
        """Yield the truth values for all rows of a source, which no collation may change."""
        shown = ",".join(f"({condition.condition.text[0]}) IS TRUE" for condition in conditions)
        answers = []
        with closing(self._connection.cursor()) as cursor:
            for collation in _COLLATIONS:
                cursor.execute(f"SET NAMES utf8mb4 COLLATE {collation}")
                cursor.execute(f"SELECT {first},{shown} FROM {source}")
                answers.append(cursor.fetchall())
        if answers[0] != answers[1]:
            raise UnknownRowError("it depends on the connection's collation")
        yield answers[0]

    def _compare_present_rows(self, conditions: Sequence[EvaluatedCondition]) -> None:
        """Compare what the conditions select of the table itself with what they select of rows."""
        import pymysql

        table = self._table.table
        source = f"{_quoted(table.schema)}.{_quoted(table.name)} AS {ROW}"
        try:
            answers = [*self._answers(table.image_sql(ROW), source, conditions)]
        except pymysql.err.MySQLError:
            return  # the table has another definition now
        for image, *truths in answers[0]:
            number = self._number(table.row(image if isinstance(image, str) else image.decode()))
            for condition, is_true in zip(conditions, truths, strict=True):
                if number is not None and (number in condition.matches) != bool(is_true):
                    condition.why, condition.is_wrong = "its present rows differ", True

    def _number(self, row: Row | None) -> str | None:
        """Return the number of a row; ``None`` if it was not recorded."""
        if row is None:
            return None
        key = self._table.table.key_of(row)
        text = self._table.find(key, row)
        return None if text is None else f"{self._table.key_edn(key)} {text}"


def before_sql(column: LoggedColumn, end: Any, *, descends: bool) -> str:
    """Return the SQL condition of the rows before a value in the order of a column."""
    name = f"{ROW}.{_quoted(column.name)}"
    if end is None:  # NULL is the lowest
        return f"{name} IS NOT NULL" if descends else "FALSE"
    end_sql = constant_sql(column, end)
    return f"{name} > {end_sql}" if descends else f"({name} < {end_sql} OR {name} IS NULL)"


def constant_sql(column: LoggedColumn, value: Any) -> str:
    """Return a value in SQL that the server treats as the column.

    Raises:
        UnknownRowError: the value has no such form.
    """
    if column.type in INTEGERS:
        kind = "UNSIGNED" if column.unsigned else "SIGNED"
        return f"CAST({'NULL' if value is None else int(value)} AS {kind})"
    if column.type in TEXTS:
        shown = "NULL" if value is None else f"_utf8mb4 0x{value.encode().hex()}"
        if value == "":
            shown = "_utf8mb4 ''"
        return f"CONVERT({shown} USING {column.charset}) COLLATE {column.collation}"
    if column.type == "decimal":
        shown = "NULL" if value is None else _decimal(int(value), column.scale)
        return f"CAST({shown} AS DECIMAL(38,{column.scale}))"
    if column.type == "double":
        shown = "NULL" if value is None else f"'{float(value)!r}'"
        return f"CAST({shown} AS DOUBLE)"
    kind = "DATE" if column.type == "date" else f"DATETIME({column.scale})"
    if value is not None and not isinstance(value, int):
        raise UnknownRowError("a date that does not exist")
    moment = None if value is None else _EPOCH + timedelta(microseconds=value)
    shown = "NULL" if moment is None else f"'{moment.isoformat(' ')}'"
    return f"CAST({shown} AS {kind})"


def _decimal(value: int, scale: int) -> str:
    """Return a whole number of units of the last digit as a decimal.

    >>> _decimal(-5, 2), _decimal(1250, 2), _decimal(7, 0)
    ('-0.05', '12.50', '7')
    """
    digits = str(abs(value)).rjust(scale + 1, "0")
    whole, fraction = (digits[:-scale], digits[-scale:]) if scale else (digits, "")
    return f"{'-' * (value < 0)}{whole}{'.' * bool(fraction)}{fraction}"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
