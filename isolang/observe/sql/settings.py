"""Tracks the settings that the values of a session's conditions depend on."""

from __future__ import annotations

from isolang.observe.sql.evaluated import SessionSettings
from isolang.observe.sql.executed import ExecutedStatement
from isolang.observe.sql.rewriting import Prepared, PreparedStatement
from isolang.observe.unseen import CALLED


class SettingsOfSession:
    """The settings of one session, which are asked for together with the catalogue.

    SOUND BECAUSE: the settings count as unknown after each statement that may change them, and
    again after the end of the transaction of such a statement, which may change them back.

    Attributes:
        settings: the settings now; ``None`` if they are unknown.
        now: the beginning of the open transaction, in UTC; empty if it is unknown.
    """

    def __init__(self) -> None:
        self.settings: SessionSettings | None = None
        self.now = ""
        self._may_return = False

    def store(self, settings: SessionSettings, now: str) -> None:
        """Store an answer of the server; ``now`` is empty outside a transaction."""
        self.settings, self.now = settings, now

    def forget(self) -> None:
        """Note that a statement may have changed the settings."""
        self.settings, self._may_return = None, True

    def return_to_earlier(self, *, ended: bool) -> None:
        """Note that something was rolled back, or that a transaction has ended."""
        if self._may_return:
            self.settings = None
        if ended:
            self._may_return, self.now = False, ""

    def note_statement(self, done: ExecutedStatement, epoch: int) -> None:
        """Note a completed statement, and give it the settings that its condition depends on.

        It gets none if definitions have changed since it was sent: ``epoch`` counts the changes.
        """
        plan = done.statement.plan
        changes = plan.kind in ("forget", "other") or "set_config" in plan.names
        if changes or CALLED in done.statement.unseen:
            self.forget()
        elif plan.kind == "back":
            self.return_to_earlier(ended=False)
        elif (
            self.settings is not None
            and done.prepared_with == self.settings
            and (done.epoch == epoch)
        ):
            done.settings, done.now = self.settings, self.now

    def asks(self, prepared: Prepared, *, in_transaction: bool) -> tuple[str, ...]:
        """Return the table whose description is asked for to learn the settings; empty if none."""
        for statement in prepared.statements:
            if not statement.plan.sources or not _needs_server(statement):
                continue
            condition = statement.condition if statement.join is None else statement.join.condition
            expression = condition.expression
            uses_now = expression is not None and expression.uses_now
            if self.settings is None or (uses_now and in_transaction and not self.now):
                return (statement.plan.sources[0].name,)
        return ()


def _needs_server(statement: PreparedStatement) -> bool:
    """Return whether the server may have to evaluate a statement's condition or its order."""
    condition = statement.condition if statement.join is None else statement.join.condition
    plan = statement.plan
    if condition.expression is None or not statement.reported:
        return False
    table = statement.reported[0].table
    if not table.has_images or any(key <= condition.equal.keys() for key in table.unique):
        return False
    return bool(condition.expression.columns or (plan.limit and plan.order[1]))
