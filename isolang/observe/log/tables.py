"""The tables of a MariaDB server, and the canonical value of each column.

A *row image* is one text for the stored columns of a row. The server computes it in an SQL
expression (:meth:`LoggedTable.image_sql`), and :mod:`isolang.observe.log.values` decodes the same
texts from the log. Both become Python values in :meth:`LoggedColumn.value`, so a value that was
read equals the value that was written. The texts do not depend on the session's character set, time
zone and SQL mode.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from decimal import Context, Decimal
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})
TEXTS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
ELEMENTS: Final = frozenset({"enum", "set"})
BLOBS: Final = frozenset(
    {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "inet4", "inet6"}
)
GEOMETRIES: Final = frozenset(
    {"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring",
     "multipolygon", "geometrycollection"}
)  # fmt: skip

TOO_LONG: Final = "\0 longer than max_allowed_packet"
"""The value of a text that the server does not return; no log contains it."""

SEQUENCE: Final = "sequence"
"""Why the table of a sequence is not observed: its numbers are in no transaction."""

_CODECS: Final = {
    "utf8mb4": "utf-8", "utf8mb3": "utf-8", "utf8": "utf-8", "ascii": "ascii", "latin1": "cp1252",
    "ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be",
}  # fmt: skip
_LONG: Final = frozenset({"text", "mediumtext", "longtext", "blob", "mediumblob", "longblob"})
_FIXED_BYTES: Final = {"inet4": 4, "inet6": 16, "uuid": 16}
_NULL: Final = "N"
_MOMENT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?"
)
_PLAIN: Final = re.compile(r"[\t\n\r -~]*")  # other control characters have no weight
_EPOCH: Final = datetime(1970, 1, 1)
_DAY: Final = 86_400_000_000  # microseconds
_EXACT: Final = Context(prec=65)  # the digits of the longest DECIMAL; by default, Python keeps 28
_SCALE: Final = 6  # digits after the point that a number in a history may have
_ATTEMPTS: Final = 3  # how often definitions are loaded if they change meanwhile
SYSTEM_SCHEMAS: Final = ("mysql", "information_schema", "performance_schema", "sys")
_SYSTEM: Final = str(SYSTEM_SCHEMAS)  # a list in SQL, too

Row = dict[str, Any]
Name = tuple[str, str]  # a schema, and a table in it


def _microseconds(text: str) -> int | str:
    """Return the microseconds since 1970, or the text itself for a date that does not exist."""
    match = _MOMENT.fullmatch(text)
    if not match:
        raise ValueError(f"a date of another form: {text}")
    year, month, day, hour, minute, second, fraction = match.groups("0")
    try:
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second))
    except ValueError:  # 0000-00-00, 2024-00-15, and 2024-02-31 under ALLOW_INVALID_DATES
        return text
    delta = moment - _EPOCH
    return delta.days * _DAY + delta.seconds * 1_000_000 + int(fraction.ljust(6, "0"))


def _text(data: bytes, codec: str) -> str:
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        # The server's latin1 gives a character to the five bytes that cp1252 leaves undefined.
        return data.decode("latin1") if codec == "cp1252" else "0x" + data.hex()


class LoggedColumn(Struct, kw_only=True):
    """A column of a table.

    Attributes:
        type: the data type without its length: ``varchar``.
        scale: the digits after the decimal point, of a decimal or of a second.
        length: the bytes of its longest text; a change may cut texts, or pad them.
        charset: the character set of a text; empty for other types.
        elements: the texts of an ENUM or SET.
        virtual: whether no storage holds the column, so that the log does not contain it.
        old: whether the column has the format of a time before MariaDB 10.1.2.
    """

    name: str
    type: str
    scale: int = 0
    unsigned: bool = False
    length: int = 0
    charset: str = ""
    collation: str = ""
    elements: tuple[str, ...] = ()
    required: bool = False
    virtual: bool = False
    old: bool = False

    def decides(self, value: Any) -> bool:
        """Return whether two such texts are equal for the server if ``recorded`` returns the same.

        Under most collations, ``e`` equals ``é``: the server decides such comparisons.
        """
        if not isinstance(value, str) or not self.collation or self.collation.endswith("_bin"):
            return True
        return bool(_PLAIN.fullmatch(value))

    def sql(self, alias: str) -> str:
        """Return the SQL expression of the column's text in a row image."""
        name = f"{alias}.`{self.name.replace('`', '``')}`"
        if self.type in _LONG or self.type in GEOMETRIES:
            # Of a text that is longer than max_allowed_packet, HEX returns NULL.
            return f"IF({name} IS NULL,0x4E,IFNULL(HEX({name}),0x21))"
        return f"IFNULL({self._value_sql(name)},0x{_NULL.encode().hex().upper()})"

    def _value_sql(self, name: str) -> str:
        match self.type:
            case "char":
                # In the mode PAD_CHAR_TO_FULL_LENGTH, the server returns blanks that it does not
                # log.
                return f"HEX(RTRIM({name}))"
            case "float" | "double":
                return f"{name}*1e0"
            case "bit" | "enum" | "set" | "year":
                return f"CAST({name} AS UNSIGNED)"
            case "timestamp":
                return f"UNIX_TIMESTAMP({name})"
            case "inet4" | "inet6" | "uuid":
                return f"HEX(CAST({name} AS BINARY({_FIXED_BYTES[self.type]})))"
        if self.type in INTEGERS and self.unsigned:
            return f"CAST({name} AS UNSIGNED)"  # without the zeros of ZEROFILL
        if self.type == "decimal" and self.unsigned:
            return f"{name}+0"
        if self.type in TEXTS or self.type in BLOBS:
            return f"HEX({name})"
        return name

    def value(self, text: str | None) -> Any:
        """Return the canonical value of a text in a row image."""
        if text is None or text == _NULL:
            return None
        if text == "!":
            return TOO_LONG
        if self.type in TEXTS:
            codec = _CODECS.get(self.charset)
            return _text(bytes.fromhex(text), codec) if codec else text
        if self.type in INTEGERS or self.type == "bit":
            return int(text)
        if self.type == "decimal":
            if self.scale <= _SCALE:
                return int(Decimal(text).scaleb(self.scale, _EXACT))
            return str(Decimal(text))
        if self.type in ("float", "double"):
            return repr(float(text))
        if self.type in ("date", "datetime"):
            return _microseconds(text)
        if self.type == "timestamp":
            return int(Decimal(text).scaleb(6))
        if self.type == "uuid":
            return str(UUID(text))
        if self.type == "enum":
            number = int(text)
            return self.elements[number - 1] if number else ""
        if self.type == "set":
            bits = int(text)
            return ",".join(each for n, each in enumerate(self.elements) if bits >> n & 1)
        return text

    def recorded(self, value: Any) -> Any:
        """Return the value in a history: of texts that the collation makes equal, the same text."""
        return self._fold(value) if isinstance(value, str) and self.collation else value

    def _fold(self, text: str) -> str:
        if not self.decides(text):
            return "=" + text
        if "_nopad_" not in self.collation:
            text = text.rstrip(" ")
        return text if self.collation.endswith("_bin") or "_cs" in self.collation else text.lower()


