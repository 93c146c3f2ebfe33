"""Reads and writes the chain of a watch, in which each entry contains the previous entry's hash.

Each line of the file is an entry. The first entry is a :class:`Head`, and the last entry is a
:class:`ChainEnd`. Between them are :class:`Part`, :class:`Back` and :class:`Begin` entries.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Final, Protocol, TypeAlias

import msgspec
from msgspec import Meta, Struct, field

from isolang.errors import HistoryError
from isolang.history.clock_error import LARGEST_DURATION
from isolang.history.values import INTEGER, KEYWORD, NATURAL, NIL, OTHER, STRING
from isolang.watch.packed import pack, unpack
from isolang.watch.stream.rows import PLACE_COLUMNS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The version number of the chain format.
FORMAT: Final = 1

#: The name of the chain file in the folder of a watch.
NAME: Final = "chain.jsonl"

#: A key or a value in the native columns: the kind of the atom, and the payload.
Atom: TypeAlias = tuple[int, str | int | None]

#: The initial value of a key: the key, whether it holds a list, and the value or the elements.
InitialValue: TypeAlias = tuple[Atom, bool, tuple[Atom, ...]]

#: A count, or a byte offset in a file.
Count: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 62)]

_NEVER: Final = -(1 << 62)


class LogOptions(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The options that change the meaning of a log and are therefore recorded in the chain.

    Attributes:
        clock_error: the largest difference between two sessions' clocks, in nanoseconds.
    """

    clock_error: Annotated[int, Meta(ge=0, lt=LARGEST_DURATION)] = 0
    initial_value: tuple[str, ...] = ()
    unwritten_initial: bool = False


class Head(
    Struct, frozen=True, kw_only=True, tag="head", tag_field="entry", forbid_unknown_fields=True
):
    """The first entry of a chain, which records the level and the logs.

    Attributes:
        previous: always empty, because no entry precedes the head.
    """

    format: int = FORMAT
    spec_name: str
    spec_texts: Mapping[str, str]
    sources: tuple[str, ...]
    reading: LogOptions
    previous: str = ""


class Part(
    Struct, frozen=True, kw_only=True, tag="part", tag_field="entry", forbid_unknown_fields=True
):
    """The transactions that a single cut removed from the window, with their witness.

    Attributes:
        abandoned: the number of indeterminate transactions that the watch gave up on with this
            part, because no transaction had read from them.
        begin: the latest begin time in the part; ``None`` if the stream has no times.
        spans: the bytes read since the previous part, as file, start, end and SHA-256.
        seen: the number of finished transactions that the watch had seen before the cut.
        columns: the columns of :class:`PartColumns`, packed by :meth:`Taken.packed`.
    """

    previous: str
    transactions: Count
    abandoned: Count = field(name="given_up", default=0)
    begin: int | None = None
    spans: tuple[tuple[Count, Count, Count, str], ...] = ()
    seen: Count = 0
    columns: bytes


class Back(
    Struct, frozen=True, kw_only=True, tag="back", tag_field="entry", forbid_unknown_fields=True
):
    """An entry that makes all parts after an earlier entry void, because they were put back.

    Attributes:
        to: the SHA-256 of the earlier entry's line.
    """

    previous: str
    to: str


class Begin(
    Struct, frozen=True, kw_only=True, tag="begin", tag_field="entry", forbid_unknown_fields=True
):
    """An entry with initial values revealed by reads. Such an entry never becomes void."""

    previous: str
    initial: tuple[InitialValue, ...] = field(name="held")


class ChainEnd(
    Struct, frozen=True, kw_only=True, tag="end", tag_field="entry", forbid_unknown_fields=True
):
    """The last entry of a chain, which records the outcome of the watch.

    Attributes:
        outcome: ``valid``, ``invalid``, ``suspected`` or ``unknown``.
        note: a sentence about the outcome's assumptions, or about the reason why it is unknown.
    """

    previous: str
    outcome: str
    note: str = ""


