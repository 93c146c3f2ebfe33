"""Tracks a session's transactions, and records the reads and writes of each statement."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from isolang.observe.cursors import Cursors
from isolang.observe.history.seen import Outcome, SeenTransaction
from isolang.observe.locks import SessionLocks
from isolang.observe.observation import Observation
from isolang.observe.sql.executed import ExecutedStatement, PortalPosition
from isolang.observe.sql.notes import CallNote
from isolang.observe.sql.plan import DEFINE, StatementKind
from isolang.observe.sql.rewriting import Prepared
from isolang.observe.sql.settings import SettingsOfSession
from isolang.observe.sql.units import program_of_statement, units_of_statement
from isolang.observe.unseen import (
    AUTOCOMMIT,
    BROKEN,
    CATALOGUE,
    CURSORS,
    DEFINITIONS,
    ERRORS,
    NO_ANSWER,
    NO_BEGIN,
    NO_END,
    TRUNCATED,
)
from isolang.observe.versions.operations import record_statement

_COMMENT: Final = re.compile(r"^\s*/\*\s*([\w./ :-]{1,80}?)\s*\*/")
_LEVEL: Final = re.compile(r"(serializable|repeatable read|read committed|read uncommitted)")
# After these, rows may lack the parents that their foreign keys name.
_IGNORES_KEYS: Final = re.compile(
    r"session_replication_role|disable\s+trigger|pg_constraint|pg_trigger", re.IGNORECASE
)
# After these, policies may hide rows from a session that saw all rows before.
_CHANGES_ROLE: Final = re.compile(
    r"\b(role|session_authorization|session\s+authorization|row_security)\b"
    r"|set_config\s*\(\s*[^'\s]",
    re.IGNORECASE,
)
_RETURNS_TO_SESSION: Final = re.compile(r"set\s+session\b", re.IGNORECASE)
_WRITES_NOTHING: Final = ("quiet", "begin", "select", "level", "forget")  # kinds of statements
# Kinds of statements.
_TAKE_SNAPSHOT: Final = ("select", "insert", "update", "delete", "merge", "compound")


class Session:
    """One connection of the application, and its current transaction.

    Attributes:
        transaction: the current transaction; ``None`` if no transaction is open.
        backend: the number of the server's process for this connection.
        conditions: the settings that the values of conditions depend on.
    """

    def __init__(self, observation: Observation, call: int = 0) -> None:
        """Begin a session.

        Args:
            call: the number of the application's call that it belongs to; 0 if unknown.
        """
        self.observation, self._call = observation, call
        self._history = observation.history
        self.rewriter = observation.dialect.rewriter(observation.database)
        self.transaction: SeenTransaction | None = None
        self.cursors = Cursors(observation)
        self._locks = SessionLocks()
        self.label = ""
        self.backend = 0
        self.conditions = SettingsOfSession()
        self._is_in_block = False
        self.default_level = "read committed"
        self._process = self._history.process()
        self._processes: dict[int, int] = {}  # the session of each call of the application
        self._last_end = -1
        self._epoch = observation.epoch

    def set_label(self, name: bytes) -> None:
        """Label transactions with the application's name, unless that is the name of a tool."""
        self.label = "" if name in (b"psql", b"pgbench") else name.decode(errors="replace")

    # --- texts ---

    @property
    def knows_definitions(self) -> bool:
        """Return whether no definition has changed since the last statement was prepared."""
        return self._epoch == self.observation.epoch

    def prepare(self, text: str, *, may_ask: bool) -> Prepared:
        """Return a statement's text in the form to send to the server."""
        if self._epoch != self.observation.epoch:
            self._epoch = self.observation.epoch
            self.rewriter.forget()
        made = self.rewriter.prepare(text, may_ask=may_ask)
        if may_ask and not made.asks:
            asks = self.conditions.asks(made, in_transaction=self._is_in_block)
            return Prepared(sent=text, asks=asks) if asks else made
        return made

    def store_descriptions(self, rows: Sequence[bytes], names: Sequence[str]) -> None:
        """Store the catalogue's descriptions of tables, one text per table."""
        for name in names:
            self.rewriter.tables.setdefault(name, None)
        for text in rows:
            told = self.observation.dialect.parse_settings(text)
            level, default, name, found, settings, now = told
            self.conditions.store(settings, now if self._is_in_block else "")
            self.default_level = default
            if self.transaction is not None:
                self.transaction.level = level
            self.rewriter.tables[name] = found and self.observation.tables.add(found)
            if found is not None and found.unguarded:
                self.observation.database.keys_hold = False

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
                for source, name in units_of_statement(done.statement.text).items():
                    one.name_unit(source, name)
                program = program_of_statement(done.statement.text)
                if program and program not in one.labels:
                    one.labels = (*one.labels, program)
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
        self.conditions.note_statement(done, self.observation.epoch)
        if kind in DEFINE:
            self._history.evaluated.refuse_new()
        is_quiet = kind == "quiet" and {*done.statement.unseen} <= {CATALOGUE}
        if one is not None and done.note is not None and (is_quiet or kind in ("level", "forget")):
            one.sent += 1
        defines = kind in ("forget", "ddl", "other") or "set_config" in made.names
        if defines and _IGNORES_KEYS.search(done.statement.text):
            self.observation.database.keys_hold = False
        if defines and _CHANGES_ROLE.search(done.statement.text):
            self.observation.database.roles_change = True
        if is_quiet:
            for what in done.statement.unseen:
                self._history.unseen.note(what, done.statement.text)
            return
        if kind == "level":
            if made.name and one is not None and not _RETURNS_TO_SESSION.match(done.statement.text):
                one.level = made.name
            elif made.name:
                self.default_level = made.name
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
                level = one.level if one is not None else self.default_level
                self._begin(begun, implicit=False).level = level
            return
        one = self._begin(done, implicit=True)
        self._name_call(one, done)
        if one.cut.pop(id(done.reported), None) is None:
            self._name_statement(one, done)
        one.unclear |= bool(done.statement.unseen) or kind in ("other", "truncate")
        if kind == "savepoint":
            one.savepoints.append((made.name, len(one.operations)))
        elif kind == "release":
            one.release(made.name)
        elif kind == "back":
            one.roll_back_to(made.name)
            self.cursors.forget_rolled_back(one)
            one.has_doubtful_times = True
        elif kind == "ddl":
            one.altered = True
            self._note_change()
            for what in (DEFINITIONS, *done.statement.unseen):
                self._history.unseen.note(what, done.statement.text)
            if done.statement.unseen:
                self._history.unseen.note_read(None)
        elif kind == "routine":
            self.observation.epoch += 1  # the names of functions have changed
            self._history.unseen.note(DEFINITIONS, done.statement.text)
        elif kind == "truncate":
            one.altered = True
            for name in made.tables:
                if (table := self.rewriter.tables.get(name)) is not None:
                    self.observation.tables.note_truncation(table)
            self._history.unseen.note(TRUNCATED, done.statement.text)
            self._note_change()
        else:
            if kind == "other":
                self.rewriter.forget()
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
        self._name_call(one, done)
        self._name_statement(one, done)
        if request is not None:
            self.cursors.serve(request, done)
        else:
            one.unclear |= bool(done.statement.unseen)
            self._note_snapshot(one, "select")
            self.conditions.note_statement(done, self.observation.epoch)
            self.cursors.declare(done, one)
        return True

    def _note_snapshot(self, one: SeenTransaction, kind: StatementKind) -> None:
        """Note that a statement may have taken the snapshot of its transaction."""
        if one.snapshot < 0 and one.keeps_snapshot and kind in _TAKE_SNAPSHOT:
            one.snapshot = self._history.ticket()[0]

    def bind(self) -> PortalPosition:
        """Return the position in the transaction of a statement that is bound now."""
        return PortalPosition() if self.transaction is None else self.transaction.bind()

    def _name_statement(self, one: SeenTransaction, done: ExecutedStatement) -> None:
        """Name a statement that is executed for the first time.

        A library's callers do not send the savepoints that it sets for them, so those do not count.
        """
        made = done.statement.plan
        is_noted = self.observation.notes is None or done.note is not None
        if made.kind in ("savepoint", "release", "back") and not is_noted:
            return
        locks = "" if done.statement.declares else made.lock
        one.execute(locks, self._locks.current)
        if done.position is not None:
            done.position.statement = one.statement

    def note_more_writes(self, done: ExecutedStatement) -> None:
        """Count rows of a write that the application requested after other statements."""
        if done.rows:
            self._history.unseen.note(CURSORS, done.statement.text)
            if self.transaction is not None:
                self.transaction.unclear = True

    def _forget(self, text: str) -> None:
        """Note a statement that may change the meaning of names, or the isolation level."""
        self.rewriter.forget()
        lower = text.lower()
        if lower.split()[:2] == ["discard", "all"]:
            self.cursors.close_all()
            self._locks.current.clear()
        level = _LEVEL.search(lower)
        if level and "default_transaction_isolation" in lower:
            self.default_level = level[1]
        elif level and "transaction_isolation" in lower and self.transaction is not None:
            self.transaction.level = level[1]

    def _note_change(self) -> None:
        """Note that definitions in the database may have changed."""
        self.observation.epoch += 1
        self.observation.database.key_changes += 1

    def _begin(self, done: ExecutedStatement, *, implicit: bool) -> SeenTransaction:
        """Return the current transaction; if there is none, begin one."""
        one = self.transaction
        if one is None:
            if done.ticket[0] < self._last_end:
                # SOUND BECAUSE: the statement was sent before the last transaction had ended, so
                # the two transactions overlap. The transactions of one session must not overlap, so
                # a new session begins.
                self._process = self._history.process()
                self._processes.clear()
            one = self._history.begin(self._process, done.ticket, implicit=implicit)
            one.level = self.default_level
            comment = _COMMENT.match(done.statement.text)
            if self.label or comment:
                one.labels = tuple(n for n in (self.label, comment[1] if comment else "") if n)
            if self.label and self.observation.application_is_unit:
                one.name_unit("application_name", self.label)
            if self._call:
                one.client = self._call
                one.name_unit("call", f"call {self._call}")
            self.transaction = one
        elif not implicit:
            one.implicit = False
        return one

    def _name_call(self, one: SeenTransaction, done: ExecutedStatement) -> None:
        """Note the caller of a statement, and the application's call that its transaction is of.

        Each call has a session of its own, because calls that share a connection are not ordered by
        the application.
        """
        note = done.note
        one.caller = "" if note is None else note.caller
        if note is None or not note.client or one.client:
            return
        one.client = note.client
        one.name_unit("call", f"call {note.client}")
        if note.label and note.label not in one.labels:
            one.labels = (*one.labels, note.label)
        if note.client not in self._processes:
            self._processes[note.client] = self._history.process()
        one.process = self._processes[note.client]

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
        self.conditions.return_to_earlier(ended=True)
        self._history.end(one, outcome, error or one.error)
        if one.altered:
            self._history.evaluated.refuse_new()
            self._note_change()
            self.observation.database.keys_changed = one.end
        self._last_end = one.end
        if outcome == "info":
            self._process = self._history.process()
            self._processes.clear()

    def note_ready(self, status: str) -> None:
        """Note that the server waits for statements, inside (T, E) or outside (I) a transaction."""
        one = self.transaction
        self._is_in_block = status == "T"
        if status == "I":
            self.conditions.return_to_earlier(ended=True)
        if one is None:
            if status != "I":
                self._history.unseen.note(NO_BEGIN)
                made = self._history.begin(self._process, self._history.ticket())
                made.level = self.default_level
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
        self.conditions.return_to_earlier(ended=False)
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
        self._name_call(one, done)
        if id(done.reported) not in one.cut:
            self._name_statement(one, done)
        one.cut[id(done.reported)] = done
        record_statement(self.observation, one, done, only_rows=True)
