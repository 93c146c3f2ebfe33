"""Detects rolled-back transactions that read or missed writes of other sessions.

A history does not contain the reads of rolled-back transactions, because no level restricts them.
However, if such a read returned or missed another session's write, sessions did interact, and the
test could have violated a level.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isolang.run.operation import RecordedOperation
    from isolang.run.outcome import Outcome


class RolledBackReads:
    """Collects the writes of all transactions, and the reads of rolled-back transactions."""

    def __init__(self) -> None:
        # The sessions that wrote each key, and those that wrote each value of each key.
        self._writers: defaultdict[str, set[Hashable]] = defaultdict(set)
        self._written: defaultdict[tuple[str, str], set[Hashable]] = defaultdict(set)
        self._reads: set[tuple[Hashable, str, str]] = set()

    def ended(
        self, session: Hashable, outcome: Outcome, operations: Sequence[RecordedOperation]
    ) -> None:
        """Store the reads of a rolled-back transaction, or the writes of any other transaction."""
        for name, key, value in operations:
            if outcome == "aborted" and name == "r":
                self._reads |= {(session, repr(key), one) for one in _parts(value)}
            elif outcome != "aborted" and name in ("w", "append", "insert", "delete"):
                self._writers[repr(key)].add(session)
                self._written[repr(key), repr(value)].add(session)

    def observed(self) -> bool:
        """Return whether a rolled-back transaction read or missed another session's write.

        A read misses a write if it returns the initial state of a key written by another session.
        """
        return any(
            (self._written[key, value] if value else self._writers[key]) - {session}
            for session, key, value in self._reads
        )


def _parts(value: object) -> Iterator[str]:
    """Yield each value returned by a read as text, or an empty string if the read found nothing."""
    if value is None or value == []:
        yield ""
    elif isinstance(value, list | tuple):
        yield from map(repr, value)
    else:
        yield repr(value)