Entry = Head | Part | Back | Begin | ChainEnd


class PartColumns(Struct, frozen=True, kw_only=True, eq=False):
    """The transactions of a part and their witness, as columns.

    Attributes:
        members: int64[n, 5]: for each transaction of the part, its number and its place in the log,
            in the order of their numbers in the witness.
        aside: int64[n, 5]: the same for each transaction that the cut removed without adding it to
            the part, because it took no effect or the watch gave up on it.
        source: the source of each external read (:class:`isolang.certify.proofs.Witness`).
        order_start: the index in ``order_txn`` where each key's version order begins.
        before: the last values that the part replaced, in the format of ``LastValues``.
    """

    members: NDArray[np.int64]
    aside: NDArray[np.int64]
    source: NDArray[np.int64]
    order_start: NDArray[np.int64]
    order_txn: NDArray[np.int64]
    before: bytes

    def packed(self) -> bytes:
        """Return the columns as bytes for the field ``columns`` of :class:`Part`."""
        return pack(
            {
                "members": self.members.T.ravel(),
                "aside": self.aside.T.ravel(),
                "source": self.source,
                "order_start": self.order_start,
                "order_txn": self.order_txn,
                "before": self.before,
            }
        )


def unpack_columns(part: Part, where: str) -> PartColumns:
    """Unpack the columns of a part's entry; ``where`` names the entry in messages.

    Raises:
        HistoryError: the columns cannot be read.
    """
    import numpy as np

    found = unpack(part.columns, where)
    if found.keys() != set(PartColumns.__struct_fields__):
        names = ", ".join(sorted(map(str, found.keys() ^ set(PartColumns.__struct_fields__))))
        raise HistoryError(f"{where}: columns are missing or unknown ({names:.100})")
    for name, column in found.items():
        if isinstance(column, bytes) != (name == "before"):
            raise HistoryError(f"{where}: column {name}: numbers and bytes are mixed up")
    try:
        return PartColumns(
            members=np.ascontiguousarray(found["members"].reshape(PLACE_COLUMNS, -1).T),
            aside=np.ascontiguousarray(found["aside"].reshape(PLACE_COLUMNS, -1).T),
            source=found["source"],
            order_start=found["order_start"],
            order_txn=found["order_txn"],
            before=found["before"],
        )
    except ValueError as error:
        raise HistoryError(f"{where}: cannot read the columns ({error})") from None


class UnwrittenPart(Protocol):
    """A part whose entry is not in the chain file yet.

    Attributes:
        entry: the entry, without the columns and without the hash of the previous line.
    """

    entry: Part

    def packed(self) -> bytes:
        """Return the columns of the entry."""


@dataclass(slots=True)
class WrittenPart:
    """A part whose entry must be written again, because the chain before it has changed."""

    entry: Part

    def packed(self) -> bytes:
        """Return the columns of the entry."""
        return self.entry.columns


class KnownPart(Struct, frozen=True, array_like=True):
    """The data kept in memory about a part that is not void.

    Attributes:
        start: the byte offset of the part's line in the chain file; -1 if it is not written yet.
        hash: the SHA-256 of the line; empty if it is not written yet.
        abandoned: the number of indeterminate transactions that the watch gave up on, up to and
            including this part.
    """

    start: int
    hash: str
    begin: int
    abandoned: int


def _difference(found: Entry, head: Head) -> str:
    """Say how the first entry of a chain differs from the head of the watch that resumes it."""
    if not isinstance(found, Head):
        return "got no level and no logs, expected them in its first line"
    if found.spec_name != head.spec_name:
        return f"got level {found.spec_name}, expected {head.spec_name}"
    if found.spec_texts != head.spec_texts:
        return f"got another text of {found.spec_name} than today's"
    if found.sources != head.sources:
        got, expected = (", ".join(one.sources) or "no log" for one in (found, head))
        return f"got {got}, expected {expected}"
    pairs = [
        (name, getattr(found.reading, name), getattr(head.reading, name))
        for name in LogOptions.__struct_fields__
    ]
    return "; ".join(f"got {name} {a}, expected {b}" for name, a, b in pairs if a != b)


