"""Reads remarks about operations, with callers and rows, from an application recording.

Each completion in such a recording ends with ``:callers ["app.py:12" …]`` and ``:rows ["{balance:
100 → 90}" …]``, with one text per operation. Remarks are for human readers, and no verdict depends
on them.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import DecodeError, Struct, json

from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.possible import with_possible_facts
from isolang.history.values import atom_text
from isolang.patterns import pattern

if TYPE_CHECKING:
    from isolang.history.described import DescribedColumns
    from isolang.history.row_text import ColumnForms

_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_NAMES: Final = (b", :callers [", b", :rows [")
# SOUND BECAUSE: a string is one token, so a field's name inside a string is not taken for a field.
_TOKEN: Final = pattern(rb"%s|, :callers \[|, :rows \[" % _STRING)
_TEXTS: Final = pattern(rb"((?:%s[ \t]?)*)\]" % _STRING)

Named: TypeAlias = tuple[str, str, str]
"""An operation, with its key and value as isolang prints them: ``("r", '"account/a"', "nil")``.

For a predicate read, the key is the text of the predicate in isolang's canonical form, without
``:between`` and ``:in``, and the value is empty.
"""


class Remark(Struct, frozen=True):
    """A recording's remark about one operation.

    Attributes:
        caller: the ``file:line`` in the application that ran the operation; empty if unknown.
        row: the columns read or changed by the operation; empty if unknown.
    """

    caller: str = ""
    row: str = ""


NO_REMARK: Final = Remark()
COLUMNS_COMMENT: Final = ";:columns "
UNIQUE_COMMENT: Final = ";:unique "
REFERENCES_COMMENT: Final = ";:references "
DATABASE_COMMENT: Final = ";:database "

RecordedForeignKey: TypeAlias = tuple[list[str], str, list[str]]
"""The referencing columns, the referenced table, and its columns in the same order."""

_LONGEST_COMMENT: Final = 1 << 20
ROW_NOT_FOUND: Final = "not found by "
"""The text that precedes a predicate read's statement in its ``row``."""


def read_columns(names: Sequence[str]) -> str:
    """Return the ``row`` of a read of some columns, whose values do not matter.

    >>> read_columns(["name"]), reads_columns("{name}"), reads_columns("{name: 5}")
    ('{name}', True, False)
    """
    return f"{{{', '.join(names)}}}"


def reads_columns(row: str) -> bool:
    """Return whether a remark is that of a read of some columns, as :func:`read_columns` says."""
    return row.startswith("{") and ":" not in row


def named(history: DescribedColumns, op: int) -> Named:
    """Return the kind, the key and the value of an operation, or of its predicate read."""
    s = history.statement_of(op) if len(history.columns.statement_start) else -1
    return _named_operation(history, op) if s < 0 else named_predicate_read(history, s)


def _named_operation(history: DescribedColumns, op: int) -> Named:
    from isolang.history.described import value_with_version

    columns = history.columns
    key = atom_text(*columns.key(int(columns.op_key[op])))
    if history.is_delete(op):
        return ("delete", key, "")
    kind, value = int(columns.op_kind[op]), int(columns.op_value[op])
    listed = kind in c.LISTS and value != c.UNKNOWN_VALUE
    values = history.list_values(value) if listed else [value]
    text = " ".join(value_with_version(columns, atom) for atom in values)
    return (c.KIND_NAMES[kind], key, f"[{text}]" if listed else text)


def named_predicate_read(history: DescribedColumns, s: int) -> Named:
    """Return the name of a predicate read, by its number in the columns."""
    number = int(history.columns.statement_predicate[s])
    return ("rp", history.columns.predicates[number] if number >= 0 else "", "")


def read_remarks(path: str) -> Mapping[int, Mapping[Named, Remark]]:
    """Return the remarks in a recording, keyed by line and operation.

    If a transaction has several equal operations, only the remark about the first one is used.
    """
    try:
        about = Path(path).stat()
        regular = stat.S_ISREG(about.st_mode)  # a pipe cannot be read a second time
        return _read(path, about.st_mtime_ns, about.st_size) if regular else {}
    except (OSError, ValueError):
        return {}


@lru_cache(maxsize=4)
def _read(path: str, changed: int, size: int) -> Mapping[int, Mapping[Named, Remark]]:
    return RemarkedLines(path, dict(_marked_lines(path)))


