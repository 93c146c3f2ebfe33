"""Python's ``sqlite3``."""

from __future__ import annotations

import sqlite3
from typing import Final

from isolang.run.outcome import Autocommit, Driver, Failure, Phase


def commit(connection: sqlite3.Connection) -> None:
    """Commit; a COMMIT that finds the file locked leaves the transaction open: end it."""
    try:
        connection.commit()
    except sqlite3.Error:
        connection.rollback()
        raise


def roll_back(connection: sqlite3.Connection) -> None:
    """Roll back the transaction that is open.

    Raises:
        Autocommit: none is, and none is opened by itself.
    """
    if not connection.in_transaction and connection.isolation_level is None:
        raise Autocommit
    connection.rollback()


def classify(error: BaseException, phase: Phase) -> Failure:
    """Say what an error means."""
    name = getattr(error, "sqlite_errorname", "")
    if phase == "statement" or name.startswith(("SQLITE_BUSY", "SQLITE_CONSTRAINT")):
        return "aborted"
    return "maybe"


DRIVER: Final = Driver(commit=commit, rollback=roll_back, classify=classify)
