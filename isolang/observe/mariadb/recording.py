"""Represents what the applications' connections did, until the log tells what they wrote."""

from __future__ import annotations

from collections import Counter
from copy import copy
from itertools import count
from random import SystemRandom
from time import monotonic_ns
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from isolang.observe.mariadb.statements import Preparation, Statement
from isolang.observe.sql.notes import CallNotes
from isolang.observe.unseen import Unseen

_MOST_CONNECTIONS: Final = 1 << 24
Outcome: TypeAlias = Literal["ok", "fail", "info"]


class StatementAnswer(Struct, kw_only=True):
    """The server's answer to a statement.

    Attributes:
        code: the number of the error; 0 if the statement succeeded.
        status: the flags of the session's status; an error has none.
        affected: the number of rows that it changed.
        info: what the server says about its rows.
        gtid: the name of the transaction that it ended, in the log; empty if unknown.
        rows: the values of the added columns, for each row.
        count: the number of its rows.
        is_refused: whether the server did not accept the added columns.
        has_cursor: whether the rows are still to be fetched.
        lists: the rows of query blocks, if another statement returned them.
    """

    code: int = 0
    status: int = 0
    affected: int = 0
    info: bytes = b""
    gtid: str = ""
    rows: list[list[bytes | None]] = field(default_factory=list)
    count: int = 0
    is_refused: bool = False
    has_cursor: bool = False
    lists: bytes | None = None


class RecordedStatement(Struct, kw_only=True):
    """A statement that the server executed.

    Attributes:
        number: its position among the statements of its transaction, from 1.
        rows: the values of the added columns, for each row of its answer.
        count: the number of rows that the application got.
        matched: the number of rows that an UPDATE found; -1 if unknown.
        changed: the number of rows that it changed.
        listed: the number of rows that an INSERT names.
        is_open: whether the application has not fetched all rows.
        sent: the position at which it was sent among the events of all connections.
        answered: the position of its answer.
        lists: the rows of query blocks; ``None`` if they are not known.
        caller: the ``file:line`` that sent it; empty if unknown.
    """

    statement: Statement
    number: int = 0
    rows: list[list[bytes | None]] = field(default_factory=list)
    count: int = 0
    matched: int = -1
    changed: int = 0
    listed: int = 1
    is_open: bool = False
    sent: int = 0
    answered: int = 0
    lists: bytes | None = None
    caller: str = ""

    @property
    def shown(self) -> str:
        """Return what names it in a report: its caller, or else its text."""
        return self.caller or self.statement.text


class FollowedTransaction(Struct, kw_only=True, eq=False):
    """A transaction of a connection.

    Attributes:
        connection: the number of its connection.
        begin: the position of its first event among the events of all connections.
        began: the time of this event.
        level: its isolation level, in words.
        savepoints: the savepoints that are set, each with the number of events before it.
        gtid: its name in the log; empty if unknown.
        last_sent: the position at which its last statement was sent, which ended it.
        numbers: the numbers of the statements that have a comment of their own.
        is_explicit: whether the application began or ended it by a statement.
        is_unclear: whether it may have been several transactions.
        waits_since: the position at which the statement was sent that the server has not answered,
            or the statements before it in the same text; -1 if there is none.
        units: the names of the unit that it belongs to, by what names it; empty if two statements
            disagree.
        labels: the names of the programs that its statements belong to.
        client: the number of the application's call that it belongs to; 0 if there is none.
        callers: the ``file:line`` that caused the write of a row, by the row's table and key.
    """

    process: int
    connection: int
    begin: int
    began: int
    level: str
    events: list[RecordedStatement] = field(default_factory=list)
    savepoints: list[tuple[str, int]] = field(default_factory=list)
    sent: int = 0
    last_sent: int = 0
    outcome: Outcome = "info"
    end: int = 0
    ended: int = 0
    gtid: str = ""
    numbers: set[int] = field(default_factory=set)
    is_explicit: bool = False
    is_unclear: bool = False
    waits_since: int = -1
    units: dict[str, str] = field(default_factory=dict)
    labels: list[str] = field(default_factory=list)
    client: int = 0
    callers: dict[tuple[str, frozenset[tuple[str, str]]], str] = field(default_factory=dict)

    @property
    def first_text(self) -> str:
        """Return the text of its first statement; empty if it has none."""
        return self.events[0].statement.text if self.events else ""


class Recording:
    """The transactions of all connections.

    Attributes:
        open: the transactions that have not ended, by the numbers of their connections.
        transactions: those that have ended, until the merge takes them.
        kept: all that have ended, for a second merge; ``None`` if there will be none.
        level: the isolation level of new connections.
        first_connection: the number from which connections are counted in comments.
        rolls_back_on_timeout: whether a lock timeout rolls back the whole transaction.
        keeps_snapshots: whether REPEATABLE READ is snapshot isolation in all sessions.
        definitions: the positions at which a statement that changed definitions was sent and
            answered, by its name in the log.
        refused: how many transactions the server rolled back because of another one.
        notes: what callers in this process note about their statements; ``None`` if applications
            are other processes.
        caller: the ``file:line`` of the statement that is being joined with the log.
    """

    def __init__(
        self, preparation: Preparation, level: str, notes: CallNotes | None = None
    ) -> None:
        """Create an empty recording."""
        self.preparation, self.level, self.notes = preparation, level, notes
        self.refused = 0
        self._processes_of_calls: dict[int, int] = {}
        self.rolls_back_on_timeout = self.keeps_snapshots = False
        self.definitions: dict[str, tuple[int, int]] = {}
        self.open: dict[int, FollowedTransaction] = {}
        self.transactions: list[FollowedTransaction] = []
        self.kept: list[FollowedTransaction] | None = None
        self.outcomes: Counter[str] = Counter()
        self.caller = ""
        self.unseen = Unseen(lambda: self.caller)
        self._positions, self._processes = count(), count(1)
        # The log has the comments of all proxies in front of a server: none may have our numbers.
        self.first_connection = SystemRandom().randrange(1 << 40)
        self._began = monotonic_ns()

    def ticket(self) -> tuple[int, int]:
        """Return the position and the time of an event that happens now."""
        return next(self._positions), monotonic_ns() - self._began

    def is_own(self, connection: int) -> bool:
        """Return whether comments name a connection by a number of this recording."""
        return 0 < connection - self.first_connection < _MOST_CONNECTIONS

    def process(self) -> int:
        """Return a number for a new session."""
        return next(self._processes)

    def process_of_call(self, client: int) -> int:
        """Return the number of the session of a call of the application.

        Each call has a session of its own, because calls that share a connection are not ordered by
        the application.
        """
        if client not in self._processes_of_calls:
            self._processes_of_calls[client] = self.process()
        return self._processes_of_calls[client]

    def copied(self) -> Recording:
        """Return a copy that can be joined with the log while this one goes on.

        SOUND BECAUSE: a transaction that is open may go on and commit before the log is read, so
        only its writes count, and they come from the log.
        """
        other = copy(self)
        other.open = {}
        other.transactions = [copy(transaction) for transaction in self.transactions]
        for transaction in self.open.values():
            end, ended = self.ticket()
            other.transactions.append(
                replace(
                    transaction, events=[*transaction.events], numbers={*transaction.numbers},
                    outcome="info", end=end, ended=ended, is_unclear=True,
                )
            )  # fmt: skip
        other.outcomes, other.unseen = Counter(self.outcomes), Unseen(lambda: other.caller)
        other.outcomes["info"] += len(self.open)
        other.unseen.add(self.unseen)
        other.definitions = dict(self.definitions)
        return other
