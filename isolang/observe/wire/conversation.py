"""Stores the state shared by both directions of a connection."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from struct import Struct as Format
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from isolang.observe.session import Session
from isolang.observe.sql.catalogue import lookup_query
from isolang.observe.sql.cursors import CursorRequest
from isolang.observe.sql.evaluated import SETTINGS_SQL, SessionSettings
from isolang.observe.sql.executed import ExecutedStatement, PortalPosition
from isolang.observe.sql.notes import CallNote
from isolang.observe.sql.plan import StatementPlan
from isolang.observe.sql.predicates import Parameters
from isolang.observe.sql.rewriting import Prepared, PreparedStatement, ReportedTable
from isolang.run.drivers.postgres_log import MARK_SQL

I32: Final = Format("!i")
_HEAD: Final = Format("!ci")
I16: Final = Format("!h")
_OWN: Final = b"isolang_catalogue"
_OWN_MARK: Final = b"isolang_mark"


def message(tag: bytes, body: bytes) -> bytes:
    """Return a protocol message."""
    return _HEAD.pack(tag, len(body) + 4) + body


class NamedStatement(Struct, gc=False):
    """A statement prepared by the application under a name.

    Attributes:
        statement: the statement; ``None`` if its text does not contain exactly one statement.
        types: the type numbers of its parameters, as far as they are known.
        settings: the session's settings when it was prepared; ``None`` if they were unknown.
    """

    statement: PreparedStatement | None = None
    types: tuple[int, ...] = ()
    settings: SessionSettings | None = None


class Portal(Struct, gc=False):
    """A bound statement, and the results received from it by the application so far.

    Attributes:
        ticket: the event of binding, because the statement reads the snapshot of that time.
        position: where the statement's operations belong in its transaction, once it is bound.
        note: what the statement's caller noted; ``None`` if nothing is known.
        written: whether the writes of a suspended statement have been recorded.
        settings: the session's settings when the statement was prepared.
        epoch: how often definitions had changed when it was bound.
        started: whether the statement has been executed.
        mark: the number in the server's log in front of the statement's changes; 0 if none.
    """

    statement: PreparedStatement | None
    parameters: Parameters
    ticket: tuple[int, int]
    rows: int = 0
    reported: list[tuple[ReportedTable, bytes]] = field(default_factory=list)
    position: PortalPosition | None = None
    note: CallNote | None = None
    complete: bool = False
    written: bool = False
    settings: SessionSettings | None = None
    epoch: int = -1
    started: bool = False
    mark: int = 0


class CatalogueQuery(Struct):
    """A catalogue query by the proxy, in the application's connection and transaction."""

    names: tuple[str, ...]
    simple: bool
    rows: list[bytes] = field(default_factory=list)
    closed: int = 0

    def messages(self) -> bytes:
        """Return the messages that send this query to the server."""
        query = (
            "SELECT pg_catalog.json_build_array(pg_catalog.current_setting('transaction_isolation')"
            ", pg_catalog.current_setting('default_transaction_isolation'), described, "
            f"{SETTINGS_SQL})::text FROM ({lookup_query(self.names)}) found(described)"
        ).encode("utf-8", "surrogateescape")
        if self.simple:
            return message(b"Q", query + b"\0")
        return b"".join((
            message(b"P", _OWN + b"\0" + query + b"\0\0\0"),
            message(b"B", b"\0".join((_OWN, _OWN, b"")) + b"\0\0\0\0\0\0"),
            message(b"E", _OWN + b"\0\0\0\0\0"),
            message(b"C", b"P" + _OWN + b"\0"),
            message(b"C", b"S" + _OWN + b"\0"),
            message(b"H", b""),
        ))  # fmt: skip


class MarkQuery(CatalogueQuery):
    """Writes a number into the server's log, in front of a statement's changes."""

    number: int = 0

    def messages(self) -> bytes:
        """Return the messages that write the number within the statement's transaction."""
        query = MARK_SQL.format(self.number).encode()
        return b"".join((
            message(b"P", _OWN_MARK + b"\0" + query + b"\0\0\0"),
            message(b"B", b"\0".join((_OWN_MARK, _OWN_MARK, b"")) + b"\0\0\0\0\0\0"),
            message(b"E", _OWN_MARK + b"\0\0\0\0\0"),
            message(b"C", b"P" + _OWN_MARK + b"\0"),
            message(b"C", b"S" + _OWN_MARK + b"\0"),
        ))  # fmt: skip


