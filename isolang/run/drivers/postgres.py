"""Commits and rolls back transactions on psycopg 3 connections, and classifies their errors."""

from __future__ import annotations

import time
from typing import Any, Final

from isolang.run.marks.commit_tokens import POLL_S, RESOLVE_TIMEOUT_S
from isolang.run.outcome import (
    Autocommit,
    Driver,
    Failure,
    Outcome,
    Phase,
    RolledBack,
    roll_back_or_close,
    roll_back_or_close_async,
)


def commit(connection: Any) -> None:
    """Commit the open transaction, unless one of its statements has failed.

    Raises:
        RolledBack: a statement has failed, so the server would roll back without an error.
    """
    if connection.info.transaction_status.name == "INERROR":
        connection.rollback()
        raise RolledBack
    connection.commit()


def roll_back(connection: Any) -> None:
    """Roll back; if that fails, close the connection, which makes the server roll back.

    Raises:
        Autocommit: no transaction is open, and statements do not begin one.
    """
    if connection.autocommit and connection.info.transaction_status.name == "IDLE":
        raise Autocommit
    roll_back_or_close(connection)


def classify(error: BaseException, phase: Phase) -> Failure:
    """Return ``aborted`` or ``maybe``, depending on the SQLSTATE of the error.

    The server has certainly rolled back after a conflict (class 40, except 40003, after which the
    outcome is unknown), a violated constraint (class 23) or an invalid transaction state (class
    25).
    """
    state = getattr(error, "sqlstate", None) or ""
    if phase == "statement" or isinstance(error, RolledBack):
        return "aborted"
    return "aborted" if state[:2] in ("40", "23", "25") and state != "40003" else "maybe"


async def commit_async(connection: Any) -> None:
    """Commit the transaction of an asynchronous connection, as :func:`commit` does.

    Raises:
        RolledBack: a statement has failed, so the server would roll back without an error.
    """
    if connection.info.transaction_status.name == "INERROR":
        await connection.rollback()
        raise RolledBack
    await connection.commit()


async def roll_back_async(connection: Any) -> None:
    """Roll back the transaction of an asynchronous connection, as :func:`roll_back` does.

    Raises:
        Autocommit: no transaction is open, and statements do not begin one.
    """
    if connection.autocommit and connection.info.transaction_status.name == "IDLE":
        raise Autocommit
    await roll_back_or_close_async(connection)


DRIVER: Final = Driver(commit=commit, rollback=roll_back, classify=classify)
ASYNC_DRIVER: Final = Driver(commit=commit_async, rollback=roll_back_async, classify=classify)


def outcome_of(transaction: object, witness: Any) -> Outcome | None:
    """Return the outcome reported by the server for a transaction; ``None`` if it is unknown.

    SOUND BECAUSE: a server that has been restarted or has recovered from a crash may reuse the
    numbers of lost transactions. In that case, however, the witness connection would not have
    survived.
    """
    sql, until = "SELECT pg_xact_status(%s::text::xid8)", time.monotonic() + RESOLVE_TIMEOUT_S
    while time.monotonic() < until:
        try:
            (found,) = witness.execute(sql, (str(transaction),)).fetchone()
        except Exception:
            return None
        if found in ("committed", "aborted"):
            return "committed" if found == "committed" else "aborted"
        time.sleep(POLL_S)
    return None
