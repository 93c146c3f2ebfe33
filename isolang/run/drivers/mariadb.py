"""The driver of PyMySQL."""

from __future__ import annotations

from typing import Any, Final

from isolang.run.outcome import Autocommit, Driver, Failure, Phase, roll_back_or_close


def roll_back(connection: Any) -> None:
    """Roll back, or close if that fails; a lock wait timeout has ended only one statement.

    Raises:
        Autocommit: no transaction is open.
    """
    if connection.get_autocommit() and not connection.server_status & 1:
        raise Autocommit
    roll_back_or_close(connection)


def commit(connection: Any) -> None:
    """Commit."""
    connection.commit()


_ROLLED_BACK: Final = (1020, 1213)  # a row has changed since it was read; a deadlock


def classify(error: BaseException, phase: Phase) -> Failure:
    """Return what an error means, according to its number."""
    number = error.args[0] if error.args else None
    return "aborted" if phase == "statement" or number in _ROLLED_BACK else "maybe"


DRIVER: Final = Driver(commit=commit, rollback=roll_back, classify=classify)
