"""Asks the server which recorded versions of rows satisfy the conditions that it must evaluate.

The images of versions go back to the server as one array of rows in binary format, and all
conditions on a table are columns of one statement on this array.

SOUND BECAUSE: a condition is evaluated only if its value follows from the row, its constants and
the settings of the session, which are set before:

* Each type that it uses is a built-in type, an enumeration, or a type of a trusted extension, so no
  code of the application runs for operators, casts, or the input of constants. (The columns may be
  of domains, whose checks every recorded row has passed.) Types whose texts are read from the
  catalogue, such as ``regclass``, are refused.
* A function or operator could be any with its name. So each built-in function with the name must be
  immutable, or depend on the settings only. Functions of the application count even if they are
  declared IMMUTABLE, because that may be a lie, and so do functions of extensions, except for the
  immutable ones of a few extensions. An operator of the application is possible only if one of its
  operands has a type of the application that the condition uses: no value of another type becomes
  one without a cast, because conditions are refused where the application has added such casts.
  (A comparison of two constants is an exception that reads no row.)
* Names are searched for in the same schemas. Functions, types and settings change only with
  definitions, and the conditions are evaluated before the proxy forwards such a statement.
* The constants ``now``, ``today``, ``tomorrow`` and ``yesterday`` read the clock if they are taken
  for a time, and so would a text of a row that is cast to a time. Both are refused.

Two checks show defects of this argument: each row that a statement returned must satisfy its
condition, and the condition must select the same of the table's present rows as of their images.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from typing import Any, Final

from msgspec import Struct

from isolang.errors import IsolangError, message_in_one_line
from isolang.observe.history.evaluated import EvaluatedCondition, EvaluatedConditions
from isolang.observe.history.images import RowImages
from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.evaluated import ROW, SETTINGS, ServerCondition, SessionSettings

_MOST_WORK: Final = 10**7  # the most pairs of a condition and a version in a history
_CHUNK_ROWS: Final = 5000  # the most rows in a statement
_CHUNK_BYTES: Final = 1 << 23  # about the most bytes of images in a statement
_COLUMNS: Final = 100  # the most conditions in a statement
_SECONDS: Final = 60  # the longest time for a statement
_FIRST_USER_OID: Final = 16384

_TRUSTED: Final = ("citext", "hstore", "ltree", "pg_trgm", "intarray", "cube", "isn", "seg",
                   "fuzzystrmatch")  # fmt: skip
"""The extensions whose immutable functions in C depend on their arguments alone."""

_STABLE: Final = frozenset({
    "to_char", "to_date", "to_number", "to_timestamp", "date_trunc", "date_part", "extract",
    "timezone", "concat", "concat_ws", "format", "array_to_string", "array_to_json", "to_json",
    "to_jsonb", "json_build_array", "json_build_object", "jsonb_build_array", "jsonb_build_object",
    "quote_literal", "quote_nullable", "make_timestamptz", "date", "time", "timetz", "timestamp",
    "timestamptz", "text", "date_add", "date_subtract", "to_tsvector", "to_tsquery",
    "plainto_tsquery", "phraseto_tsquery", "websearch_to_tsquery", "length", "numeric",
})  # fmt: skip
"""The stable functions of pg_catalog that depend on their arguments and on the settings alone."""

# Built-in types whose texts or comparisons read the catalogue, or depend on the server's build.
_REFUSED_TYPES: Final = frozenset({
    24, 2202, 2203, 2204, 2205, 2206, 4191, 4089, 4096, 3734, 3769, 142, 143, 1033, 1034,
})  # fmt: skip
_TIMES: Final = frozenset({1082, 1083, 1114, 1184, 1266})

_FUNCTIONS: Final = """SELECT p.proname::text, p.oid < 16384, p.provolatile::text,
 p.prokind = 'f' AND NOT p.proretset,
 EXISTS (SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension x ON x.oid = d.refobjid
  WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
   AND x.extname = ANY (%s)) AND l.lanname = 'c'
 FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
 WHERE p.proname = ANY (%s)"""
_OPERATORS: Final = """SELECT o.oprname::text, o.oid < 16384, o.oprleft::int8, o.oprright::int8,
 p.provolatile::text,
 EXISTS (SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension x ON x.oid = d.refobjid
  WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
   AND x.extname = ANY (%s)) AND l.lanname = 'c'
 FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode
 JOIN pg_catalog.pg_language l ON l.oid = p.prolang WHERE o.oprname = ANY (%s)"""
_CASTS: Final = """SELECT k.castsource::int8, k.casttarget::int8, k.castcontext = 'i',
 k.castfunc = 0 OR EXISTS (
  SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension x ON x.oid = d.refobjid
  JOIN pg_catalog.pg_proc p ON p.oid = d.objid JOIN pg_catalog.pg_language l ON l.oid = p.prolang
  WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = k.castfunc AND d.deptype = 'e'
   AND x.extname = ANY (%s) AND l.lanname = 'c' AND p.provolatile = 'i')
 FROM pg_catalog.pg_cast k WHERE k.oid >= 16384"""
# A type, and what it is made of: the base of a domain, and the elements of an array.
_TYPE: Final = """t.oid::int8, t.typtype::text, COALESCE(b.oid, t.oid)::int8,
 COALESCE(b.typtype, t.typtype)::text, COALESCE(e.oid, 0)::int8, COALESCE(e.typtype, 'b')::text,
 EXISTS (SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension x ON x.oid = d.refobjid
  WHERE d.classid = 'pg_catalog.pg_type'::regclass AND d.deptype = 'e'
   AND d.objid = COALESCE(e.oid, b.oid, t.oid) AND x.extname = ANY (%s))"""
_TYPE_FROM: Final = """pg_catalog.pg_type t
 LEFT JOIN pg_catalog.pg_type b ON b.oid = NULLIF(t.typbasetype, 0)
 LEFT JOIN pg_catalog.pg_type e ON e.oid = NULLIF(COALESCE(b.typelem, t.typelem), 0)
  AND COALESCE(b.typcategory, t.typcategory) = 'A'"""
_COLUMN_TYPES: Final = f"""SELECT a.attname::text, {_TYPE} FROM pg_catalog.pg_attribute a
 JOIN {_TYPE_FROM} ON t.oid = a.atttypid WHERE a.attrelid = %s AND a.attnum > 0
 AND NOT a.attisdropped"""
_NAMED_TYPES: Final = f"""SELECT w.name, {_TYPE} FROM pg_catalog.unnest(%s::text[]) w(name)
 JOIN {_TYPE_FROM} ON t.oid = pg_catalog.to_regtype(w.name)"""
_PARAMETER_TYPES: Final = f"""SELECT t.oid::text, {_TYPE} FROM {_TYPE_FROM}
 WHERE t.oid = ANY (%s::oid[])"""


class TableWork(Struct):
    """The conditions on a table to evaluate, and the images of its first ``count`` versions.

    Attributes:
        met: how many statements have met each condition.
    """

    table: Table
    conditions: list[EvaluatedCondition]
    images: RowImages
    count: int
    met: list[int]


class _Type(Struct, frozen=True):
    """A type, with the type that a domain is of, and that of an array's elements."""

    oid: int
    kind: str
    base: int
    base_kind: str
    element: int
    element_kind: str
    trusted: bool

    @property
    def is_known(self) -> bool:
        """Return whether the type's functions depend on values alone."""
        if {self.oid, self.base, self.element} & _REFUSED_TYPES or self.kind in "cp":
            return False
        oid, kind = (
            (self.element, self.element_kind) if self.element else (self.base, self.base_kind)
        )
        return oid < _FIRST_USER_OID or kind == "e" or (self.trusted and kind == "b")

    @property
    def parts(self) -> set[int]:
        """Return the types that operators may be of."""
        return {self.oid, self.base, self.element}


