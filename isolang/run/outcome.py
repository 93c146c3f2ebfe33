"""Defines how transactions end, and whether a failed transaction may still have been applied.

A *driver* (:mod:`isolang.run.drivers`) implements three actions for one client package: it commits,
and raises an error if the server rolled back instead; it rolls back reliably; and it classifies
errors. If no driver fits a connection, the recorder calls the connection's ``commit``, and every
error after that call leaves the outcome unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Final, Literal, NoReturn, Protocol, TypeAlias

from msgspec import Struct

from isolang.errors import HistoryError, IsolangError

Outcome: TypeAlias = Literal["committed", "aborted", "maybe"]
"""How a transaction ended, as far as its client can tell."""

Failure: TypeAlias = Literal["aborted", "maybe"]
"""The outcome of a transaction that failed: ``aborted`` if it certainly had no effect."""

Phase: TypeAlias = Literal["statement", "commit"]
"""When an error occurred: ``statement`` if COMMIT has not been sent yet, ``commit`` otherwise."""


class Connection(Protocol):
    """The methods that every DB-API connection has."""

    def commit(self) -> Any:
        """Commit the open transaction."""
        ...

    def rollback(self) -> Any:
        """Roll back the open transaction."""
        ...


class RolledBack(Exception):  # noqa: N818 - an answer of the server, not a fault
    """Raised when the server rolled the transaction back at COMMIT without reporting an error."""


class ProgramAborted(RolledBack):
    """Raised when the program rolls its transaction back on purpose."""


class BadAnswer(HistoryError):  # noqa: N818 - an answer, though none that a history can hold
    """Raised when a response does not fit the request, or cannot be recorded in a history."""


class Autocommit(Exception):  # noqa: N818 - a state of the connection, not a fault
    """Raised when no explicit transaction was open, so each statement committed by itself."""


class Driver(Struct, frozen=True, kw_only=True):
    """The functions that commit, roll back and interpret errors for one kind of connection.

    Attributes:
        commit: a function that commits. If that fails, it raises an error and leaves no transaction
            open; the error is :class:`RolledBack` if the server rolled back without an error.
        rollback: a function that ensures that the open transaction is never applied; it raises an
            error if it cannot ensure this, for example because the connection has an implicit
            transaction.
        classify: a function that returns, for the error of a failed transaction, whether the
            transaction certainly aborted or may have committed.
        resolve: a function that queries the server for the outcome of a transaction whose COMMIT
            failed with an unclear error; ``None`` if the server cannot report the outcome.
    """

    commit: Callable[[Any], object]
    rollback: Callable[[Any], object]
    classify: Callable[[BaseException, Phase], Failure]
    resolve: Callable[[Any], Outcome] | None = None


def commit(connection: Connection) -> None:
    """Commit the open transaction by calling the connection's ``commit``."""
    connection.commit()


def roll_back(connection: Any) -> None:
    """Roll back the open transaction; if that fails, close the connection.

    SOUND BECAUSE: by PEP 249, connections begin with autocommit off. If a connection is closed or
    lost before COMMIT has been sent, the server rolls its transaction back.

    Raises:
        Autocommit: the connection is in autocommit mode.
    """
    if getattr(connection, "autocommit", False) is True:
        raise Autocommit
    roll_back_or_close(connection)


def roll_back_or_close(connection: Any) -> None:
    """Roll back; if that fails, close the connection, which makes the server roll back."""
    try:
        connection.rollback()
    except Exception:
        connection.close()


def classify(error: BaseException, phase: Phase) -> Failure:
    """Return ``maybe`` for an error at COMMIT, which leaves the outcome open, else ``aborted``."""
    return "aborted" if phase == "statement" or isinstance(error, RolledBack) else "maybe"


async def commit_async(connection: Any) -> None:
    """Commit the open transaction of an asynchronous connection by awaiting its ``commit``."""
    await connection.commit()


async def roll_back_async(connection: Any) -> None:
    """Roll back the open transaction of an asynchronous connection, as :func:`roll_back` does.

    Raises:
        Autocommit: the connection is in autocommit mode.
    """
    if getattr(connection, "autocommit", False) is True:
        raise Autocommit
    await roll_back_or_close_async(connection)


async def roll_back_or_close_async(connection: Any) -> None:
    """Roll back; if that fails, close the connection, which makes the server roll back."""
    try:
        await connection.rollback()
    except Exception:
        closed = connection.close()
        if isawaitable(closed):
            await closed


GENERIC_DRIVER: Final = Driver(commit=commit, rollback=roll_back, classify=classify)
ASYNC_DRIVER: Final = Driver(commit=commit_async, rollback=roll_back_async, classify=classify)

_DRIVER_MODULES: Final = {
    "psycopg": "postgres",
    "pymysql": "mariadb",
    "sqlite3": "sqlite",
    "duckdb": "duckdb",
    "_duckdb": "duckdb",
}


def driver_of(connection: object) -> Driver:
    """Return the driver for a connection, based on the package that defines its type.

    Raises:
        IsolangError: the connection has no ``commit``.
    """
    if connection is not None and not hasattr(connection, "commit"):
        refuse_connection(
            connection, "without commit", "leave the argument out, and commit inside the block"
        )
    home = _DRIVER_MODULES.get(type(connection).__module__.split(".", maxsplit=1)[0])
    later = is_async(connection)
    if home is None:
        return ASYNC_DRIVER if later else GENERIC_DRIVER
    module = import_module(f"isolang.run.drivers.{home}")
    driver: Driver = module.ASYNC_DRIVER if later else module.DRIVER
    return driver


def is_async(connection: object) -> bool:
    """Return whether the connection's ``commit`` or ``rollback`` must be awaited."""
    methods = (getattr(connection, name, None) for name in ("commit", "rollback"))
    return any(iscoroutinefunction(method) for method in methods)


def refuse_connection(connection: object, how: str, hint: str) -> NoReturn:
    """Raise an error that explains why the recorder cannot commit on a connection.

    Raises:
        IsolangError: always.
    """
    kind = type(connection)
    raise IsolangError(
        f"transaction: a connection {how} (got {kind.__module__}.{kind.__qualname__}, expected "
        "one of psycopg, pymysql, sqlite3 or duckdb, or another with commit and rollback); "
        f"hint: {hint}"
    )
