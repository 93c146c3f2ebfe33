"""Provides the proxy, which connects applications to their server and finally audits the database.

The audit compares the rows of the database with the rows that the history predicts. If a row
differs, a transaction that the proxy did not observe has written it. In this case, predicate reads
of the row's table prove nothing.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import re
import shutil
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from msgspec import Struct

from isolang.errors import IsolangError
from isolang.observe.catalogue import (
    ALL_TABLES,
    Table,
    Tables,
    described,
    exact_json,
)
from isolang.observe.history import (
    ObservedHistory,
    RowVersion,
    without_scans,
)
from isolang.observe.rewriting import DatabaseFacts
from isolang.observe.session import Observation
from isolang.observe.unseen import FOREIGN, UNTOLD, Unseen
from isolang.observe.wire import Wire

if TYPE_CHECKING:
    from isolang.run.drivers.postgres_log import PostgresLog

_PACE: Final = 0.2  # seconds between two writes of the history
_SSL_REQUEST: Final = b"\0\0\0\10\4\xd2\x16\x2f"
_LIMIT: Final = 1 << 20  # bytes from an application that may wait while the catalogue is queried
_PATIENCE: Final = 1  # the longest time in seconds that an audit waits for a lock
_ATTEMPTS: Final = 3  # the largest number of audits before a definition changes
_BEFORE: Final = "SELECT pg_current_snapshot()::text"


class Where(Struct, frozen=True, kw_only=True):
    """The address of a server.

    Attributes:
        conninfo: the connection string with which ``psycopg.connect`` opens the observer's own
            connection.
        host: the host, or the folder of the server's socket.
        port: the port.
        user: the user.
        password: the password; empty if there is none.
        database: the name of the database.
        tls: ``require``, ``verify-ca`` or ``verify-full`` if the proxy connects applications to the
            server through TLS; otherwise empty.
        root: the file with the certificates of authorities, for ``verify-ca`` and ``verify-full``.
    """

    conninfo: str
    host: str
    port: int
    user: str = ""
    password: str = ""
    database: str = ""
    tls: str = ""
    root: str = ""

    def environment(self, host: str, port: int, name: str) -> dict[str, str]:
        """Return the environment variables with which a command connects to the proxy.

        Args:
            host: the host at which the proxy listens.
            port: the port at which the proxy listens.
            name: the name of the variable that contains the URL.
        """
        secret = f":{quote(self.password, safe='')}" if self.password else ""
        user = f"{quote(self.user, safe='')}{secret}"
        more = {"PGPASSWORD": self.password} if self.password else {}
        return {
            **os.environ, "PGHOST": host, "PGPORT": str(port), "PGUSER": self.user, **more,
            "PGDATABASE": self.database, "PGSSLMODE": "disable", "PGGSSENCMODE": "disable",
            name: f"postgresql://{user}@{host}:{port}/{quote(self.database, safe='')}",
        }  # fmt: skip


class Observer:
    """A proxy in front of a server, which records as a history what applications do.

    Attributes:
        history: the history of all sessions.
        port: the port at which the proxy listens.
    """

    def __init__(
        self,
        where: Where,
        path: Path,
        *,
        listen: tuple[str, int],
        most_rows: int,
        versions: bool = False,
    ) -> None:
        """Choose a database and a file.

        Args:
            where: the address of the server.
            path: the file of the history.
            listen: the host and the port at which to listen; port 0 means any free port.
            most_rows: the largest number of rows of a table to read at the start and at the end,
                and the largest number of rows in a predicate read.
            versions: whether the history states the versions of rows. If it does, they are read
                from the server's log at the end, together with the writes of unobserved sessions.
        """
        self._where, self._path, self._listen = where, path, listen
        self._most = most_rows
        self._states_versions = versions
        self._wires: set[Wire] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._observations: dict[str, Observation] = {}
        self._main = ""
        self._snapshot = ""
        self._log: PostgresLog | None = None
        self.port = 0

    def start(self) -> None:
        """Read the rows that the database contains, and start to listen.

        Raises:
            IsolangError: the database cannot be reached, or the port or file cannot be used.
        """
        self.history = ObservedHistory(
            self._path, most_rows=self._most, versions=self._states_versions
        )
        self.history.oldest = self._oldest
        if self._states_versions:
            from isolang.run.drivers.postgres_log import PostgresLog

            self._log = PostgresLog(self._connect, "observe: --versions")
        with closing(self._connect()) as connection:
            self._main = connection.info.dbname
            made = self._observation(connection, self._main, prefix="")
            self._initial_rows(connection, made)
        ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait()
        if self._failure is not None:
            host, port = self._listen
            raise IsolangError(
                f"observe: cannot listen at {host}:{port} (got {self._failure}); "
                "hint: --listen HOST:PORT of a free port"
            )

    def stop(self) -> Unseen:
        """End all connections, audit the database, and complete the history.

        Returns:
            A summary of what was not recorded.
        """
        loop = self._loop
        if loop is not None and self._thread is not None:
            loop.call_soon_threadsafe(self._ended.set)
            self._thread.join()
        history = self.history
        if self._log is not None:
            self._add_foreign(self._log)
        history.close()
        self._audit()
        if history.doubtful:
            other = self._path.with_name(f"{self._path.name}.part")
            for shown in without_scans(self._path, history.doubtful, other):
                history.unseen.note(UNTOLD, shown)
            shutil.move(other, self._path)
        return history.unseen.settled()

    def _add_foreign(self, log: PostgresLog) -> None:
        """Add the transactions in the server's log that were not observed."""
        from isolang.observe.foreign import KnownPlaces, add_foreign

        history, places = self.history, KnownPlaces({})
        observation = self._observations[self._main]
        tables = [one for one in observation.tables.current() if not (one.why or one.partitioned)]
        for one in history.recorded():
            for table, version in one.versions():
                places.note(table, version)
        with closing(self._connect()) as connection:
            for table in tables:
                for oid, xmin, ctid, key in self._rows(connection, table, whole=False) or ():
                    number = _number(table, oid, xmin, ctid)
                    places.note(table, RowVersion(table.key_text(exact_json(key)), number))
        lowest, highest, *others = re.split("[:,]", self._snapshot)
        open_then = {int(one) % 2**32 for one in others if one}

        def is_initial(number: int) -> bool:
            if 0 < (int(lowest) - number) % 2**32 < 2**31:
                return True
            return 0 < (int(highest) - number) % 2**32 < 2**31 and number not in open_then

        try:
            names = {one.where.replace('"', ""): one for one in tables}
            add_foreign(history, list(log.changes()), names, places, is_initial=is_initial)
        finally:
            log.close()

    # --- the observer's own connection ---

    def _connect(self, database: str = "") -> Any:
        import psycopg

        more = {"dbname": database} if database else {}
        try:
            return psycopg.connect(self._where.conninfo, autocommit=True, **more)  # type: ignore[arg-type]
        except psycopg.Error as error:
            what = " ".join(str(error).split())
            raise IsolangError(
                f"observe: the database cannot be reached (got {what}); "
                "hint: postgresql://user@host:5432/database, as for psql"
            ) from None

    def _observation(self, connection: Any, database: str, *, prefix: str) -> Observation:
        """Return a new observation of a database, which all sessions of the database share."""
        made = Observation(
            database=DatabaseFacts(version=connection.info.server_version),
            history=self.history,
            tables=Tables(database, prefix=prefix),
            most_rows=self._most,
            audit=self._hold,
        )
        self._refresh(connection, made)
        self.history.is_old |= not made.database.modern
        self._observations[database] = made
        return made

    def observe(self, database: str) -> Observation | None:
        """Return the observation for a new session's database; ``None`` if it cannot be read."""
        if database in self._observations:
            return self._observations[database]
        try:
            with closing(self._connect(database)) as connection:
                made = self._observation(connection, database, prefix=f"{database}:")
                for (text,) in connection.execute(ALL_TABLES):
                    table = described(text)[1]
                    if table is not None and not table.why:
                        sql = f"SELECT FROM {table.where} LIMIT 1"
                        made.tables.meet(
                            table, rows_known=connection.execute(sql).fetchone() is None
                        )
        except Exception:  # the session is counted as unseen, and passed on unchanged
            return None
        return made

    def _refresh(self, connection: Any, observation: Observation) -> None:
        observation.database.ask(connection.execute)
        observation.refreshed = observation.epoch

    def _initial_rows(self, connection: Any, observation: Observation) -> None:
        """Read the rows of all tables that are not large, in one snapshot."""
        import psycopg

        rows: list[tuple[Table, RowVersion, dict[str, Any]]] = []
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        (snapshot,) = connection.execute(_BEFORE).fetchone()
        self._snapshot = snapshot
        self.history.before = int(snapshot.partition(":")[0]) % 2**32
        found = [described(text)[1] for (text,) in connection.execute(ALL_TABLES)]
        for described_table in found:
            if described_table is None:
                continue
            table = observation.tables.meet(described_table)
            if table.why:
                continue
            try:
                with connection.transaction():
                    reported = self._rows(connection, table, whole=True)
            except psycopg.Error:
                reported = None
            table.rows_known = reported is not None
            for oid, xmin, ctid, key, whole in reported or ():
                number = f"{xmin}{ctid}" + (f"@{oid}" if table.partitioned else "")
                version = RowVersion(
                    table.key_text(exact_json(key)), number, tuple(exact_json(key))
                )
                rows.append((table, version, table.row(exact_json(whole))))
        connection.execute("COMMIT")
        self.history.initially(rows)

    def _rows(self, connection: Any, table: Table, *, whole: bool) -> list[Any] | None:
        """Return the rows of a table; ``None`` if there are more than ``most_rows``."""
        more = f", {table.whole('t')}::text" if whole else ""
        found = connection.execute(
            f"SELECT t.tableoid::text, t.xmin::text, t.ctid::text, {table.key_of('t')}::text{more} "
            f"FROM {table.where} t LIMIT {self._most + 1}"
        ).fetchall()
        return None if len(found) > self._most else list(found)

    def _audit(self) -> None:
        """Audit all tables of which predicate reads were recorded since their last audit."""
        history = self.history
        tables = [one for one in history.unaudited.values() if one.name not in history.unordered]
        for table, found in zip(tables, self._present(tables), strict=True):
            if isinstance(found, str):
                history.doubtful.setdefault(table.name, found)
            else:
                self._compare(table, found)

    def _present(self, tables: Sequence[Table]) -> list[set[str] | str]:
        """Return, for each table, its current versions, or the reason why they are unknown."""
        found: list[set[str] | str] = []
        for table in tables:
            try:
                with closing(self._connect(table.database)) as connection:
                    connection.execute(f"SET lock_timeout = '{_PATIENCE}s'")
                    found.append(self._versions(connection, table))
            except IsolangError as error:
                found.append(str(error))
        return found

    def _versions(self, connection: Any, table: Table) -> set[str] | str:
        import psycopg

        if table.altered:
            return f"{table.name} was altered before an audit"
        try:
            rows = self._rows(connection, table, whole=False)
        except psycopg.Error as error:
            return f"{table.name} cannot be read: {' '.join(str(error).split())}"
        if rows is None and table.rows_known:
            return f"{table.name} has more rows than --most-rows"
        if rows is None:
            # For a large table, only the rows that the history names are compared.
            live = self.history.live.get(table.name, {})
            places = [number[number.index("(") :].partition("@")[0] for number in live]
            rows = connection.execute(
                f"SELECT t.tableoid::text, t.xmin::text, t.ctid::text, '' FROM {table.where} t "
                "WHERE t.ctid = ANY (%s::tid[])",
                (places,),
            ).fetchall()
            named = {_number(table, oid, xmin, ctid) for oid, xmin, ctid, _ in rows}
            return named & live.keys()
        return {_number(table, oid, xmin, ctid) for oid, xmin, ctid, _ in rows}

    def _compare(self, table: Table, there: set[str]) -> bool:
        """Note the rows of a table that were written unobserved; return whether there are none."""
        history = self.history
        history.unaudited.pop(table.name, None)
        gone, new = self._differences(table, there)
        live = history.live.get(table.name, {})
        for number in sorted(gone)[:1]:
            history.doubtful.setdefault(table.name, f"{table.name}/{live[number]}")
            history.unseen.note(
                FOREIGN, f"{table.name}/{live[number]} was changed or deleted", number=len(gone)
            )
        for number in sorted(new)[:1]:
            history.unseen.note(
                FOREIGN, f"a row of {table.name}, version {number}", number=len(new)
            )
        return not (gone or new)

    def _differences(self, table: Table, there: set[str]) -> tuple[set[str], set[str]]:
        """Return the versions that the database lacks, and the versions that the history lacks."""
        history = self.history
        perhaps = history.perhaps.get(table.name, set())
        live = history.live.get(table.name, {}).keys()
        return set(live - there - perhaps), set(there - live - perhaps)

    async def audit(self) -> None:
        """Audit before definitions change; repeat the audit while transactions are ending."""
        history = self.history
        for _ in range(_ATTEMPTS):
            tables = [one for one in history.unaudited.values() if not one.altered]
            for table, found in zip(
                tables, await asyncio.to_thread(self._present, tables), strict=True
            ):
                if not isinstance(found, str) and not any(self._differences(table, found)):
                    history.unaudited.pop(table.name, None)
            if not any(one for one in history.unaudited.values() if not one.altered):
                return
            await asyncio.sleep(_PACE / 4)

    # --- the proxy ---

    def _oldest(self) -> int:
        found = [one for wire in tuple(self._wires) if (one := wire.oldest()) is not None]
        return min(found, default=1 << 62)

    def _serve(self, ready: threading.Event) -> None:
        try:
            asyncio.run(self._listening(ready))
        except OSError as error:
            self._failure = error
            ready.set()

    async def _listening(self, ready: threading.Event) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        host, port = self._listen
        server = await loop.create_server(lambda: _Client(self), host, port)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        while not self._ended.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), _PACE)
            if any(one.refreshed != one.epoch for one in self._observations.values()):
                # If this fails, the known names of functions remain unchanged.
                with suppress(Exception):
                    await asyncio.to_thread(self._again)
            self.history.flush()
        server.close()
        for client in tuple(_Client.open_by.get(self, ())):
            client.abort()
        await asyncio.sleep(0)

    def _hold(self, then: Callable[[], None]) -> None:
        """Run an audit, and then call a function."""

        async def audited() -> None:
            with suppress(Exception):  # if the audit fails, the predicate reads are not recorded
                await self.audit()
            then()

        task = asyncio.get_running_loop().create_task(audited())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _again(self) -> None:
        for database, one in list(self._observations.items()):
            if one.refreshed != one.epoch:
                one.refreshed = one.epoch  # even if the database no longer exists
                with closing(self._connect(database)) as connection:
                    self._refresh(connection, one)

    async def reach(self, client: _Client) -> None:
        """Connect to the server on behalf of an application."""
        loop = asyncio.get_running_loop()
        where = self._where
        try:
            if where.host.startswith("/"):
                path = f"{where.host}/.s.PGSQL.{where.port}"
                _, server = await loop.create_unix_connection(lambda: _Server(client), path)
            else:
                stream = await asyncio.wait_for(_connected(where), 30)
                context = _context(where) if where.tls else None
                _, server = await loop.create_connection(
                    lambda: _Server(client), sock=stream, ssl=context,
                    server_hostname=where.host if context else None,
                )  # fmt: skip
        except (OSError, TimeoutError, ssl.SSLError) as error:
            client.refuse(str(error))
            return
        client.reached(server)


