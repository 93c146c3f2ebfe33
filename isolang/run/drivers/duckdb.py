"""The driver of DuckDB's package."""

from __future__ import annotations

from typing import Any, Final

from isolang.run.outcome import Driver, Failure, Phase


def commit(connection: Any) -> None:
    """Commit."""
    connection.commit()


def roll_back(connection: Any) -> None:
    """Roll back; raise an error without an open transaction, as statements have committed."""
    connection.rollback()


def classify(error: BaseException, phase: Phase) -> Failure:
    """Return what an error means; a conflict at COMMIT has rolled the transaction back."""
    conflict = type(error).__name__ in ("TransactionException", "ConstraintException")
    if phase == "commit" and conflict and "no transaction is active" not in str(error):
        return "aborted"
    return "aborted" if phase == "statement" else "maybe"


DRIVER: Final = Driver(commit=commit, rollback=roll_back, classify=classify)
