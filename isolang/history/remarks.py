"""Reads remarks about operations, with callers and rows, from an application recording.

Each completion in such a recording ends with ``:callers ["app.py:12" …]`` and ``:rows ["{balance:
100 → 90}" …]``, with one text per operation. Remarks are for human readers, and no verdict depends
on them.
"""

from __future__ import annotations

import mmap
import re
import stat
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import DecodeError, Struct, json

_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_VALUE: Final = b":value ["
_TOKEN: Final = re.compile(rb"%s|[\[\]{}]" % _STRING)
_NAMES: Final = (b", :callers [", b", :rows [")
_TEXTS: Final = rb"((?:%s[ \t]?)*)\]" % _STRING
_ATOM: Final = rb"(?:#[\w-]+ )?(?:%s|[^\s\[\]{}\"]+)" % _STRING
_FORM: Final = rb"(?:%s|\[[^\[\]]*\]|\{[^{}]*\})" % _ATOM
_OPERATION: Final = rb"\[:([\w-]+) (%s)(?: (%s))?\]" % (_FORM, _FORM)

Named: TypeAlias = tuple[str, str, str]
"""An operation in a recording, with its key and value in EDN: ``("r", '"account/a"', "nil")``.

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
ROW_NOT_FOUND: Final = "not found by "
"""The text that precedes a predicate read's statement in its ``row``."""


def read_remarks(path: str) -> Mapping[int, Mapping[Named, Remark]]:
    """Return the remarks in a recording, keyed by line and operation.

    If a transaction has several equal operations, only the remark about the first one is used.

    Args:
        path: the path of the history file. If it cannot be read, the result is empty.
    """
    try:
        about = Path(path).stat()
        regular = stat.S_ISREG(about.st_mode)  # a pipe cannot be read a second time
        return _read(path, about.st_mtime_ns, about.st_size) if regular else {}
    except (OSError, ValueError):
        return {}


@lru_cache(maxsize=4)
def _read(path: str, changed: int, size: int) -> Mapping[int, Mapping[Named, Remark]]:
    return {number: _remarks(line) for number, line in _marked_lines(path)}


def _marked_lines(path: str) -> Iterator[tuple[int, bytes]]:
    with Path(path).open("rb") as file:
        # Most files contain no remarks, and reading a large file line by line is slow.
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            if all(text.find(name) < 0 for name in _NAMES):
                return
        for number, line in enumerate(file, 1):
            if any(name in line for name in _NAMES):
                yield number, line


def _remarks(line: bytes) -> dict[Named, Remark]:
    begin = min(at for name in _NAMES if (at := line.find(name)) >= 0)
    operations = re.findall(_OPERATION, line[:begin])
    if b"[:rp " in line[:begin]:
        operations = list(_operations(line[line.index(_VALUE) : begin]))
    callers, rows = (
        [_decoded(one) for one in re.findall(_STRING, found[1])]
        if (found := re.search(re.escape(name) + _TEXTS, line[begin:]))
        else [""] * len(operations)
        for name in _NAMES
    )
    remarks: dict[Named, Remark] = {}
    if len(operations) == len(callers) == len(rows):
        for (kind, key, value), caller, row in zip(operations, callers, rows, strict=True):
            named = (kind.decode(), key.decode(), value.decode())
            remarks.setdefault(named, Remark(caller, row))
    return remarks


def _operations(text: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield the kind, key and value of each operation in a line that contains predicate reads."""
    depth = begin = end = inner = 0
    for token in _TOKEN.finditer(text):
        if token[0] in (b"[", b"{"):
            depth += 1
            if depth == 2:  # the list of operations begins at this depth
                begin, end = token.start(), 0
            elif depth == 3 and not end:
                inner = token.start()
        elif token[0] in (b"]", b"}"):
            depth -= 1
            if depth == 2:
                end = end or token.end()
            elif depth == 1:
                found = re.fullmatch(_OPERATION, text[begin : token.end()])
                if text.startswith(b"[:rp ", begin):
                    yield b"rp", text[inner:end], b""
                else:
                    kind, key, value = found.groups(b"") if found is not None else (b"", b"", b"")
                    yield kind, key, value
            elif not depth:
                return


def _decoded(text: bytes) -> str:
    try:
        return json.decode(text, type=str)
    except DecodeError:  # the string contains an escape that is invalid in JSON
        return ""
