"""Commits and rolls back transactions on DuckDB connections, and classifies their errors."""

from __future__ import annotations

from typing import Any, Final

from isolang.run.outcome import Driver, Failure, Phase


def commit(connection: Any) -> None:
    """Commit the open transaction."""
    connection.commit()


def roll_back(connection: Any) -> None:
    """Roll back; if no transaction is open, raise an error, because statements have committed."""
    connection.rollback()


def classify(error: BaseException, phase: Phase) -> Failure:
    """Return ``aborted`` if COMMIT was not sent or hit a conflict, and otherwise ``maybe``."""
    conflict = type(error).__name__ in ("TransactionException", "ConstraintException")
    if phase == "commit" and conflict and "no transaction is active" not in str(error):
        return "aborted"
    return "aborted" if phase == "statement" else "maybe"


DRIVER: Final = Driver(commit=commit, rollback=roll_back, classify=classify)
