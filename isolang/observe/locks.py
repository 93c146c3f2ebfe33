"""Follows the locks that a session takes besides those of rows."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from isolang.history.statements import SHARED, without_locks
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
            name = lock_name(call, statement.part, done.parameters)
            full_name = name + SHARED * call.shared
            if call.until == "now":
                self._release(full_name if name else "", one)
            elif not name:
                continue
            elif call.until == "session":
                self.current[full_name] += 1
            elif one is not None:
                one.locks.setdefault(full_name, len(one.savepoints))

    def _release(self, name: str, one: SeenTransaction | None) -> None:
        """Note the release of a lock; of all locks if its name is empty, which may be unknown."""
        before = {*self.current}
        if name:
            self.current[name] -= 1
            self.current = +self.current
        else:
            self.current.clear()
        if one is not None and (released := before - {*self.current, *one.locks}):
            one.operations[:] = [
                replace(operation, statement=without_locks(operation.statement, released))
                for operation in one.operations
            ]
