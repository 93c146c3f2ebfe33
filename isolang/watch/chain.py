"""Reads and writes the chain of a watch, in which each entry has the hash of the entry before it.

Each line of the file is an entry. The first is a :class:`Head`, and the last is a
:class:`ChainEnd`. Between them are :class:`Part`, :class:`Back` and :class:`Begin` entries.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct, field

from isolang.errors import HistoryError
from isolang.history.clock_error import LARGEST
from isolang.history.values import INTEGER, KEYWORD, NATURAL, NIL, OTHER, STRING
from isolang.watch.packed import pack, unpack
from isolang.watch.stream.rows import WIDTH

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The version of the format.
FORMAT: Final = 1

#: The name of the file of a chain in its folder.
NAME: Final = "chain.jsonl"

#: A native atom: its kind, and its payload.
Atom: TypeAlias = tuple[int, str | int | None]

#: The initial value of a key: the key, whether it holds a list, and the value or the elements.
InitialValue: TypeAlias = tuple[Atom, bool, tuple[Atom, ...]]

#: A number of things, or a place in a file.
Count: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 62)]

_NEVER: Final = -(1 << 62)


class HowRead(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The options that change the meaning of a log.

    Attributes:
        clock_error: nanoseconds by which the clocks of two sessions may differ.
        initial_value: the initial values, as ``--initial-value`` takes them.
        unwritten_initial: whether the reads reveal the initial values (``--unwritten-initial``).
    """

    clock_error: Annotated[int, Meta(ge=0, lt=LARGEST)] = 0
    initial_value: tuple[str, ...] = ()
    unwritten_initial: bool = False


class Head(
    Struct, frozen=True, kw_only=True, tag="head", tag_field="entry", forbid_unknown_fields=True
):
    """The first entry: the level and the logs.

    Attributes:
        format: the version of the format.
        spec_name: the name of the level.
        spec_texts: the text of each specification file by file name, as in certificates.
        sources: the names of the logs.
        reading: the options with which the logs are read.
        previous: always empty, because no entry is before the head.
    """

    format: int = FORMAT
    spec_name: str
    spec_texts: Mapping[str, str]
    sources: tuple[str, ...]
    reading: HowRead
    previous: str = ""


