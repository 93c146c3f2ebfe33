"""What an error says about the transaction: whether the server may have applied it.

A *driver* of a database tells the recorder how to commit so that a COMMIT that rolled back is
noticed, how to roll back for certain, and what an error means: :mod:`isolang.run.drivers`. A
connection that none of them knows is committed by its own ``commit``, and every error from there on
leaves the outcome unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Final, Literal, NoReturn, Protocol, TypeAlias

from msgspec import Struct

from isolang.errors import HistoryError, IsolangError

Outcome: TypeAlias = Literal["committed", "aborted", "maybe"]
"""How a transaction ended, as far as its client knows."""

Failure: TypeAlias = Literal["aborted", "maybe"]
"""How a transaction ended that raised: certainly not applied, or not known."""

Phase: TypeAlias = Literal["statement", "commit"]
"""When an error came: before COMMIT was sent, in an explicit transaction; or later."""


class Connection(Protocol):
    """What DB-API connections have."""

    def commit(self) -> Any:
        """Commit the open transaction."""
        ...

    def rollback(self) -> Any:
        """Roll it back."""
        ...


class RolledBack(Exception):  # noqa: N818 - an answer of the server, not a fault
    """The server answered COMMIT by rolling back, and raised nothing."""


class BadAnswer(HistoryError):  # noqa: N818 - an answer, though none that a history can hold
    """What came back is no answer to what was asked, or a value that cannot be recorded."""


class Autocommit(Exception):  # noqa: N818 - a state of the connection, not a fault
    """The connection had no explicit transaction: its statements have committed by themselves."""


class Driver(Struct, frozen=True, kw_only=True):
    """How a database's connections commit and roll back, and what their errors mean.

    Attributes:
        commit: commits, or raises and leaves no transaction open; raises :class:`RolledBack` if the
            server rolled back and raised nothing.
        rollback: makes sure that the open transaction is never applied; raises if it cannot, as
            where there is no explicit transaction.
        classify: what an error means.
        resolve: asks the server, after COMMIT ended in an error that leaves the outcome unknown,
            what became of the transaction; ``None`` if it cannot be asked.
    """

    commit: Callable[[Any], object]
    rollback: Callable[[Any], object]
    classify: Callable[[BaseException, Phase], Failure]
    resolve: Callable[[Any], Outcome] | None = None


def commit(connection: Connection) -> None:
    """Commit a connection by its own method."""
    connection.commit()


def roll_back(connection: Any) -> None:
    """Roll back a connection; where that fails, close it.

    SOUND BECAUSE: PEP 249 has connections begin with autocommit off, and the transaction of a
    connection that is closed or lost before COMMIT was sent is rolled back by the server.

    Raises:
        Autocommit: the connection is in autocommit mode.
    """
    if getattr(connection, "autocommit", False) is True:
        raise Autocommit
    roll_back_or_close(connection)


def roll_back_or_close(connection: Any) -> None:
    """Roll back; where that fails, close the connection, so that the server does it."""
    try:
        connection.rollback()
    except Exception:
        connection.close()


def classify(error: BaseException, phase: Phase) -> Failure:
    """Say what an error means of a database of which nothing is known."""
    return "aborted" if phase == "statement" or isinstance(error, RolledBack) else "maybe"


async def commit_later(connection: Any) -> None:
    """Commit an asynchronous connection by its own method."""
    await connection.commit()


async def roll_back_later(connection: Any) -> None:
    """The same as :func:`roll_back`, of an asynchronous connection.

    Raises:
        Autocommit: the connection is in autocommit mode.
    """
    if getattr(connection, "autocommit", False) is True:
        raise Autocommit
    await roll_back_or_close_later(connection)


async def roll_back_or_close_later(connection: Any) -> None:
    """Roll back; where that fails, close the connection, so that the server does it."""
    try:
        await connection.rollback()
    except Exception:
        closed = connection.close()
        if isawaitable(closed):
            await closed


GENERIC: Final = Driver(commit=commit, rollback=roll_back, classify=classify)
LATER: Final = Driver(commit=commit_later, rollback=roll_back_later, classify=classify)

_HOMES: Final = {
    "psycopg": "postgres",
    "pymysql": "mariadb",
    "sqlite3": "sqlite",
    "duckdb": "duckdb",
    "_duckdb": "duckdb",
}


def driver_of(connection: object) -> Driver:
    """Find the driver of a connection by the package that its type comes from.

    Raises:
        IsolangError: it is no connection that can be committed.
    """
    if connection is not None and not hasattr(connection, "commit"):
        refuse(connection, "without commit", "give none, and let the block commit for itself")
    home = _HOMES.get(type(connection).__module__.split(".", maxsplit=1)[0])
    later = commits_later(connection)
    if home is None:
        return LATER if later else GENERIC
    module = import_module(f"isolang.run.drivers.{home}")
    driver: Driver = module.LATER if later else module.DRIVER
    return driver


def commits_later(connection: object) -> bool:
    """Whether what commits or rolls back is a coroutine, which does nothing until it is awaited."""
    methods = (getattr(connection, name, None) for name in ("commit", "rollback"))
    return any(iscoroutinefunction(method) for method in methods)


def refuse(connection: object, how: str, hint: str) -> NoReturn:
    """Raise that a connection cannot be committed as it is used.

    Raises:
        IsolangError: always.
    """
    kind = type(connection)
    raise IsolangError(
        f"transaction: a connection {how} (got {kind.__module__}.{kind.__qualname__}, expected "
        "one of psycopg, pymysql, sqlite3 or duckdb, or another with commit and rollback); "
        f"hint: {hint}"
    )
