"""Stores the last values of keys in memory and on disk, and the state for a resumed watch."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct, field

from isolang import _native
from isolang.errors import HistoryError
from isolang.watch.chain import NAME as CHAIN
from isolang.watch.chain import Atom, InitialValue, KnownPart
from isolang.watch.rows_on_disk import Record, RowsOnDisk

if TYPE_CHECKING:
    from isolang._native import Columns

#: The name of the state file in the folder of a watch.
NAME: Final = "state.sqlite"

#: The version number of the state file. A state file with another version is not read. Instead, the
#: watch checks the log again from its beginning and continues its chain.
FORMAT: Final = 3

_AT_ONCE: Final = 500  # the largest number of keys in one query
_WRITTEN_AT_ONCE: Final = 10_000  # the largest number of keys in one writing statement
# The errors that may occur while reading a file that has been changed. SQLite's messages about such
# a file may not be UTF-8.
_READ_ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)
_SEAL: Final = 8  # the length in bytes of the hash after each key's entry


def _seal_of(record: bytes) -> bytes:
    return hashlib.blake2b(record, digest_size=_SEAL).digest()


class Saved(Struct, frozen=True, kw_only=True):
    """The saved state that a watch resumes from.

    Attributes:
        chain: the size of the chain file, in bytes.
        rows: the window, as :func:`isolang.watch.stream.rows.saved` returns it.
        seen: the value of :attr:`isolang.watch.window.Window.seen`.
        again: the value of :attr:`isolang.watch.window.Window.again`.
        abandoned: the value of :attr:`isolang.watch.window.Window.abandoned`.
        since: the value of :attr:`isolang.watch.window.Window.since`.
        unjudged: the value of :attr:`isolang.watch.parts.Parts.unjudged`.
        known: the keys whose stated initial values have been applied.
        touched: the keys accessed by the parts; empty without ``--unwritten-initial``.
        values_hash: the SHA-256 of the last values that were in memory.
    """

    chain: int
    parts: list[KnownPart]
    rows: Any
    seen: int
    again: int = 0
    abandoned: list[tuple[int, int]] = field(name="left")
    since: list[tuple[tuple[int, int], int]]
    unjudged: list[str]
    position: bytes
    initial: list[InitialValue] = field(name="held", default_factory=list)
    known: list[Atom] = []
    touched: list[Atom] = []
    values_hash: str = ""


class Values:
    """The last value of each key that the parts wrote, in memory and on disk.

    Args:
        memory: the memory limit for the values, in bytes; if they take more, all of them are moved
            to disk.
    """

    def __init__(self, folder: Path, *, memory: int) -> None:
        self.last = _native.LastValues()
        self._path = folder / NAME
        self._memory = memory
        self._spilled = False
        self._data: sqlite3.Connection | None = None
        self._rows: RowsOnDisk | None = None

    def __len__(self) -> int:
        """Return the number of keys with a value in memory."""
        return len(self.last)

    @property
    def full(self) -> bool:
        """``True`` if the values take more memory than they may."""
        return self.last.memory() > self._memory

    @property
    def spilled(self) -> bool:
        """``True`` if some values may be stored only on disk."""
        return self._spilled

    def close(self) -> None:
        """Close the state file, and delete the row index."""
        if self._data is not None:
            self._data.close()
            self._data = None
        if self._rows is not None:
            self._rows.close()
            self._rows = None

    def fetch(self, columns: Columns) -> None:
        """Load from disk all values that the transactions in these columns may need.

        Raises:
            HistoryError: the state file cannot be read.
        """
        if not self._spilled:
            return
        names = self.last.missing(columns)
        found: list[bytes] = []
        try:
            for i in range(0, len(names), _AT_ONCE):
                some = names[i : i + _AT_ONCE]
                marks = ",".join("?" * len(some))
                query = f"SELECT key, record FROM value WHERE key IN ({marks})"
                found += [self._unsealed(*row) for row in self._open().execute(query, some)]
            if found:
                self.last.replace(b"".join(found))
            if len(columns.statement_txn):
                if self._rows is None:
                    self._rows = RowsOnDisk(self._open(), self._path.parent, self._unsealed)
                self._rows.fetch(columns, self.last)
        except _READ_ERRORS as error:
            raise self._state_error("read", error) from None

    def save(self, saved: Saved) -> None:
        """Write the state for a resumed watch; if values take too much memory, move them to disk.

        Raises:
            HistoryError: the state file cannot be written.
        """
        self._write(saved)

    def make_room(self) -> None:
        """Move the values to disk if they take too much memory.

        Raises:
            HistoryError: the state file cannot be written.
        """
        self._write(None)

    def _write(self, saved: Saved | None) -> None:
        full = self.full
        if saved is None and not full:
            return
        try:
            with self._open() as open_:
                for records in self._records() if full else ():
                    open_.executemany(
                        "INSERT OR REPLACE INTO value VALUES (?, ?)",
                        ((name, record + _seal_of(record)) for name, record in records),
                    )
                    if self._rows is not None:
                        self._rows.update(records)
                if saved is not None:
                    digest = self._write_memory(open_, nothing=full)
                    data = msgspec.msgpack.encode(
                        msgspec.structs.replace(saved, values_hash=digest)
                    )
                    open_.execute(
                        "INSERT OR REPLACE INTO saved VALUES (1, ?, ?)",
                        (hashlib.sha256(data).hexdigest(), data),
                    )
        except _READ_ERRORS as error:
            self.close()  # this also deletes the outdated row index
            raise self._state_error("written", error) from None
        if full:
            self.last.clear()
            _native.trim_heap()
            self._spilled = self.last.keep_removed = True

    def _records(self) -> Iterator[list[Record]]:
        """Yield the values in memory, in lists of limited length."""
        for first in range(0, self.last.numbers(), _WRITTEN_AT_ONCE):
            yield self.last.records(first, _WRITTEN_AT_ONCE)

    def _write_memory(self, open_: sqlite3.Connection, *, nothing: bool) -> str:
        """Write the values in memory for a resumed watch, and return their hash."""
        digest = hashlib.sha256()
        open_.execute("DELETE FROM held")
        if nothing:
            return digest.hexdigest()
        for first in range(0, self.last.numbers(), _WRITTEN_AT_ONCE):
            entries = self.last.entries(first, _WRITTEN_AT_ONCE)
            digest.update(entries)
            open_.execute("INSERT INTO held VALUES (?, ?)", (first, entries))
        return digest.hexdigest()

    def restore(self, saved: Saved) -> None:
        """Restore the values of a resumed watch.

        All values on disk are read and checked. Otherwise a changed key would go unnoticed, because
        no later query would find it.

        Raises:
            HistoryError: the state file cannot be read, or has been changed.
        """
        try:
            for row in self._open().execute("SELECT key, record FROM value"):
                self._unsealed(*row)
                self._spilled = True
            self.last.keep_removed = self._spilled
            digest = hashlib.sha256()
            for (entries,) in self._open().execute("SELECT entries FROM held ORDER BY number"):
                digest.update(entries)
                self.last.replace(entries)
            if digest.hexdigest() != saved.values_hash:
                raise HistoryError(f"{self._path}: was changed")
        except (*_READ_ERRORS, ValueError) as error:
            raise self._state_error("read", error) from None

    def forget(self) -> None:
        """Delete the state file."""
        self.close()
        self._path.unlink(missing_ok=True)

    def _unsealed(self, name: bytes, record: bytes) -> bytes:
        """Return the entry of a key without the hash at its end."""
        if _seal_of(record[:-_SEAL]) != record[-_SEAL:] or not record.startswith(name):
            raise HistoryError(f"{self._path}: was changed")
        return record[:-_SEAL]

    def _open(self) -> sqlite3.Connection:
        if self._data is None:
            self._data = _open_database(self._path)
        return self._data

    def _state_error(self, what: str, error: Exception) -> HistoryError:
        return HistoryError(
            f"{self._path}: cannot be {what} ({error}); hint: start the watch again to go on "
            "from its last state"
        )


class _OtherVersionError(Exception):
    """Raised when the version of the state file is not :data:`FORMAT`."""


def _open_database(path: Path) -> sqlite3.Connection:
    data = sqlite3.connect(path)
    (version,) = data.execute("PRAGMA user_version").fetchone()
    if version != FORMAT:
        if data.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            data.close()
            raise _OtherVersionError
        data.execute(f"PRAGMA user_version = {FORMAT}")
    data.execute("PRAGMA synchronous = NORMAL")
    data.execute("PRAGMA cache_size = -32000")
    with data:
        data.execute(
            "CREATE TABLE IF NOT EXISTS value (key BLOB PRIMARY KEY, record BLOB) WITHOUT ROWID"
        )
        data.execute("CREATE TABLE IF NOT EXISTS held (number INTEGER PRIMARY KEY, entries BLOB)")
        data.execute(
            "CREATE TABLE IF NOT EXISTS saved (id INTEGER PRIMARY KEY, hash TEXT, data BLOB)"
        )
    return data


def read_saved_state(folder: Path) -> Saved | None:
    """Return the saved state in the folder of a watch.

    Return ``None`` if the watch must read the log from its beginning: if no state was saved, if the
    state file has another version, or if the chain file is now shorter than when the state was
    saved.

    Raises:
        HistoryError: the state file cannot be read, or has been changed.
    """
    path = folder / NAME
    if not path.exists():
        return None
    try:
        data = _open_database(path)
        try:
            found = data.execute("SELECT hash, data FROM saved").fetchall()
        finally:
            data.close()
        if not found:
            return None
        digest, text = found[0]
        if hashlib.sha256(text).hexdigest() != digest:
            raise HistoryError(f"{path}: was changed")
        saved = msgspec.msgpack.decode(text, type=Saved)
    except _OtherVersionError:
        return None
    except (*_READ_ERRORS, TypeError, msgspec.DecodeError) as error:
        raise HistoryError(f"{path}: cannot be read ({error})") from None
    chain = folder / CHAIN
    return saved if chain.exists() and chain.stat().st_size >= saved.chain else None


def position_in(folder: Path) -> bytes | None:
    """Return the ``resume`` argument that lets a :class:`Stream` continue an earlier watch.

    Return ``None`` if the stream must be read from its beginning.

    Raises:
        HistoryError: the state file cannot be read, or has been changed.
    """
    saved = read_saved_state(folder)
    return None if saved is None else saved.position