class Part(
    Struct, frozen=True, kw_only=True, tag="part", tag_field="entry", forbid_unknown_fields=True
):
    """The transactions that one cut removed from the window, with their witness.

    Attributes:
        previous: the SHA-256 of the line before.
        transactions: the number of transactions in the part.
        abandoned: the number of indeterminate transactions that the watch gave up with this part,
            because no transaction had read from them.
        begin: the latest begin of the transactions; ``None`` without times.
        spans: the bytes that were read since the part before, as file, start, end and SHA-256.
        seen: the number of finished transactions that the watch had seen.
        columns: the packed columns of :class:`Taken`.
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
    """A return to an earlier entry; the parts after that entry were put back and are void.

    Attributes:
        previous: the SHA-256 of the line before.
        to: the SHA-256 of the line of the earlier entry.
    """

    previous: str
    to: str


class Begin(
    Struct, frozen=True, kw_only=True, tag="begin", tag_field="entry", forbid_unknown_fields=True
):
    """Initial values that reads revealed; such an entry is never void.

    Attributes:
        previous: the SHA-256 of the line before.
        initial: the initial values.
    """

    previous: str
    initial: tuple[InitialValue, ...] = field(name="held")


class ChainEnd(
    Struct, frozen=True, kw_only=True, tag="end", tag_field="entry", forbid_unknown_fields=True
):
    """The last entry: the outcome of the watch.

    Attributes:
        previous: the SHA-256 of the line before.
        outcome: ``valid``, ``invalid``, ``suspected`` or ``unknown``.
        note: what the outcome rests on, in words.
    """

    previous: str
    outcome: str
    note: str = ""


Entry = Head | Part | Back | Begin | ChainEnd


class Taken(Struct, frozen=True, kw_only=True, eq=False):
    """The columns of a part.

    Attributes:
        members: int64[n, 5]: the number and the place of each transaction, in the order of the
            witness.
        aside: int64[n, 5]: the number and the place of each transaction that took no effect or was
            given up.
        source: the sources of the witness (:class:`isolang.certify.proofs.Witness`).
        order_start: where the version order of each key begins in ``order_txn``.
        order_txn: the version orders of all keys, one after the other.
        before: the last values that the part replaced, in the format of ``LastValues``.
    """

    members: NDArray[np.int64]
    aside: NDArray[np.int64]
    source: NDArray[np.int64]
    order_start: NDArray[np.int64]
    order_txn: NDArray[np.int64]
    before: bytes

    def packed(self) -> bytes:
        """Return the columns as the bytes of an entry."""
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


def taken(part: Part, where: str) -> Taken:
    """Return the columns of a part.

    Raises:
        HistoryError: the columns cannot be read.
    """
    import numpy as np

    found = unpack(part.columns, where)
    if found.keys() != set(Taken.__struct_fields__):
        names = ", ".join(sorted(map(str, found.keys() ^ set(Taken.__struct_fields__))))
        raise HistoryError(f"{where}: columns that are missing, or unknown ({names:.100})")
    for name, column in found.items():
        if isinstance(column, bytes) != (name == "before"):
            raise HistoryError(f"{where}: column {name}: numbers and bytes are mixed up")
    try:
        return Taken(
            members=np.ascontiguousarray(found["members"].reshape(WIDTH, -1).T),
            aside=np.ascontiguousarray(found["aside"].reshape(WIDTH, -1).T),
            source=found["source"],
            order_start=found["order_start"],
            order_txn=found["order_txn"],
            before=found["before"],
        )
    except ValueError as error:
        raise HistoryError(f"{where}: columns that cannot be read ({error})") from None


class Known(Struct, frozen=True, array_like=True):
    """The data that the watch keeps in memory about a part that is not void.

    Attributes:
        start: the byte of the file where the line of the part begins.
        hash: the SHA-256 of the line.
        begin: the latest begin of the transactions of this part and of all earlier parts.
        abandoned: the number of indeterminate transactions that this part and all earlier parts
            gave up.
    """

    start: int
    hash: str
    begin: int
    abandoned: int


class Chain:
    """Appends the entries of a watch to a file.

    Args:
        path: the file; if it exists, the watch that wrote it is continued.
        head: the first entry.
        size: the size of the file where the watch resumes; the parts after it become void.
        parts: the parts before ``size`` that are not void.

    Raises:
        HistoryError: the file belongs to another watch or to a watch that has ended, or the file
            was changed.
    """

    def __init__(
        self, path: Path, head: Head, *, size: int = 0, parts: Sequence[Known] = ()
    ) -> None:
        self._path = path
        self._previous = ""
        self._head = ""
        self._parts: list[Known] = []
        new = not path.exists() or not _has_head(path)
        self._file: IO[bytes] = path.open("w+b" if new else "r+b")
        if new:
            self._head = self._append(head)
        else:
            self._go_on(head, size, parts)

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def begin(self) -> int | None:
        """The latest begin of the transactions of all parts; ``None`` if no part has times."""
        return self._parts[-1].begin if self._parts and self._parts[-1].begin > _NEVER else None

    @property
    def abandoned(self) -> int:
        """The number of indeterminate transactions that the parts have given up."""
        return self._parts[-1].abandoned if self._parts else 0

    @property
    def parts(self) -> Sequence[Known]:
        """The parts that are not void."""
        return self._parts

    @property
    def size(self) -> int:
        """The size of the file, in bytes."""
        return self._file.seek(0, os.SEEK_END)

    @property
    def previous(self) -> str:
        """The hash of the last entry."""
        return self._previous

    def add(self, part: Part) -> None:
        """Append a part."""
        at = self.size
        line = self._append(part)
        before = self._parts[-1] if self._parts else Known(0, "", _NEVER, 0)
        self._parts.append(
            Known(
                at,
                line,
                max(before.begin, _NEVER if part.begin is None else part.begin),
                before.abandoned + part.abandoned,
            )
        )

    def begin_with(self, entries: Sequence[InitialValue]) -> None:
        """Append an entry with initial values."""
        self._append(Begin(previous=self._previous, initial=tuple(entries)))

    def undo(self, parts: int) -> list[Taken]:
        """Make the last parts void, and return their columns, the latest part first."""
        found = []
        for _ in range(parts):
            known = self._parts.pop()
            self._file.seek(known.start)
            entry = msgspec.json.decode(self._file.readline(), type=Part)
            found.append(taken(entry, str(self._path)))
        self._back()
        return found

    def parts_from(self, first: int) -> list[Part]:
        """Return the entries of the parts from a number on."""
        found = []
        for known in self._parts[first:]:
            self._file.seek(known.start)
            found.append(msgspec.json.decode(self._file.readline(), type=Part))
        return found

    def exchange(self, first: int, parts: Sequence[Part]) -> None:
        """Replace the parts from a number on by other parts with the same transactions."""
        del self._parts[first:]
        self._back()
        for part in parts:
            # The bytes were read before; the entries that are void now still name them.
            self.add(msgspec.structs.replace(part, previous=self._previous, spans=()))

    def _back(self) -> None:
        to = self._parts[-1].hash if self._parts else self._head
        self._append(Back(previous=self._previous, to=to))

    def _go_on(self, head: Head, size: int, parts: Sequence[Known]) -> None:
        """Continue an existing chain: drop a torn last line, and make parts after ``size`` void."""
        with self._path.open("rb") as file:
            self._head = hashlib.sha256(file.readline()).hexdigest()
            body = file.tell()
        start = parts[-1].start if parts else 0
        whole = start
        for at, line, entry in _lines(self._path, start):
            if not line.endswith(b"\n"):
                break
            whole = at + len(line)
            self._previous = hashlib.sha256(line).hexdigest()
            if parts and at == start and self._previous != parts[-1].hash:
                raise HistoryError(f"{self._path} byte {at}: not the part that was written there")
            if isinstance(entry, Head) and entry != head:
                raise HistoryError(
                    f"{self._path}: the chain of another watch (expected the level, the sources "
                    "and the clock error that it began with)"
                )
            if isinstance(entry, ChainEnd):
                raise HistoryError(
                    f"{self._path}: its watch has ended ({entry.outcome}); expected another folder"
                )
        self._parts = list(parts)
        self._file.truncate(whole)
        if whole > max(size, body):
            self._back()

    def end(self, end: ChainEnd) -> None:
        """Append the verdict and close the file."""
        self._append(end)
        self._file.close()

    def flush(self) -> None:
        """Wait until the disk has the contents of the file."""
        os.fsync(self._file.fileno())

    def _append(self, entry: Entry) -> str:
        """Append the line of an entry and return its hash; if that fails, append nothing."""
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
                pass  # a torn last line is dropped when the watch is continued
            raise HistoryError(
                f"{self._path}: cannot be written ({error.strerror or error}); hint: the watch "
                "goes on from here when it is started again"
            ) from None
        self._previous = hashlib.sha256(line).hexdigest()
        return self._previous


def _has_head(path: Path) -> bool:
    with path.open("rb") as file:
        return file.readline().endswith(b"\n")


def read_chain(path: Path) -> Iterator[Entry]:
    """Yield the entries of a chain, each of which must have the hash of the line before.

    Raises:
        HistoryError: the chain cannot be read, or an entry was changed.
    """
    for _, line, entry in _lines(path):
        if not line.endswith(b"\n"):
            raise HistoryError(f"{path}: the last line is torn")
        yield entry


def _lines(path: Path, start: int = 0) -> Iterator[tuple[int, bytes, Entry]]:
    """Yield the start, the bytes and the entry of each line; skip an unreadable torn last line."""
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
                raise HistoryError(f"{where}: no entry of a chain ({error})") from None
            if previous is not None and entry.previous != previous:
                raise HistoryError(f"{where}: not the entry that follows the line before it")
            if isinstance(entry, Head) != (at == 0):
                raise HistoryError(f"{where}: a chain has one head, in its first line")
            if isinstance(entry, Begin):
                _check_initial(entry.initial, where)
            if isinstance(entry, Head) and entry.format != FORMAT:
                raise HistoryError(
                    f"{where}: a chain of another version (got {entry.format}, expected {FORMAT})"
                )
            previous = hashlib.sha256(line).hexdigest()
            yield at, line, entry
            at += len(line)


def _check_initial(entries: Sequence[InitialValue], where: str) -> None:
    """Check that the keys and values of initial values fit their kinds.

    Raises:
        HistoryError: a key or a value does not.
    """
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


class Live(Struct, frozen=True, kw_only=True):
    """The entries of a chain that are not void.

    Attributes:
        starts: the bytes of the file where the lines of the parts begin, in order.
        spans: all bytes of the log that were read.
        initial: the initial values.
        end: the entry at the end; ``None`` if the chain has not ended.
    """

    starts: list[int]
    spans: list[tuple[int, int, int, str]]
    initial: list[InitialValue]
    end: ChainEnd | None


def live_parts(path: Path) -> Live:
    """Return the entries of a chain that are not void.

    Raises:
        HistoryError: the chain cannot be read, or it returns to an entry that does not exist.
    """
    head = ""
    before: dict[str, str] = {}  # for each part, by its hash, the part that it follows
    starts: dict[str, int] = {}
    at_entry: dict[str, str] = {}  # for each entry, the last part that is not void after it
    spans: list[tuple[int, int, int, str]] = []
    initial: list[InitialValue] = []
    end = None
    for start, line, entry in _lines(path):
        if not line.endswith(b"\n") or end is not None:
            raise HistoryError(f"{path}: the last line is torn, or comes after the end")
        own = hashlib.sha256(line).hexdigest()
        if isinstance(entry, Part):
            before[own], starts[own] = head, start
            head = own
            spans += entry.spans
        elif isinstance(entry, Back):
            if entry.to not in at_entry:
                raise HistoryError(f"{path}: goes back to an entry that it does not have")
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
    return Live(starts=found[::-1], spans=spans, initial=initial, end=end)


def part_at(file: IO[bytes], start: int, where: str) -> Part:
    """Return the part whose line begins at a byte of the file of a chain.

    Raises:
        HistoryError: no part begins there.
    """
    file.seek(start)
    try:
        return msgspec.json.decode(file.readline(), type=Part, strict=True)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HistoryError(f"{where}: no entry of a chain ({error})") from None
