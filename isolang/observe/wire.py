"""Speaks PostgreSQL's protocol between an application and its server.

Statements are rewritten on the way to the server; the added columns are removed on the way back.
All other messages pass unchanged. The formats of messages are those of protocol 3.
"""

from __future__ import annotations

import re
import struct
from collections import deque
from collections.abc import Callable
from struct import Struct as Format
from typing import Final

from msgspec import Struct, field

from isolang.observe.catalogue import lookup
from isolang.observe.executed import ExecutedStatement
from isolang.observe.history import ObservedHistory
from isolang.observe.predicates import Parameters
from isolang.observe.rewriting import Prepared, PreparedStatement, ReportedTable
from isolang.observe.session import Observation, Session
from isolang.observe.unseen import (
    CALLED_BY_PROTOCOL,
    ERRORS,
    NOT_OBSERVED,
    PREPARED_EARLIER,
    SETTINGS,
)

_I32, _I16 = Format("!i"), Format("!h")
_u32, _u16 = _I32.unpack_from, _I16.unpack_from
_SSL, _GSS, _CANCEL = 80877103, 80877104, 80877102
_OWN: Final = b"isolang_catalogue"
_MESSAGES: Final = frozenset(b"QPBDECSHFXdcfp")  # the letters of messages from applications
# The letters of messages that the server accepts only if they are short.
_SHORT: Final = frozenset(b"DECSHX")
# The largest number of bytes in a short message, and in any message.
_MOST_SHORT, _MOST = 10_000, 1 << 30
_POSITION: Final = re.compile(rb"P(\d+)")


class _Portal(Struct):
    """A bound statement, and the results that the application has received from it so far."""

    statement: PreparedStatement | None
    parameters: Parameters = Parameters()
    rows: int = 0
    reported: list[tuple[ReportedTable, bytes]] = field(default_factory=list)
    complete: bool = False


class _Entry(Struct):
    """A message from the application to which the server will respond.

    Attributes:
        kind: the letter of the message; ``L`` and ``l`` are queries of the catalogue by the proxy.
        prepared: the prepared text of a ``Q`` or ``P``.
        executed: the executions that the server will complete, in order.
        at: how many of these executions the server has completed.
        statement: the statement that the server will describe.
    """

    kind: str
    prepared: Prepared | None = None
    executed: list[ExecutedStatement] = field(default_factory=list)
    at: int = 0
    statement: PreparedStatement | None = None
    portal: _Portal | None = None
    name: bytes = b""


class _Received:
    """The bytes of one direction that are not forwarded yet, because a message is incomplete.

    Attributes:
        rest: those of the bytes that have already been examined.
    """

    def __init__(self) -> None:
        self.rest = b""
        self._more: list[bytes] = []
        self._missing = 0

    def take(self, data: bytes) -> bytes | None:
        """Return the kept bytes and new bytes; ``None`` if their first message is incomplete."""
        self._missing -= len(data)
        if self._missing > 0:
            self._more.append(data)
            return None
        return b"".join((self.rest, *self._more, data)) if self.rest or self._more else data

    def keep(self, rest: bytes) -> None:
        """Keep bytes that begin with an incomplete message."""
        self.rest, self._more, self._missing = rest, [], 0

    def wait(self, length: int) -> None:
        """Wait until the message with which the kept bytes begin is complete."""
        self._missing = length - len(self.rest)