class _StatementError(Exception):
    """Raised when the server refuses a statement."""


def pending_work(
    conditions: EvaluatedConditions, images: RowImages, copied: Callable[[], RowImages]
) -> list[TableWork]:
    """Return the conditions that have not been evaluated on all versions.

    Conditions that cannot be evaluated get the reason.
    """
    pending = []
    snapshot = None
    for table, of_table in conditions:
        count = images.count(table.name)
        waiting = [c for c in of_table if not c.why and (c.is_new or c.evaluated < (count or 0))]
        new = sum((count or 0) - (0 if c.condition.order else c.evaluated) for c in waiting)
        if count is None:
            why, waiting = "the images of some rows are not known", of_table
        elif table.altered:
            why = "the table was altered before"
        elif conditions.work + new > _MOST_WORK:
            why = "too many pairs of a condition and a row"
        else:
            why = ""
        if why:
            _refuse(waiting, why)
        elif waiting:
            conditions.work += new
            snapshot = snapshot or copied()
            met = [condition.met for condition in waiting]
            pending.append(TableWork(table, waiting, snapshot, count or 0, met))
    return pending


def evaluate(work: Sequence[TableWork], connect: Callable[[str], Any], most_rows: int) -> None:
    """Evaluate conditions; those that cannot be evaluated get the reason."""
    by_database: defaultdict[str, list[TableWork]] = defaultdict(list)
    for of_table in work:
        by_database[of_table.table.database].append(of_table)
    for database, tables in by_database.items():
        try:
            with closing(connect(database)) as connection:
                for of_table in tables:
                    _TableEvaluation(connection, of_table, most_rows).run()
                    for condition, met in zip(of_table.conditions, of_table.met, strict=True):
                        condition.settled = max(condition.settled, met)
        except IsolangError as error:
            for of_table in tables:
                _refuse(of_table.conditions, str(error))


