"""Runs an application's calls one statement at a time, for psycopg 3 and asyncpg.

Each call runs in its own thread; asynchronous calls have their own event loop there. Before each
statement and before COMMIT, the call waits until it is allowed to continue. Its transactions run at
a given isolation level, even if the application requests a different one.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from isolang.harm.outcome import CallAnswer, answer_of, answer_of_error
from isolang.observe.sql.lexer import UnclearTextError, statements, tokens
from isolang.observe.sql.plan import StatementPlan, plan
from isolang.observe.ways.hooks import Hooks, Steps

_HERE: Final = threading.local()
# The number of seconds after which a call that has not reached its next statement is considered
# blocked.
_WAIT: Final = 5.0
_LEVEL: Final = re.compile(
    r"isolation\s+level\s+(?:serializable|repeatable\s+read|read\s+(?:un)?committed)", re.IGNORECASE
)
_SETS: Final = re.compile(r"\s*set\b", re.IGNORECASE)


class PacedCall:
    """A call that runs in its own thread, one statement at a time.

    Attributes:
        error: the exception raised by the call; ``None`` if it has not raised any.
        result: what the call returned; ``None`` if it has not returned.
        began: when the call began, in seconds of a clock that never goes back.
        ended: when the call ended.
        level: the isolation level of the call's transactions, a ``psycopg.IsolationLevel``.
        outermost: the block of psycopg that began the current transaction, if one did.
    """

    def __init__(self, call: Callable[[], object], level: Any) -> None:
        """Start the call in a thread, and wait until it reaches its first statement."""
        self.error: BaseException | None = None
        self.result: object = None
        self.began = self.ended = time.perf_counter()
        self.level = level
        self.outermost: Any = None
        self.inside = False  # whether a statement of the call is running
        self._call = call
        self._changed = threading.Condition()
        self._allowed, self._all = 0, False
        self._waiting = self._ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._wait_until_blocked(_WAIT)

    @property
    def has_ended(self) -> bool:
        """Return whether the call has returned or raised an exception."""
        return self._ended

    def answer(self) -> CallAnswer:
        """Return the answer of a call that has ended."""
        error = self.error
        answer = answer_of(self.result) if error is None else answer_of_error(error)
        return replace(answer, begin=self.began, end=self.ended)

    def _run(self) -> None:
        _HERE.call = self
        try:
            self.result = self._call()
        except BaseException as error:
            self.error = error
        self.ended = time.perf_counter()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait(self) -> None:
        """Block the call's thread until :meth:`step` or :meth:`finish` allows a statement."""
        with self._changed:
            self._waiting = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._all or self._allowed)
            self._waiting = False
            self._allowed = max(0, self._allowed - 1)

    def _wait_until_blocked(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(
                lambda: self._ended or (self._waiting and not self._allowed), seconds
            )

    def step(self, seconds: float = _WAIT) -> bool:
        """Allow one statement. Return whether it ended within the given number of seconds."""
        with self._changed:
            if self._ended:
                return True
            self._allowed += 1
            self._changed.notify_all()
        return self._wait_until_blocked(seconds)

    def finish(self, seconds: float = _WAIT) -> bool:
        """Allow all remaining statements. Return whether the call ended within that time."""
        with self._changed:
            self._all = True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._ended, seconds)


class PacedDrivers:
    """A context manager that makes the drivers wait before each statement of a paced call.

    It must be entered after the watches, because the watches' own statements must not wait.
    """

    def __init__(self) -> None:
        self._hooks = Hooks()

    def __enter__(self) -> PacedDrivers:
        import psycopg

        for prefix, enter, end in (
            ("", "__enter__", "__exit__"),
            ("Async", "__aenter__", "__aexit__"),
        ):
            awaits = bool(prefix)
            cursor, server, connection, transaction = (
                getattr(psycopg, prefix + name)
                for name in ("Cursor", "ServerCursor", "Connection", "Transaction")
            )
            for owner, name, steps in (
                (cursor, "execute", _run_statement),
                (cursor, "executemany", _run_statement),
                (connection, "commit", _run_commit),
                (transaction, enter, _run_begin),
                (transaction, end, _run_end),
            ):
                self._hooks.replace_method(owner, name, steps, awaits=awaits)
            for owner, name in ((cursor, "copy"), (cursor, "stream"), (server, "execute")):
                self._hooks.call_before(owner, name, _wait_before_other)
        if "asyncpg" in sys.modules:
            self._hook_asyncpg()
        return self

    def _hook_asyncpg(self) -> None:
        from asyncpg import Connection
        from asyncpg.prepared_stmt import PreparedStatement

        for name in ("execute", "fetch", "fetchrow", "fetchval", "executemany"):
            self._hooks.replace_method(Connection, name, _run_asyncpg_call, awaits=True)
            if hasattr(PreparedStatement, name) and name != "execute":
                self._hooks.replace_method(PreparedStatement, name, _run_prepared, awaits=True)

    def __exit__(self, *exc: object) -> None:
        self._hooks.remove()