MARK: Final = PreparedStatement(plan=StatementPlan(kind="quiet"), text="", part=())
"""The statement that writes a number into the server's log."""


def fetching(name: bytes) -> PreparedStatement:
    """Return a statement that stands for messages about a cursor's portal."""
    request = CursorRequest("fetch", name.decode("utf-8", "surrogateescape"))
    plan = StatementPlan(kind="other")
    return PreparedStatement(plan=plan, text="", part=(), requests=request)


def with_marks(made: Prepared, numbers: Mapping[int, int]) -> Prepared:
    """Return a text with a number for the server's log in front of some statements.

    Args:
        numbers: the numbers, by the position of their statement in the text.
    """
    shifts: list[tuple[int, int]] = []
    pieces: list[str] = []
    at = added = passed = 0  # passed: the length of the earlier additions in front of a mark
    before = [*made.shifts]
    for place, number in numbers.items():
        where = made.statements[place].part[0].start + passed
        for begin, size in [*before]:
            if begin >= where:
                break
            where += size
            passed += size
            shifts.append((begin + added, size))
            del before[0]
        text = MARK_SQL.format(number) + ";"
        pieces += [made.sent[at:where], text]
        shifts.append((where + added, len(text)))
        added += len(text)
        at = where
    shifts += [(begin + added, size) for begin, size in before]
    sent = "".join([*pieces, made.sent[at:]])
    return Prepared(sent=sent, statements=made.statements, shifts=shifts)


class ExpectedAnswer(Struct, gc=False):
    """A message from the application that the server will respond to.

    Attributes:
        kind: the letter of the message; ``L`` is a catalogue query by the proxy.
        executed: the executions that the server will complete, in order.
        described: the statement that the server will describe after a ``D``.
        closes: the name of the portal that a ``C`` closes; ``None`` if it closes a statement.
    """

    kind: str
    prepared: Prepared | None = None
    executed: Sequence[ExecutedStatement] = ()
    at: int = 0
    described: NamedStatement | None = None
    portal: Portal | None = None
    query: CatalogueQuery | None = None
    closes: str | None = None

    def current(self) -> ExecutedStatement | None:
        """Return the next execution for the server to complete; ``None`` if there is none."""
        return self.executed[self.at] if self.at < len(self.executed) else None


Delay: TypeAlias = Literal["none", "asks", "asked", "audits", "audited"]
"""The reason why a message from the application waits and is handled again later.

In the state ``asks``, the message waits for a catalogue result; in the state ``audits``, for the
end of an audit. It is then handled again in the state ``asked`` or ``audited``, so it does not wait
for the same event twice.
"""


class Conversation:
    """The state shared by both directions of a connection.

    Attributes:
        expected: the messages that the server has not responded to yet, in order.
        status: the server's last status: no transaction (I), an open one (T), or a failed one (E).
        skips: whether an error makes the server ignore all messages until the application's next
            Sync, which has not been sent yet.
        unclear: whether texts are sent unchanged, because a session setting changes the meaning of
            string literals.
        delay: why the next message from the application waits, or has waited.
        bound: the position of the first Bind since the last Sync; ``None`` if there is none.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.expected: deque[ExpectedAnswer] = deque()
        self.status = "I"
        self.skips = False
        self.unclear = False
        self.delay: Delay = "none"
        self.bound: int | None = None

    @property
    def is_waiting(self) -> bool:
        """Return whether the application's messages have to wait."""
        return self.delay in ("asks", "audits")

    def unanswered_executions(self) -> Iterator[ExecutedStatement]:
        """Yield the executions that the server has not completed yet, in order."""
        for one in self.expected:
            yield from one.executed[one.at :]

    def oldest_event(self) -> int | None:
        """Return the position of the connection's first event that has not been written yet."""
        tickets = [one.ticket[0] for one in self.unanswered_executions()]
        waiting = (self.bound, self.session.begin_position())
        return min([*tickets, *(one for one in waiting if one is not None)], default=None)

    def resume(self, query: CatalogueQuery) -> None:
        """Store a catalogue result, and let the application's messages continue."""
        if not isinstance(query, MarkQuery):
            self.session.store_descriptions(query.rows, query.names)
            self.delay = "asked"
