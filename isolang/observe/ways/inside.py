"""Runs the proxy inside an application's process, shared by the watches of its libraries."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

from isolang.errors import IsolangError, message_in_one_line
from isolang.history.not_seen import unseen_line
from isolang.observe.history.rolled_back import RolledBackRows
from isolang.observe.observer import Observer
from isolang.observe.sql.notes import CallNotes
from isolang.observe.unseen import CATALOGUE, Unseen, unseen_phrases
from isolang.observe.ways.callers import caller
from isolang.observe.wire.address import CONNECTS_ITSELF, ServerAddress

MOST_ROWS: Final = 10_000  # as for `isocheck observe`
PROXY_HOST: Final = "127.0.0.1"
OF_PSYCOPG: Final = frozenset({
    "autocommit", "context", "cursor_factory", "prepare_threshold", "row_factory",
})  # fmt: skip
"""The arguments of ``psycopg.connect`` that are none of libpq's parameters."""

# Parameters that concern the way to the server, which is the proxy's.
_OF_THE_WAY: Final = frozenset({
    "hostaddr", "sslmode", "sslnegotiation", "sslcert", "sslkey", "sslpassword", "sslrootcert",
    "sslcrl", "sslcrldir", "sslcertmode", "sslsni", "gssencmode", "channel_binding", "requiressl",
    "load_balance_hosts", "service", "servicefile",
})  # fmt: skip


PROXIES: Final[WeakKeyDictionary[Any, InsideProxy]] = WeakKeyDictionary()
"""The proxy that each connection of the application goes through, of those that go through one."""

_STARTED: Final[WeakSet[InsideProxy]] = WeakSet()
"""The proxies of this process."""


