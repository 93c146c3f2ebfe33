"""Tracks a session's transactions, and records the reads and writes of each statement."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from isolang.observe.cursors import Cursors
from isolang.observe.definitions import note_change, note_definition, note_settings
from isolang.observe.history.seen import Outcome, SeenTransaction
from isolang.observe.locks import SessionLocks
from isolang.observe.names import TransactionNames, name_by_comments
from isolang.observe.observation import Observation
from isolang.observe.sql.executed import ExecutedStatement, PortalPosition
from isolang.observe.sql.notes import CallNote
from isolang.observe.sql.plan import StatementKind
from isolang.observe.texts import SessionTexts
from isolang.observe.unseen import (
    AUTOCOMMIT,
    BROKEN,
    CATALOGUE,
    CURSORS,
    ERRORS,
    NO_ANSWER,
    NO_BEGIN,
    NO_END,
)
from isolang.observe.versions.operations import record_statement

_RETURNS_TO_SESSION: Final = re.compile(r"set\s+session\b", re.IGNORECASE)
_WRITES_NOTHING: Final = ("quiet", "begin", "select", "level", "forget")  # kinds of statements
# Kinds of statements.
_TAKE_SNAPSHOT: Final = ("select", "insert", "update", "delete", "merge", "compound")


class Session:
    """One connection of the application, and its current transaction.

    Attributes:
        transaction: the current transaction; ``None`` if no transaction is open.
        names: what the transactions are called in the history.
        backend: the number of the server's process for this connection.
        texts: the prepared statements, and the tables and settings that they use.
    """

    def __init__(self, observation: Observation, call: int = 0) -> None:
        """Begin a session.

        Args:
            call: the number of the application's call that it belongs to; 0 if unknown.
        """
        self.observation = observation
        self.names = TransactionNames(observation, call)
        self._history = observation.history
        self.texts = SessionTexts(observation)
        self.transaction: SeenTransaction | None = None
        self.cursors = Cursors(observation)
        self._locks = SessionLocks()
        self.backend = 0

    # --- texts ---

    def store_descriptions(self, rows: Sequence[bytes], names: Sequence[str]) -> None:
        """Store the catalogue's descriptions of tables, one text per table."""
        level = self.texts.store_descriptions(rows, names)
        if level and self.transaction is not None:
            self.transaction.level = level

    def take_note(self, text: str | bytes) -> CallNote | None:
        """Return what the caller noted about a statement that was sent; ``None`` if nothing."""
        notes = self.observation.notes
        return None if notes is None else notes.take(self.backend, text)

    def begin_position(self) -> int | None:
        """Return the position of the current transaction's first event; ``None`` outside one."""
        return None if self.transaction is None else self.transaction.begin

    # --- answers ---

    def complete(self, done: ExecutedStatement, tag: str) -> None:
        """Record the operations of a statement executed by the server."""
        self._history.caller = "" if done.note is None else done.note.caller
        before = self.transaction
        try:
            self._complete(done, tag)
            if (one := self.transaction or before) is not None:
                name_by_comments(one, done.statement.text)
        except Exception as error:  # the application must not notice errors in the observer
            self._history.unseen.note(ERRORS, f"{error!r}: {done.statement.text}")
        self._history.caller = ""

    def _complete(self, done: ExecutedStatement, tag: str) -> None:
        if done.statement.locks:
            self._locks.note(done, self.transaction)
        if self._complete_cursor(done):
            return
        made, one = done.statement.plan, self.transaction
        kind = made.kind
        self.texts.note_statement(done, self.observation.epoch)
        is_quiet = kind == "quiet" and {*done.statement.unseen} <= {CATALOGUE}
        if one is not None and done.note is not None and (is_quiet or kind in ("level", "forget")):
            one.sent += 1
        note_settings(self.observation, done.statement)
        if is_quiet:
            for what in done.statement.unseen:
                self._history.unseen.note(what, done.statement.text)
            return
        if kind == "level":
            if made.name and one is not None and not _RETURNS_TO_SESSION.match(done.statement.text):
                one.level = made.name
            elif made.name:
                self.texts.default_level = made.name
            return
        if kind == "forget":
            self._forget(done.statement.text)
            if one is not None and "snapshot" in done.statement.text.lower():
                one.has_doubtful_times = True  # SET TRANSACTION SNAPSHOT
            return
        if kind == "begin":
            one = self._begin(done, implicit=False)
            one.level = made.name or one.level
            one.sent += done.note is not None  # the caller of a library does not send BEGIN
            return
        if kind in ("commit", "rollback"):
            if one is not None:
                one.commit_sent = done.ticket[0]
                self._finish("ok" if tag == "COMMIT" and not one.failed else "fail")
            if made.name == "chain":
                begun = ExecutedStatement(statement=done.statement, ticket=self._history.ticket())
                level = one.level if one is not None else self.texts.default_level
                self._begin(begun, implicit=False).level = level
            return
        one = self._begin(done, implicit=True)
        self.names.name_call(one, done)
        if one.cut.pop(id(done.reported), None) is None:
            self.names.name_statement(one, done, self._locks.current)
        one.unclear |= bool(done.statement.unseen) or kind in ("other", "truncate")
        if kind == "savepoint":
            one.savepoints.append((made.name, len(one.operations)))
        elif kind == "release":
            one.release(made.name)
        elif kind == "back":
            one.roll_back_to(made.name)
            self.cursors.forget_rolled_back(one)
            one.has_doubtful_times = True
            if one.altered:  # the names have their earlier meanings
                note_change(self.observation)
        elif kind in ("ddl", "routine", "truncate"):
            note_definition(self.observation, self.texts.rewriter, one, done.statement)
        else:
            if kind == "other":
                self.texts.rewriter.forget()
            record_statement(self.observation, one, done)
            self._note_snapshot(one, kind)
            if done.position is not None:
                one.bound = [bound for bound in one.bound if bound is not done.position]

    def _complete_cursor(self, done: ExecutedStatement) -> bool:
        """Note a statement that declares or uses a cursor; return whether all of it is known."""
        declares, request = done.statement.declares, done.statement.requests
        one = self.transaction
        if request is not None and self.cursors.is_unknown(request):
            return False
        if request is not None and request.what != "fetch":
            self.cursors.serve(request, done)
            if one is not None and done.note is not None:
                one.sent += 1
            return True
        if declares is None and request is None:
            return False
        one = self._begin(done, implicit=True)
        self.names.name_call(one, done)
        self.names.name_statement(one, done, self._locks.current)
        if request is not None:
            self.cursors.serve(request, done)
        else:
            one.unclear |= bool(done.statement.unseen)
            self._note_snapshot(one, "select")
            self.texts.note_statement(done, self.observation.epoch)
            self.cursors.declare(done, one)
        return True

    def _note_snapshot(self, one: SeenTransaction, kind: StatementKind) -> None:
        """Note that a statement may have taken the snapshot of its transaction."""
        if one.snapshot < 0 and one.keeps_snapshot and kind in _TAKE_SNAPSHOT:
            one.snapshot = self._history.ticket()[0]

    def bind(self) -> PortalPosition:
        """Return the position in the transaction of a statement that is bound now."""
        return PortalPosition() if self.transaction is None else self.transaction.bind()

    def note_more_writes(self, done: ExecutedStatement) -> None:
        """Count rows of a write that the application requested after other statements."""
        if done.rows:
            self._history.unseen.note(CURSORS, done.statement.text)
            if self.transaction is not None:
                self.transaction.unclear = True

    def _forget(self, text: str) -> None:
        """Note a statement that may change the meaning of names, or the isolation level."""
        level = self.texts.forget(text)
        if text.lower().split()[:2] == ["discard", "all"]:
            self.cursors.close_all()
            self._locks.current.clear()
        if level and self.transaction is not None:
            self.transaction.level = level

    def _begin(self, done: ExecutedStatement, *, implicit: bool) -> SeenTransaction:
        """Return the current transaction; if there is none, begin one."""
        one = self.transaction
        if one is None:
            one = self.names.begin(done, implicit=implicit)
            one.level = self.texts.default_level
            self.transaction = one
        elif not implicit:
            one.implicit = False
        return one

    def _finish(self, outcome: Outcome, error: str = "") -> None:
        one = self.transaction
        if one is None:
            return
        for done in one.cut.values():
            done.cut = True
            one.caller = "" if done.note is None else done.note.caller
            record_statement(self.observation, one, done)
        self.cursors.end(one, outcome)
        self.transaction = None
        self.texts.return_to_earlier(ended=True)
        self._history.end(one, outcome, error or one.error)
        if one.altered:
            self._history.evaluated.refuse_new()
            note_change(self.observation)
            self.observation.database.keys_changed = one.end
        self.names.end(one, outcome)

    def note_ready(self, status: str) -> None:
        """Note that the server waits for statements, inside (T, E) or outside (I) a transaction."""
        one = self.transaction
        self.texts.is_in_block = status == "T"
        if status == "I":
            self.texts.return_to_earlier(ended=True)
        if one is None:
            if status != "I":
                self._history.unseen.note(NO_BEGIN)
                made = self.names.begin_unseen()
                made.level = self.texts.default_level
                self.transaction = made
        elif status == "I":
            if one.implicit or one.failed:
                if one.implicit and one.operations and self.observation.notes is not None:
                    first = one.operations[0]
                    self._history.unseen.note(AUTOCOMMIT, first.shown, first.caller)
                self._finish("fail" if one.failed else "ok")
            else:
                self._history.unseen.note(NO_END)
                self._finish("info")
        elif status == "T":
            one.implicit = False

    def note_error(
        self, done: ExecutedStatement | None, state: str, message: str, *, fatal: bool
    ) -> None:
        """Note an error reported by the server."""
        self.texts.return_to_earlier(ended=False)
        if done is not None and done.statement.requests is not None:
            self.cursors.skip(done.statement.requests.name)
        if self.transaction is None:
            if done is None or done.statement.plan.kind in ("quiet", "begin", "level"):
                return
            self._begin(done, implicit=True)
        one = self.transaction
        if one is None:
            return
        one.failed = True
        one.error = f"{state} {message}".strip()
        if done is not None and done.statement.plan.kind == "commit":
            self._finish("info" if fatal else "fail")

    def lost(self, waiting: Sequence[ExecutedStatement]) -> None:
        """Note that the connection ended before the ``waiting`` statements were answered."""
        self.cursors.close_all()
        one = self.transaction
        if one is not None:
            one.unclear |= any(w.statement.plan.kind not in _WRITES_NOTHING for w in waiting)
            commits = any(w.statement.plan.kind == "commit" for w in waiting) or one.implicit
            sent = [w.ticket[0] for w in waiting if w.statement.plan.kind == "commit"]
            one.commit_sent = min(sent, default=-1)
            self._finish("info" if commits and not one.failed else "fail", "connection lost")
            if one.outcome == "fail":
                return
        for done in waiting:
            if done.statement.plan.kind not in (*_WRITES_NOTHING, "commit", "rollback"):
                self._history.unseen.note(NO_ANSWER, done.statement.text)
                break

    def unclear(self, kind: str) -> None:
        """Note a reason why the connection may have made unseen writes."""
        self._history.unclear = True
        self._history.unseen.note(kind)

    def note_broken(self) -> None:
        """Note that further messages on the connection cannot be understood."""
        self.unclear(BROKEN)
        self._finish("info", "a message on the connection violated the protocol")

    def note_partial_result(self, done: ExecutedStatement) -> None:
        """Note that the application has received some of a SELECT's rows.

        If the application does not request the remaining rows before the transaction ends, the
        remaining rows are treated as left out by a LIMIT.
        """
        one = self._begin(done, implicit=True)
        self.names.name_call(one, done)
        if id(done.reported) not in one.cut:
            self.names.name_statement(one, done, self._locks.current)
        one.cut[id(done.reported)] = done
        record_statement(self.observation, one, done, only_rows=True)