class Chain:
    """Appends the entries of a watch to the chain file.

    The entries of the last parts are written later, because later reads may change their orders.

    Args:
        size: the size of the file, in bytes, when the watch's state was saved; the parts after that
            byte become void.
        parts: the parts before that byte that are not void.

    Raises:
        HistoryError: the file belongs to another watch or to a watch that has ended, or it has been
            changed.
    """

    def __init__(
        self, path: Path, head: Head, *, size: int = 0, parts: Sequence[KnownPart] = ()
    ) -> None:
        self._path = path
        self._previous = ""
        self._head = ""
        self._parts: list[KnownPart] = []
        self._unwritten: deque[UnwrittenPart] = deque()  # the last of these parts
        new = not path.exists() or not _has_head(path)
        self._file: IO[bytes] = path.open("w+b" if new else "r+b")
        if new:
            self._head = self._append(head)
        else:
            self._resume(head, size, parts)

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def begin(self) -> int | None:
        """The latest begin time in all parts; ``None`` if no part has times."""
        return self._parts[-1].begin if self._parts and self._parts[-1].begin > _NEVER else None

    @property
    def abandoned(self) -> int:
        """The number of indeterminate transactions in the parts that the watch gave up on."""
        return self._parts[-1].abandoned if self._parts else 0

    @property
    def parts(self) -> Sequence[KnownPart]:
        """The parts that are not void."""
        return self._parts

    @property
    def size(self) -> int:
        """The size of the file, in bytes."""
        return self._file.seek(0, os.SEEK_END)

    def add(self, part: UnwrittenPart) -> None:
        """Add the next part, whose entry is written later."""
        before = self._parts[-1] if self._parts else KnownPart(-1, "", _NEVER, 0)
        begin, abandoned = part.entry.begin, before.abandoned + part.entry.abandoned
        begin = before.begin if begin is None else max(before.begin, begin)
        self._parts.append(KnownPart(-1, "", begin, abandoned))
        self._unwritten.append(part)

    def write(self, *, but: int = 0) -> None:
        """Write the entries of all parts except the last ``but`` parts."""
        while len(self._unwritten) > but:
            part, number = self._unwritten[0], len(self._parts) - len(self._unwritten)
            at, known = self.size, self._parts[number]
            line = self._append(msgspec.structs.replace(part.entry, columns=part.packed()))
            self._parts[number] = KnownPart(at, line, known.begin, known.abandoned)
            self._unwritten.popleft()

    def add_initial_values(self, entries: Sequence[InitialValue]) -> None:
        """Append an entry for initial values."""
        self._append(Begin(previous="", initial=tuple(entries)))

    def undo(self, parts: int) -> list[PartColumns]:
        """Void the last ``parts`` parts, and return their columns, latest part first."""
        self.write()  # the entries of void parts still record the bytes that were read
        found = []
        for _ in range(parts):
            known = self._parts.pop()
            self._file.seek(known.start)
            entry = msgspec.json.decode(self._file.readline(), type=Part)
            found.append(unpack_columns(entry, str(self._path)))
        self._append_back()
        return found

    def parts_from(self, first: int, end: int) -> list[Part]:
        """Return the entries of the parts with the numbers from ``first`` to ``end - 1``.

        These entries must have been written.
        """
        found = []
        for known in self._parts[first:end]:
            self._file.seek(known.start)
            found.append(msgspec.json.decode(self._file.readline(), type=Part))
        return found

    def rewrite(self, first: int, parts: Sequence[UnwrittenPart]) -> None:
        """Void the written entries of all parts from number ``first`` on, to write them again."""
        written = len(self._parts) - len(self._unwritten)
        if first >= written:
            return
        for part in parts[: written - first]:
            # The void entry still records the bytes that were read for the part.
            part.entry = msgspec.structs.replace(part.entry, spans=())
        again = [KnownPart(-1, "", known.begin, known.abandoned) for known in self._parts[first:]]
        del self._parts[first:]
        self._append_back()
        self._parts += again
        self._unwritten = deque(parts)

    def _append_back(self) -> None:
        to = self._parts[-1].hash if self._parts else self._head
        self._append(Back(previous="", to=to))

    def _resume(self, head: Head, size: int, parts: Sequence[KnownPart]) -> None:
        """Continue an existing chain: remove a torn last line, and void later parts.

        A part is later if its entry lies after byte ``size`` of the file.
        """
        _, line, found = next(_lines(self._path))
        if found != head:
            raise HistoryError(
                f"{self._path}: the folder contains the chain of another watch "
                f"({_difference(found, head)}); name another folder"
            )
        self._head, body = hashlib.sha256(line).hexdigest(), len(line)
        start = parts[-1].start if parts else 0
        whole = start
        for at, line, entry in _lines(self._path, start):
            if not line.endswith(b"\n"):
                break
            whole = at + len(line)
            self._previous = hashlib.sha256(line).hexdigest()
            if parts and at == start and self._previous != parts[-1].hash:
                raise HistoryError(f"{self._path} byte {at}: another part was written there")
            if isinstance(entry, ChainEnd):
                raise HistoryError(
                    f"{self._path}: the watch of this folder has ended ({entry.outcome}); name "
                    "another folder"
                )
        self._parts = list(parts)
        self._file.truncate(whole)
        if whole > max(size, body):
            self._append_back()

    def end(self, outcome: str, note: str) -> None:
        """Append the last entry, and close the file."""
        self.write()
        self._append(ChainEnd(previous="", outcome=outcome, note=note))
        self._file.close()

    def flush(self) -> None:
        """Wait until the contents of the file are on the disk."""
        os.fsync(self._file.fileno())

    def _append(self, entry: Entry) -> str:
        """Append an entry as a line, and return the SHA-256 of that line.

        The hash of the previous line is added to the entry.
        """
        entry = msgspec.structs.replace(entry, previous=self._previous)
        line = msgspec.json.encode(entry) + b"\n"
        at = self.size
        try:
            self._file.write(line)
            self._file.flush()
        except OSError as error:
            try:
                self._file = self._path.open("r+b")
                self._file.truncate(at)
            except OSError:
                pass  # a torn last line is removed when the watch is continued
            raise HistoryError(
                f"{self._path}: cannot be written ({error.strerror or error}); hint: start the "
                "watch again to go on from here"
            ) from None
        self._previous = hashlib.sha256(line).hexdigest()
        return self._previous


