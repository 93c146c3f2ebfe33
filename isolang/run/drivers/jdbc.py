"""Commits and rolls back on JDBC connections (JPype's DB-API), and classifies their errors."""

from __future__ import annotations

from typing import Any, Final

from isolang.run.outcome import Driver, Failure, Phase, roll_back

_ROLLED_BACK: Final = ("40001", "40XL1", "40P01", "23505")
"""SQLSTATEs for serialization failures, Derby's lock timeouts, deadlocks and duplicate keys."""


def commit(connection: Any) -> None:
    """Commit; if that fails, roll back, because the transaction may still be open."""
    try:
        connection.commit()
    except Exception:
        connection.rollback()
        raise


def classify(error: BaseException, phase: Phase) -> Failure:
    """Return ``aborted`` or ``maybe``, depending on the SQLSTATE of the error."""
    state = getattr(error.__cause__ or error, "getSQLState", str)()
    return "aborted" if phase == "statement" or str(state) in _ROLLED_BACK else "maybe"


DRIVER: Final = Driver(commit=commit, rollback=roll_back, classify=classify)
