"""Watches the databases used by an application during a test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from isolang.foresee.played import server_name
from isolang.testing.recordings import Recordings

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.orm import registry

    from isolang.observe.drivers.driver import DriverWatch
    from isolang.observe.drivers.library import Library
    from isolang.observe.drivers.mapped import SqlAlchemyWatch
    from isolang.observe.unseen import Unseen

_W = TypeVar("_W", bound="DriverWatch")


class Watches(Recordings):
    """The recordings of one test, with watches that record an application's transactions."""

    def watch(self, engine: Engine, mapped: registry) -> SqlAlchemyWatch:
        """Record an application's transactions through SQLAlchemy until the test ends.

        Args:
            engine: the application's engine, for PostgreSQL with psycopg or asyncpg; for an
                asynchronous engine, its ``sync_engine``.
            mapped: the registry of the application's classes, such as ``Base.registry``.

        Returns:
            The watch; its ``unseen`` counts the activity that it could not record.

        Raises:
            IsolangError: the engine uses another database or driver, or the database is already
                being watched.
        """
        from isolang.observe.drivers.mapped import SqlAlchemyWatch, parameters_of

        watch = self._begin_watch(
            SqlAlchemyWatch(engine, mapped, self.recorder, others=self._watches)
        )
        self._watched.append((f"watch_{engine.dialect.driver}", "", parameters_of(engine)))
        return watch

    def watch_psycopg(
        self,
        conninfo: str = "",
        *,
        names: Mapping[str, str] | None = None,
        versions: bool = False,
        **parameters: Any,
    ) -> DriverWatch:
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
        from isolang.observe.drivers.through_psycopg import Psycopg

        self._watched.append(("watch_psycopg", conninfo, {"names": names, **parameters}))
        return self._watch_driver(Psycopg(), conninfo, names, versions, parameters)

    def watch_asyncpg(
        self,
        conninfo: str = "",
        *,
        names: Mapping[str, str] | None = None,
        versions: bool = False,
        **parameters: Any,
    ) -> DriverWatch:
        """Record an application's transactions through asyncpg until the test ends.

        The arguments, the result and the exceptions are the same as for :meth:`watch_psycopg`,
        because the watch itself connects through psycopg.
        """
        from isolang.observe.drivers.through_asyncpg import Asyncpg

        self._watched.append(("watch_asyncpg", conninfo, {"names": names, **parameters}))
        return self._watch_driver(Asyncpg(), conninfo, names, versions, parameters)

    def _watch_driver(
        self,
        library: Library,
        conninfo: str,
        names: Mapping[str, str] | None,
        versions: bool,
        parameters: dict[str, Any],
    ) -> DriverWatch:
        from isolang.observe.drivers.driver import DriverWatch

        watch = self._begin_watch(
            DriverWatch(
                conninfo,
                self.recorder,
                library,
                names=names,
                versions=versions,
                others=self._watches,
                **parameters,
            )
        )
        if versions and self._log_watch is None:
            self._log_watch = watch
        return watch

    def _begin_watch(self, watch: _W) -> _W:
        self._ending.enter_context(watch)
        self._watches.append(watch)
        return watch

    def unseen(self) -> Unseen:
        """Return the counts of unseen activity over all watches, by kind, with examples."""
        from isolang.observe.unseen import Unseen

        every = Unseen()
        for watch in self._watches:
            every.add(watch.all_unseen)
        return every.settled()

    def condition_readers(self) -> int:
        """Return how many transactions read by a condition that may have found other rows."""
        return sum(watch.condition_readers for watch in self._watches)

    def server_name(self) -> str:
        """Return the name and version of the watched PostgreSQL server, for messages."""
        _, conninfo, options = self._watched[0]
        return server_name(conninfo, **{k: v for k, v in options.items() if k != "names"})
