"""Commits and rolls back transactions on PyMySQL connections, and classifies their errors."""

from __future__ import annotations

from typing import Any, Final

from isolang.run.outcome import Autocommit, Driver, Failure, Phase, roll_back_or_close


def roll_back(connection: Any) -> None:
    """Roll back, because a lock timeout undoes only one statement; on failure, disconnect.

    Raises:
        Autocommit: no transaction is open.
    """
    if connection.get_autocommit() and not connection.server_status & 1:
        raise Autocommit
    roll_back_or_close(connection)


def commit(connection: Any) -> None:
    """Commit the open transaction."""
    connection.commit()


_ROLLED_BACK: Final = (1020, 1213)  # error numbers: a row changed after it was read; a deadlock


def classify(error: BaseException, phase: Phase) -> Failure:
    """Return ``aborted`` or ``maybe``, depending on the error number."""
    number = error.args[0] if error.args else None
    return "aborted" if phase == "statement" or number in _ROLLED_BACK else "maybe"


DRIVER: Final = Driver(commit=commit, rollback=roll_back, classify=classify)
