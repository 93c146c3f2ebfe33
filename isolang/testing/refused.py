"""Records what refused transactions saw of others.

A history does not contain their reads: no level restricts them. That they read, or missed, what
another session wrote is evidence all the same that the test had something to break.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isolang.run.operation import Recorded
    from isolang.run.outcome import Outcome


class Refused:
    """The writers of versions, and the versions that rolled back transactions read."""

    def __init__(self) -> None:
        self._writers: defaultdict[str, set[Hashable]] = defaultdict(set)  # of each key
        self._written: defaultdict[tuple[str, str], set[Hashable]] = defaultdict(set)
        self._reads: set[tuple[Hashable, str, str]] = set()

    def ended(self, session: Hashable, outcome: Outcome, operations: Sequence[Recorded]) -> None:
        """Note a transaction."""
        for name, key, value in operations:
            if outcome == "aborted" and name == "r":
                self._reads |= {(session, repr(key), one) for one in _parts(value)}
            elif outcome != "aborted" and name in ("w", "append", "delete"):
                self._writers[repr(key)].add(session)
                self._written[repr(key), repr(value)].add(session)

    def observed(self) -> bool:
        """Return whether one that was rolled back read, or missed, what another session wrote."""
        return any(
            (self._written[key, value] if value else self._writers[key]) - {session}
            for session, key, value in self._reads
        )


def _parts(value: object) -> Iterator[str]:
    """The values that a read shows; an empty text where there was nothing."""
    if value is None or value == []:
        yield ""
    elif isinstance(value, list | tuple):
        yield from map(repr, value)
    else:
        yield repr(value)
