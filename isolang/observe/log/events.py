"""Parses the events of MariaDB's binary log.

An event is a header of 19 bytes, whose last field is the position behind the event, and a body. A
*table map* in front of the rows of each table states its columns, with their names if
``binlog_row_metadata`` is FULL. Rows contain bitmaps of the columns that they have, and of those
that are NULL.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from isolang.observe.log.tables import BLOBS, TEXTS, LoggedColumn
from isolang.observe.log.values import (
    BIT,
    BLOB,
    BLOB_COMPRESSED,
    DATE,
    DATETIME,
    DATETIME2,
    DOUBLE,
    ENUM,
    FLOAT,
    GEOMETRY,
    INT24,
    LONG,
    LONGLONG,
    METADATA_BYTES,
    NEWDATE,
    NEWDECIMAL,
    NUMERIC,
    SET,
    SHORT,
    STRING,
    TIME,
    TIME2,
    TIMESTAMP,
    TIMESTAMP2,
    TINY,
    VAR_STRING,
    VARCHAR,
    VARCHAR_COMPRESSED,
    YEAR,
    Decoder,
    decoder,
    real_type,
)

HEADER_BYTES: Final = 19

QUERY, STOP, ROTATE, FORMAT, XID, TABLE_MAP, HEARTBEAT = 2, 3, 4, 15, 16, 19, 27
XA_PREPARE, ANNOTATE, CHECKPOINT, GTID, GTID_LIST, ENCRYPTION = 38, 160, 161, 162, 163, 164
QUERY_COMPRESSED = 165
INTVAR, RAND, USER_VAR = 5, 13, 14

WRITES: Final = frozenset({23, 30, 166, 169})
UPDATES: Final = frozenset({24, 31, 167, 170})
DELETES: Final = frozenset({25, 32, 168, 171})
ROWS: Final = WRITES | UPDATES | DELETES
_SECOND_VERSION: Final = frozenset({30, 31, 32, 169, 170, 171})
_COMPRESSED: Final = frozenset(range(166, 172))

_ENDS_STATEMENT, _IGNORES_FOREIGN_KEYS = 1, 2  # flags of rows
_STANDALONE, _GROUPED, _PREPARED, _COMPLETED = 1, 2, 64, 128  # flags of a GTID

_TYPES: Final = {
    TINY: "tinyint", SHORT: "smallint", INT24: "mediumint", LONG: "int", LONGLONG: "bigint",
    FLOAT: "float", DOUBLE: "double", NEWDECIMAL: "decimal", BIT: "bit", YEAR: "year",
    DATE: "date", NEWDATE: "date", TIME: "time", TIME2: "time", DATETIME: "datetime",
    DATETIME2: "datetime", TIMESTAMP: "timestamp", TIMESTAMP2: "timestamp", ENUM: "enum",
    SET: "set", GEOMETRY: "geometry", VARCHAR: "varchar", VAR_STRING: "varchar",
    VARCHAR_COMPRESSED: "varchar", BLOB: "longtext", BLOB_COMPRESSED: "longtext", STRING: "char",
}  # fmt: skip
_BINARY: Final = {"varchar": "varbinary", "longtext": "longblob", "char": "binary"}
_BINARY_COLLATION: Final = 63


class LogError(ValueError):
    """The log contains bytes that cannot be understood."""


class Event(Struct, frozen=True):
    """An event of the log.

    Attributes:
        end: the position behind the event in its file; 0 for an event that no file contains.
    """

    kind: int
    server: int
    end: int
    flags: int
    body: bytes


def parse_event(data: bytes) -> Event:
    """Return the event of a packet, without its checksum."""
    if len(data) < HEADER_BYTES:
        raise LogError(f"an event of {len(data)} bytes")
    _, kind, server, _, end, flags = struct.unpack_from("<IBIIIH", data)
    return Event(kind, server, end, flags, data[HEADER_BYTES:])


def _length(data: bytes, at: int) -> tuple[int, int]:
    """Return a length-encoded integer, and the position behind it."""
    first = data[at]
    if first < 0xFB:
        return first, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


def _counted(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _length(data, at)
    return data[at : at + size], at + size


class Gtid(Struct, frozen=True):
    """The name of a transaction.

    Attributes:
        standalone: whether the transaction is the next event alone.
        xid: the name that XA gave to the transaction; empty for other transactions.
    """

    name: str
    standalone: bool
    xid: bytes = b""


def parse_gtid(event: Event) -> Gtid:
    """Return the GTID at the start of a transaction."""
    number, domain, flags = struct.unpack_from("<QIB", event.body)
    xid = b""
    if flags & (_PREPARED | _COMPLETED):
        at = 21 if flags & _GROUPED else 13
        xid = event.body[at : at + 6 + event.body[at + 4] + event.body[at + 5]]
    return Gtid(f"{domain}-{event.server}-{number}", bool(flags & _STANDALONE), xid)


def parse_rotate(event: Event) -> tuple[str, int]:
    """Return the next file and the position in it."""
    return event.body[8:].decode(), int.from_bytes(event.body[:8], "little")


class LoggedQuery(Struct, frozen=True):
    """A statement in the log: a definition, COMMIT, or a change that is not logged as rows."""

    schema: str
    text: str


def parse_query(event: Event) -> LoggedQuery:
    """Return the statement of an event."""
    body = event.body
    schema_length, variables = body[8], int.from_bytes(body[11:13], "little")
    at = 13 + variables
    text = body[at + schema_length + 1 :]
    if event.kind == QUERY_COMPRESSED:
        text = uncompressed(text)
    schema = body[at : at + schema_length].decode("utf-8", "replace")
    return LoggedQuery(schema, text.rstrip(b"\0").decode("utf-8", "replace"))


def parse_annotation(event: Event) -> str:
    """Return the text of the statement that wrote the next rows."""
    return event.body.decode("utf-8", "replace")


def uncompressed(data: bytes) -> bytes:
    """Return the bytes that ``log_bin_compress`` compressed."""
    if not data[0] & 0x80 or data[0] >> 4 & 7:
        raise LogError(f"an event compressed by method {data[0]:#x}")
    return zlib.decompress(data[1 + (data[0] & 7) :])


class TableMap(Struct):
    """The columns of a table, as they were when the log was written.

    Attributes:
        metadata: for each column, the bytes that describe its type.
        unsigned: for each column, whether it is an unsigned number; empty if not logged.
        names: the columns' names in lower case; empty if not logged.
        collations: for each column, the number of its collation; 0 if it has none.
        elements: for each column, the bytes of its texts, of an ENUM or SET.
        key: the positions of the columns in the primary key.
    """

    schema: str
    name: str
    types: bytes
    metadata: list[bytes]
    nullable: list[bool]
    unsigned: list[bool] = []
    names: list[str] = []
    collations: list[int] = []
    elements: dict[int, list[bytes]] = {}
    key: list[int] = []


def parse_table_map(body: bytes) -> tuple[int, TableMap]:
    """Return the number that rows use for a table, and its columns."""
    number = int.from_bytes(body[:6], "little")
    at = 8
    schema = body[at + 1 : at + 1 + body[at]]
    at += body[at] + 2
    name = body[at + 1 : at + 1 + body[at]]
    at += body[at] + 2
    count, at = _length(body, at)
    types = body[at : at + count]
    packed, at = _counted(body, at + count)
    metadata, position = [], 0
    for kind in types:
        size = METADATA_BYTES.get(kind, 0)
        metadata.append(packed[position : position + size])
        position += size
    nullable = _bits(body, at, count)
    at += (count + 7) // 8
    table = TableMap(schema.decode(), name.decode(), types, metadata, nullable)
    _parse_optional_metadata(table, body, at)
    return number, table


def _bits(data: bytes, at: int, count: int) -> list[bool]:
    return [bool(data[at + n // 8] >> n % 8 & 1) for n in range(count)]


def _parse_optional_metadata(table: TableMap, body: bytes, at: int) -> None:
    real = [real_type(k, m)[0] for k, m in zip(table.types, table.metadata, strict=True)]
    texts = [n for n, kind in enumerate(real) if kind in _CHARACTER_TYPES]
    listed = [n for n, kind in enumerate(real) if kind in (ENUM, SET)]
    table.collations = [0] * len(real)
    while at < len(body):
        field = body[at]
        value, at = _counted(body, at + 1)
        match field:
            case 1:
                numbers = [n for n, kind in enumerate(real) if kind in NUMERIC]
                table.unsigned = [False] * len(real)
                for bit, n in enumerate(numbers):
                    table.unsigned[n] = bool(value[bit // 8] << bit % 8 & 0x80)
            case 2 | 3:
                _store_collations(table, texts, value, default=field == 2)
            case 10 | 11:
                _store_collations(table, listed, value, default=field == 10)
            case 4:
                table.names = [each.decode().lower() for each in _texts(value)]
            case 5 | 6:
                kind = SET if field == 5 else ENUM
                lists = _element_lists(value)
                columns = [n for n in listed if real[n] == kind]
                table.elements = table.elements | dict(zip(columns, lists, strict=True))
            case 8:
                table.key = list(_lengths(value))
            case 9:
                table.key = list(_lengths(value))[::2]


_CHARACTER_TYPES: Final = frozenset(
    {STRING, VAR_STRING, VARCHAR, BLOB, VARCHAR_COMPRESSED, BLOB_COMPRESSED, GEOMETRY}
)
"""The types that the log's lists of collations describe."""


