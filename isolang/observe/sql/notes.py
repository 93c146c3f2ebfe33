"""Matches the statements that the proxy sees with what their callers noted in the same process."""

from __future__ import annotations

import re
import threading
from collections import deque
from functools import lru_cache
from typing import Final

from msgspec import Struct

_PLACEHOLDER: Final = re.compile(r"%[sbt]|%\(\w+\)[sbt]")
_MOST_WAITING: Final = 1000  # the largest number of notes of a connection that wait


class CallNote(Struct, frozen=True, eq=False):
    """A note about a call of a library, made before the call sends a statement.

    Attributes:
        text: the statement with the library's placeholders.
        caller: the ``file:line`` of the application.
        label: the name of the application's call that the statement belongs to.
        client: the number of that call; 0 if there is none.
        repeats: whether the call sends the statement several times.
        later: whether the call may return before it sends the statement, or never send it.
    """

    text: str
    caller: str = ""
    label: str = ""
    client: int = 0
    repeats: bool = False
    later: bool = False

    def agrees(self, text: str) -> bool:
        """Return whether a text on the wire may be this statement.

        The library replaces placeholders, and may write something before and after the statement,
        as for a cursor. All text between the placeholders remains.
        """
        at = 0
        for piece in _pieces(self.text):
            at = text.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return True


@lru_cache(maxsize=1024)
def _pieces(text: str) -> tuple[str, ...]:
    """Return the parts of a statement that a library sends unchanged, in order."""
    text = text.strip().rstrip("; \t\r\n")
    if not _PLACEHOLDER.search(text):
        return (text,)
    parts = [part.replace("%%", "%").strip() for part in _PLACEHOLDER.split(text)]
    return tuple(part for part in parts if part)


class CallNotes:
    """The notes of calls whose statements have not reached the proxy, by the server's process.

    SOUND BECAUSE: a note only names a line and a call, and is taken only by a statement with its
    text. No verdict depends on it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[int, deque[CallNote]] = {}

    def add(self, backend: int, note: CallNote) -> None:
        """Add a note for the next statement sent over a server process's connection.

        A note of a call that may never send its statement is dropped if another call has the same
        text, because a wrong line is worse than none.
        """
        with self._lock:
            waiting = self._waiting.setdefault(backend, deque(maxlen=_MOST_WAITING))
            unclear = [one for one in waiting if one.later and one.text == note.text]
            for one in unclear:
                waiting.remove(one)
            if not (unclear and note.later):
                waiting.append(note)

    def remove(self, backend: int, note: CallNote) -> None:
        """Remove a note, because its call has ended."""
        with self._lock:
            waiting = self._waiting.get(backend)
            if waiting is not None and note in waiting:
                waiting.remove(note)
                if not waiting:
                    del self._waiting[backend]

    def take(self, backend: int, text: str | bytes) -> CallNote | None:
        """Return the first note that agrees with a statement, and drop it and those before it."""
        if backend not in self._waiting:
            return None
        if isinstance(text, bytes):
            text = text.decode("utf-8", "surrogateescape")
        with self._lock:
            waiting = self._waiting.get(backend) or deque()
            for place, note in enumerate(waiting):
                if note.agrees(text):
                    for _ in range(place + (not note.repeats)):
                        waiting.popleft()
                    return note
        return None
