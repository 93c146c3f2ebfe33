"""Watches the databases used by an application during a test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from isolang.errors import IsolangError
from isolang.foresee.calls import current_client, current_label
from isolang.foresee.played import server_name
from isolang.testing.recordings import Recordings

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.orm import registry

    from isolang.observe.unseen import Unseen
    from isolang.observe.ways.inside import InsideProxy
    from isolang.observe.ways.library import Library, LibraryWatch
    from isolang.observe.ways.mapped import SqlAlchemyWatch

_W = TypeVar("_W", bound="LibraryWatch")


class Watches(Recordings):
    """The recordings of one test, with watches that record an application's transactions."""

    def watch(self, engine: Engine, mapped: registry) -> SqlAlchemyWatch:
        """Record an application's transactions through SQLAlchemy until the test ends.

        Args:
            engine: the application's engine, for PostgreSQL or MariaDB with a library that can be
                watched; for an asynchronous engine, its ``sync_engine``.
            mapped: the registry of the application's classes, such as ``Base.registry``.

        Returns:
            The watch; its ``unseen`` counts the activity that it could not record.

        Raises:
            IsolangError: the engine uses another database or driver, or the database is already
                being watched.
        """
        from isolang.observe.ways.mapped import SqlAlchemyWatch, library_of, parameters_of

        library, parameters = library_of(engine), parameters_of(engine)
        proxy = self._proxy(library, "", None, versions=False, parameters=parameters)
        self._watched.append((library.name, "", parameters))
        return self._begin_watch(
            SqlAlchemyWatch(proxy, library, mapped, label=current_label, client=current_client)
        )

    def watch_psycopg(
        self,
        conninfo: str = "",
        *,
        names: Mapping[str, str] | None = None,
        versions: bool = False,
        **parameters: Any,
    ) -> LibraryWatch:
        """Record an application's transactions through psycopg until the test ends.

        The watch sees all statements that this process sends through psycopg 3, with synchronous
        and asynchronous connections. This includes the statements of Django and SQLAlchemy.

        Args:
            versions: whether to read the database's log, which contains the order of versions and
                the writes of unwatched clients. docs/versions.md lists the privileges that this
                requires.

        Raises:
            IsolangError: the database cannot be reached, or ``versions`` is true and the database
                does not keep a suitable log.
        """
        from isolang.observe.ways.psycopg3 import Psycopg

        return self._watch_driver(Psycopg(), conninfo, names, versions, parameters)

    def watch_asyncpg(
        self,
        conninfo: str = "",
        *,
        names: Mapping[str, str] | None = None,
        versions: bool = False,
        **parameters: Any,
    ) -> LibraryWatch:
        """Record an application's transactions through asyncpg until the test ends.

        The arguments, the result and the exceptions are the same as for :meth:`watch_psycopg`,
        because the watch itself connects through psycopg.
        """
        from isolang.observe.ways.asyncpg import Asyncpg

        return self._watch_driver(Asyncpg(), conninfo, names, versions, parameters)

    def watch_psycopg2(
        self,
        conninfo: str = "",
        *,
        names: Mapping[str, str] | None = None,
        versions: bool = False,
        **parameters: Any,
    ) -> LibraryWatch:
        """Record an application's transactions through psycopg2 until the test ends.

        The arguments, the result and the exceptions are the same as for :meth:`watch_psycopg`,
        because the watch itself connects through psycopg.
        """
        from isolang.observe.ways.psycopg2 import Psycopg2

        return self._watch_driver(Psycopg2(), conninfo, names, versions, parameters)

    def watch_pymysql(
        self, url: str = "", *, names: Mapping[str, str] | None = None, **parameters: Any
    ) -> LibraryWatch:
        """Record an application's transactions on MariaDB through PyMySQL until the test ends.

        This includes the statements of Django and SQLAlchemy. The observer connects as the role of
        the arguments, which needs the privilege to read the server's log.

        Args:
            url: the server, as ``mysql://user:password@host/database``; or else the arguments of
                ``pymysql.connect``.

        Raises:
            IsolangError: the database cannot be reached, or its server's log does not name all
                rows; the message says which settings are missing.
        """
        from isolang.observe.ways.pymysql import PyMySQL

        return self._watch_driver(PyMySQL(), url, names, False, parameters)

    def watch_mysqlclient(
        self, url: str = "", *, names: Mapping[str, str] | None = None, **parameters: Any
    ) -> LibraryWatch:
        """Record an application's transactions on MariaDB through mysqlclient (``MySQLdb``).

        The arguments, the result and the exceptions are those of :meth:`watch_pymysql`.
        """
        from isolang.observe.ways.mysqlclient import Mysqlclient

        return self._watch_driver(Mysqlclient(), url, names, False, parameters)

    def watch_mysql_connector(
        self, url: str = "", *, names: Mapping[str, str] | None = None, **parameters: Any
    ) -> LibraryWatch:
        """Record an application's transactions on MariaDB through MySQL Connector/Python.

        The arguments, the result and the exceptions are those of :meth:`watch_pymysql`.
        """
        from isolang.observe.ways.mysql_connector import MySQLConnector

        return self._watch_driver(MySQLConnector(), url, names, False, parameters)

    def _watch_driver(
        self,
        library: Library,
        conninfo: str,
        names: Mapping[str, str] | None,
        versions: bool,
        parameters: dict[str, Any],
    ) -> LibraryWatch:
        from isolang.observe.ways.library import LibraryWatch

        self._watched.append((library.name, conninfo, {"names": names, **parameters}))
        proxy = self._proxy(library, conninfo, names, versions=versions, parameters=parameters)
        return self._begin_watch(
            LibraryWatch(proxy, library, label=current_label, client=current_client)
        )

    def _proxy(
        self,
        library: Library,
        conninfo: str,
        names: Mapping[str, str] | None,
        *,
        versions: bool,
        parameters: Mapping[str, Any],
    ) -> InsideProxy:
        """Return the proxy of a database, which the watches of this test share.

        Raises:
            IsolangError: the library is already watched there, or without versions.
        """
        server = library.proxy.server_of(library.name, conninfo, parameters)
        where = f"{server.host}:{server.port}/{server.database}"
        for proxy in self._proxies:
            if type(proxy) is not library.proxy or not proxy.is_for(
                server.host, server.port, server.database
            ):
                continue
            names_of = [watch.library.name for watch in self._watches if watch.proxy is proxy]
            if library.name in names_of:
                raise IsolangError(
                    f"{library.name}: this database is already being watched (got {where} twice, "
                    "expected one watch per database and library)"
                )
            if proxy.versions != versions:
                raise IsolangError(
                    f"{library.name}: one database is watched both with and without versions (got "
                    f"versions={versions}, expected versions={proxy.versions}, as {names_of[0]} "
                    "has)"
                )
            return proxy
        if self._setup is not None:
            self._replays.prepare(server)
        path = self.folder / f"observing-{len(self._proxies) + 1}.edn"
        self.folder.mkdir(parents=True, exist_ok=True)
        proxy = library.proxy(server, path, versions=versions, names=names)
        proxy.start()
        self._ending.callback(proxy.leave)
        self._proxies.append(proxy)
        self._add(path)
        return proxy

    def _begin_watch(self, watch: _W) -> _W:
        self._ending.enter_context(watch)
        self._watches.append(watch)
        return watch

    @property
    def proxies(self) -> tuple[InsideProxy, ...]:
        """The proxies of this test's watches."""
        return tuple(self._proxies)

    def tables_by_name(self) -> dict[str, str]:
        """Return the table that each name of a model means in the histories."""
        return {
            name: table
            for _, _, options in self._watched
            for table, name in (options.get("names") or {}).items()
        }

    def unseen(self) -> Unseen:
        """Return the counts of unseen activity over all watches, by kind, with examples.

        The result is false if all that it counts is harmless.
        """
        from isolang.observe.unseen import Unseen

        every = Unseen()
        for proxy in self._proxies:
            every.add(proxy.unseen())
        return every.settled()

    def server_name(self) -> str:
        """Return the name and version of the watched PostgreSQL server, for messages."""
        _, conninfo, options = self._watched[0]
        return server_name(conninfo, **{k: v for k, v in options.items() if k != "names"})
