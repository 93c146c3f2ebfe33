"""The way in for asyncpg: its connections, pools, transactions and statements."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import Any, Final

from isolang.errors import IsolangError
from isolang.observe.ways.hooks import Hooks, Steps
from isolang.observe.ways.inside import InsideProxy
from isolang.observe.ways.library import LibraryWatch

_CALLS: Final = ("execute", "fetch", "fetchrow", "fetchval", "fetchmany", "executemany")
# The texts of COPY, with a placeholder for the columns.
_COPY: Final = {
    "copy_from_table": "COPY {}%s TO STDOUT",
    "copy_records_to_table": "COPY {}%s FROM STDIN",
    "copy_to_table": "COPY {}%s FROM STDIN",
}
_PARAMETER: Final = re.compile(r"\$\d+")
# asyncpg's names of libpq's parameters.
_LIBPQ: Final = {"host": "host", "port": "port", "user": "user", "password": "password",
                 "database": "dbname", "passfile": "passfile"}  # fmt: skip


class Asyncpg:
    """Implements :class:`isolang.observe.ways.library.Library` for asyncpg."""

    name = "watch_asyncpg"
    proxy = InsideProxy

    def hook(self, hooks: Hooks, watch: LibraryWatch) -> None:
        """Replace ``connect``, and note each statement of connections and prepared statements.

        Raises:
            IsolangError: asyncpg is not installed.
        """
        try:
            import asyncpg
            from asyncpg import connect_utils
            from asyncpg.prepared_stmt import PreparedStatement
        except ImportError:
            raise IsolangError(
                "watch_asyncpg: asyncpg is not installed; hint: pip install asyncpg"
            ) from None

        original = connect_utils._connect

        async def connect(**options: Any) -> Any:
            moved = _moved(watch, options)
            if moved is None:
                return await original(**options)
            return watch.connected(await original(**moved))

        # A pool keeps the public function `connect` that it was made with, so what that calls is
        # replaced.
        hooks.replace(connect_utils, "_connect", connect)
        for name in _CALLS:
            for owner, steps in ((asyncpg.Connection, _called), (PreparedStatement, _prepared)):
                if hasattr(owner, name):
                    each = partial(steps, watch, name == "executemany")
                    hooks.replace_method(owner, name, each, awaits=True)
        hooks.call_before(asyncpg.Connection, "cursor", partial(_note_cursor, watch))
        hooks.call_before(asyncpg.Connection, "copy_from_query", partial(_note_query, watch))
        for name, text in _COPY.items():
            hooks.call_before(asyncpg.Connection, name, partial(_note_copy, watch, text))
        renewed: dict[int, Any] = {}
        hooks.call_before(asyncpg.Pool, "acquire", partial(_renew, renewed))

    def connections(self) -> tuple[type, ...]:
        """Return the classes of the library's connections."""
        from asyncpg import Connection
        from asyncpg.pool import PoolConnectionProxy

        return Connection, PoolConnectionProxy

    def backend(self, connection: Any) -> int:
        """Return the number of the server's process for a connection; 0 if it is closed."""
        return 0 if connection.is_closed() else int(connection.get_server_pid())

    def is_pipelined(self, connection: Any) -> bool:
        """Return false, because asyncpg waits for each result before sending another statement."""
        return False

    def address(self, connection: Any) -> tuple[str, int]:
        """Return the host and the port of a connection's server; an empty host if it is closed."""
        if connection.is_closed():
            return "", 0
        address = connection._addr  # asyncpg has no public attribute for it
        if isinstance(address, str):  # a path such as /run/postgresql/.s.PGSQL.5432
            folder, _, name = address.rpartition("/")
            return folder, int(name.rpartition(".")[2])
        return str(address[0]), int(address[1])


def _called(
    watch: LibraryWatch,
    repeats: bool,
    original: Any,
    connection: Any,
    query: str,
    *args: Any,
    **options: Any,
) -> Steps:
    send = partial(original, connection, query, *args, **options)
    if query == connection.get_reset_query():
        return (yield send)  # the pool resets the connection before it is used again
    return (yield from watch.noted(connection, query, send, repeats=repeats))


def _prepared(
    watch: LibraryWatch, repeats: bool, original: Any, statement: Any, *args: Any, **options: Any
) -> Steps:
    send = partial(original, statement, *args, **options)
    connection = statement._connection  # asyncpg has no public attribute for it
    return (yield from watch.noted(connection, statement.get_query(), send, repeats=repeats))


def _note_cursor(watch: LibraryWatch, connection: Any, query: str, *_: Any, **__: Any) -> None:
    watch.note(connection, query, later=True)


def _note_query(watch: LibraryWatch, connection: Any, query: str, *args: Any, **_: Any) -> None:
    # asyncpg writes the arguments into the text.
    text = _PARAMETER.sub("%s", query.replace("%", "%%")) if args else query
    watch.note(connection, text, later=True)


def _note_copy(
    watch: LibraryWatch,
    text: str,
    connection: Any,
    table: str,
    *_: Any,
    schema_name: str | None = None,
    **__: Any,
) -> None:
    names = [name for name in (schema_name, table) if name]
    quoted = ".".join('"{}"'.format(name.replace('"', '""')) for name in names)
    watch.note(connection, text.format(quoted.replace("%", "%%")), later=True)


def _renew(renewed: dict[int, Any], pool: Any, *_: Any, **__: Any) -> None:
    """Make a pool replace the connections that it opened before the watch."""
    if id(pool) not in renewed:
        renewed[id(pool)] = pool  # kept, so that its number remains its own
        with suppress(StopIteration):  # the coroutine waits for nothing
            pool.expire_connections().send(None)


def _moved(watch: LibraryWatch, options: dict[str, Any]) -> dict[str, Any] | None:
    """Return the arguments of ``connect`` with the proxy in the server's place."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        named = {k: v for k, v in conninfo_to_dict(options.get("dsn") or "").items() if v}
    except psycopg.ProgrammingError:  # asyncpg itself says what is wrong, or knows more
        return None
    known = {
        libpq: options[name] for name, libpq in _LIBPQ.items() if options.get(name) is not None
    }
    moved = watch.proxy.moved_parameters({**named, **known})
    if moved is None:
        return None
    rest = {k: v for k, v in options.items() if k not in (*_LIBPQ, "dsn", "ssl", "direct_tls")}
    settings = {k: v for k, v in moved.items() if k in _LIBPQ.values()}
    arguments = {name: settings[libpq] for name, libpq in _LIBPQ.items() if libpq in settings}
    if "application_name" in moved:
        rest["server_settings"] = {
            "application_name": moved["application_name"], **(rest.get("server_settings") or {})
        }  # fmt: skip
    return {
        **rest,
        "dsn": None,
        **dict.fromkeys(_LIBPQ),
        **arguments,
        "ssl": "disable",
        "direct_tls": False,
    }