def _refuse(conditions: Iterable[EvaluatedCondition], why: str) -> None:
    for condition in conditions:
        condition.why = condition.why or why


class _TableEvaluation:
    """Evaluates the conditions on one table."""

    def __init__(self, connection: Any, work: TableWork, most_rows: int) -> None:
        self._connection, self._work, self._most = connection, work, most_rows
        self._row = self._array = 0

    def run(self) -> None:
        """Evaluate the conditions."""
        import psycopg

        by_settings: defaultdict[SessionSettings, list[EvaluatedCondition]] = defaultdict(list)
        for condition in self._work.conditions:
            by_settings[condition.condition.settings].append(condition)
        for settings, conditions in by_settings.items():
            try:
                self._begin(settings)
                self._evaluate(settings, self._accepted(conditions))
            except (psycopg.Error, _StatementError) as error:
                _refuse(conditions, message_in_one_line(error))
            finally:
                with suppress(psycopg.Error):
                    self._connection.execute("ROLLBACK")

    def _begin(self, settings: SessionSettings) -> None:
        """Begin a transaction with the settings of the session that met the conditions."""
        execute = self._connection.execute
        execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for name, value in zip(SETTINGS, settings.values, strict=True):
            if value is not None:
                execute("SELECT pg_catalog.set_config(%s, %s, true)", (name, value))
        schemas = ", ".join('"' + name.replace('"', '""') + '"' for name in settings.schemas)
        execute("SELECT pg_catalog.set_config('search_path', %s, true)", (schemas,))
        execute(f"SET LOCAL statement_timeout = '{_SECONDS}s'; SET LOCAL lock_timeout = '1s'")
        oids = execute(
            "SELECT c.reltype::int8, t.typarray::int8 FROM pg_catalog.pg_class c "
            "JOIN pg_catalog.pg_type t ON t.oid = c.reltype WHERE c.oid = %s",
            (self._work.table.oid,),
        ).fetchone()
        if oids is None:
            raise _StatementError("the table does not exist")
        self._row, self._array = oids

    # --- what a condition may depend on ---

    def _accepted(self, conditions: Sequence[EvaluatedCondition]) -> list[EvaluatedCondition]:
        """Return the conditions that depend on rows, constants and settings alone."""
        facts = _CatalogueFacts(self._connection, self._work.table, conditions)
        accepted = []
        for condition in conditions:
            if why := facts.why_refused(condition.condition):
                condition.why = why
            else:
                accepted.append(condition)
        return accepted

    # --- evaluation ---

    def _evaluate(
        self, settings: SessionSettings, conditions: Sequence[EvaluatedCondition]
    ) -> None:
        by_begin: defaultdict[tuple[int, bool], list[EvaluatedCondition]] = defaultdict(list)
        for condition in conditions:
            ordered = bool(condition.condition.order)
            by_begin[0 if ordered else condition.evaluated, ordered].append(condition)
        for (begin, ordered), group in by_begin.items():
            for batch in _batches(group):
                self._retry_alone(self._evaluate_ordered if ordered else self._evaluate_plain,
                                  settings, batch, begin)  # fmt: skip
        plain = [c for c in conditions if not c.condition.order and not c.why]
        if self._work.table.rows_known:
            for batch in _batches(plain):
                self._retry_alone(self._compare_present_rows, settings, batch, 0)

    def _retry_alone(
        self,
        evaluate: Callable[[Sequence[EvaluatedCondition], int], None],
        settings: SessionSettings,
        batch: Sequence[EvaluatedCondition],
        begin: int,
    ) -> None:
        """Evaluate conditions in one statement or, after an error, each in its own."""
        try:
            evaluate(batch, begin)
            return
        except _StatementError as error:
            if len(batch) == 1:
                batch[0].why = str(error)
        self._connection.execute("ROLLBACK")
        self._begin(settings)
        for condition in batch if len(batch) > 1 else ():
            self._retry_alone(evaluate, settings, [condition], begin)

    def _chunks(self, begin: int) -> Iterator[list[tuple[str, bytes]]]:
        """Yield the images of versions from a position on, some at a time."""
        chunk: list[tuple[str, bytes]] = []
        size = 0
        for number, image in self._work.images.of(self._work.table.name, begin, self._work.count):
            chunk.append((number, image))
            size += len(image)
            if len(chunk) >= _CHUNK_ROWS or size > _CHUNK_BYTES:
                yield chunk
                chunk, size = [], 0
        if chunk:
            yield chunk

    def _evaluate_plain(self, batch: Sequence[EvaluatedCondition], begin: int) -> None:
        matches: list[set[str]] = [set() for _ in batch]
        texts = [condition.condition for condition in batch]
        for chunk in self._chunks(begin):
            rows = self._columns_of_images(chunk, texts, ordered=False)
            for (number, _), row in zip(chunk, rows, strict=True):
                for numbers, value in zip(matches, row[1:], strict=True):
                    if value == b"t":
                        numbers.add(number)
        for condition, numbers in zip(batch, matches, strict=True):
            # The loop's thread may copy the set meanwhile.
            condition.matches = condition.matches | numbers
            condition.evaluated = self._work.count

    def _evaluate_ordered(self, batch: Sequence[EvaluatedCondition], begin: int) -> None:
        """Evaluate conditions with ORDER BY and LIMIT.

        SOUND BECAUSE: the server returned the rows that come before the last one, and perhaps only
        some of the rows with the same rank. Compared with the last row, each version has the
        same rank whatever other versions there are.
        """
        lasts = {condition.condition.last for condition in batch}
        images = {number: image for chunk in self._chunks(0) for number, image in chunk
                  if number in lasts}  # fmt: skip
        if len(images) < len(lasts):  # the writer of a row has not ended yet
            return
        texts = [condition.condition for condition in batch]
        before: list[set[str]] = [set() for _ in batch]
        ties: list[set[str]] = [set() for _ in batch]
        for chunk in self._chunks(begin):
            numbers = {number for number, _ in chunk}
            more = [(number, image) for number, image in images.items() if number not in numbers]
            places = [number for number, _ in (*chunk, *more)]
            rows = self._columns_of_images([*chunk, *more], texts, ordered=True)
            ranks = {places[int(row[0] or 0) - 1]: row[1:] for row in rows}
            for n, condition in enumerate(batch):
                last = int(ranks[condition.condition.last][2 * n + 1] or 0)
                for number in numbers:
                    value, rank = ranks[number][2 * n : 2 * n + 2]
                    if value == b"t" and int(rank or 0) <= last:
                        (before if int(rank or 0) < last else ties)[n].add(number)
        for n, condition in enumerate(batch):
            condition.matches, condition.ties = before[n], ties[n]
            condition.evaluated = self._work.count

    def _columns_of_images(
        self, chunk: Sequence[tuple[str, bytes]], conditions: Sequence[ServerCondition], *,
        ordered: bool,
    ) -> list[list[bytes | None]]:  # fmt: skip
        """Return for each image its position from 1, and for each condition its value and rank."""
        values: list[Any] = [_array(self._row, [image for _, image in chunk])]
        types = [self._array]
        columns = []
        for condition in conditions:
            columns.append(f"({_sql(condition.text, len(values))}) IS TRUE")
            if ordered:
                order = _sql(condition.order, len(values))
                columns.append(f"pg_catalog.rank() OVER (ORDER BY {order})")
            values += [_bytes(value) for _, value in condition.parameters]
            types += [oid for oid, _ in condition.parameters]
        formats = [1] + [
            int(isinstance(value, bytes)) for c in conditions for _, value in c.parameters
        ]
        sql = (
            f"SELECT {ROW}.ordinality, {', '.join(columns)} FROM pg_catalog.unnest("
            f"$1::{self._work.table.where}[]) WITH ORDINALITY {ROW}"
        )
        return self._rows(sql, values, types, formats)

    def _compare_present_rows(self, batch: Sequence[EvaluatedCondition], _: int) -> None:
        """Mark conditions that select others of the present rows than of their images."""
        table = self._work.table
        values: list[bytes | None] = []
        types: list[int] = []
        columns = []
        formats = []
        for condition in batch:
            columns.append(f"({_sql(condition.condition.text, len(values))}) IS TRUE")
            values += [_bytes(value) for _, value in condition.condition.parameters]
            types += [oid for oid, _ in condition.condition.parameters]
            formats += [int(isinstance(v, bytes)) for _, v in condition.condition.parameters]
        rows = self._rows(
            f"SELECT {ROW}.tableoid::text, {ROW}.xmin::text, {ROW}.ctid::text, "
            f"{', '.join(columns)} FROM {table.where} {ROW} LIMIT {self._most + 1}",
            values, types, formats,
        )  # fmt: skip
        if len(rows) > self._most:
            return
        known = {number for number, _ in self._work.images.of(table.name, 0, self._work.count)}
        for oid, xmin, ctid, *present in rows:
            number = table.version(*((text or b"").decode() for text in (oid, xmin, ctid)))
            if number not in known:
                continue
            for condition, value in zip(batch, present, strict=True):
                if (value == b"t") != (number in condition.matches):
                    condition.why = f"version {number} differs from its image"
                    condition.is_wrong = True

    def _rows(
        self, sql: str, values: Sequence[Any], types: Sequence[int], formats: Sequence[int]
    ) -> list[list[bytes | None]]:
        """Return the rows of a statement.

        Raises:
            _StatementError: the server refuses it.
        """
        from psycopg import pq

        result = self._connection.pgconn.exec_params(
            sql.encode("utf-8", "surrogateescape"), values, types, formats
        )
        if result.status != pq.ExecStatus.TUPLES_OK:
            raise _StatementError(result.error_message.decode(errors="replace").split("\n")[0])
        return [
            [result.get_value(row, column) for column in range(result.nfields)]
            for row in range(result.ntuples)
        ]


