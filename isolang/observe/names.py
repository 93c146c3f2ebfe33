"""Says which session, call, request and labels the transactions of a connection have."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from isolang.observe.history.seen import Outcome, SeenTransaction
from isolang.observe.observation import Observation
from isolang.observe.sql.executed import ExecutedStatement
from isolang.observe.sql.units import program_of_statement, units_of_statement

_COMMENT: Final = re.compile(r"^\s*/\*\s*([\w./ :-]{1,80}?)\s*\*/")


class TransactionNames:
    """Begins the transactions of a connection with their names in the history.

    Attributes:
        label: the application's name, which labels the transactions; empty if it has none.
    """

    def __init__(self, observation: Observation, call: int) -> None:
        """Begin a session.

        Args:
            call: the number of the application's call that it belongs to; 0 if unknown.
        """
        self._observation, self._history = observation, observation.history
        self._call, self.label = call, ""
        self._process = self._history.process()
        self._processes: dict[int, int] = {}  # the session of each call of the application
        self._last_end = -1

    def set_label(self, name: bytes) -> None:
        """Label transactions with the application's name, unless that is the name of a tool."""
        self.label = "" if name in (b"psql", b"pgbench") else name.decode(errors="replace")

    def begin(self, done: ExecutedStatement, *, implicit: bool) -> SeenTransaction:
        """Return a new transaction that begins with a statement."""
        if done.ticket[0] < self._last_end:
            # SOUND BECAUSE: the statement was sent before the last transaction had ended, so the
            # two transactions overlap. Those of one session must not overlap, so a new one begins.
            self._begin_session()
        transaction = self._history.begin(self._process, done.ticket, implicit=implicit)
        comment = _COMMENT.match(done.statement.text)
        if self.label or comment:
            transaction.labels = tuple(n for n in (self.label, comment[1] if comment else "") if n)
        if self.label and self._observation.application_is_unit:
            transaction.name_unit("application_name", self.label)
        if self._call:
            transaction.client = self._call
            transaction.name_unit("call", f"call {self._call}")
            if name := self._observation.call_names.get(self._call):
                transaction.labels = (name,)
        return transaction

    def begin_unseen(self) -> SeenTransaction:
        """Return a new transaction whose begin was not recognised."""
        return self._history.begin(self._process, self._history.ticket())

    def end(self, transaction: SeenTransaction, outcome: Outcome) -> None:
        """Note that a transaction has ended."""
        self._last_end = transaction.end
        if outcome == "info":
            self._begin_session()

    def _begin_session(self) -> None:
        self._process = self._history.process()
        self._processes.clear()

    def name_call(self, transaction: SeenTransaction, done: ExecutedStatement) -> None:
        """Note the caller of a statement, and the application's call that its transaction is of.

        Each call has a session of its own, because calls that share a connection are not ordered by
        the application.
        """
        note = done.note
        transaction.caller = "" if note is None else note.caller
        if note is None or not note.client or transaction.client:
            return
        transaction.client = note.client
        transaction.name_unit("call", f"call {note.client}")
        if note.label and note.label not in transaction.labels:
            transaction.labels = (*transaction.labels, note.label)
        if note.client not in self._processes:
            self._processes[note.client] = self._history.process()
        transaction.process = self._processes[note.client]

    def name_statement(
        self, transaction: SeenTransaction, done: ExecutedStatement, session_locks: Collection[str]
    ) -> None:
        """Name a statement that is executed for the first time.

        A library's callers do not send the savepoints that it sets for them, so those do not count.
        """
        made = done.statement.plan
        is_noted = self._observation.notes is None or done.note is not None
        if made.kind in ("savepoint", "release", "back") and not is_noted:
            return
        locks = "" if done.statement.declares else made.lock
        transaction.execute(locks, session_locks)
        if done.position is not None:
            done.position.statement = transaction.statement


def name_by_comments(transaction: SeenTransaction, text: str) -> None:
    """Name the request and the program of a transaction as the comments of a statement do."""
    for source, name in units_of_statement(text).items():
        transaction.name_unit(source, name)
    label = _COMMENT.match(text) if transaction.sent <= 1 else None  # the first after BEGIN
    for name in (label[1] if label else "", program_of_statement(text)):
        if name and name not in transaction.labels:
            transaction.labels = (*transaction.labels, name)