def _has_head(path: Path) -> bool:
    with path.open("rb") as file:
        return file.readline().endswith(b"\n")


def read_chain(path: Path) -> Iterator[Entry]:
    """Yield the entries of a chain, and check that each contains the hash of the previous line.

    Raises:
        HistoryError: the chain cannot be read, or an entry has been changed.
    """
    for _, line, entry in _lines(path):
        if not line.endswith(b"\n"):
            raise HistoryError(f"{path}: the last line is torn")
        yield entry


def _lines(path: Path, start: int = 0) -> Iterator[tuple[int, bytes, Entry]]:
    """Yield the offset, bytes and entry of each line, starting at byte ``start``.

    An unreadable last line without a newline is skipped.
    """
    previous: str | None = "" if not start else None
    at = start
    with path.open("rb") as lines:
        lines.seek(start)
        for number, line in enumerate(lines, 1):
            where = f"{path}:{number}" if not start else f"{path} byte {at}"
            try:
                entry = msgspec.json.decode(line, type=Entry, strict=True)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                if not line.endswith(b"\n"):
                    return
                raise HistoryError(f"{where}: not an entry of a chain ({error})") from None
            if previous is not None and entry.previous != previous:
                raise HistoryError(
                    f"{where}: this entry does not follow the entry on the line before"
                )
            if isinstance(entry, Head) != (at == 0):
                raise HistoryError(f"{where}: a chain has only one head, on its first line")
            if isinstance(entry, Begin):
                _check_initial(entry.initial, where)
            if isinstance(entry, Head) and entry.format != FORMAT:
                raise HistoryError(
                    f"{where}: the chain has another version (got {entry.format}, expected "
                    f"{FORMAT})"
                )
            previous = hashlib.sha256(line).hexdigest()
            yield at, line, entry
            at += len(line)