def _lengths(value: bytes) -> Iterator[int]:
    at = 0
    while at < len(value):
        number, at = _length(value, at)
        yield number


def _texts(value: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(value):
        text, at = _counted(value, at)
        yield text


def _element_lists(value: bytes) -> Iterator[list[bytes]]:
    at = 0
    while at < len(value):
        count, at = _length(value, at)
        elements = []
        for _ in range(count):
            text, at = _counted(value, at)
            elements.append(text)
        yield elements


def _store_collations(
    table: TableMap, columns: Sequence[int], value: bytes, *, default: bool
) -> None:
    numbers = list(_lengths(value))
    if default:
        exceptions = dict(zip(numbers[1::2], numbers[2::2], strict=True))
        numbers = [exceptions.get(index, numbers[0]) for index in range(len(columns))]
    for n, number in zip(columns, numbers, strict=True):
        table.collations[n] = number


Collation = tuple[str, str]  # a character set, and the name of a collation


def columns_of(
    table: TableMap, collation: Callable[[int], Collation], known: Mapping[str, LoggedColumn]
) -> list[LoggedColumn]:
    """Return the definitions of a table's columns.

    Args:
        known: definitions from a catalogue, which say more than the log, where they fit it.
    """
    columns = []
    for n, name in enumerate(table.names):
        real, _ = real_type(table.types[n], table.metadata[n])
        column = known.get(name)
        if column is not None and _fits(column, real, table.metadata[n]):
            columns.append(column)
            continue
        number = table.collations[n]
        kind = _TYPES.get(real, f"type {real}")
        if number == _BINARY_COLLATION:
            kind = _BINARY.get(kind, kind)
        charset, collates = collation(number) if number and kind not in BLOBS else ("", "")
        scale = table.metadata[n][-1] if real in (NEWDECIMAL, TIME2, DATETIME2, TIMESTAMP2) else 0
        columns.append(
            LoggedColumn(
                name=name,
                type=kind,
                scale=scale,
                unsigned=bool(table.unsigned and table.unsigned[n]),
                charset=charset,
                collation=collates,
                elements=tuple(e.decode("utf-8", "replace") for e in table.elements.get(n, ())),
                required=not table.nullable[n],
            )
        )
    return columns


def fits(table: TableMap, columns: Sequence[LoggedColumn]) -> bool:
    """Return whether these are the definitions of the columns in the log."""
    if len(columns) != len(table.types):
        return False
    if table.names and [column.name for column in columns] != table.names:
        return False
    logged = zip(columns, table.types, table.metadata, strict=True)
    return all(_fits(column, real_type(kind, data)[0], data) for column, kind, data in logged)


def _fits(column: LoggedColumn, real: int, metadata: bytes) -> bool:
    kind = _TYPES.get(real, "")
    if kind in ("decimal", "time", "datetime", "timestamp") and not column.old:
        scale = metadata[-1] if metadata else 0
        return column.type == kind and column.scale == scale
    if kind in ("char", "varchar", "longtext"):
        return column.type in TEXTS | BLOBS | {"uuid"}
    if kind == "geometry":
        return True  # the names of all geometric types
    return column.type == kind


class RowsEvent(Struct, frozen=True):
    """The rows that a statement wrote in one table.

    Attributes:
        table: the number of the table map.
        ends_statement: whether the statement wrote no more rows.
        ignores_foreign_keys: whether the session had disabled the checks and cascades of foreign
            keys.
        before: the positions of the columns that a row has before its change.
        after: the positions of those that it has behind it.
        rows: the bytes of the rows.
    """

    kind: int
    table: int
    ends_statement: bool
    ignores_foreign_keys: bool
    before: list[int]
    after: list[int]
    rows: bytes


def parse_rows(event: Event) -> RowsEvent:
    """Return the rows of an event, which are not yet decoded."""
    body, kind = event.body, event.kind
    number = int.from_bytes(body[:6], "little")
    flags = int.from_bytes(body[6:8], "little")
    at = 8
    if kind in _SECOND_VERSION:
        at += int.from_bytes(body[8:10], "little")
    count, at = _length(body, at)
    size = (count + 7) // 8
    present = [n for n, bit in enumerate(_bits(body, at, count)) if bit]
    at += size
    after = present
    if kind in UPDATES:
        after = [n for n, bit in enumerate(_bits(body, at, count)) if bit]
        at += size
    rows = uncompressed(body[at:]) if kind in _COMPRESSED else body[at:]
    return RowsEvent(
        kind, number, bool(flags & _ENDS_STATEMENT), bool(flags & _IGNORES_FOREIGN_KEYS),
        present, after, rows,
    )  # fmt: skip


Texts = dict[int, str | None]  # the texts of a row by the positions of their columns


def decoders_of(table: TableMap, columns: Sequence[LoggedColumn]) -> list[Decoder]:
    """Return a decoder for each column of a table."""
    decoders = []
    described = zip(table.types, table.metadata, columns, strict=True)
    for n, (kind, metadata, column) in enumerate(described):
        unsigned = table.unsigned[n] if table.unsigned else column.unsigned
        decoders.append(decoder(kind, metadata, unsigned=unsigned, column=column))
    return decoders


def decode_rows(
    event: RowsEvent, decoders: Sequence[Decoder]
) -> Iterator[tuple[Texts | None, Texts | None]]:
    """Yield each row as it was before and as it is after the change."""
    at, rows = 0, event.rows
    while at < len(rows):
        before: Texts | None = None
        after: Texts | None = None
        if event.kind not in WRITES:
            before, at = _decode_row(rows, at, event.before, decoders)
        if event.kind not in DELETES:
            after, at = _decode_row(rows, at, event.after, decoders)
        yield before, after


def _decode_row(
    data: bytes, at: int, present: Sequence[int], decoders: Sequence[Decoder]
) -> tuple[Texts, int]:
    nulls, at = at, at + (len(present) + 7) // 8
    texts: Texts = {}
    for bit, n in enumerate(present):
        if data[nulls + bit // 8] >> bit % 8 & 1:
            texts[n] = None
        else:
            texts[n], at = decoders[n](data, at)
    if at > len(data):
        raise LogError("a row that ends behind its event")
    return texts, at
