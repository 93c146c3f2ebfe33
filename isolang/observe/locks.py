"""Follows the locks that a session takes besides those of rows."""

from __future__ import annotations

from collections import Counter

from isolang.history.statements import SHARED
from isolang.observe.history.seen import SeenTransaction
from isolang.observe.sql.executed import ExecutedStatement
from isolang.observe.sql.locks import lock_name


class SessionLocks:
    """The advisory locks that a session holds until it releases them.

    Attributes:
        current: the locks by name, each with how often the session has taken it.
    """

    def __init__(self) -> None:
        """Hold no locks."""
        self.current: Counter[str] = Counter()

    def note(self, done: ExecutedStatement, one: SeenTransaction | None) -> None:
        """Note the locks that a statement took for its transaction or its session, or released."""
        statement = done.statement
        if done.refused:
            return
        for call in statement.locks:
            if call.until == "now" and call.arguments == (0, 0):
                self.current.clear()
                continue
            name = lock_name(call, statement.part, done.parameters)
            if not name:
                continue
            name += SHARED * call.shared
            if call.until == "session":
                self.current[name] += 1
            elif call.until == "now":
                self.current[name] -= 1
                self.current = +self.current
            elif one is not None:
                one.locks.setdefault(name, len(one.savepoints))
