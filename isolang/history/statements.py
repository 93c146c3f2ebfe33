"""Reads each operation's statement, and the lock that it took, from a recording.

A completion may have ``:statements ["1" "2 for update" "3" "3"]``, with one text per operation: the
position of its statement among all statements sent by the client in the transaction, the lock
taken by the statement on the rows it read, and the other locks that the transaction held
(``"3 holding advisory/7"``). No verdict depends on statements, but predictions and
templates use them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal, TypeAlias, get_args

from msgspec import DecodeError, Struct, json
from msgspec.structs import replace

from isolang.errors import HistoryError
from isolang.history.line_fields import fields_of_file, fields_of_text
from isolang.patterns import pattern

Lock: TypeAlias = Literal["", "update", "no key update", "share", "key share"]
"""How a SELECT locks the rows it reads until its transaction ends; empty if it takes no locks."""

LOCKS: Final[tuple[Lock, ...]] = get_args(Lock)
ALONE: Final = frozenset[Lock]({"update", "no key update"})
"""The locks that exclude writers and each other."""
GUARDS: Final = ALONE | {"share"}
"""The locks that exclude writers of the row. FOR KEY SHARE only excludes those of its key."""
SHARED: Final = ":shared"
"""Ends the name of a lock that several transactions may hold."""

_FIELD: Final = b":statements ["
_JSON_FIELD: Final = b'"statements"'
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TOKEN: Final = pattern(rb"%s|;[^\n]*|%s" % (_STRING, re.escape(_FIELD)))
_TEXTS: Final = pattern(rb"((?:%s[\s,]*)*)\]" % _STRING)
_TEXT: Final = pattern(
    r"([1-9][0-9]{0,8})(?: for ((?:no key )?update|(?:key )?share))?"
    r"(?: holding ([^\s\"\\]+(?: (?!shown$)[^\s\"\\]+)*))?( shown)?"
)


class SentStatement(Struct, frozen=True):
    """The statement that executed an operation.

    Attributes:
        number: the position of the statement among those sent by the client in the transaction,
            counted from 1.
        shown: whether the statement writes rows and shows them to the program, too: it returns
            them, or found them by what it compared them with.

    >>> str(SentStatement(2, "update"))
    '2 for update'
    """

    number: int
    lock: Lock = ""
    shown: bool = False
    holds: tuple[str, ...] = ()

    def __str__(self) -> str:
        lock = f" for {self.lock}" if self.lock else ""
        others = f" holding {' '.join(self.holds)}" if self.holds else ""
        return f"{self.number}{lock}{others}{' shown' if self.shown else ''}"

    @property
    def guards(self) -> bool:
        """Return whether the statement's lock keeps writers from the rows that it read."""
        return self.lock in GUARDS


Statements: TypeAlias = Sequence[SentStatement | None]
"""The statement of each operation in a transaction; ``None`` where unknown."""


def read_statements(path: str) -> Mapping[int, Statements]:
    """Return the statements in a recording, keyed by the line of the completion.

    Raises:
        HistoryError: a ``:statements`` field is malformed.
    """
    return fields_of_file(path, (_FIELD, _JSON_FIELD), _statements_by_line)


def statements_in(text: bytes, name: str) -> Mapping[int, Statements]:
    """Return the statements in the text of a recording, as :func:`read_statements` does.

    Raises:
        HistoryError: a ``:statements`` field is malformed.
    """
    return fields_of_text(text, name, (_FIELD, _JSON_FIELD), _statements_by_line)


def _statements_by_line(lines: Iterable[bytes], name: str) -> Mapping[int, Statements]:
    found: dict[int, Statements] = {}
    for number, line in enumerate(lines, 1):
        if _FIELD not in line and _JSON_FIELD not in line:
            continue
        texts = _texts(line)
        if texts is not None:
            found[number] = tuple(_parsed(texts, f"{name}:{number}"))
    return found


def _texts(line: bytes) -> Sequence[object] | None:
    """Return the texts in a line's ``:statements`` field, or ``None`` if it has no such field."""
    at = next((m.end() for m in _TOKEN.finditer(line) if m[0] == _FIELD), None)
    if at is not None:
        end = _TEXTS.match(line, at)
        if end is None:
            return [line[at : at + 20].decode(errors="replace")]
        return [one.decode()[1:-1] for one in re.findall(_STRING, end[1])]
    try:
        event = json.decode(line.strip().lstrip(b"[ ").rstrip(b",] "))
    except DecodeError:
        return None
    field = event.get("statements") if isinstance(event, dict) else None
    return field if field is None or isinstance(field, list) else [f"{field!r}, no list"]


def without_locks(text: str, names: Collection[str]) -> str:
    """Return the text of a statement that does not hold some locks, other than those of rows.

    >>> without_locks("3 holding advisory/7 table/t", {"advisory/7"})
    '3 holding table/t'
    """
    (statement,) = _parsed([text], "")
    if statement is None:
        return text
    holds = tuple(name for name in statement.holds if name not in names)
    return str(replace(statement, holds=holds))


def _parsed(texts: Sequence[object], where: str) -> Iterator[SentStatement | None]:
    numbers = []
    for text in texts:
        if text == "":
            yield None
            continue
        form = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if form is None:
            raise HistoryError(
                f"{where}: not a statement number (got {text!r}, expected a number from 1, alone "
                "or with ' for update', ' for share', ' holding NAME' or ' shown')"
            )
        numbers.append(int(form[1]))
        lock = next(lock for lock in LOCKS if lock == (form[2] or ""))
        holds = tuple((form[3] or "").split())
        yield SentStatement(numbers[-1], lock, form[4] is not None, holds)
    for one, other in pairwise(numbers):
        if other < one:
            raise HistoryError(
                f"{where}: the statements are out of order (got {other} after {one}, expected the "
                "order in which they were sent)"
            )