def _check_initial(entries: Sequence[InitialValue], where: str) -> None:
    """Check that the payload of each key and value has the type required by its kind."""
    for number, (key, is_list, values) in enumerate(entries):
        if not is_list and len(values) != 1:
            raise HistoryError(
                f"{where}: no value at $.held[{number}][2] (got {len(values)} values, expected "
                "one of a key that holds no list)"
            )
        for at, atom in (("[0]", key), *((f"[2][{i}]", one) for i, one in enumerate(values))):
            if not _is_atom(*atom):
                raise HistoryError(
                    f"{where}: no key or value at $.held[{number}]{at} (got {list(atom)!r:.60}, "
                    "expected a kind, and a payload of that kind)"
                )


def _is_atom(kind: int, payload: object) -> bool:
    if kind == NIL:
        return payload is None
    if kind in (INTEGER, NATURAL):
        bounds = (-(1 << 63), 1 << 63) if kind == INTEGER else (1 << 63, 1 << 64)
        return isinstance(payload, int) and bounds[0] <= payload < bounds[1]
    return kind in (STRING, KEYWORD, OTHER) and isinstance(payload, str)


class LiveChain(Struct, frozen=True, kw_only=True):
    """The content of a chain without its void parts.

    Attributes:
        starts: for each part, the byte offset of its line in the chain file.
        spans: all bytes of the log that were read, as file, start, end and SHA-256.
        end: the last entry; ``None`` if the chain has no end.
    """

    starts: list[int]
    spans: list[tuple[int, int, int, str]]
    initial: list[InitialValue]
    end: ChainEnd | None


def read_live_chain(path: Path) -> LiveChain:
    """Read a chain, leaving out its void parts.

    Raises:
        HistoryError: the chain cannot be read, or it returns to an entry that does not exist.
    """
    head = ""
    before: dict[str, str] = {}  # maps each part's hash to the previous part's hash
    starts: dict[str, int] = {}
    # Maps the hash of each entry to the hash of the last part that was not void at that entry.
    at_entry: dict[str, str] = {}
    spans: list[tuple[int, int, int, str]] = []
    initial: list[InitialValue] = []
    end = None
    for start, line, entry in _lines(path):
        if not line.endswith(b"\n") or end is not None:
            raise HistoryError(f"{path}: the last line is torn or comes after the end")
        own = hashlib.sha256(line).hexdigest()
        if isinstance(entry, Part):
            before[own], starts[own] = head, start
            head = own
            spans += entry.spans
        elif isinstance(entry, Back):
            if entry.to not in at_entry:
                raise HistoryError(
                    f"{path}: the chain goes back to an entry that it does not contain"
                )
            head = at_entry[entry.to]
        elif isinstance(entry, Begin):
            initial += entry.initial
        elif isinstance(entry, ChainEnd):
            end = entry
        at_entry[own] = head
    found = []
    while head:
        found.append(starts[head])
        head = before[head]
    return LiveChain(starts=found[::-1], spans=spans, initial=initial, end=end)


def part_at(file: IO[bytes], start: int, where: str) -> Part:
    """Read the part whose line begins at byte ``start`` of a chain file.

    Raises:
        HistoryError: no part begins at that byte.
    """
    file.seek(start)
    try:
        return msgspec.json.decode(file.readline(), type=Part, strict=True)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HistoryError(f"{where}: not an entry of a chain ({error})") from None
