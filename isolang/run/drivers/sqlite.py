"""Commits and rolls back transactions on ``sqlite3`` connections, and classifies their errors."""

from __future__ import annotations

import sqlite3
from typing import Final

from isolang.run.outcome import Autocommit, Driver, Failure, Phase


def commit(connection: sqlite3.Connection) -> None:
    """Commit; if the file is locked, roll back, because COMMIT has left the transaction open."""
    try:
        connection.commit()
    except sqlite3.Error:
        connection.rollback()
        raise


def roll_back(connection: sqlite3.Connection) -> None:
    """Roll back the open transaction.

    Raises:
        Autocommit: no transaction is open, and statements do not begin one.
    """
    if not connection.in_transaction and connection.isolation_level is None:
        raise Autocommit
    connection.rollback()


def classify(error: BaseException, phase: Phase) -> Failure:
    """Return ``aborted`` or ``maybe``, depending on the error's name."""
    name = getattr(error, "sqlite_errorname", "")
    if phase == "statement" or name.startswith(("SQLITE_BUSY", "SQLITE_CONSTRAINT")):
        return "aborted"
    return "maybe"


DRIVER: Final = Driver(commit=commit, rollback=roll_back, classify=classify)