class InsideProxy:
    """The proxy in front of a database's server, and the history of all that goes through it.

    Attributes:
        notes: what callers note about their statements.
        outside: the counts of statements that did not go through the proxy.
        path: the file of the history.
        is_over: whether nothing more is recorded.
        clients: for each line of the completed history that ends a transaction of a call of the
            application, the number of the call.
    """

    def __init__(
        self,
        server: Any,
        path: Path,
        *,
        versions: bool = False,
        names: Mapping[str, str] | None = None,
    ) -> None:
        """Store the settings; :meth:`start` starts the proxy.

        Args:
            server: the address, as :meth:`server_of` returns it.

        Raises:
            IsolangError: threads of this process are not the system's, so the proxy would not run.
        """
        _require_threads()
        self.server, self.path, self.versions = server, path, versions
        self.notes = CallNotes()
        self.outside = Unseen(caller)
        self._process = os.getpid()
        self.is_over, self._ended = False, 0
        self.clients: dict[int, int] = {}
        self._completed: tuple[Path, Unseen, int] | None = None
        self._observer: Any = self._new_observer(names)

    def _new_observer(self, names: Mapping[str, str] | None) -> Any:
        """Return what records in front of the server."""
        return Observer(
            self.server,
            self.path,
            listen=(PROXY_HOST, 0),
            most_rows=MOST_ROWS,
            versions=self.versions,
            names=names,
            notes=self.notes,
        )

    @staticmethod
    def server_of(who: str, conninfo: str, parameters: Mapping[str, Any]) -> Any:
        """Return the address of a server, as :func:`server_of` does."""
        return server_of(who, conninfo, parameters)

    def start(self) -> None:
        """Read the rows in the database, and start listening.

        Raises:
            IsolangError: the database cannot be read, or does not log its versions.
        """
        self._start_observer()
        _STARTED.add(self)

    def _start_observer(self) -> None:
        self._observer.start()
        self._observer.history.rolled_back = RolledBackRows()

    def pause_after_answers(self, pause: Callable[[], float]) -> None:
        """Hold each connection after an answer of the server, for as long as a function says."""
        self._observer.listener.pause = pause

    def complete(self, accepted: Collection[str] = ()) -> Path:
        """Write the history recorded so far to a new file, and return its path.

        After :meth:`leave`, return the last such file.

        Args:
            accepted: the kinds of unseen activity that do not prevent a valid verdict.

        Raises:
            IsolangError: transactions ended after the last completion and before :meth:`leave`.
        """
        if self.is_over:
            if self._completed is None or self._completed[2] != self._ended:
                raise IsolangError(
                    f"watch: the history is not complete (got {self._ended} transactions, expected "
                    "a verdict on them before the watch ends); hint: call isolation.assert_level "
                    "or isolation.history within the test"
                )
            return self._completed[0]
        names = (f"history{f'-{n}' * (n > 1)}.edn" for n in count(1))
        into = next(one for name in names if not (one := self.path.with_name(name)).exists())
        ended = self.transactions()
        # A file with this name has all that was not seen, even if this process is killed.
        part = into.with_name(f"{into.name}.unfinished")
        part.unlink(missing_ok=True)
        unseen, self.clients = self._observer.complete(part, accepted)
        outside = Unseen()
        outside.add(self.outside)
        outside.read |= unseen.read  # which rows added outside may be read
        outside.reads_unknown |= unseen.reads_unknown
        if phrases := unseen_phrases(outside):
            with part.open("a", encoding="utf-8") as file:
                file.write(unseen_line(phrases))
        part.replace(into)
        self._completed = into, unseen, ended
        return into

    def leave(self) -> None:
        """Record nothing more. Connections that are open go on through the proxy."""
        if not self.is_over and self.is_here():
            self.is_over, self._ended = True, self.transactions()
            self._observer.leave()

    def unseen(self) -> Unseen:
        """Return the counts of activity that was not recorded.

        Reads of the catalogue are left out, because libraries send them, not the application. What
        only an audit finds, such as rows of other writers, is counted by :meth:`complete`.
        """
        every = Unseen()
        last = self._completed
        is_complete = last is not None and last[2] == self.transactions()
        every.add(last[1] if last is not None and is_complete else self._observer.history.unseen)
        every.add(self.outside)
        counts = every.settled()
        counts.pop(CATALOGUE, None)
        return counts

    def refused(self) -> bool:
        """Return whether a transaction was rolled back after it met another."""
        history = self._observer.history
        return history.refused > 0 or bool(history.rolled_back and history.rolled_back.observed())

    def transactions(self) -> int:
        """Return how many transactions have ended."""
        return int(self._observer.history.outcomes.total())

    def name_write(self, backend: int, table: str, key: Mapping[str, Any], where: str) -> None:
        """Name the line that caused the last write of a row by an open transaction."""
        if self.is_here():
            self._observer.name_write(backend, table, key, where)

    def is_here(self) -> bool:
        """Return whether this process runs the proxy, and not a child of the one that does."""
        return os.getpid() == self._process

    # --- where connections go ---

    def serves(self, host: str, port: int) -> bool:
        """Return whether an address is that of the proxy's server."""
        here = self.server
        return int(port) == here.port and (host == here.host or same_host(host, here.host))

    def is_for(self, host: str, port: int, database: str) -> bool:
        """Return whether a database is the one that this proxy was started for."""
        return not self.is_over and database == self.server.database and self.serves(host, port)

    def moved_parameters(self, parameters: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return libpq's parameters with the proxy in the server's place.

        Return ``None`` if they name another server, or a database that has a proxy of its own.

        Args:
            parameters: the parameters of a connection, without those that have a default.
        """
        full = {**_defaults(), **{k: v for k, v in parameters.items() if v is not None}}
        # If nobody names a host, all mean libpq's own, which the server's address has.
        host = str(full.get("hostaddr") or full.get("host") or self.server.host)
        hosts = {host, str(full.get("host") or host)}
        port = str(full.get("port") or 5432)
        if not port.isdigit() or not any(self.serves(name, int(port)) for name in hosts):
            return None
        database = str(full.get("dbname") or full.get("user") or self.server.user)
        if any(proxy.is_for(host, int(port), database) for proxy in _STARTED - {self}):
            return None
        moved = {k: v for k, v in parameters.items() if k not in _OF_THE_WAY and v is not None}
        moved |= {
            "host": PROXY_HOST, "port": self._observer.port, "sslmode": "disable",
            "gssencmode": "disable",
        }  # fmt: skip
        # libpq looks for a password by the server's address, which is now another one.
        if not full.get("password") and full.get("user", self.server.user) == self.server.user:
            moved |= {"password": self.server.password} if self.server.password else {}
        return moved

    @property
    def port(self) -> int:
        """The port of the proxy, on the loopback interface."""
        return int(self._observer.port)


def server_of(who: str, conninfo: str, parameters: Mapping[str, Any]) -> ServerAddress:
    """Return the address of a server, after connecting to it once as an application does.

    Args:
        who: the name of the watch, for messages.
        conninfo: the connection string for ``psycopg.connect``.
        parameters: further arguments for ``psycopg.connect``.

    Raises:
        IsolangError: the database cannot be reached.
    """
    import psycopg
    from psycopg.conninfo import make_conninfo

    plain = {k: v for k, v in parameters.items() if k not in OF_PSYCOPG and v is not None}
    before = CONNECTS_ITSELF.set(True)
    try:
        whole = make_conninfo(conninfo, **plain)
        with psycopg.connect(whole) as own:
            info, encrypted = own.info, bool(own.pgconn.ssl_in_use)
            settings = info.get_parameters()
            mode = settings.get("sslmode", "")
            return ServerAddress(
                conninfo=whole,
                host=info.host or info.hostaddr,
                port=info.port,
                user=info.user,
                password=info.password,
                database=info.dbname,
                tls="" if not encrypted else mode if mode.startswith("verify") else "require",
                root=settings.get("sslrootcert", ""),
                certificate=settings.get("sslcert", ""),
                key=settings.get("sslkey", ""),
            )
    except psycopg.Error as error:
        what = message_in_one_line(error)
        raise IsolangError(
            f"{who}: cannot connect to the database (got {what}, expected arguments that "
            "psycopg.connect accepts)"
        ) from None
    finally:
        CONNECTS_ITSELF.reset(before)


def _require_threads() -> None:
    """Require that threads are the system's, because the proxy works while the test waits."""
    for name in ("gevent", "eventlet"):
        patcher = sys.modules.get(f"{name}.monkey" if name == "gevent" else f"{name}.patcher")
        question = "is_module_patched" if name == "gevent" else "is_monkey_patched"
        if patcher is None:
            continue
        if any(getattr(patcher, question)(module) for module in ("thread", "threading", "socket")):
            raise IsolangError(
                f"watch: the proxy needs threads of the system (got those of {name}); hint: run "
                "`isocheck observe` in a process of its own, and connect the application to it"
            )


def _defaults() -> dict[str, str]:
    """Return libpq's parameters that the environment sets."""
    from psycopg import pq

    defaults = {}
    for option in pq.Conninfo.get_defaults():
        if option.val is not None and option.envvar is not None:
            defaults[option.keyword.decode()] = option.val.decode()
    return defaults


@lru_cache(maxsize=256)
def same_host(one: str, other: str) -> bool:
    """Return whether two names are those of one machine, as far as the resolver knows."""
    if one.startswith("/") or other.startswith("/"):
        return one.rstrip("/") == other.rstrip("/")

    def addresses(name: str) -> set[Any]:
        try:
            return {answer[4][0] for answer in socket.getaddrinfo(name, None)}
        except OSError:
            return {name}

    here, there = addresses(one), addresses(other)
    loopback = {"127.0.0.1", "::1"}
    return bool(here & there) or bool(here & loopback and there & loopback)
