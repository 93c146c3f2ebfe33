"""Follows the transactions of a connection by the server's answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from isolang.observe.log.tables import Name
from isolang.observe.mariadb.packets import AUTOCOMMITS, IN_TRANSACTION, MORE_RESULTS
from isolang.observe.mariadb.recording import (
    FollowedTransaction,
    Outcome,
    RecordedStatement,
    Recording,
    StatementAnswer,
)
from isolang.observe.mariadb.statements import Statement
from isolang.observe.sql.notes import CallNote
from isolang.observe.unseen import (
    AUTOCOMMIT,
    DEFINITIONS,
    NO_ANSWER,
    NO_END,
    NO_ROW,
    SHAPES,
    TEMPORARY,
)

ROLLED_BACK: Final = frozenset({1213, 1020, 1614})  # deadlock; a newer version than the snapshot
_TIMEOUT: Final = 1205
_UNKNOWN_TABLE: Final = 1051  # DROP has dropped the others
_READERS: Final = frozenset({"select", "insert", "update", "delete", "call", "other"})
_DUPLICATE: Final = frozenset({1062, 1586})
_ISOLATION: Final = re.compile(
    r"(global\s+|@@(?:(?:global|session|local)\s*\.\s*)?|(?<![\w$@]))(?:tx|transaction)_isolation"
    r"\s*:?=\s*['\"]?([a-z]+[- ]?[a-z]*)",
    re.IGNORECASE,
)
_MATCHED: Final = re.compile(rb"Rows matched: (\d+)  Changed: (\d+)")
_LISTED: Final = re.compile(rb"Records: (\d+)  Duplicates: (\d+)")


class FollowedSession:
    """The transactions of a connection.

    Attributes:
        connection: the number that the comments of its statements name.
        temporaries: the names of the temporary tables that it has created.
        in_transaction: whether the server has a transaction open.
        note: what the caller noted about the statement that is being sent.
    """

    note: CallNote | None = None

    def __init__(self, recording: Recording) -> None:
        """Begin a session."""
        self._recording = recording
        self._process = recording.process()
        self.connection = recording.first_connection + self._process
        self.temporaries: set[Name] = set()
        self.in_transaction = False
        self.level, self._next_level = recording.level, ""
        self._transaction: FollowedTransaction | None = None
        self._is_committing = self._may_read = False
        self._autocommits = True
        self._numbered = 0
        self._since = -1  # the position at which the text was sent that waits for answers

    def next_number(self) -> int:
        """Return the number of a statement for the comment in front of it."""
        self._numbered += 1
        return self._numbered

    def reset(self) -> None:
        """Note that the connection begins anew, as after it was opened."""
        self.lose()
        self.temporaries.clear()
        self.level, self._next_level = self._recording.level, ""

    def lose(self) -> None:
        """Note that the connection has ended, or that the server rolled back what was open."""
        if self._transaction is not None:
            if self._is_committing and self._may_read:
                self._recording.unseen.note(NO_ANSWER, self._transaction.first_text)
            self._finish("info" if self._is_committing else "fail")
        self.in_transaction, self._since = False, -1

    @property
    def keeps_view(self) -> bool:
        """Return whether a further SELECT of the transaction would read the same rows."""
        level = self.level if self._transaction is None else self._transaction.level
        return level in ("repeatable read", "serializable")

    def begin(self, statement: Statement) -> None:
        """Note that a statement is about to be sent."""
        # The log says whether a COMMIT without an answer took place, but not what others found.
        self._may_read = statement.plan.kind in _READERS
        self._is_committing = statement.plan.kind == "commit" or (
            self._autocommits and not self.in_transaction
        )
        position, time = self._recording.ticket()
        if self._transaction is None:
            self._transaction = FollowedTransaction(
                process=self._process, connection=self.connection, begin=position, began=time,
                level=self._next_level or self.level,
            )  # fmt: skip
            self._recording.open[self.connection] = self._transaction
        if self._since < 0:
            self._since = position
        self._transaction.waits_since = self._since
        self._transaction.sent += 1
        self._transaction.last_sent = position
        for source, name in statement.units.items():
            if self._transaction.units.setdefault(source, name) != name:
                self._transaction.units[source] = ""
        if self.note is not None:
            self._name_call(self._transaction, self.note)
        if statement.program and statement.program not in self._transaction.labels:
            self._transaction.labels.append(statement.program)
        if statement.mark and not statement.is_binary:
            self._transaction.numbers.add(int(statement.mark.partition(".")[2]))

    def _name_call(self, transaction: FollowedTransaction, note: CallNote) -> None:
        """Note the application's call that a transaction belongs to."""
        if not note.client or transaction.client:
            return
        transaction.client = note.client
        transaction.units.setdefault("call", f"call {note.client}")
        transaction.process = self._recording.process_of_call(note.client)
        if note.label and note.label not in transaction.labels:
            transaction.labels.append(note.label)

    def name_write(self, table: str, key: Mapping[str, Any], where: str) -> None:
        """Name the line that caused the write of a row by the open transaction."""
        if self._transaction is not None:
            row = frozenset((name, str(value)) for name, value in key.items())
            self._transaction.callers[table, row] = where

    def _finish(self, outcome: Outcome, gtid: str = "") -> None:
        """End the transaction."""
        transaction = self._transaction
        assert transaction is not None
        self._forget()
        if transaction.is_explicit or transaction.events:
            self._next_level = ""
        if not (transaction.events or gtid):
            return
        recording = self._recording
        if not transaction.is_explicit and not self.in_transaction and outcome == "ok":
            recording.unseen.note(AUTOCOMMIT, transaction.first_text)
        if transaction.is_unclear:
            recording.unseen.note(NO_END, transaction.first_text)
        transaction.outcome, transaction.gtid = outcome, gtid
        transaction.end, transaction.ended = recording.ticket()
        recording.transactions.append(transaction)
        recording.outcomes[outcome] += 1
        if outcome == "info":
            self._process = recording.process()

    def _forget(self) -> None:
        """Note that no transaction is open."""
        self._transaction = None
        self._recording.open.pop(self.connection, None)

    def answered(self, statement: Statement, answer: StatementAnswer) -> RecordedStatement | None:
        """Note the answer to a statement; return its event, if it is recorded."""
        event = self._follow(statement, answer)
        if self._transaction is not None:
            self._transaction.waits_since = -1
        if not answer.status & MORE_RESULTS:
            self._since = -1
        return event

    def _follow(self, statement: Statement, answer: StatementAnswer) -> RecordedStatement | None:
        self._is_committing = False
        if answer.code:
            self._failed(statement, answer.code)
            return None
        was, now = self.in_transaction, bool(answer.status & IN_TRANSACTION)
        self._autocommits = bool(answer.status & AUTOCOMMITS)
        assert self._transaction is not None
        event = None
        kind = statement.plan.kind
        self._transaction.is_unclear |= statement.ends_unclear
        if was and statement.plan.restarts:  # the server has committed the transaction before
            self._finish("ok", answer.gtid)
            self.begin(statement)
        if kind == "begin":
            self._transaction.is_explicit = True
        elif kind in ("commit", "rollback"):
            self._transaction.is_explicit = True
            if kind == "commit":
                self._finish("ok", answer.gtid)
            else:
                self._finish("fail")
        elif kind == "definition":
            self._define(statement, answer.gtid)
        elif kind in ("savepoint", "release", "back"):
            _note_savepoint(self._transaction, kind, statement.plan.name)
        elif kind == "level":
            self._set_level(statement.plan.name, was=was)
        elif kind == "set":
            self._set_isolation(statement)
        elif kind == "quiet" and statement.plan.unseen:
            self._recording.unseen.note(statement.plan.unseen, statement.text)
        if kind in _READERS:
            event = self._record(statement, answer)
        self.in_transaction = now
        if self._transaction is not None and not now:
            # The name that comes with a definition, or OPTIMIZE, is its own in the log. Then only
            # comments name the transaction, which those of prepared statements do not do.
            is_unnamed = kind in ("definition", "quiet")
            self._transaction.is_unclear |= is_unnamed and any(
                event.statement.is_binary and event.changed for event in self._transaction.events
            )
            self._finish("ok", "" if is_unnamed else answer.gtid)
        elif self._transaction is None and now:
            self.begin(statement)
        return event

    def _define(self, statement: Statement, gtid: str) -> None:
        """Note that a definition was changed."""
        if statement.plan.name:
            self.temporaries.update(statement.temporary)
            self._recording.unseen.note(statement.unseen or TEMPORARY, statement.text)
            return
        if statement.plan.renames and not self.temporaries.isdisjoint(statement.temporary):
            # It may have another name now.
            self._recording.unseen.note(SHAPES, statement.text)
        self._drop_temporaries(statement)
        assert self._transaction is not None
        answered, _ = self._recording.ticket()
        self._recording.definitions[gtid] = self._transaction.last_sent, answered
        self._recording.unseen.note(statement.unseen or DEFINITIONS, statement.text)

    def _drop_temporaries(self, statement: Statement) -> None:
        if not statement.plan.renames:
            self.temporaries.difference_update(statement.temporary)

    def _failed(self, statement: Statement, code: int) -> None:
        """Note an error; its packet does not say whether the transaction goes on."""
        transaction, recording = self._transaction, self._recording
        assert transaction is not None
        if code == _UNKNOWN_TABLE and not statement.plan.name:
            self._drop_temporaries(statement)
        if statement.plan.kind == "call":  # what it did before the error may have happened
            recording.unseen.note(statement.unseen, statement.text)
        times_out = code == _TIMEOUT and recording.rolls_back_on_timeout
        if statement.plan.kind == "commit":
            self._finish("info")
            self.in_transaction = False
        elif code in ROLLED_BACK or times_out or not self.in_transaction:
            recording.refused += code in ROLLED_BACK or code == _TIMEOUT
            self._finish("fail")
            self.in_transaction = False
        else:
            # The server commits before it runs a definition, and so may a procedure before it
            # fails. CREATE TEMPORARY TABLE, the only definition with a name, commits nothing.
            commits = statement.plan.kind == "definition" and not statement.plan.name
            transaction.is_unclear |= commits or statement.ends_unclear
            if statement.mark and not statement.is_binary:
                transaction.numbers.discard(int(statement.mark.partition(".")[2]))
            if code in _DUPLICATE:
                recording.unseen.note(NO_ROW, statement.text)

    def _set_level(self, name: str, *, was: bool) -> None:
        scope, _, level = name.partition(":")
        if not level or scope == "global":
            return
        if scope == "next":
            self._next_level = level
        else:
            self.level = level
        if not was:  # the level is that of the next transaction
            self._forget()

    def _set_isolation(self, statement: Statement) -> None:
        """Note the level that a SET of a variable gives to the session or its next transaction."""
        if "innodb_snapshot_isolation" in statement.text.lower():
            self._recording.keeps_snapshots = False
        for scope, named in _ISOLATION.findall(statement.text):
            words = named.lower().replace("-", " ").strip()
            level = self._recording.level if words == "default" else words
            if scope == "@@":
                self._next_level = level
            elif "global" not in scope.lower():
                self.level = level

    def _record(self, statement: Statement, answer: StatementAnswer) -> RecordedStatement | None:
        transaction, plan = self._transaction, statement.plan
        assert transaction is not None
        if plan.kind == "select" and not (plan.sources or statement.unseen or statement.blocks):
            return None
        position, _ = self._recording.ticket()
        event = RecordedStatement(
            statement=statement, number=transaction.sent, sent=transaction.last_sent,
            answered=position,
        )  # fmt: skip
        if plan.kind == "select":
            event.rows, event.count = answer.rows, answer.count
            event.is_open = answer.has_cursor
            event.lists = answer.lists
            if statement.blocks is not None and statement.blocks.is_in_answer:
                take_lists(event)
        elif match := _MATCHED.match(answer.info):
            event.matched, event.changed = int(match[1]), int(match[2])
        elif plan.kind == "delete":
            event.matched = event.changed = answer.affected or answer.count
        else:
            event.changed = answer.affected or answer.count
            if match := _LISTED.match(answer.info):
                event.listed = int(match[1])
        event.caller = "" if self.note is None else self.note.caller
        transaction.events.append(event)
        return event


def take_lists(event: RecordedStatement) -> None:
    """Take the rows of query blocks out of the first row that has them, and forget the others."""
    size = len(event.statement.tables)
    for row in event.rows:
        event.lists = event.lists if event.lists is not None else row[size]
    event.rows = [row[:size] for row in event.rows]


def _note_savepoint(transaction: FollowedTransaction, kind: str, name: str) -> None:
    """Note that a savepoint was set, released or rolled back to."""
    names = [known for known, _ in transaction.savepoints]
    if kind == "savepoint":
        transaction.savepoints = [known for known in transaction.savepoints if known[0] != name]
        transaction.savepoints.append((name, len(transaction.events)))
    elif name in names:
        at = names.index(name)
        if kind == "release":
            del transaction.savepoints[at:]
        else:
            del transaction.events[transaction.savepoints[at][1] :]
            del transaction.savepoints[at + 1 :]