class _CatalogueFacts:
    """The functions, operators, casts and types in the catalogue that conditions name."""

    def __init__(
        self, connection: Any, table: Table, conditions: Sequence[EvaluatedCondition]
    ) -> None:
        named = [condition.condition for condition in conditions]
        trusted = list(_TRUSTED)

        def ask(sql: str, *parameters: Any) -> list[Any]:
            return list(connection.execute(sql, parameters).fetchall())

        def names(of: Iterable[frozenset[str]]) -> list[str]:
            return sorted(frozenset().union(*of))

        self._functions: defaultdict[str, list[Any]] = defaultdict(list)
        for name, *facts in ask(_FUNCTIONS, trusted, names(c.functions for c in named)):
            self._functions[name].append(facts)
        self._operators: defaultdict[str, list[Any]] = defaultdict(list)
        for name, *facts in ask(_OPERATORS, trusted, names(c.operators for c in named)):
            self._operators[name].append(facts)
        self._casts = ask(_CASTS, trusted)
        types = names(c.types for c in named)
        oids = sorted({oid for c in named for oid, _ in c.parameters if oid})
        columns = ask(_COLUMN_TYPES, trusted, table.oid)
        self._columns = {name: _Type(*facts) for name, *facts in columns}
        self._types = {name: _Type(*facts) for name, *facts in ask(_NAMED_TYPES, trusted, types)}
        parameters = ask(_PARAMETER_TYPES, trusted, oids)
        self._parameters = {int(oid): _Type(*facts) for oid, *facts in parameters}

    def why_refused(self, condition: ServerCondition) -> str:
        """Return what a condition may depend on besides its row; empty if there is nothing."""
        unknown = condition.columns - self._columns.keys()
        if unknown:
            return f"{min(unknown)} is not a column"
        types = [self._columns[name] for name in condition.columns]
        for name in condition.types:
            if name not in self._types or self._types[name].kind == "d":
                return f"the type {name}"
            types.append(self._types[name])
        for oid, _ in condition.parameters:
            if oid and oid not in self._parameters:
                return f"the type {oid} of a parameter"
            types += [self._parameters[oid]] if oid else []
        for each in types:
            if not each.is_known:
                return f"the type {each.oid}"
        reachable = set().union(*(each.parts for each in types))
        if condition.timed - self._columns.keys() or any(
            self._columns[name].base not in _TIMES for name in condition.timed
        ):
            return "a text that is cast to a time"
        timed = any(part in _TIMES for part in reachable) or condition.functions & _STABLE
        if condition.reads_clock and timed:
            return "a constant such as 'today'"
        for source, target, implicit, trusted in self._casts:
            built_in = source < _FIRST_USER_OID
            possible = source in reachable and (implicit or target in reachable) and not trusted
            if possible or (built_in and (implicit or target < _FIRST_USER_OID)):
                return "casts of the database"
        return self._why_function_refused(condition) or self._why_operator_refused(
            condition, reachable
        )

    def _why_function_refused(self, condition: ServerCondition) -> str:
        for name in sorted(condition.functions):
            candidates = self._functions[name]
            if not candidates:
                return f"the function {name}"
            for built_in, volatility, plain, trusted in candidates:
                stable = built_in and volatility == "s" and name in _STABLE
                known = (built_in or trusted) and plain and (volatility == "i" or stable)
                if not known:
                    return f"the function {name}"
        return ""

    def _why_operator_refused(self, condition: ServerCondition, reachable: set[int]) -> str:
        for name in sorted(condition.operators):
            if not self._operators[name]:
                return f"the operator {name}"
            for built_in, left, right, volatility, trusted in self._operators[name]:
                if (built_in and volatility != "v") or (trusted and volatility == "i"):
                    continue
                users = {oid for oid in (left, right) if oid >= _FIRST_USER_OID}
                if not users or users <= reachable:
                    return f"the operator {name} of the database"
        return ""


def _batches(
    conditions: Sequence[EvaluatedCondition],
) -> Iterator[Sequence[EvaluatedCondition]]:
    for begin in range(0, len(conditions), _COLUMNS):
        yield conditions[begin : begin + _COLUMNS]


def _sql(pieces: Sequence[str | int], before: int) -> str:
    """Return the text of a condition whose parameters come after others."""
    texts = [f" ${before + piece + 1} " if isinstance(piece, int) else piece for piece in pieces]
    return "".join(texts) or "true"


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _array(element: int, images: Sequence[bytes]) -> bytes:
    """Return rows as an array in binary format."""
    head = struct.pack("!iiIii", 1, 0, element, len(images), 1)
    return head + b"".join(part for image in images for part in (_size(image), image))


def _size(image: bytes) -> bytes:
    return struct.pack("!i", len(image))