def _number(table: Table, oid: str, xmin: str, ctid: str) -> str:
    """Return the number of a version, which for partitioned tables includes the partition."""
    return f"{xmin}{ctid}" + (f"@{oid}" if table.partitioned else "")


async def _connected(where: Where) -> socket.socket:
    """Connect to the server; TLS is negotiated, but its handshake has not begun."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM)
    family, kind, protocol, _, address = found[0]
    one = socket.socket(family, kind, protocol)
    one.setblocking(False)
    try:
        await loop.sock_connect(one, address)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if where.tls:
            await loop.sock_sendall(one, _SSL_REQUEST)
            if await loop.sock_recv(one, 1) != b"S":
                raise OSError("the server does not offer TLS")
    except BaseException:
        one.close()
        raise
    return one


def _context(where: Where) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=where.root or None)
    context.check_hostname = where.tls == "verify-full"
    if where.tls == "require":
        context.verify_mode = ssl.CERT_NONE
    return context


class _Client(asyncio.Protocol):
    """The connection of an application."""

    open_by: dict[Observer, set[_Client]] = {}  # noqa: RUF012 - by observer

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.wire = Wire(
            observer.history, observer.observe, to_client=self._send, to_server=self._pass
        )
        self.transport: Any = None
        self._server: _Server | None = None
        self._early = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        _no_delay(transport)
        self._observer._wires.add(self.wire)
        self.open_by.setdefault(self._observer, set()).add(self)
        transport.pause_reading()
        self._reaching = asyncio.get_running_loop().create_task(self._observer.reach(self))

    def reached(self, server: _Server) -> None:
        """Start to forward messages."""
        self._server = server
        self.transport.resume_reading()

    def refuse(self, why: str) -> None:
        """Tell the application that the server cannot be reached."""
        text = f"isocheck observe cannot reach the server: {why}".encode()
        body = b"SFATAL\0VFATAL\0C08001\0M" + text + b"\0\0"
        self.transport.write(b"E" + (len(body) + 4).to_bytes(4, "big") + body)
        self.transport.close()

    def _send(self, data: bytes) -> None:
        self.transport.write(data)

    def _pass(self, data: bytes) -> None:
        if self._server is not None:
            self._server.transport.write(data)

    def data_received(self, data: bytes) -> None:
        self.wire.from_client(data)
        if self.wire.waiting_bytes() > _LIMIT:
            self.transport.pause_reading()

    def pause_writing(self) -> None:
        if self._server is not None:
            self._server.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._server is not None and not self._server.transport.is_closing():
            self._server.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        if self._server is None:
            self.ended()
        elif not self._server.transport.is_closing():
            self._server.transport.close()

    def abort(self) -> None:
        """Close both connections at once."""
        self.ended()
        self.transport.abort()
        if self._server is not None:
            self._server.transport.abort()

    def ended(self) -> None:
        """Note that nothing more will come from the server."""
        if not self.wire.cancels:
            self.wire.lost()
        self._observer._wires.discard(self.wire)
        self.open_by.get(self._observer, set()).discard(self)


class _Server(asyncio.Protocol):
    """The connection to the server on behalf of an application."""

    def __init__(self, client: _Client) -> None:
        self._client = client
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._client.wire.from_server(data)
        if self._client.wire.broken:
            self._client.abort()
            return
        if not self._client.wire.waits and not self._client.transport.is_closing():
            self._client.transport.resume_reading()

    def pause_writing(self) -> None:
        self._client.transport.pause_reading()

    def resume_writing(self) -> None:
        if not self._client.transport.is_closing():
            self._client.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._client.ended()
        if not self._client.transport.is_closing():
            self._client.transport.close()


def _no_delay(transport: Any) -> None:
    one = transport.get_extra_info("socket")
    if one is not None and one.family != socket.AF_UNIX:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def where_of(url: str) -> Where:
    """Return the address in a PostgreSQL URL.

    Raises:
        IsolangError: the text is not a PostgreSQL URL, or the URL names no host.
    """
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    scheme, _, rest = url.partition("://")
    plain = f"{scheme.partition('+')[0]}://{rest}"
    try:
        if scheme.partition("+")[0] not in ("postgres", "postgresql"):
            raise psycopg.ProgrammingError("not a URL of PostgreSQL")
        reported = conninfo_to_dict(plain)
    except psycopg.Error as error:
        raise IsolangError(
            f"{url}: {' '.join(str(error).split())}; hint: postgresql://user@host:5432/database, "
            "or postgres for a new server"
        ) from None
    host = str(reported.get("host") or reported.get("hostaddr") or "")
    if not host or "," in host:
        raise IsolangError(f"{url}: expected one host; hint: postgresql://user@host:5432/database")
    mode = str(reported.get("sslmode") or "")
    user = str(reported.get("user") or getpass.getuser())
    return Where(
        conninfo=plain,
        host=host,
        port=int(reported.get("port") or 5432),
        user=user,
        password=str(reported.get("password") or ""),
        database=str(reported.get("dbname") or user),
        tls=mode if mode in ("require", "verify-ca", "verify-full") else "",
        root=str(reported.get("sslrootcert") or ""),
    )
