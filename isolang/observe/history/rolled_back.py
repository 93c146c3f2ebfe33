"""Detects rolled-back transactions that read or missed writes of other sessions.

A history does not contain the reads of rolled-back transactions, because no level restricts them.
However, if such a read returned or missed another session's write, sessions did interact, and the
test could have violated a level.
"""

from __future__ import annotations

from collections import defaultdict

from isolang.observe.history.seen import (
    FoundKey,
    LoggedWrites,
    ScannedRows,
    SeenTransaction,
    WrittenRow,
)


class RolledBackRows:
    """Collects the writers of rows and versions, and the reads of rolled-back transactions."""

    def __init__(self) -> None:
        self._writer: dict[tuple[str, str], int] = {}  # the session that wrote each version
        self._writers: defaultdict[tuple[str, str], set[int]] = defaultdict(set)  # of each row
        self._reads: set[tuple[int, str, str, str]] = set()

    def ended(self, one: SeenTransaction) -> None:
        """Store the reads of a rolled-back transaction, or the writes of any other transaction."""
        for operation in one.operations:
            if isinstance(operation, LoggedWrites):
                continue
            table = operation.table.name
            if isinstance(operation, WrittenRow):
                if one.outcome == "fail":
                    continue
                for version in (operation.old, operation.version):
                    if version is not None:
                        self._writers[table, version.key].add(one.process)
                if operation.version is not None:
                    self._writer[table, operation.version.number] = one.process
            elif one.outcome == "fail" and not isinstance(operation, FoundKey):
                rows = operation.rows if isinstance(operation, ScannedRows) else [operation.version]
                self._reads |= {(one.process, table, row.key, row.number) for row in rows}

    def observed(self) -> bool:
        """Return whether a rolled-back transaction read or missed another session's write.

        A read misses a write if it returns the initial version of a row written by another session.
        """
        return any(
            {self._writer[table, number]} - {process}
            if (table, number) in self._writer
            else self._writers.get((table, key), set()) - {process}
            for process, table, key, number in self._reads
        )