class Foreign(Struct, kw_only=True):
    """A foreign key from a table's columns to its parent's."""

    table: Name
    columns: list[str]
    parent: Name
    parents: list[str]
    on_delete: str
    on_update: str

    @property
    def cascades(self) -> bool:
        """Return whether a write of a parent may write its children."""
        return not {self.on_delete, self.on_update}.isdisjoint(("CASCADE", "SET NULL"))


class LoggedTable(Struct, kw_only=True, eq=False):
    """A table as it was defined at some position of the log.

    Attributes:
        columns: the columns by name in lower case, in their order.
        key: the columns of the primary key, or of a unique index whose columns are NOT NULL.
        unique: the sets of columns that no two rows share.
        why: why the table's rows cannot be observed; empty if they can.
        generation: how many times the name has had another definition, plus one.
    """

    schema: str
    name: str
    columns: dict[str, LoggedColumn] = {}
    key: list[str] = []
    unique: list[frozenset[str]] = []
    why: str = ""
    triggers: bool = False
    generation: int = 1
    _images: dict[str, str] = {}

    @property
    def logged(self) -> list[LoggedColumn]:
        """Return the columns that the log contains."""
        return [column for column in self.columns.values() if not column.virtual]

    def image_sql(self, alias: str) -> str:
        """Return the SQL expression of a row's image."""
        if alias not in self._images:
            texts = ",".join(column.sql(alias) for column in self.logged)
            self._images[alias] = f"CONCAT_WS(0x2C,{texts})"
        return self._images[alias]

    def row(self, image: str) -> Row | None:
        """Return the row of an image; ``None`` if an outer join did not find one."""
        values = self.row_of_texts(image.split(","))
        return None if any(values[name] is None for name in self.key) else values

    def row_of_texts(self, texts: Sequence[str | None]) -> Row:
        """Return the row with the texts of all stored columns."""
        return {
            column.name: column.value(text) for column, text in zip(self.logged, texts, strict=True)
        }

    def key_of(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the key of a row; texts that a collation makes equal are one key."""
        return tuple(self.columns[name].recorded(row[name]) for name in self.key)


class Catalogue:
    """The tables, foreign keys and routines of a server, as they are now."""

    tables: dict[Name, LoggedTable]
    foreign: list[Foreign]
    routines: set[str]

    def __init__(self, connect: Callable[[], Any], schemas: Iterable[str] = ()) -> None:
        """Load the definitions through a function that opens a connection.

        Args:
            schemas: the databases that are observed; by default all.
        """
        self._connect, self._schemas = connect, frozenset(schemas)
        self.load()

    def observes(self, schema: str) -> bool:
        """Return whether the tables of a database are observed."""
        return not self._schemas or schema in self._schemas

    def load(self) -> None:
        """Load all definitions again, once more if they changed meanwhile."""
        for _ in range(_ATTEMPTS):
            self._load()
            if all(table.columns for table in self.tables.values()):
                return
        self.tables = {name: table for name, table in self.tables.items() if table.columns}

    def _load(self) -> None:
        with closing(self._connect()) as connection, closing(connection.cursor()) as cursor:
            self.tables = _tables(cursor)
            _load_columns(cursor, self.tables)
            _load_keys(cursor, self.tables)
            self.foreign = _foreign_keys(cursor)
            cursor.execute(
                "SELECT LOWER(routine_name) FROM information_schema.routines "
                f"WHERE routine_schema NOT IN {_SYSTEM}"
            )
            self.routines = {name for (name,) in cursor.fetchall()}
        for table in self.tables.values():
            if not self.observes(table.schema):
                table.why = "another database"
            elif not table.key:
                table.why = table.why or "no primary key"

    def find(self, schema: str, name: str, default: str) -> LoggedTable | None:
        """Return the table that a statement names, with or without its schema."""
        return self.tables.get((schema or default, name))


def _tables(cursor: Any) -> dict[Name, LoggedTable]:
    cursor.execute(
        "SELECT table_schema, table_name, table_type, engine FROM information_schema.tables "
        f"WHERE table_schema NOT IN {_SYSTEM}"
    )
    tables = {}
    for schema, name, kind, engine in cursor.fetchall():
        if kind == "SEQUENCE":
            why = SEQUENCE
        elif kind == "BASE TABLE":
            why = "" if engine == "InnoDB" else f"engine {engine}"
        else:
            why = kind.lower()
        tables[schema, name] = LoggedTable(schema=schema, name=name, why=why)
    return tables


def _load_columns(cursor: Any, tables: dict[Name, LoggedTable]) -> None:
    cursor.execute(
        "SELECT table_schema, table_name, column_name, data_type, numeric_scale, "
        "datetime_precision, character_octet_length, character_set_name, collation_name, "
        "is_nullable, extra, column_type FROM information_schema.columns "
        f"WHERE table_schema NOT IN {_SYSTEM} ORDER BY ordinal_position"
    )
    for schema, table, name, kind, *numbers, nullable, extra, full in cursor.fetchall():
        scale, precision, octets, charset, collation = numbers
        if (schema, table) not in tables:  # created since the last query
            continue
        tables[schema, table].columns[name.lower()] = LoggedColumn(
            name=name.lower(),
            type=kind.lower(),
            scale=int(scale or precision or 0) if kind.lower() not in ("float", "double") else 0,
            unsigned=" unsigned" in full or "zerofill" in full,
            length=int(octets or 0),
            charset=charset or "",
            collation=collation or "",
            elements=_element_texts(full) if kind.lower() in ELEMENTS else (),
            required=nullable == "NO",
            virtual="VIRTUAL" in extra.upper(),
            old="/* mariadb-5.3 */" in full,
        )
        if full.startswith("year(2)"):
            tables[schema, table].why = "a column of the type YEAR(2)"
        if name.lower() in _TAKEN:
            tables[schema, table].why = f"a column named {name}, as the history names versions"


_TAKEN: Final = frozenset({"xmin", "xmin class"})  # what histories add to the columns of a row
_ELEMENT: Final = re.compile(r"'((?:[^'\\]|''|\\.)*)'")
_ESCAPES: Final = {"0": "\0", "n": "\n", "r": "\r", "t": "\t"}


def _element_texts(column_type: str) -> tuple[str, ...]:
    """Return the elements of ``enum('a','it''s')``."""
    return tuple(
        re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text.replace("''", "'"))
        for text in _ELEMENT.findall(column_type)
    )


def _load_keys(cursor: Any, tables: dict[Name, LoggedTable]) -> None:
    cursor.execute(
        "SELECT table_schema, table_name, index_name, column_name, non_unique, sub_part "
        f"FROM information_schema.statistics WHERE table_schema NOT IN {_SYSTEM} "
        "ORDER BY seq_in_index"
    )
    indexes: dict[tuple[str, str, str], list[str]] = {}
    prefixed = set()
    for schema, table, index, column, repeats, length in cursor.fetchall():
        if (schema, table) not in tables or column is None:
            continue
        if length is not None:
            prefixed.add((schema, table, index))
        if not int(repeats):
            indexes.setdefault((schema, table, index), []).append(column.lower())
    for (schema, table, index), columns in indexes.items():
        known = tables[schema, table]
        if (schema, table, index) in prefixed:
            if index == "PRIMARY":
                known.why = "a primary key over the beginning of a column"
            continue
        known.unique.append(frozenset(columns))
        required = all(known.columns[column].required for column in columns)
        if index == "PRIMARY" or (required and not known.key):
            known.key = columns
    cursor.execute(
        "SELECT event_object_schema, event_object_table FROM information_schema.triggers"
    )
    for schema, table in cursor.fetchall():
        if (schema, table) in tables:
            tables[schema, table].triggers = True


def _foreign_keys(cursor: Any) -> list[Foreign]:
    cursor.execute(
        "SELECT k.table_schema, k.table_name, k.constraint_name, k.column_name, "
        "k.referenced_table_schema, k.referenced_table_name, k.referenced_column_name, "
        "r.delete_rule, r.update_rule FROM information_schema.key_column_usage k "
        "JOIN information_schema.referential_constraints r "
        "ON r.constraint_schema = k.constraint_schema AND r.constraint_name = k.constraint_name "
        "AND r.table_name = k.table_name WHERE k.referenced_table_name IS NOT NULL "
        "ORDER BY k.ordinal_position"
    )
    foreign: dict[tuple[str, str, str], Foreign] = {}
    for (
        schema,
        table,
        name,
        column,
        parent_schema,
        parent,
        parents,
        deletes,
        updates,
    ) in cursor.fetchall():
        key = foreign.setdefault(
            (schema, table, name),
            Foreign(
                table=(schema, table), columns=[], parent=(parent_schema, parent), parents=[],
                on_delete=deletes, on_update=updates,
            ),
        )  # fmt: skip
        key.columns.append(column.lower())
        key.parents.append(parents.lower())
    return [*foreign.values()]
