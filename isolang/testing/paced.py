"""Runs calls of an application that uses psycopg 3 one statement at a time.

Each call runs in its own thread. Before each statement and before COMMIT, the call waits until it
is allowed to continue. Its transactions run at a given isolation level, even if the application
requests another level.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from isolang.observe.drivers.hooks import Hooks, Steps

_HERE: Final = threading.local()
# The seconds after which a call that has not reached its next statement is considered blocked.
_WAIT: Final = 5.0


class PacedCall:
    """A call that runs in its own thread, one statement at a time.

    Attributes:
        error: the exception that the call raised; ``None`` if it has raised no exception.
        level: the isolation level of the call's transactions, a ``psycopg.IsolationLevel``.
    """

    def __init__(self, call: Callable[[], object], level: Any) -> None:
        """Start the call in a thread, and wait until it has reached its first statement."""
        self.error: BaseException | None = None
        self.level = level
        self.inside = False  # whether a statement of the call is running
        self._call = call
        self._changed = threading.Condition()
        self._allowed, self._all = 0, False
        self._waiting = self._ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._until_it_waits(_WAIT)

    def _run(self) -> None:
        _HERE.call = self
        try:
            self._call()
        except BaseException as error:
            self.error = error
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait(self) -> None:
        """Block the thread of the call until its next statement is allowed."""
        with self._changed:
            self._waiting = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._all or self._allowed)
            self._waiting = False
            self._allowed = max(0, self._allowed - 1)

    def _until_it_waits(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(
                lambda: self._ended or (self._waiting and not self._allowed), seconds
            )

    def step(self, seconds: float = _WAIT) -> bool:
        """Allow one statement, and return whether the statement ended within some seconds."""
        with self._changed:
            if self._ended:
                return True
            self._allowed += 1
            self._changed.notify_all()
        return self._until_it_waits(seconds)

    def finish(self, seconds: float = _WAIT) -> bool:
        """Allow all remaining statements, and return whether the call ended within some seconds."""
        with self._changed:
            self._all = True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._ended, seconds)


class Paced:
    """A context manager that makes psycopg wait before each statement of a paced call.

    It must be entered after the watches, because their own statements must not wait.
    """

    def __init__(self) -> None:
        self._hooks = Hooks()

    def __enter__(self) -> Paced:
        import psycopg

        for owner, name in ((psycopg.Cursor, "execute"), (psycopg.Cursor, "executemany")):
            self._hooks.around(owner, name, _statement)
        for other, name in (
            (psycopg.Cursor, "copy"),
            (psycopg.Cursor, "stream"),
            (psycopg.ServerCursor, "execute"),
        ):
            self._hooks.before(other, name, _other)
        self._hooks.around(psycopg.Connection, "commit", _commit)
        self._hooks.around(psycopg.Transaction, "__enter__", _begin)
        self._hooks.around(psycopg.Transaction, "__exit__", _end)
        return self

    def __exit__(self, *exc: object) -> None:
        self._hooks.remove()


def _statement(original: Any, cursor: Any, *args: Any, **options: Any) -> Steps:
    return _gated(cursor.connection, original, cursor, *args, **options)


def _other(cursor: Any, *_: object, **__: object) -> None:
    """Wait before a statement whose answer comes in parts."""
    call = getattr(_HERE, "call", None)
    if call is not None and not call.inside:
        call.wait()
        if not cursor.connection.autocommit:
            _set_level(cursor.connection, call)


def _commit(original: Any, connection: Any) -> Steps:
    return _gated(connection, original, connection)


def _end(original: Any, transaction: Any, *exc: Any) -> Steps:
    return _gated(transaction.connection, original, transaction, *exc)


def _begin(original: Any, transaction: Any) -> Steps:
    call = getattr(_HERE, "call", None)
    if call is not None:
        _set_level(transaction.connection, call)
    return (yield lambda: original(transaction))


def _gated(connection: Any, original: Any, *args: Any, **options: Any) -> Steps:
    call = getattr(_HERE, "call", None)
    if call is None or call.inside:
        return (yield lambda: original(*args, **options))
    call.wait()
    call.inside = True
    try:
        if not connection.autocommit:
            _set_level(connection, call)
        return (yield lambda: original(*args, **options))
    finally:
        call.inside = False


def _set_level(connection: Any, call: PacedCall) -> None:
    """Set the isolation level of the next transaction, unless a transaction is open."""
    idle = connection.info.transaction_status.name == "IDLE"
    if idle and connection.isolation_level != call.level:
        connection.isolation_level = call.level
