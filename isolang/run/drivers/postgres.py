"""psycopg 3."""

from __future__ import annotations

import time
from typing import Any, Final

from isolang.run.marks.commit_tokens import PATIENCE, POLL
from isolang.run.outcome import (
    Autocommit,
    Driver,
    Failure,
    Outcome,
    Phase,
    RolledBack,
    roll_back_or_close,
    roll_back_or_close_later,
)


def commit(connection: Any) -> None:
    """Commit.

    Raises:
        RolledBack: a statement had failed, so that the server would roll back, without an error.
    """
    if connection.info.transaction_status.name == "INERROR":
        connection.rollback()
        raise RolledBack
    connection.commit()


def roll_back(connection: Any) -> None:
    """Roll back, or close what cannot be rolled back: the server then does it.

    Raises:
        Autocommit: no transaction is open, and none is opened by itself.
    """
    if connection.autocommit and connection.info.transaction_status.name == "IDLE":
        raise Autocommit
    roll_back_or_close(connection)


def classify(error: BaseException, phase: Phase) -> Failure:
    """Say what an error means, by its SQLSTATE.

    The server has rolled back after conflicts (40, but 40003: the outcome is not known), violated
    constraints (23) and what no transaction state allows (25).
    """
    state = getattr(error, "sqlstate", None) or ""
    if phase == "statement" or isinstance(error, RolledBack):
        return "aborted"
    return "aborted" if state[:2] in ("40", "23", "25") and state != "40003" else "maybe"


async def commit_later(connection: Any) -> None:
    """The same as :func:`commit`, of an asynchronous connection.

    Raises:
        RolledBack: a statement had failed, so that the server would roll back, without an error.
    """
    if connection.info.transaction_status.name == "INERROR":
        await connection.rollback()
        raise RolledBack
    await connection.commit()


async def roll_back_later(connection: Any) -> None:
    """The same as :func:`roll_back`, of an asynchronous connection.

    Raises:
        Autocommit: no transaction is open, and none is opened by itself.
    """
    if connection.autocommit and connection.info.transaction_status.name == "IDLE":
        raise Autocommit
    await roll_back_or_close_later(connection)


DRIVER: Final = Driver(commit=commit, rollback=roll_back, classify=classify)
LATER: Final = Driver(commit=commit_later, rollback=roll_back_later, classify=classify)


def outcome_of(transaction: object, witness: Any) -> Outcome | None:
    """Ask the server what became of a transaction; ``None`` if that cannot be known.

    SOUND BECAUSE: a server that was restarted, or has recovered from a crash, uses the numbers of
    lost transactions again; but the witness would not have outlived that.

    Args:
        transaction: its number.
        witness: a connection in autocommit mode that was open before the transaction began.
    """
    sql, until = "SELECT pg_xact_status(%s::text::xid8)", time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            (found,) = witness.execute(sql, (str(transaction),)).fetchone()
        except Exception:
            return None
        if found in ("committed", "aborted"):
            return "committed" if found == "committed" else "aborted"
        time.sleep(POLL)
    return None
