"""Stops calls of an application before their statements, until they may go on.

A *turn* of a call is what it sends after the server has answered everything before: a statement, or
several messages that belong together. The proxy keeps the bytes of a turn that must wait; no thread
of the application is touched.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Any, Final, Protocol

from msgspec import Struct, field

from isolang.observe.database import Wire

_STEP: Final = 0.02  # the seconds between two looks at whether a call has ended


class TurnStatement(Struct, frozen=True):
    """A statement of a turn.

    Attributes:
        kind: its kind, as in a statement's plan.
    """

    kind: str
    text: str


class Turn(Struct):
    """The messages that a call has sent after all earlier answers.

    Attributes:
        place: its place among the turns of all calls.
        executed: how many statements the open transaction had executed before it.
    """

    call: int
    place: int
    executed: int = 0
    statements: list[TurnStatement] = field(default_factory=list)


class CallClient(Protocol):
    """A connection of a call."""

    wire: Wire

    def take(self, data: bytes) -> None:
        """Handle bytes from the application."""


class Holds:
    """Counts the turns of calls, and stops a call before a chosen turn.

    The listener's thread calls :meth:`admits` and :meth:`note_statements`; another thread calls the
    rest.

    Attributes:
        turns: the turns so far.
    """

    def __init__(self, run_between_messages: Callable[[Callable[[], object]], Any]) -> None:
        """Begin without stops.

        Args:
            run_between_messages: returns the result of a function, run in the listener's thread.
        """
        self.turns: list[Turn] = []
        self._run = run_between_messages
        self._stops: dict[int, int] = {}
        self._waiting: list[tuple[CallClient, bytes]] = []
        self._latest: dict[int, Turn] = {}  # by the identity of the client
        self._known: dict[int, Any] = {}  # the executions that a turn has, by their identity
        self._clients: dict[int, CallClient] = {}
        self._changed = threading.Condition()

    # --- the listener's thread ---

    def admits(self, client: CallClient, data: bytes) -> bool:
        """Return whether bytes of a call may pass; otherwise keep them until they may."""
        call = client.wire.call
        if not call:
            return True
        self._clients[id(client)] = client
        if not client.wire.is_idle and not any(waiting is client for waiting, _ in self._waiting):
            return True
        turn = Turn(call, len(self.turns), client.wire.executed())
        with self._changed:
            if call in self._stops and self.count(call) >= self._stops[call]:
                self._waiting.append((client, data))
                self._changed.notify_all()
                return False
            self.turns.append(turn)
            self._latest[id(client)] = turn
            self._changed.notify_all()
        return True

    def note_statements(self, client: CallClient) -> None:
        """Note the statements that the server is about to answer."""
        turn = self._latest.get(id(client))
        for execution in client.wire.executions() if turn is not None else ():
            if id(execution) not in self._known:  # those of one message share a ticket
                self._known[id(execution)] = execution
                statement = TurnStatement(execution.statement.plan.kind, execution.statement.text)
                turn.statements.append(statement)  # type: ignore[union-attr]

    # --- another thread ---

    def count(self, call: int) -> int:
        """Return how many turns a call has had."""
        return sum(turn.call == call for turn in self.turns)

    def stop_before(self, call: int, turn: int) -> None:
        """Let a call wait before one of its turns, counted from 0."""
        self._stops[call] = turn

    def is_stopped(self, call: int) -> bool:
        """Return whether a turn of a call waits."""
        return any(client.wire.call == call for client, _ in self._waiting)

    def awaits_server(self, call: int) -> bool:
        """Return whether the server has not answered a statement of a call yet."""
        return bool(
            self._run(
                lambda: any(
                    client.wire.executions()
                    for client in self._clients.values()
                    if client.wire.call == call
                )
            )
        )

    def await_stop(self, call: int, seconds: float, has_ended: Callable[[], bool]) -> bool:
        """Wait until a call is held or has ended, and return whether it is held."""
        self._wait(lambda: self.is_stopped(call) or has_ended(), seconds)
        return self.is_stopped(call)

    def await_first(self, call: int, seconds: float, has_ended: Callable[[], bool]) -> None:
        """Wait until a call has had a turn or has ended."""
        self._wait(lambda: self.count(call) > 0 or has_ended(), seconds)

    def await_end(self, call: int, seconds: float, has_ended: Callable[[], bool]) -> bool:
        """Wait until a call has ended, or has had no turn for some seconds.

        Return whether it has ended.
        """
        before = -1
        while not has_ended() and before != (before := self.count(call)):
            self._wait(lambda: has_ended() or self.count(call) != before, seconds)
        return has_ended()

    def _wait(self, holds: Callable[[], bool], seconds: float) -> None:
        ends = monotonic() + seconds
        while not holds() and monotonic() < ends:  # it may need the listener's thread
            with self._changed:
                self._changed.wait(_STEP)

    def release(self, call: int) -> None:
        """Let a call go on to its end."""
        self._stops.pop(call, None)
        self._run(lambda: self._send_on(call))

    def _send_on(self, call: int) -> None:
        released = [kept for kept in self._waiting if kept[0].wire.call == call]
        self._waiting = [kept for kept in self._waiting if kept[0].wire.call != call]
        for client, data in released:
            if self.admits(client, data):
                client.take(data)


def stops_of(turns: Sequence[Turn]) -> Iterator[int]:
    """Yield the turns of a call before which a stop may make a difference.

    These are the turns after one that has read or written, or that has released locks.

    >>> select, commit = TurnStatement("select", ""), TurnStatement("commit", "")
    >>> [*stops_of([Turn(1, 0), Turn(1, 1, 0, [select]), Turn(1, 2, 1, [commit]), Turn(1, 3)])]
    [2]
    """
    last = max((n for n, turn in enumerate(turns) if turn.statements), default=-1)
    for number in range(1, last + 1):
        if any(map(_changes, turns[number - 1].statements)):
            yield number


def _changes(statement: TurnStatement) -> bool:
    """Return whether a call has seen or changed more, or has fewer locks, after a statement."""
    is_read = statement.kind not in _CHANGE_NOTHING
    return is_read or _releases(statement) or looks_away(statement)


def looks_away(statement: TurnStatement) -> bool:
    """Return whether a statement depends on locks that others hold, or on sequences they have set.

    No history shows either.

    >>> looks_away(TurnStatement("select", "SELECT id FROM job FOR UPDATE SKIP LOCKED"))
    True
    >>> looks_away(TurnStatement("quiet", "SELECT 1"))
    False
    """
    return _LOOKS_AWAY.search(statement.text) is not None


def _releases(statement: TurnStatement) -> bool:
    return statement.kind == "back" or _UNLOCKS.search(statement.text) is not None


def released_early(turns: Sequence[Turn]) -> list[str]:
    """Return the statements of a call that release locks before the transaction ends.

    >>> back = TurnStatement("back", "ROLLBACK TO s")
    >>> unlock = TurnStatement("quiet", "SELECT pg_advisory_unlock(7)")
    >>> released_early([Turn(1, 0, 2, [back]), Turn(1, 1, 3, [unlock]), Turn(1, 2, 0, [unlock])])
    ['ROLLBACK TO s', 'SELECT pg_advisory_unlock(7)']
    """
    return [
        statement.text
        for turn in turns
        for statement in turn.statements
        if _releases(statement) and (turn.executed or statement.kind == "back")
    ]


def sent_together(turns: Sequence[Turn]) -> list[str]:
    """Return the later statements of a call's turns that have several that see or change rows.

    The call cannot be held between them.

    >>> begin, select = TurnStatement("begin", "BEGIN"), TurnStatement("select", "SELECT …")
    >>> sent_together([Turn(1, 0, 0, [begin, select])])
    []
    >>> sent_together([Turn(1, 0, 0, [begin, select, select])])
    ['SELECT …']
    """
    listed = []
    for turn in turns:
        changing = [s for s in turn.statements if s.kind not in _ENDS and _changes(s)]
        listed += [statement.text for statement in changing[1:]]
    return listed


def commits_at_once(turns: Sequence[Turn]) -> list[str]:
    """Return the statements of a call that may write and whose turn also ends the transaction.

    The call cannot be held between such a statement and its COMMIT.

    >>> update, commit = TurnStatement("update", "UPDATE …"), TurnStatement("commit", "COMMIT")
    >>> commits_at_once([Turn(1, 0, 0, [update]), Turn(1, 1, 1, [commit])])
    []
    >>> commits_at_once([Turn(1, 0, 0, [update, commit]), Turn(1, 1)])
    ['UPDATE …']
    """
    listed = []
    for number, turn in enumerate(turns):
        is_open = number + 1 < len(turns) and turns[number + 1].executed > 0
        for statement in turn.statements if not is_open else ():
            is_plain = statement.kind == "select" and not _LOCKS.search(statement.text)
            if not is_plain and statement.kind not in _ENDS | _CHANGE_NOTHING:
                listed.append(statement.text)
    return listed


_LOCKS: Final = re.compile(r"\bfor\s+(no\s+key\s+update|update|key\s+share|share)\b", re.IGNORECASE)
_ENDS: Final = frozenset({"commit", "rollback"})
_LOOKS_AWAY: Final = re.compile(
    r"\b(skip\s+locked|nowait|pg_try_advisory\w*|lock_timeout|statement_timeout|pg_locks"
    r"|pg_blocking_pids|pg_stat_activity|setval|last_value|pg_sequence_last_value)\b",
    re.IGNORECASE,
)
_UNLOCKS: Final = re.compile(r"\bpg_advisory_unlock|\bdiscard\s+all\b", re.IGNORECASE)
_CHANGE_NOTHING: Final = frozenset(
    {"quiet", "begin", "level", "forget", "savepoint", "release", "back"}
)
"""The kinds of statements after which a call has seen and changed no more than before."""