class Wire:
    """One connection of an application: its messages in both directions.

    Attributes:
        cancels: whether the connection only requests the cancellation of a statement.
        broken: whether the server's messages cannot be understood any more.
    """

    def __init__(
        self,
        history: ObservedHistory,
        observe: Callable[[str], Observation | None],
        *,
        to_client: Callable[[bytes], None],
        to_server: Callable[[bytes], None],
    ) -> None:
        self._history, self._observe = history, observe
        self._session: Session | None = None
        self.cancels = self.broken = False
        self._passes = False  # whether the application's messages are forwarded unexamined
        self._to_client, self._to_server = to_client, to_server
        self._started = self._ready = False
        self._from_client, self._from_server = _Received(), _Received()
        self._queue: deque[_Entry] = deque()
        self._prepared: dict[bytes, tuple[PreparedStatement | None, Prepared | None]] = {}
        self._parameters: dict[bytes, tuple[int, ...]] = {}
        self._portals: dict[bytes, _Portal] = {}
        self._status = "I"
        self._unknown: tuple[str, ...] = ()
        self._answers: list[bytes] = []
        self._waits = False
        self._audits = False
        self._unclear = False
        self._ended = False

    @property
    def session(self) -> Session:
        """Return the session of the connection, which must have begun."""
        assert self._session is not None
        return self._session

    def oldest(self) -> int | None:
        """Return the position of this connection's first event that has not been written."""
        tickets = [e.executed[e.at].ticket[0] for e in self._queue if e.at < len(e.executed)][:1]
        begun = None if self._session is None else self._session.begun()
        return min([*tickets, *([] if begun is None else [begun])], default=None)

    def waiting_bytes(self) -> int:
        """Return how many bytes from the application wait for a result from the catalogue."""
        return len(self._from_client.rest) if self._waits else 0

    @property
    def waits(self) -> bool:
        """Return whether the application's messages wait for a result from the catalogue."""
        return self._waits

    # --- from the application ---

    def from_client(self, data: bytes) -> None:
        """Handle bytes from the application."""
        buffer = self._from_client.take(data)
        if buffer is None:
            return
        if self._passes:
            self._from_client.keep(b"")
            self._to_server(buffer)
            return
        missing = 0
        out: list[bytes] = []
        at = 0 if self._started else self._start(buffer, out)
        size = len(buffer)
        begin = at
        if self._started and self._session is None:
            at = size
        while self._started and not self._waits and size - at >= 5:
            tag, length = buffer[at], _u32(buffer, at + 1)[0] + 1
            most = _MOST_SHORT if tag in _SHORT else _MOST
            if tag not in _MESSAGES or not 5 <= length <= most:
                at = self._gives_up(size)
                break
            if size - at < length:
                missing = length
                break
            try:
                new = self._request(tag, buffer[at + 5 : at + length])
            except Exception as error:
                self._note(error)
                at = self._gives_up(size)
                break
            if self._waits:  # the message is handled again after the result has arrived
                out.append(buffer[begin:at])
                if new:
                    out.append(new)
                begin = at
                break
            at += length
            if new is not None:
                out.append(buffer[begin : at - length])
                out.append(bytes((buffer[at - length],)) + _I32.pack(len(new) + 4) + new)
                begin = at
        if self._started and at > begin:
            out.append(buffer[begin:at])
        self._from_client.keep(buffer[at:])
        self._from_client.wait(missing)
        sent = b"".join(out)
        if sent:
            self._to_server(sent)

    def _note(self, error: Exception) -> None:
        """Count an error, unless the form of a message caused it."""
        if not isinstance(error, (ValueError, IndexError, struct.error)):
            self._history.unseen.note(ERRORS, repr(error))

    def _gives_up(self, size: int) -> int:
        """Forward all further messages unchanged, and return the end of the current bytes."""
        self._passes = True
        self.session.broken()
        return size

    def _start(self, buffer: bytes, out: list[bytes]) -> int:
        """Handle the messages before the session begins, and return the position after them."""
        at = 0
        while len(buffer) - at >= 8:
            length, code = _u32(buffer, at)[0], _u32(buffer, at + 4)[0]
            if not 8 <= length <= _MOST_SHORT:  # the server will reject this message
                self._started = self._passes = True
                out.append(buffer[at:])
                return len(buffer)
            if len(buffer) - at < length:
                break
            message = buffer[at : at + length]
            at += length
            if code in (_SSL, _GSS):
                self._to_client(b"N")
                continue
            self.cancels = code == _CANCEL
            if not self.cancels:
                self._startup(message)
            self._started = True
            out.append(message)
            break
        return at

    def _startup(self, message: bytes) -> None:
        parts = message[8:].split(b"\0")
        reported = dict(zip(parts[::2], parts[1::2], strict=False))
        name = reported.get(b"application_name", b"").decode(errors="replace")
        database = reported.get(b"database") or reported.get(b"user", b"")
        observation = self._observe(database.decode(errors="replace"))
        if observation is None or reported.get(b"replication"):
            self._history.unseen.note(NOT_OBSERVED, database.decode(errors="replace"))
            return
        self._session = Session(observation)
        self._session.label = "" if name in ("psql", "pgbench") else name

    def _request(self, tag: int, body: bytes) -> bytes | None:
        """Return the body to send instead of a message's body; ``None`` to send it unchanged."""
        if tag == 0x51:
            return self._query(body)
        if tag == 0x50:
            return self._parse(body)
        if tag == 0x42:
            return self._bind(body)
        if tag == 0x44:
            name = body[1:-1]
            if body[:1] == b"S":
                statement = self._prepared.get(name, (None, None))[0]
            else:
                portal = self._portals.get(name)
                statement = portal.statement if portal else None
            described = name if body[:1] == b"S" else b""
            self._queue.append(_Entry("D", statement=statement, name=described))
        elif tag == 0x45:
            return self._execute(body)
        elif tag == 0x43:
            if body[:1] == b"S":
                self._prepared.pop(body[1:-1], None)
            self._queue.append(_Entry("C"))
        elif tag == 0x53:
            self._queue.append(_Entry("S"))
        elif tag == 0x46:
            self._history.unseen.note(CALLED_BY_PROTOCOL)
            self._history.unclear = True
            self._queue.append(_Entry("F"))
        return None

    def _text(self, raw: bytes, *, simple: bool) -> Prepared | bytes:
        """Return a prepared text; if the catalogue must be queried first, return that query."""
        text = raw.decode("utf-8", "surrogateescape")
        batch = bool(self._queue) and self._queue[-1].kind not in ("Q", "S", "F", "L")
        unknown, self._unknown = self._unknown, ()
        may_ask = not unknown and self._status != "E" and not (simple and batch)
        if self._unclear:
            return Prepared(sent=text)
        made = self.session.prepare(text, may_ask=may_ask)
        if not made.asks:
            return self._audited(made)
        self._unknown = made.asks
        self._answers = []
        self._waits = True
        query = (
            "SELECT pg_catalog.json_build_array(pg_catalog.current_setting('transaction_isolation')"
            ", pg_catalog.current_setting('default_transaction_isolation'), described)::text "
            f"FROM ({lookup(made.asks)}) found(described)"
        ).encode("utf-8", "surrogateescape")
        if simple:
            self._queue.append(_Entry("L"))
            return b"Q" + _I32.pack(len(query) + 5) + query + b"\0"
        self._queue.append(_Entry("l"))
        parse = _OWN + b"\0" + query + b"\0\0\0"
        bind = b"\0".join((_OWN, _OWN, b"")) + b"\0\0\0\0\0\0"
        return b"".join(
            tag + _I32.pack(len(body) + 4) + body
            for tag, body in (
                (b"P", parse),
                (b"B", bind),
                (b"E", _OWN + b"\0\0\0\0\0"),
                (b"C", b"P" + _OWN + b"\0"),
                (b"C", b"S" + _OWN + b"\0"),
                (b"H", b""),
            )
        )

    def _audited(self, made: Prepared) -> Prepared | bytes:
        """Return the text; if an audit is necessary first, return an empty message."""
        audit, history = self.session.observation.audit, self._history
        changes = any(one.plan.kind in ("ddl", "truncate") for one in made.statements)
        done, self._audits = self._audits, False
        if not (changes and audit and history.unaudited) or done:
            return made
        self._waits = self._audits = True

        def then() -> None:
            self._waits = False
            self.from_client(b"")

        audit(then)
        return b""

    def _query(self, body: bytes) -> bytes | None:
        made = self._text(body[:-1], simple=True)
        if isinstance(made, bytes):
            return made
        ticket = self._history.ticket()
        executed = [ExecutedStatement(statement=one, ticket=ticket) for one in made.statements]
        self._queue.append(_Entry("Q", prepared=made, executed=executed))
        sent = made.sent.encode("utf-8", "surrogateescape")
        return None if sent == body[:-1] else sent + b"\0"

    def _parse(self, body: bytes) -> bytes | None:
        name, rest = body.split(b"\0", 1)
        raw, types = rest.split(b"\0", 1)
        made = self._text(raw, simple=False)
        if isinstance(made, bytes):
            return made
        statement = made.statements[0] if len(made.statements) == 1 else None
        self._prepared[name] = statement, made
        (number,) = _u16(types)
        self._parameters[name] = tuple(
            _u32(types, 2 + 4 * n)[0] & 0xFFFFFFFF for n in range(number)
        )
        self._queue.append(_Entry("P", prepared=made))
        sent = made.sent.encode("utf-8", "surrogateescape")
        return None if sent == raw else name + b"\0" + sent + b"\0" + types

    def _bind(self, body: bytes) -> bytes | None:
        portal, rest = body.split(b"\0", 1)
        name, rest = rest.split(b"\0", 1)
        statement, _ = self._prepared.get(name, (None, None))
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
        oids = self._parameters.get(name, ())
        self._portals[portal] = _Portal(statement, Parameters(values, oids))
        self._queue.append(_Entry("B"))
        (results,) = _u16(rest, at)
        if statement is not None and statement.added and results > 1 and not statement.hidden:
            more = statement.added
            changed = rest[:at] + _I16.pack(results + more) + rest[at + 2 :] + b"\0\0" * more
            return portal + b"\0" + name + b"\0" + changed
        return None

    def _execute(self, body: bytes) -> bytes | None:
        name, rest = body.split(b"\0", 1)
        portal = self._portals.get(name)
        entry = _Entry("E", portal=portal)
        self._queue.append(entry)
        if portal is None or portal.statement is None or portal.complete:
            return None
        ticket = self._history.ticket()
        entry.executed = [
            ExecutedStatement(
                statement=portal.statement, ticket=ticket, parameters=portal.parameters
            )
        ]
        if portal.statement.hidden and rest != b"\0\0\0\0":
            # With a limit, the portal could be suspended at rows that the application must not get.
            return name + b"\0\0\0\0\0"
        return None

    # --- from the server ---

    def from_server(self, data: bytes) -> None:
        """Handle bytes from the server."""
        if self._session is None:
            self._to_client(data)
            return
        if self.broken:
            return
        buffer = self._from_server.take(data)
        if buffer is None:
            return
        out: list[bytes] = []
        missing = 0
        at = begin = 0
        size = len(buffer)
        while size - at >= 5:
            length = _u32(buffer, at + 1)[0] + 1
            if length >= 5 and size - at < length:
                missing = length
                break
            try:
                if length < 5:
                    raise ValueError("a message with a negative length")
                new = self._answer(buffer[at], buffer, at + 5, at + length)
            except Exception as error:
                self._note(error)
                self.broken = True
                self.session.broken()
                break
            if new is not None:
                if at > begin:
                    out.append(buffer[begin:at])
                if new:
                    out.append(new)
                begin = at + length
            at += length
        if at > begin:
            out.append(buffer[begin:at])
        self._from_server.keep(buffer[at:])
        self._from_server.wait(missing)
        sent = b"".join(out)
        if sent:
            self._to_client(sent)
        if not self._waits and self._from_client.rest and self._started:
            self.from_client(b"")

    def _answer(self, tag: int, buffer: bytes, at: int, end: int) -> bytes | None:
        """Return the message to forward instead: empty to drop it, ``None`` to keep it."""
        if tag == 0x53:  # ParameterStatus
            name, value = buffer[at : end - 1].split(b"\0", 1)
            if name == b"standard_conforming_strings" and value != b"on":
                self._unclear = True
                self._history.unseen.note(SETTINGS)
            if name == b"application_name" and self.session.transaction is None:
                shown = value.decode(errors="replace")
                self.session.label = "" if shown in ("psql", "pgbench") else shown
            return None
        queue = self._queue
        if tag in (0x4E, 0x41):  # notices, notifications
            return None
        # A message of the authentication; the application may have sent more already.
        if not self._ready:
            self._ready = tag == 0x5A
            return None
        head = queue[0] if queue else None
        if head is None:
            if tag == 0x5A:
                self._status = chr(buffer[at])
            return None
        if head.kind in "Ll":
            return self._catalogue(head, tag, buffer, at, end)
        if tag == 0x44:
            return self._row(head, buffer, at, end)
        if tag == 0x43:
            return self._completed(head, buffer[at : end - 1].decode(errors="replace"))
        if tag == 0x54:
            return self._description(head, buffer, at, end)
        if tag == 0x5A:
            while queue and queue.popleft().kind not in "QSF":
                pass
            self._status = chr(buffer[at])
            self.session.ready(self._status)
        elif tag == 0x45:
            return self._error(head, buffer[at:end])
        elif tag in (0x31, 0x32, 0x33):
            queue.popleft()
        elif tag == 0x74 and head.kind == "D":
            (number,) = _u16(buffer, at)
            self._parameters[head.name] = tuple(
                _u32(buffer, at + 2 + 4 * n)[0] & 0xFFFFFFFF for n in range(number)
            )
        elif tag == 0x6E and head.kind == "D":
            queue.popleft()
        elif tag == 0x73:  # PortalSuspended
            done = self._current(head)
            if done is not None and done.empty:  # the portal has no row for the application
                return self._completed(head, "SELECT 1")
            queue.popleft()
            self._suspended(head)
        elif tag == 0x49 and head.kind == "E":  # EmptyQueryResponse
            queue.popleft()
        return None

    def _catalogue(self, head: _Entry, tag: int, buffer: bytes, at: int, end: int) -> bytes | None:
        """Handle a message with the result of a query of the catalogue."""
        if tag == 0x44:
            (size,) = _u32(buffer, at + 2)
            self._answers.append(buffer[at + 6 : at + 6 + size])
        elif tag == 0x33:
            head.at += 1
        if tag == 0x45 and head.kind == "l":
            # The server now ignores the application's messages, too, so the application gets the
            # error.
            self._error(head, buffer[at:end])
            return None
        if tag == 0x5A or head.at == 2:
            self._queue.popleft()
            self._resume()
        return b""

    def _resume(self) -> None:
        """Continue with the application's messages, with the result from the catalogue."""
        self.session.describe(self._answers, self._unknown)
        self._answers = []
        self._waits = False

    def _current(self, head: _Entry) -> ExecutedStatement | None:
        return head.executed[head.at] if head.at < len(head.executed) else None

    def _row(self, head: _Entry, buffer: bytes, at: int, end: int) -> bytes | None:
        done = self._current(head)
        if done is None:
            return None
        statement = done.statement
        done.rows += 1
        if not statement.added:
            return None
        (number,) = _u16(buffer, at)
        keep = number - statement.added
        place = at + 2
        for _ in range(keep):
            (size,) = _u32(buffer, place)
            place += 4 + max(size, 0)
        tail = place
        columns: list[ReportedTable | None] = [*statement.reported]
        if statement.blocks:
            columns += [None, *(one.reported for one in statement.blocks)]
        for one in columns:
            (size,) = _u32(buffer, place)
            place += 4
            if size >= 0 and one is not None:
                done.reported.append((one, buffer[place : place + size]))
            elif one is None and size < 0:
                done.empty = True
            place += max(size, 0)
        if done.empty:
            done.rows -= 1
            return b""
        if statement.hidden:
            return b""
        return b"D" + _I32.pack(tail - at + 4) + _I16.pack(keep) + buffer[at + 2 : tail]

    def _description(self, head: _Entry, buffer: bytes, at: int, end: int) -> bytes | None:
        if head.kind == "D":
            self._queue.popleft()
            statement = head.statement
        else:
            done = self._current(head)
            statement = done.statement if done else None
        if statement is None or not statement.added:
            return None
        if statement.hidden:
            return b"n\0\0\0\4" if head.kind == "D" else b""
        (number,) = _u16(buffer, at)
        keep = number - statement.added
        place = at + 2
        for _ in range(keep):
            place = buffer.index(b"\0", place) + 19
        return b"T" + _I32.pack(place - at + 4) + _I16.pack(keep) + buffer[at + 2 : place]

    def _completed(self, head: _Entry, tag: str) -> bytes | None:
        """Note the end of an execution; return a corrected message if it counts an added row."""
        done = self._current(head)
        if head.kind == "E":
            self._queue.popleft()
        else:
            head.at += 1
        if done is None:
            if head.kind == "E" and head.portal is None:
                self._history.unseen.note(PREPARED_EARLIER)
                self._history.unclear = True
            return None
        if head.portal is not None:
            if head.portal.complete:  # the portal was executed again, which returns no row
                return None
            done.rows += head.portal.rows
            head.portal.reported += done.reported
            done.reported = head.portal.reported
            head.portal.complete = True
        self.session.complete(done, tag)
        return b"C" + _I32.pack(13) + b"SELECT 0\0" if done.empty else None

    def _suspended(self, head: _Entry) -> None:
        """Note that the application has received a part of the rows of a portal."""
        done = self._current(head)
        if done is None or head.portal is None:
            return
        head.portal.rows += done.rows
        head.portal.reported += done.reported
        done.rows, done.reported = head.portal.rows, head.portal.reported
        if done.statement.plan.single:  # it was the only row
            head.portal.complete = True
            self.session.complete(done, "SELECT 1")
        else:
            self.session.partly(done)

    def _error(self, head: _Entry, body: bytes) -> bytes | None:
        fields = {p[:1]: p[1:].decode(errors="replace") for p in body.split(b"\0") if p}
        done = self._current(head)
        fatal = fields.get(b"V", "ERROR") != "ERROR"
        self.session.failed(done, fields.get(b"C", ""), fields.get(b"M", ""), fatal=fatal)
        moved = self._moved(head.prepared, body)
        if head.kind != "Q":
            while self._queue and self._queue[0].kind not in "SQ":
                one = self._queue.popleft()
                if one.kind == "l":
                    self._resume()
        return moved

    def _moved(self, made: Prepared | None, body: bytes) -> bytes | None:
        """Return an error whose position refers to the application's text."""
        if made is None or not made.shifts:
            return None
        fields = body.split(b"\0")
        for n, one in enumerate(fields):
            found = _POSITION.fullmatch(one)
            if found:
                place = int(found[1]) - 1
                for where, size in reversed(made.shifts):
                    place = place - size if place >= where + size else min(place, where)
                fields[n] = b"P%d" % (place + 1)
                new = b"\0".join(fields)
                return b"E" + _I32.pack(len(new) + 4) + new
        return None

    def lost(self) -> None:
        """Note that the connection has ended."""
        if self._ended:
            return
        self._ended = True
        if self._session is not None:
            self._session.lost([e for entry in self._queue for e in entry.executed[entry.at :]])