def _marked_lines(path: str) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the number of each line that may contain remarks, with its offset and its size."""
    with Path(path).open("rb") as file:
        # Most files contain no remarks, and reading a large file line by line is slow.
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            if all(text.find(name) < 0 for name in _NAMES):
                return
        offset = 0
        for number, line in enumerate(file, 1):
            if any(name in line for name in _NAMES):
                yield number, (offset, len(line))
            offset += len(line)


def read_column_forms(path: str) -> ColumnForms:
    """Return what the numbers in the columns of a recording's tables mean.

    A comment at the end of the recording has this map in JSON: ``;:columns {"t": {"at": "date"}}``.
    If it is missing, or the file cannot be read, the result is empty.
    """
    text = _closing_comment(path, COLUMNS_COMMENT)
    try:
        return json.decode(text, type=dict[str, dict[str, str]])
    except (ValueError, DecodeError):
        return {}


def read_unique_indexes(path: str) -> Mapping[str, Sequence[Sequence[str]]]:
    """Return the columns of each unique index, by table; the primary key is one of them.

    A comment at the end of the recording has this map in JSON: ``;:unique {"t":
    [["id"], ["room", "day"]]}``. If it is missing, or the file cannot be read, the result is empty.
    """
    text = _closing_comment(path, UNIQUE_COMMENT)
    try:
        return json.decode(text, type=dict[str, list[list[str]]])
    except (ValueError, DecodeError):
        return {}


def read_foreign_keys(path: str) -> Mapping[str, Sequence[RecordedForeignKey]]:
    """Return the foreign keys that all committed rows satisfy, by table.

    A comment at the end of the recording has this map in JSON: ``;:references {"booking":
    [[["room"], "room", ["id"]]]}``. If it is missing, or cannot be read, the result is empty.
    """
    text = _closing_comment(path, REFERENCES_COMMENT)
    try:
        return json.decode(text, type=dict[str, list[RecordedForeignKey]])
    except (ValueError, DecodeError):
        return {}


def read_database(path: str) -> Mapping[str, object]:
    """Return what a recording says of its database: its name, and settings that change levels.

    A comment at the end of a recording of MariaDB has this map in JSON: ``;:database {"name":
    "MariaDB", "innodb_snapshot_isolation": false}``. If it is missing, the result is empty.
    """
    try:
        return json.decode(_closing_comment(path, DATABASE_COMMENT), type=dict[str, object])
    except (ValueError, DecodeError):
        return {}


def _closing_comment(path: str, beginning: str) -> bytes:
    """Return the rest of the closing comment with this beginning; empty if there is none."""
    try:
        with Path(path).open("rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return b""
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LONGEST_COMMENT))
            lines = file.read().rstrip(b"\n").split(b"\n")
    except (OSError, ValueError):
        return b""
    for line in reversed(lines):
        if line.startswith(beginning.encode()):
            return line.removeprefix(beginning.encode())
        if not line.startswith(b";:"):
            break
    return b""


class RemarkedLines(Mapping[int, Mapping[Named, Remark]]):
    """The remarks in the lines of a file. A line is read again when its remarks are requested."""

    def __init__(self, path: str, places: Mapping[int, tuple[int, int]]) -> None:
        """Store the offset and the size of each line, by its number."""
        self._path, self._places = path, places
        self._known: dict[int, Mapping[Named, Remark]] = {}

    def __getitem__(self, number: int) -> Mapping[Named, Remark]:
        if number not in self._known:
            offset, size = self._places[number]
            try:
                with Path(self._path).open("rb") as file:
                    file.seek(offset)
                    line = with_possible_facts(file.read(size), self._path)
                    self._known[number] = _remarks(line)
            except (OSError, HistoryError):
                return {}
        return self._known[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _remarks(line: bytes) -> dict[Named, Remark]:
    """Return the remarks in a line, by operation; empty if they fit no list of operations.

    The native reader reads the line, so the operations have the same texts as in the history: it
    sorts the columns of a row, and prints each string and each number in one way.
    """
    texts = dict(_fields(line))
    operations = _operations(line)
    callers, rows = (texts.get(name, [""] * len(operations)) for name in _NAMES)
    remarks: dict[Named, Remark] = {}
    if len(operations) == len(callers) == len(rows):
        for named, caller, row in zip(operations, callers, rows, strict=True):
            remarks.setdefault(named, Remark(caller, row))
    return remarks


def _fields(line: bytes) -> Iterator[tuple[bytes, list[str]]]:
    for token in _TOKEN.finditer(line):
        if token[0] in _NAMES and (texts := _TEXTS.match(line, token.end())):
            yield token[0], [_decoded(text) for text in re.findall(_STRING, texts[1])]


def _operations(line: bytes) -> list[Named]:
    """Return the operations of the only transaction in a line."""
    from isolang import _native
    from isolang.history.described import DescribedColumns
    from isolang.history.objects import numbered_operations

    try:
        columns, _ = _native.read_edn(line)
    except ValueError:
        return []
    if columns.transactions() != 1:
        return []
    read = DescribedColumns(columns=columns, name="", format="edn")
    return [
        named_predicate_read(read, i) if is_scan else _named_operation(read, i)
        for is_scan, i in numbered_operations(read, 0)
    ]


def _decoded(text: bytes) -> str:
    try:
        return json.decode(text, type=str)
    except (DecodeError, UnicodeDecodeError):  # it contains an escape that is invalid in JSON
        return ""
