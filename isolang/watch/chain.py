"""The chain of a watch: one entry for each part, with the hash of the entry before it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

import msgspec
from msgspec import Struct

from isolang.errors import HistoryError
from isolang.history.values import decode, encode
from isolang.watch.state import Before, Change, Key, Last
from isolang.watch.stream import Place

#: The version of the format.
FORMAT: Final = 1

#: The file of a chain in its folder.
NAME: Final = "chain.jsonl"

_Atom = tuple[int, Any]
_Place = tuple[int, int, int, int]


class Head(Struct, frozen=True, kw_only=True, tag="head", tag_field="entry"):
    """What is watched: the first entry.

    Attributes:
        format: the version of the format.
        spec_name: the level.
        spec_texts: file name to text, as certificates have it.
        sources: what was read.
        reading: how: the format, the clock, the clock error in nanoseconds.
        previous: empty.
    """

    format: int = FORMAT
    spec_name: str
    spec_texts: Mapping[str, str]
    sources: tuple[str, ...]
    reading: Mapping[str, Any]
    previous: str = ""


class Kept(Struct, frozen=True, kw_only=True, array_like=True):
    """A value that a cut left: of :class:`isolang.watch.state.Last`, ``None`` if there was none."""

    key: _Atom
    value: _Atom | None
    place: _Place | None
    number: int


class Part(Struct, frozen=True, kw_only=True, tag="part", tag_field="entry"):
    """What one cut took away.

    Attributes:
        previous: the SHA-256 of the line before.
        members: number and place of each transaction, in the order in which the witness counts.
        aside: those that took no effect, and unknown outcomes that were given up.
        source: of the witness, as :class:`isolang.certify.proofs.Witness` has it.
        order_start: of it.
        order_txn: of it.
        left: the last values that the part wrote.
        before: what stood there before.
        begin: the greatest begin of the members; ``None`` without times.
        spans: the bytes that were read since the entry before: file, start, end, SHA-256.
    """

    previous: str
    members: tuple[tuple[int, _Place], ...]
    aside: tuple[tuple[int, _Place], ...] = ()
    source: tuple[int, ...]
    order_start: tuple[int, ...]
    order_txn: tuple[int, ...]
    left: tuple[Kept, ...]
    before: tuple[Kept, ...]
    begin: int | None = None
    spans: tuple[tuple[int, int, int, str], ...] = ()


class Undo(Struct, frozen=True, kw_only=True, tag="undo", tag_field="entry"):
    """The last parts are taken back; what they had comes again in later ones.

    Attributes:
        previous: the SHA-256 of the line before.
        parts: how many.
    """

    previous: str
    parts: int


class End(Struct, frozen=True, kw_only=True, tag="end", tag_field="entry"):
    """What was found.

    Attributes:
        previous: the SHA-256 of the line before.
        outcome: ``valid``, ``invalid``, ``suspected`` or ``unknown``.
        note: what the verdict rests on.
    """

    previous: str
    outcome: str
    note: str = ""


Entry = Head | Part | Undo | End


class Chain:
    """The entries of a watch, appended to a file.

    Args:
        path: the file; it must not exist, or be empty.
        head: what is watched.
    """

    def __init__(self, path: Path, head: Head) -> None:
        self._file: IO[bytes] = path.open("x+b")
        self._previous = ""
        #: Where the entries of the parts begin that were not taken back.
        self._parts: list[int] = []
        #: The greatest begin of those parts and all before each.
        self._begins: list[int] = []
        self._append(head)

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def begin(self) -> int | None:
        """The greatest begin of all parts; ``None`` if none has times."""
        return self._begins[-1] if self._begins and self._begins[-1] > _NEVER else None

    @property
    def previous(self) -> str:
        """The hash of the last entry."""
        return self._previous

    def add(self, part: Part) -> None:
        """Append a part."""
        self._parts.append(self._append(part))
        before = self._begins[-1] if self._begins else _NEVER
        self._begins.append(max(before, _NEVER if part.begin is None else part.begin))

    def undo(self, parts: int) -> list[Part]:
        """Take the last parts back; returns them, the latest first."""
        found = []
        for _ in range(parts):
            self._file.seek(self._parts.pop())
            self._begins.pop()
            found.append(msgspec.json.decode(self._file.readline(), type=Part))
        self._append(Undo(previous=self._previous, parts=parts))
        return found

    def end(self, end: End) -> None:
        """Append the verdict and close the file."""
        self._append(end)
        self._file.close()

    def _append(self, entry: Entry) -> int:
        line = msgspec.json.encode(entry) + b"\n"
        at = self._file.seek(0, os.SEEK_END)
        self._file.write(line)
        self._file.flush()
        self._previous = hashlib.sha256(line).hexdigest()
        return at


_NEVER: Final = -(1 << 62)


def read_chain(path: Path) -> Iterator[Entry]:
    """Read the entries of a chain, each of which must have the hash of the line before.

    Raises:
        HistoryError: it cannot be read, or an entry was changed.
    """
    previous = ""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            where = f"{path}:{number}"
            try:
                entry = msgspec.json.decode(line, type=Entry, strict=True)
            except msgspec.DecodeError as error:
                raise HistoryError(f"{where}: no entry of a chain ({error})") from None
            if entry.previous != previous:
                raise HistoryError(f"{where}: not the entry that follows the line before it")
            if isinstance(entry, Head) != (number == 1):
                raise HistoryError(f"{where}: a chain has one head, in its first line")
            if not line.endswith(b"\n"):
                raise HistoryError(f"{where}: the line is torn")
            previous = hashlib.sha256(line).hexdigest()
            yield entry


def live_parts(entries: Sequence[Entry]) -> list[Part]:
    """The parts that were not taken back.

    Raises:
        HistoryError: more were taken back than there were.
    """
    found: list[Part] = []
    for entry in entries:
        if isinstance(entry, Part):
            found.append(entry)
        elif isinstance(entry, Undo):
            if not 0 < entry.parts <= len(found):
                raise HistoryError(f"the chain takes {entry.parts} parts back, of {len(found)}")
            del found[-entry.parts :]
    return found


def place_of(place: Place) -> _Place:
    """A place as entries have it."""
    return (place.file, place.offset, place.done_file, place.done)


def as_place(found: _Place) -> Place:
    """The inverse of :func:`place_of`."""
    file, offset, done_file, done = found
    return Place(file=file, offset=offset, done_file=done_file, done=done)


def kept_of(values: Change | Before) -> tuple[Kept, ...]:
    """Values of keys as entries have them."""
    return tuple(
        Kept(key=key, value=None, place=None, number=0)
        if last is None
        else Kept(
            key=key,
            value=encode(last.value, "a value"),
            place=place_of(last.place),
            number=last.number,
        )
        for key, last in values.items()
    )


def as_values(kept: Sequence[Kept]) -> dict[Key, Last | None]:
    """The inverse of :func:`kept_of`."""
    return {
        tuple(one.key): None
        if one.value is None or one.place is None
        else Last(value=decode(*one.value), place=as_place(one.place), number=one.number)
        for one in kept
    }
