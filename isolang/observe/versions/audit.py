"""Compares the rows of a database with the rows predicted by the history.

If a row differs, it was written by a transaction that the proxy did not observe. In this case,
predicate reads of the row's table prove nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from copy import deepcopy
from typing import Any, Final

from isolang.errors import IsolangError
from isolang.observe.database import VersionNames
from isolang.observe.history.history import ObservedHistory
from isolang.observe.sql.catalogue import Table
from isolang.observe.unseen import FOREIGN
from isolang.observe.versions.evaluation import TableWork, evaluate, pending_work

_LOCK_SECONDS: Final = 1  # how many seconds an audit waits for a lock
_ATTEMPTS: Final = 3  # the largest number of audits before a definition changes
_PAUSE_SECONDS: Final = 0.05  # seconds between attempts


class Audit:
    """Audits each table that has predicate reads recorded since its last audit."""

    def __init__(
        self,
        history: ObservedHistory,
        versions: VersionNames,
        connect: Callable[[str], Any],
        most_rows: int,
    ) -> None:
        """Store the history and a function that opens a connection to a database."""
        self._history, self._versions = history, versions
        self._connect, self._most = connect, most_rows
        self._tasks: set[asyncio.Task[None]] = set()

    def _pending(self) -> list[TableWork]:
        history = self._history
        images = history.images
        return pending_work(history.evaluated, images, lambda: deepcopy(images))

    def _evaluate(self, work: list[TableWork]) -> None:
        evaluate(work, self._connect, self._most)

    def audit_at_end(self) -> None:
        """Audit all tables, and count the rows written by unobserved transactions."""
        history = self._history
        self._evaluate(self._pending())
        tables = [one for one in history.unaudited.values() if one.name not in history.unordered]
        for table, found in self._current_versions(tables):
            if isinstance(found, str):
                history.doubtful.setdefault(table.name, found)
            else:
                self._compare(table, found)

    def audit_before_changes(self, then: Callable[[], None]) -> None:
        """Run an audit as a task on the running event loop, then call a function."""

        async def audited() -> None:
            with suppress(Exception):  # if the audit fails, the predicate reads are not recorded
                await self._audit_until_settled()
            then()

        task = asyncio.get_running_loop().create_task(audited())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _audit_until_settled(self) -> None:
        """Audit before definitions change, and repeat the audit while transactions are ending."""
        unaudited, present = self._history.unaudited, self._history.present
        await asyncio.to_thread(self._evaluate, self._pending())
        for _ in range(_ATTEMPTS):
            tables = [one for one in unaudited.values() if not one.altered]
            for table, found in await asyncio.to_thread(list, self._current_versions(tables)):
                differs = isinstance(found, str) or any(present.differences(table.name, found))
                if not differs:
                    unaudited.pop(table.name, None)
            if all(one.altered for one in unaudited.values()):
                return
            await asyncio.sleep(_PAUSE_SECONDS)

    def _current_versions(self, tables: Sequence[Table]) -> Iterator[tuple[Table, set[str] | str]]:
        """Yield each table with its current versions, or with the reason why they are unknown."""
        for table in tables:
            try:
                with closing(self._connect(table.database)) as connection:
                    self._versions.limit_waiting(connection, _LOCK_SECONDS)
                    found = self._versions_in(connection, table)
            except IsolangError as error:
                found = str(error)
            yield table, found

    def _versions_in(self, connection: Any, table: Table) -> set[str] | str:
        if table.altered:
            return f"{table.name} was altered before it could be audited"
        rows = self._versions.rows(connection, table, self._most, whole=False)
        if rows is not None:
            return {version.number for version, *_ in rows}
        if table.rows_known:
            return f"{table.name} has more rows than --most-rows"
        # In a large table, only the rows named in the history are compared.
        live = self._history.present.live.get(table.name, {})
        return self._versions.present(connection, table, live)

    def _compare(self, table: Table, there: set[str]) -> None:
        """Count a table's rows that were written by unobserved transactions."""
        history = self._history
        history.unaudited.pop(table.name, None)
        gone, new = history.present.differences(table.name, there)
        live = history.present.live.get(table.name, {})
        for number in sorted(gone)[:1]:
            history.doubtful.setdefault(table.name, f"{table.name}/{live[number]}")
            history.unseen.note(
                FOREIGN,
                f"another writer changed or deleted {table.name}/{live[number]}",
                number=len(gone),
                form=f"rows of {table.name} that another writer changed or deleted",
                tables=(table.name,),
            )
        for number in sorted(new)[:1]:
            history.unseen.note(
                FOREIGN,
                f"a row of {table.name}, version {number}",
                number=len(new),
                form=f"rows of {table.name} that another writer added",
                tables=(table.name,),
            )
