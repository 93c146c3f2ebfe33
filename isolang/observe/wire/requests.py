"""Rewrites an application's messages on the way to its server."""

from __future__ import annotations

from collections.abc import Callable

from isolang.observe.sql.executed import ExecutedStatement
from isolang.observe.sql.plan import DEFINE
from isolang.observe.sql.predicates import Parameters
from isolang.observe.sql.rewriting import Prepared, PreparedStatement
from isolang.observe.unseen import CALLED_BY_PROTOCOL
from isolang.observe.wire.conversation import (
    I16,
    I32,
    MARK,
    CatalogueQuery,
    Conversation,
    ExpectedAnswer,
    MarkQuery,
    NamedStatement,
    Portal,
    fetching,
    message,
    with_marks,
)

_u32, _u16 = I32.unpack_from, I16.unpack_from


class MustWaitError(Exception):
    """Raised when a message from the application must wait and be handled again later."""

    def __init__(self, instead: bytes = b"") -> None:
        super().__init__(instead)
        self.instead = instead


class RequestRewriter:
    """Handles an application's messages, and the statements that it has prepared and bound."""

    def __init__(self, shared: Conversation, resume: Callable[[], None]) -> None:
        """Create a rewriter for a connection without prepared statements."""
        self._shared, self._resume = shared, resume
        self._session = shared.session
        self._history = shared.session.observation.history
        self._expected = shared.expected
        self._named: dict[bytes, NamedStatement] = {}
        self._portals: dict[bytes, Portal] = {}

    def rewrite(self, tag: int, buffer: bytes, at: int, end: int) -> bytes | None:
        """Return the message to send instead; ``None`` to send it unchanged.

        Raises:
            MustWaitError: the message must wait.
        """
        body = buffer[at:end]
        if tag == 0x51:
            return self._query(body)
        if tag == 0x50:
            return self._parse(body)
        if tag == 0x42:
            return self._bind(body)
        if tag == 0x45:
            return self._execute(body)
        if tag == 0x44:
            self._describe(body[:1], body[1:-1])
        elif tag == 0x43:
            closes = None
            if body[:1] == b"S":
                self._named.pop(body[1:-1], None)
            else:
                closes = body[1:-1].decode("utf-8", "surrogateescape")
            self._expected.append(ExpectedAnswer("C", closes=closes))
        elif tag == 0x53:
            self._expected.append(ExpectedAnswer("S"))
            self._shared.skips, self._shared.bound = False, None
        elif tag == 0x46:
            self._session.unclear(CALLED_BY_PROTOCOL)
            self._expected.append(ExpectedAnswer("F"))
        return None

    def _prepare(self, raw: bytes, *, simple: bool) -> Prepared:
        """Return a text prepared for sending."""
        shared, text = self._shared, raw.decode("utf-8", "surrogateescape")
        batch = bool(self._expected) and self._expected[-1].kind not in ("Q", "S", "F")
        delay, shared.delay = shared.delay, "none"
        if shared.unclear:
            return Prepared(sent=text)
        works = shared.status != "E" and not shared.skips
        # Another session may have changed a definition while this one waited for the answer.
        answered = delay == "asked" and self._session.texts.knows_definitions
        may_ask = not answered and works and not (simple and batch)
        made = self._session.texts.prepare(text, may_ask=may_ask)
        if made.asks:
            query = CatalogueQuery(made.asks, simple)
            self._expected.append(ExpectedAnswer("L", query=query))
            shared.delay = "asks"
            raise MustWaitError(query.messages())
        audit = self._session.observation.audit
        kinds = {one.plan.kind for one in made.statements}
        audits = bool(self._history.unaudited) and not kinds.isdisjoint({"ddl", "truncate"})
        evaluates = self._history.evaluated.are_new and not kinds.isdisjoint(DEFINE)
        if (audits or evaluates) and audit is not None and delay != "audited":
            shared.delay = "audits"
            audit(self._continue_after_audit)
            raise MustWaitError
        return made

    def _continue_after_audit(self) -> None:
        """Continue after an audit."""
        self._shared.delay = "audited"
        self._resume()

    def _query(self, body: bytes) -> bytes | None:
        made = self._prepare(body[:-1], simple=True)
        ticket = self._history.ticket()
        note = self._session.take_note(body[:-1])
        settings = self._session.texts.conditions.settings
        epoch = self._session.observation.epoch
        executed: list[ExecutedStatement] = []
        numbers: dict[int, int] = {}
        for place, one in enumerate(made.statements):
            if number := self._mark_for(one):
                numbers[place] = number
                executed.append(ExecutedStatement(statement=MARK, ticket=ticket))
            executed.append(
                ExecutedStatement(
                    statement=one,
                    ticket=ticket,
                    note=note,
                    mark=number,
                    prepared_with=settings,
                    epoch=epoch,
                )
            )
        if numbers:
            made = with_marks(made, numbers)
        self._expected.append(ExpectedAnswer("Q", prepared=made, executed=executed))
        sent = made.sent.encode("utf-8", "surrogateescape")
        return None if sent == body[:-1] else message(b"Q", sent + b"\0")

    def _mark_for(self, statement: PreparedStatement) -> int:
        """Return the number to write into the server's log before a statement; 0 for none.

        SOUND BECAUSE: the number and the statement must belong to one transaction, and a procedure
        outside a transaction may have several.
        """
        shared, next_mark = self._shared, self._session.observation.next_mark
        transaction = self._session.transaction
        is_logged = statement.logged or (
            transaction is not None and transaction.savepoints and statement.adds_to_partitions
        )
        if next_mark is None or not is_logged or shared.unclear:
            return 0
        if shared.status == "E" or shared.skips:
            return 0
        alone = statement.part[0].text in ("call", "do") and transaction is None
        return 0 if alone else next_mark()

    def _parse(self, body: bytes) -> bytes | None:
        name, raw, types = body.split(b"\0", 2)
        made = self._prepare(raw, simple=False)
        statement = made.statements[0] if len(made.statements) == 1 else None
        self._named[name] = NamedStatement(
            statement, types_of(types, 0), self._session.texts.conditions.settings
        )
        self._expected.append(ExpectedAnswer("P", prepared=made))
        sent = made.sent.encode("utf-8", "surrogateescape")
        return None if sent == raw else message(b"P", name + b"\0" + sent + b"\0" + types)

    def _describe(self, kind: bytes, name: bytes) -> None:
        if kind == b"S":
            described = self._named.setdefault(name, NamedStatement())
        else:
            portal = self._portals.get(name)
            described = NamedStatement(portal.statement if portal else fetching(name))
        self._expected.append(ExpectedAnswer("D", described=described))

    def _bind(self, body: bytes) -> bytes | None:
        portal, name, rest = body.split(b"\0", 2)
        named = self._named.get(name) or NamedStatement()
        statement = named.statement
        (count,) = _u16(rest)
        formats = [_u16(rest, 2 + 2 * n)[0] for n in range(count)]
        at = 2 + 2 * count
        (number,) = _u16(rest, at)
        at += 2
        values: list[str | bytes | None] = []
        for n in range(number):
            (size,) = _u32(rest, at)
            at += 4
            if size < 0:
                values.append(None)
                continue
            raw = rest[at : at + size]
            at += size
            is_binary = formats[n] if count > 1 else formats[0] if count else 0
            values.append(raw if is_binary else raw.decode("utf-8", "surrogateescape"))
        bound = Portal(
            statement,
            Parameters(values, named.types),
            self._history.ticket(),
            settings=named.settings,
            epoch=self._session.observation.epoch,
        )
        self._portals[portal] = bound
        if self._shared.bound is None:
            self._shared.bound = bound.ticket[0]
        self._expected.append(ExpectedAnswer("B", portal=bound))
        (results,) = _u16(rest, at)
        columns = () if statement is None else self._session.cursors.columns(statement)
        if statement is not None and columns and results > 1 and not statement.hidden:
            more = len(columns)
            changed = rest[:at] + I16.pack(results + more) + rest[at + 2 :] + b"\0\0" * more
            return message(b"B", portal + b"\0" + name + b"\0" + changed)
        return None

    def _execute(self, body: bytes) -> bytes | None:
        name, rest = body.split(b"\0", 1)
        portal = self._portals.get(name)
        if portal is None:
            done = ExecutedStatement(statement=fetching(name), ticket=self._history.ticket())
            self._expected.append(ExpectedAnswer("E", executed=(done,)))
            return None
        if portal.statement is None or portal.complete:
            self._expected.append(ExpectedAnswer("E", portal=portal))
            return None
        done = ExecutedStatement(
            statement=portal.statement,
            ticket=portal.ticket,
            parameters=portal.parameters,
            note=portal.note or self._session.take_note(portal.statement.text),
            prepared_with=portal.settings,
            epoch=portal.epoch,
        )
        portal.note = done.note
        front = b""
        if not portal.started and (number := self._mark_for(portal.statement)):
            query = MarkQuery((), simple=False, number=number)
            self._expected.append(ExpectedAnswer("L", query=query))
            portal.mark, front = number, query.messages()
        portal.started = True
        done.mark = portal.mark
        self._expected.append(ExpectedAnswer("E", portal=portal, executed=(done,)))
        if portal.statement.hidden and rest != b"\0\0\0\0":
            # With a limit, the portal could be suspended at rows that the application must not
            # receive.
            return front + message(b"E", name + b"\0\0\0\0\0")
        return front + message(b"E", body) if front else None


def types_of(buffer: bytes, at: int) -> tuple[int, ...]:
    """Return the type numbers listed at a position in a message."""
    (number,) = _u16(buffer, at)
    return tuple(_u32(buffer, at + 2 + 4 * n)[0] & 0xFFFFFFFF for n in range(number))
