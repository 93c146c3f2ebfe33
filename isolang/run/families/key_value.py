"""Provides base classes for key-value stores whose clients send all writes at COMMIT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from isolang.run.adapter import BaseClient, MarkedTarget, ServerTarget, connection_errors
from isolang.run.marks.commit_tokens import new_token, resolve_token
from isolang.run.marks.ownership import (
    initial_mark,
    is_alive,
    new_owner,
    not_removed_error,
    owner_of,
    why_tables_exist,
)
from isolang.run.operation import DELETED
from isolang.run.outcome import Outcome, RolledBack
from isolang.run.target import Level, TargetError

if TYPE_CHECKING:
    from isolang.run.address import Address


_BATCH: Final = 100  # how many keys each setup transaction creates


class Store(Protocol):
    """A connection to a key-value store."""

    def version(self) -> str:
        """Return the version reported by the server."""
        ...

    def exists(self, keys: Sequence[str]) -> str:
        """Return one of the keys that exist, or an empty string if none of them does."""
        ...

    def put(self, key: str, value: str) -> None:
        """Write a value to a key."""
        ...

    def get(self, key: str) -> str:
        """Return the value of a key; if the key does not exist, return an empty string."""
        ...

    def claim(self, key: str, value: str) -> bool:
        """Create a key and return true; if the key already exists, return false."""
        ...

    def swap(self, key: str, old: str, new: str) -> bool:
        """Replace the value ``old`` of a key and return true; return false if the value differs."""
        ...

    def remove(self, key: str) -> None:
        """Delete a key if it exists."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class KeyValueTarget(ServerTarget, MarkedTarget):
    """The base class for a key-value store; all keys of a run begin with the same prefix."""

    name: ClassVar[str]
    levels: ClassVar[tuple[Level, ...]]
    lacks: ClassVar = frozenset({"range reads", "savepoints"})

    def __init__(self, address: Address, prefix: str) -> None:
        super().__init__(address, prefix)
        self._keys: list[str] = []

    def start(self) -> None:
        """Start a server if the address names no host; then check that the server responds."""
        super().start()
        self.version()  # an open port does not mean that the server responds

    def setup(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        """Set the initial value of each key: NULL for a register, an empty list for a list.

        Raises:
            TargetError: a key already exists, or the store does not respond.
        """
        with connection_errors(self.address):
            self._set_up(registers, lists)

    def _set_up(self, registers: Sequence[str], lists: Sequence[str]) -> None:
        self.lists = frozenset(lists)
        first = dict.fromkeys(registers) | {key: [] for key in lists}
        with closing(self.connect(direct=True)) as client:
            if self.shared:
                self._leave_mark(client)
            for part in _batches(list(first)):
                there = client.raw.exists([self.prefix + key for key in part])
                if there:
                    hint = "isocheck did not create it; --table-prefix NAME chooses other names"
                    if there in self._marked(client):
                        hint = why_tables_exist("", self.address, alive=False)
                    if self.shared and self.release_mark():
                        client.raw.remove(self._mark_of_run)
                    raise TargetError(f"{self.name}: the key {there} already exists; {hint}")
            for number, part in enumerate(_batches(list(first))):
                client.raw.put(self._mark(number), " ".join(self.prefix + key for key in part))
        self._keys = list(first)
        self._put(first)

    def _leave_mark(self, client: BufferedClient) -> None:
        self.owner = self.owner or new_owner()
        if not client.raw.claim(self._mark_of_run, initial_mark(self.owner)):
            owner, alive = self._previous_owner()
            hint = why_tables_exist(owner, self.address, alive=alive)
            raise TargetError(f"{self.name}: the key {self._mark_of_run} already exists; {hint}")
        self.start_renewing_mark(self._marks)

    @property
    def _mark_of_run(self) -> str:
        """Return the key under which the run's mark is stored."""
        return f"{self.prefix}made-by-isocheck/run"

    def _marks(self) -> StoredMarks:
        return StoredMarks(self.connect(direct=True).raw, self._mark_of_run)

    def _previous_owner(self) -> tuple[str, bool]:
        """Return the run that left the mark (empty if there is none), and whether it is alive."""
        with closing(self._marks()) as marks:
            owner = owner_of(marks.get())
            return owner, owner not in ("", self.owner) and is_alive(marks)

    def _put(self, values: Mapping[str, Any]) -> None:
        with closing(self.connect(direct=True)) as client:
            for part in _batches(list(values)):
                client.begin(self.levels[0].name)
                client.own_writes = {key: values[key] for key in part}
                client.commit()

    def connect(self, *, direct: bool = False) -> BufferedClient:
        """Open a connection for a session; faults do not affect a direct connection.

        Raises:
            TargetError: no connection could be opened.
        """
        with connection_errors(self.address):
            return self.open(direct=direct)

    def open(self, *, direct: bool) -> BufferedClient:
        """Open a connection for a session; faults do not affect a direct connection."""
        raise NotImplementedError

    def version(self) -> str:
        """Return the store's name, and the version reported by it."""
        with connection_errors(self.address), closing(self.open(direct=True)) as client:
            return f"{self.name} {client.raw.version()}"

    def remove(self) -> None:
        """Remove the keys created by ``setup``, but no other keys."""
        if not self.release_mark():
            self._keys = []
        if self._keys:
            self._put(dict.fromkeys(self._keys, DELETED))
            with closing(self.connect(direct=True)) as client:
                for number, _ in enumerate(_batches(self._keys)):
                    client.raw.remove(self._mark(number))
                client.raw.remove(self._mark_of_run)
            self._keys = []

    def _mark(self, number: int) -> str:
        """Return the key under which the names of a hundred created keys are stored."""
        return f"{self.prefix}made-by-isocheck/{number}"

    def _marked(self, client: BufferedClient) -> list[str]:
        """Return the names of the keys created by a run, as listed in the store."""
        found, number = list[str](), 0
        while names := client.raw.get(self._mark(number)):
            found += names.split(" ")
            number += 1
        return found

    def clean(self) -> list[str]:
        """Remove the keys created and listed by a killed run, but no other keys.

        Raises:
            TargetError: the run is still alive.
        """
        with connection_errors(self.address):
            return self._clean()

    def _clean(self) -> list[str]:
        owner, alive = self._previous_owner()
        if alive:
            raise not_removed_error(owner, self.address)
        if self.shared and self.owner and owner != self.owner:
            return []  # these keys belong to a later run
        with closing(self.connect(direct=True)) as client:
            names = self._marked(client)
            for name in names:
                client.raw.remove(name)
            for number in range(-(-len(names) // _BATCH)):
                client.raw.remove(self._mark(number))
            client.raw.remove(self._mark_of_run)
        return names


class StoredMarks:
    """A connection to a run's stored mark."""

    def __init__(self, store: Store, key: str) -> None:
        self._store, self._key = store, key

    def get(self) -> str:
        """Return the mark, or an empty string if there is none."""
        return self._store.get(self._key)

    def swap(self, old: str, new: str) -> bool:
        """Replace the mark ``old`` with ``new``; return false if the mark is different."""
        return self._store.swap(self._key, old, new)

    def close(self) -> None:
        """Close the connection."""
        self._store.close()


def _batches(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the keys in batches that fit into one transaction: etcd allows 128 operations."""
    return (keys[start : start + _BATCH] for start in range(0, len(keys), _BATCH))


class BufferedClient(BaseClient):
    """The base class for a client that buffers its writes until COMMIT, and can read them.

    Attributes:
        own_writes: the values written so far by the transaction, by key.
        appended: the elements appended so far by the transaction, by list key.
        token: the token of the transaction; empty if it needs no token.
        swapping: whether a compare-and-set has been sent and its response has not arrived.
    """

    raw: Store

    def __init__(self, target: KeyValueTarget, raw: Any) -> None:
        self.target, self.raw = target, raw

    def begin(self, level: str) -> None:
        """Begin a transaction without sending anything."""
        self.own_writes: dict[str, Any] = {}
        self.appended: dict[str, list[int]] = {}
        self.token, self.swapping = "", False
        self._begin(level)

    def _begin(self, level: str) -> None:
        raise NotImplementedError

    def read(self, key: str) -> Any:
        """Return the transaction's own write to a key, or else the stored value."""
        self.row_version = None
        return self.own_writes[key] if key in self.own_writes else self._fetch(key)

    def _fetch(self, key: str) -> Any:
        raise NotImplementedError

    def write(self, key: str, value: int) -> bool:
        """Buffer a write until COMMIT."""
        self.row_version = None
        self.own_writes[key] = value
        return True

    def append(self, key: str, value: int) -> bool:
        """Buffer an append until COMMIT."""
        self.own_writes[key] = [*self.read(key), value]
        self.appended.setdefault(key, []).append(value)
        return True

    def insert(self, key: str, value: int) -> None:
        """Buffer the creation of a key; if the key already exists, raise an error."""
        if self.read(key) != DELETED:
            raise RolledBack(f"{key} already exists")
        self.row_version = None
        self.own_writes[key] = value

    def delete(self, key: str) -> bool:
        """Buffer the deletion of a key, and return true; if it does not exist, return false."""
        there = bool(self.read(key) != DELETED)
        if there:
            self.own_writes[key] = DELETED
        return there

    def swap(self, key: str, expected: int | None, value: int) -> bool:
        """Compare and set immediately; if no response arrives, the outcome is unknown."""
        self.swapping = True
        swapped = self._swap(self.target.prefix + key, expected, value)
        self.swapping = False
        return swapped

    def rollback(self) -> None:
        """Discard the buffered writes; raise an error if a compare-and-set may have succeeded."""
        if self.swapping:
            raise ConnectionError("the comparison was sent, but no response arrived")

    def new_token(self) -> str:
        """Return a token for COMMIT to write; if no token is needed, return an empty string."""
        if self.own_writes or self.appended:
            self.token = self.target.prefix + new_token() if self.target.tokens else ""
        return self.token

    def resolve(self) -> Outcome:
        """Find out from the token how the transaction ended."""
        return resolve_token(self.token, self._has_committed)

    def _has_committed(self, token: str) -> bool:
        # SOUND BECAUSE: COMMIT fails once the token exists.
        with closing(self.target.connect(direct=True)) as other:
            return other.claim_token(token)

    def close(self) -> None:
        """Close the connection."""
        self.raw.close()

    # --- methods that adapters define ---

    def commit(self) -> None:
        """Send the buffered writes; raise ``RolledBack`` if the store rejects them."""
        raise NotImplementedError

    def _swap(self, name: str, expected: int | None, value: int) -> bool:
        raise NotImplementedError

    def claim_token(self, token: str) -> bool:
        """Write 0 to a token unless the token exists; return whether its value is 1 (committed)."""
        raise NotImplementedError
