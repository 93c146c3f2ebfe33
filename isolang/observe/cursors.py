"""Follows a session's cursors in SQL, and records what their queries read.

The rows of a cursor's query come with the answers of FETCH, at any later time. They belong to the
transaction that declared the cursor, at the place of DECLARE, which took the snapshot.

SOUND BECAUSE: a cursor is insensitive. A query that locks rows reads them with FETCH; it is
recorded as a portal that is executed later (:func:`isolang.observe.versions.operations.\
record_statement`).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from isolang.observe.history.seen import Outcome, SeenTransaction
from isolang.observe.observation import Observation
from isolang.observe.sql.cursors import CursorRequest
from isolang.observe.sql.executed import ExecutedStatement
from isolang.observe.sql.rewriting import PreparedStatement, ReportedTable
from isolang.observe.versions.operations import record_statement

_MOST_WAITING = 1000  # the largest number of cursors that wait for rows after their transactions


class OpenCursor(Struct, gc=False):
    """An open cursor of a session.

    Attributes:
        done: the execution of its query, with the rows fetched so far.
        transaction: the transaction that declared it.
        holds: whether it outlives this transaction (WITH HOLD).
        skips: whether it was moved otherwise than by fetching the next rows, so that the rows
            fetched are not all rows up to the last one.
        recorded: whether the reads of its query have been recorded.
        outlived: whether its transaction has ended.
    """

    done: ExecutedStatement
    transaction: SeenTransaction
    holds: bool
    skips: bool = False
    recorded: bool = False
    outlived: bool = False


class Cursors:
    """The open cursors of a session, by name."""

    def __init__(self, observation: Observation) -> None:
        self._observation = observation
        self._open: dict[str, OpenCursor] = {}

    def named(self, name: str) -> OpenCursor | None:
        """Return an open cursor; ``None`` if it was not seen to be declared."""
        return self._open.get(name)

    def columns(self, statement: PreparedStatement) -> Sequence[ReportedTable | None]:
        """Return the columns that are added to a statement's rows: for FETCH, the cursor's."""
        request = statement.requests
        cursor = None if request is None else self._open.get(request.name)
        return (statement if cursor is None else cursor.done.statement).columns

    def declare(self, done: ExecutedStatement, one: SeenTransaction) -> None:
        """Note that a transaction has declared a cursor."""
        declared = done.statement.declares
        assert declared is not None
        done.position = one.bind()
        done.position.statement = one.statement
        if not done.statement.plan.locks:
            done.answered = self._observation.history.ticket()[0]
        self._open[declared.name] = OpenCursor(done, one, declared.holds)

    def is_unknown(self, request: CursorRequest) -> bool:
        """Return whether a statement uses a cursor that was not seen to be declared."""
        return request.what != "close" and request.name not in self._open

    def serve(self, request: CursorRequest, done: ExecutedStatement) -> None:
        """Note that a statement used known cursors."""
        if request.what == "close":
            for name in [request.name] if request.name else [*self._open]:
                self.close(name)
            return
        cursor = self._open[request.name]
        if cursor.done.statement.plan.locks and not cursor.recorded:
            # A row is locked, and read, when it is fetched.
            record_statement(self._observation, cursor.transaction, cursor.done, only_rows=True)
        if not request.forward:
            cursor.skips = True
            return
        is_single = cursor.done.statement.plan.single and cursor.done.rows > 0
        if done.rows < request.forward or is_single:
            self._record(cursor)

    def skip(self, name: str) -> None:
        """Note that an unknown number of a cursor's rows was skipped."""
        if (cursor := self._open.get(name)) is not None:
            cursor.skips = True

    def forget_rolled_back(self, one: SeenTransaction) -> None:
        """Forget the cursors that a transaction declared after the savepoint it returned to."""
        kept = {id(position) for position in one.bound}
        for name, cursor in [*self._open.items()]:
            is_open = cursor.transaction is one and not (cursor.recorded or cursor.outlived)
            if is_open and id(cursor.done.position) not in kept:
                del self._open[name]

    def end(self, one: SeenTransaction, outcome: Outcome) -> None:
        """Note that a transaction ends: its cursors close, unless they hold."""
        for name, cursor in [*self._open.items()]:
            if cursor.transaction is not one or cursor.outlived:
                continue
            if not cursor.holds or outcome == "fail":
                self.close(name)
                continue
            if outcome != "ok":
                self._record(cursor, cut=True)
            cursor.outlived = True
            one.open_cursors += not cursor.recorded
        waiting = [
            cursor for cursor in self._open.values() if cursor.outlived and not cursor.recorded
        ]
        for cursor in waiting[:-_MOST_WAITING]:
            self._record(cursor, cut=True)

    def close_all(self) -> None:
        """Note that the server closes all cursors."""
        for name in [*self._open]:
            self.close(name)

    def close(self, name: str) -> None:
        """Note that a cursor is closed."""
        cursor = self._open.pop(name, None)
        if cursor is not None:
            self._record(cursor, cut=True)

    def _record(self, cursor: OpenCursor, *, cut: bool = False) -> None:
        """Record the reads of a cursor's query; all its rows were fetched, unless it is cut."""
        one, done = cursor.transaction, cursor.done
        if cursor.recorded:
            return
        cursor.recorded = True
        if one.open_cursors < 0:  # the history has not waited for the rows, and has counted that
            return
        history = self._observation.history
        caller, history.caller = history.caller, "" if done.note is None else done.note.caller
        done.cut = cut
        if done.epoch != self._observation.epoch:  # its condition may have another meaning now
            done.settings = None
        if done.statement.plan.kind == "quiet":
            for what in done.statement.unseen:
                history.unseen.note(what, done.statement.text)
        else:
            record_statement(self._observation, one, done, skips=cursor.skips)
        one.bound = [position for position in one.bound if position is not done.position]
        history.caller = caller
        if cursor.outlived:
            one.open_cursors -= 1
            history.note_reads(one)
