"""Records what refused transactions read of other sessions' writes.

A history does not contain the reads of refused transactions, because no level restricts them. But a
read that returned or missed a write of another session is evidence that the test could have
violated a level.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isolang.run.operation import Recorded
    from isolang.run.outcome import Outcome


class Refused:
    """The writers of versions, and the versions that rolled-back transactions read."""

    def __init__(self) -> None:
        self._writers: defaultdict[str, set[Hashable]] = defaultdict(set)  # of each key
        self._written: defaultdict[tuple[str, str], set[Hashable]] = defaultdict(set)
        self._reads: set[tuple[Hashable, str, str]] = set()

    def ended(self, session: Hashable, outcome: Outcome, operations: Sequence[Recorded]) -> None:
        """Note an ended transaction."""
        for name, key, value in operations:
            if outcome == "aborted" and name == "r":
                self._reads |= {(session, repr(key), one) for one in _parts(value)}
            elif outcome != "aborted" and name in ("w", "append", "insert", "delete"):
                self._writers[repr(key)].add(session)
                self._written[repr(key), repr(value)].add(session)

    def observed(self) -> bool:
        """Return whether a rolled-back transaction read, or missed, a write of another session."""
        return any(
            (self._written[key, value] if value else self._writers[key]) - {session}
            for session, key, value in self._reads
        )


def _parts(value: object) -> Iterator[str]:
    """Yield the values that a read returned; yield an empty text for the initial state."""
    if value is None or value == []:
        yield ""
    elif isinstance(value, list | tuple):
        yield from map(repr, value)
    else:
        yield repr(value)
