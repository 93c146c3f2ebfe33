"""Prepares the texts of a session's statements, by the tables and settings that they use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from isolang.observe.observation import Observation
from isolang.observe.sql.executed import ExecutedStatement
from isolang.observe.sql.rewriting import Prepared
from isolang.observe.sql.settings import SettingsOfSession

_LEVEL: Final = re.compile(r"(serializable|repeatable read|read committed|read uncommitted)")


class SessionTexts:
    """The tables and settings of a session, and the statements prepared with them.

    Attributes:
        conditions: the settings that the values of conditions depend on.
        default_level: the level of transactions that name none.
        is_in_block: whether the server was inside a transaction when it last waited for statements.
    """

    def __init__(self, observation: Observation) -> None:
        self._observation, self._epoch = observation, observation.epoch
        self.rewriter = observation.dialect.rewriter(observation.database)
        self.conditions = SettingsOfSession()
        self.default_level, self.is_in_block = "read committed", False
        self._names_may_return = False

    @property
    def knows_definitions(self) -> bool:
        """Return whether no definition has changed since the last statement was prepared."""
        return self._epoch == self._observation.epoch

    def prepare(self, text: str, *, may_ask: bool) -> Prepared:
        """Return a statement's text in the form to send to the server."""
        if self._epoch != self._observation.epoch:
            self._epoch = self._observation.epoch
            self.rewriter.forget()
        made = self.rewriter.prepare(text, may_ask=may_ask)
        if may_ask and not made.asks:
            asks = self.conditions.asks(made, in_transaction=self.is_in_block)
            return Prepared(sent=text, asks=asks) if asks else made
        return made

    def store_descriptions(self, rows: Sequence[bytes], names: Sequence[str]) -> str:
        """Store the catalogue's descriptions of tables, one text per table.

        Return the level of the session's transaction; empty if the catalogue was not asked for it.
        """
        level = ""
        for name in names:
            self.rewriter.tables.setdefault(name, None)
        for text in rows:
            level, self.default_level, name, described, settings, now = (
                self._observation.dialect.parse_settings(text)
            )
            self.conditions.store(settings, now if self.is_in_block else "")
            self.rewriter.tables[name] = described and self._observation.tables.add(described)
            if described is not None and described.unguarded:
                self._observation.database.keys_hold = False
        return level

    def note_statement(self, done: ExecutedStatement, epoch: int) -> None:
        """Note what a completed statement changes for later ones; ``epoch`` counts definitions."""
        self.conditions.note_statement(done, epoch)
        plan = done.statement.plan
        if "set_config" in plan.names:
            self.rewriter.forget()
            self._names_may_return = True
        elif plan.kind == "back":
            self.return_to_earlier(ended=False)

    def return_to_earlier(self, *, ended: bool) -> None:
        """Note that something was rolled back, or that a transaction has ended.

        ``SET LOCAL search_path``, or one that is rolled back, gave names other meanings until then.
        """
        self.conditions.return_to_earlier(ended=ended)
        if self._names_may_return:
            self.rewriter.forget()
        if ended:
            self._names_may_return = False

    def forget(self, text: str) -> str:
        """Note a statement that may change the meaning of names, or the isolation level.

        Return the level that it gives to the current transaction; empty if it gives none.
        """
        self.rewriter.forget()
        self._names_may_return = True
        lower = text.lower()
        level = _LEVEL.search(lower)
        if level and "default_transaction_isolation" in lower:
            self.default_level = level[1]
        elif level and "transaction_isolation" in lower:
            return level[1]
        return ""
