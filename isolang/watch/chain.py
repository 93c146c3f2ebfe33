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
from isolang.watch.state import Before, Change, Key, Last, State
from isolang.watch.stream import Place

#: The version of the format.
FORMAT: Final = 1

#: The file of a chain in its folder.
NAME: Final = "chain.jsonl"

_Atom = tuple[int, Any]
_Place = tuple[int, int, int, int]


class Head(
    Struct, frozen=True, kw_only=True, tag="head", tag_field="entry", forbid_unknown_fields=True
):
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


class Part(
    Struct, frozen=True, kw_only=True, tag="part", tag_field="entry", forbid_unknown_fields=True
):
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
        window: number and place of each finished transaction that stayed.
        deleted: the keys of which something was deleted since the entry before.
        seen: how many finished transactions had come.
        position: where the stream was.
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
    window: tuple[tuple[int, _Place], ...] = ()
    deleted: tuple[_Atom, ...] = ()
    seen: int = 0
    position: bytes = b""


class Undo(
    Struct, frozen=True, kw_only=True, tag="undo", tag_field="entry", forbid_unknown_fields=True
):
    """The last parts are taken back; what they had comes again in later ones.

    Attributes:
        previous: the SHA-256 of the line before.
        parts: how many.
    """

    previous: str
    parts: int


class End(
    Struct, frozen=True, kw_only=True, tag="end", tag_field="entry", forbid_unknown_fields=True
):
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


class Paused(Struct, frozen=True, kw_only=True, eq=False):
    """Where a watch that was killed goes on.

    Attributes:
        state: the last values of all parts.
        last: the last part that was written, perhaps taken back since.
        undone: the parts that were taken back since, the latest first.
        deleted: the keys of which something was deleted.
    """

    state: State
    last: Part | None
    undone: list[Part]
    deleted: set[Key]


class Chain:
    """The entries of a watch, appended to a file.

    Args:
        path: the file; if it exists, its watch goes on.
        head: what is watched.

    Attributes:
        paused: where it goes on.

    Raises:
        HistoryError: the file is of another watch, or of one that has ended, or was changed.
    """

    def __init__(self, path: Path, head: Head) -> None:
        self.paused: Paused | None = None
        self._previous = ""
        #: Where the entries of the parts begin that were not taken back.
        self._parts: list[int] = []
        #: The greatest begin of those parts and all before each.
        self._begins: list[int] = []
        if path.exists():
            self._file: IO[bytes] = path.open("r+b")
            self.paused = self._replay(path, head)
        else:
            self._file = path.open("x+b")
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
        self._count(part, self._append(part))

    def _count(self, part: Part, at: int) -> None:
        self._parts.append(at)
        before = self._begins[-1] if self._begins else _NEVER
        self._begins.append(max(before, _NEVER if part.begin is None else part.begin))

    def _replay(self, path: Path, head: Head) -> Paused:
        """Go through a chain whose watch was killed; a torn last line is cut off."""
        state, undone = State(), list[Part]()
        last: Part | None = None
        deleted: set[Key] = set()
        whole = 0
        for at, line, entry in _lines(path):
            if not line.endswith(b"\n"):
                break
            whole = at + len(line)
            self._previous = hashlib.sha256(line).hexdigest()
            if isinstance(entry, Head) and entry != head:
                raise HistoryError(
                    f"{path}: the chain of another watch (expected the level, the sources and the "
                    "clock error that it began with)"
                )
            if isinstance(entry, End):
                raise HistoryError(
                    f"{path}: its watch has ended ({entry.outcome}); expected another folder"
                )
            if isinstance(entry, Part):
                self._count(entry, at)
                state.apply({k: v for k, v in as_values(entry.left).items() if v is not None})
                last, undone = entry, []
                deleted.update((kind, text) for kind, text in entry.deleted)
            elif isinstance(entry, Undo):
                for part in self._take_back(entry.parts):
                    state.undo(as_values(part.before))
                    undone.append(part)
        self._file.truncate(whole)
        if not whole:
            self._append(head)
        return Paused(state=state, last=last, undone=undone, deleted=deleted)

    def undo(self, parts: int) -> list[Part]:
        """Take the last parts back; returns them, the latest first."""
        found = self._take_back(parts)
        self._append(Undo(previous=self._previous, parts=parts))
        return found

    def _take_back(self, parts: int) -> list[Part]:
        found = []
        for _ in range(parts):
            self._file.seek(self._parts.pop())
            self._begins.pop()
            found.append(msgspec.json.decode(self._file.readline(), type=Part))
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
    for _, line, entry in _lines(path):
        if not line.endswith(b"\n"):
            raise HistoryError(f"{path}: the last line is torn")
        yield entry


def position_in(path: Path) -> bytes | None:
    """Where a stream goes on, as ``Stream`` takes it for ``resume``; ``None``: at its beginning.

    Args:
        path: of a chain; it need not exist.

    Raises:
        HistoryError: it cannot be read, or an entry was changed.
    """
    found = None
    if path.exists():
        for _, line, entry in _lines(path):
            if isinstance(entry, Part) and line.endswith(b"\n"):
                found = entry.position
    return found


def _lines(path: Path) -> Iterator[tuple[int, bytes, Entry]]:
    """The entries with the bytes of their lines, and where these begin; a torn last one is left."""
    previous, at = "", 0
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            where = f"{path}:{number}"
            try:
                entry = msgspec.json.decode(line, type=Entry, strict=True)
            except msgspec.DecodeError as error:
                if not line.endswith(b"\n"):
                    return
                raise HistoryError(f"{where}: no entry of a chain ({error})") from None
            if entry.previous != previous:
                raise HistoryError(f"{where}: not the entry that follows the line before it")
            if isinstance(entry, Head) != (number == 1):
                raise HistoryError(f"{where}: a chain has one head, in its first line")
            previous = hashlib.sha256(line).hexdigest()
            yield at, line, entry
            at += len(line)


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
