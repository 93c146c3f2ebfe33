"""Tracks the settings that the values of a session's conditions depend on."""

from __future__ import annotations

from collections.abc import Iterator

from isolang.observe.sql.evaluated import ServerExpression, SessionSettings
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
            for name, expression in _expressions(statement):
                if self.settings is None or (
                    expression.uses_now and in_transaction and not self.now
                ):
                    return (name,)
        return ()


def _expressions(statement: PreparedStatement) -> Iterator[tuple[str, ServerExpression]]:
    """Yield the conditions that the server may have to evaluate, each with its table's name."""
    for member in statement.members:
        yield from _expressions(member)
    conditions = [(one.reported, one.condition, one.loose is not None) for one in statement.blocks]
    plan = statement.plan
    if plan.sources and statement.reported:
        condition = statement.condition if statement.join is None else statement.join.condition
        conditions.append((statement.reported[0], condition, False))
    for reported, condition, is_loose in conditions:
        expression, table = condition.expression, reported.table
        if expression is None or not table.has_images:
            continue
        by_key = any(key <= condition.equal.keys() for key in table.unique) and not is_loose
        if not by_key and (expression.columns or (plan.limit and plan.order[1])):
            yield reported.source.name, expression