def _run_statement(original: Any, cursor: Any, query: Any, *args: Any, **options: Any) -> Steps:
    if _concerns_connection_only(cursor.connection, query):
        return (yield partial(original, cursor, query, *args, **options))
    return (
        yield from _send_when_allowed(
            cursor.connection, original, cursor, _with_call_level(query), *args, **options
        )
    )


def _concerns_connection_only(connection: Any, query: Any) -> bool:
    """Return whether a statement outside transactions concerns only the connection, not tables.

    Django sends such statements on each new connection, and each played call has its own
    connection.
    """
    idle = connection.autocommit and connection.info.transaction_status.name == "IDLE"
    if not idle or not isinstance(query, str):
        return False
    planned = _plan_of(query)
    harmless = {"set_config", "current_setting"}
    return planned.kind in ("quiet", "forget") and planned.names <= harmless


def _plan_of(query: str) -> StatementPlan:
    """Return the plan of a text that contains at most one statement."""
    try:
        listed = list(statements(list(tokens(query))))
    except UnclearTextError:
        return StatementPlan(kind="other")
    if not listed:
        return StatementPlan(kind="quiet")
    return plan(listed[0], ()) if len(listed) == 1 else StatementPlan(kind="other")


def _wait_before_other(cursor: Any, *_: object, **__: object) -> None:
    """Wait before a statement whose result arrives in parts."""
    call = getattr(_HERE, "call", None)
    if call is not None and not call.inside:
        call.wait()
        if not cursor.connection.autocommit and not hasattr(cursor.connection, "__aenter__"):
            # The generator yields only for asynchronous connections.
            list(_set_level(cursor.connection, call))


def _run_commit(original: Any, connection: Any) -> Steps:
    return _send_when_allowed(connection, original, connection)


def _run_end(original: Any, transaction: Any, *exc: Any) -> Steps:
    call = getattr(_HERE, "call", None)
    if call is not None and call.outermost is not transaction:  # its begin did not wait either
        return (yield lambda: original(transaction, *exc))
    return (yield from _send_when_allowed(transaction.connection, original, transaction, *exc))


def _run_begin(original: Any, transaction: Any) -> Steps:
    call = getattr(_HERE, "call", None)
    if call is not None:
        if transaction.connection.info.transaction_status.name == "IDLE":
            call.outermost = transaction
        yield from _set_level(transaction.connection, call)
    return (yield lambda: original(transaction))


def _run_asyncpg_call(
    original: Any, connection: Any, query: str, *args: Any, **options: Any
) -> Steps:
    if query == connection.get_reset_query():
        return (yield partial(original, connection, query, *args, **options))
    return (
        yield from _send_when_allowed(
            None, original, connection, _with_call_level(query), *args, **options
        )
    )


def _run_prepared(original: Any, statement: Any, *args: Any, **options: Any) -> Steps:
    return _send_when_allowed(None, original, statement, *args, **options)


def _send_when_allowed(connection: Any, original: Any, *args: Any, **options: Any) -> Steps:
    """Wait until the call may continue, then send its statement."""
    call = getattr(_HERE, "call", None)
    if call is None or call.inside:
        return (yield lambda: original(*args, **options))
    call.wait()
    call.inside = True
    try:
        if connection is not None and not connection.autocommit:
            yield from _set_level(connection, call)
        return (yield lambda: original(*args, **options))
    finally:
        call.inside = False


def _set_level(connection: Any, call: PacedCall) -> Steps:
    """Set the isolation level of the next transaction, unless a transaction is open."""
    idle = connection.info.transaction_status.name == "IDLE"
    if idle and connection.isolation_level != call.level:
        if hasattr(connection, "__aenter__"):
            yield partial(connection.set_isolation_level, call.level)
        else:
            connection.isolation_level = call.level


def _with_call_level(query: Any) -> Any:
    """Return a statement that requests the current call's level instead of its own."""
    call = getattr(_HERE, "call", None)
    if call is None or not isinstance(query, str):
        return query
    level = f"ISOLATION LEVEL {call.level.name.replace('_', ' ')}"
    begins = _plan_of(query).kind == "begin"
    if (begins or _SETS.match(query)) and _LEVEL.search(query):
        return _LEVEL.sub(level, query)
    return f"{query.rstrip().rstrip(';')} {level}" if begins else query
