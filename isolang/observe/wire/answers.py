"""Handles a server's messages, and removes the columns that were added to statements."""

from __future__ import annotations

import re
from typing import Final

from isolang.observe.cursors import OpenCursor
from isolang.observe.sql.executed import ExecutedStatement
from isolang.observe.sql.rewriting import Prepared, PreparedStatement
from isolang.observe.unseen import PREPARED_EARLIER, SETTINGS
from isolang.observe.wire.conversation import (
    I16,
    I32,
    MARK,
    CatalogueQuery,
    Conversation,
    ExpectedAnswer,
    message,
)
from isolang.observe.wire.requests import types_of

_u32, _u16 = I32.unpack_from, I16.unpack_from
_SASL: Final = 10  # the request for authentication by one of the named mechanisms
_FALSE: Final = (b"\0\0\0\1f", b"\0\0\0\1\0")
_POSITION: Final = re.compile(rb"P(\d+)")


class AnswerRewriter:
    """Handles a server's messages, matching each to the application's message that it answers."""

    def __init__(self, shared: Conversation) -> None:
        self._shared = shared
        self._session = shared.session
        self._expected = shared.expected
        self._authenticated = False

    def rewrite(self, tag: int, buffer: bytes, at: int, end: int) -> bytes | None:
        """Return the message to forward instead: empty for none, ``None`` to leave it unchanged."""
        if tag == 0x53:  # ParameterStatus
            self._handle_setting(*buffer[at : end - 1].split(b"\0", 1))
            return None
        if tag in (0x4E, 0x41):  # notices, notifications
            return None
        if not self._authenticated:  # the application may already have sent further messages
            self._authenticated = tag == 0x5A
            if tag == 0x4B:  # BackendKeyData
                self._session.backend = _u32(buffer, at)[0]
            if tag == 0x52 and _u32(buffer, at)[0] == _SASL:
                return _without_channel_binding(buffer[at + 4 : end])
            return None
        if not self._expected:
            if tag == 0x5A:
                self._shared.status = chr(buffer[at])
            return None
        head = self._expected[0]
        if head.query is not None:
            return self._handle_catalogue(head.query, tag, buffer[at:end])
        if (done := head.current()) is not None and done.statement is MARK:
            if tag in (0x44, 0x54):
                return b""
            if tag == 0x43:
                head.at += 1
                return b""
        if tag == 0x44:
            return self._without_added_columns(head, buffer, at, end)
        if tag == 0x43:
            return self._note_completion(head, buffer[at : end - 1].decode(errors="replace"))
        if tag == 0x54:
            return self._expected_description(head, buffer, at)
        if tag == 0x5A:
            while self._expected and self._expected.popleft().kind not in "QSF":
                pass
            self._shared.status = chr(buffer[at])
            self._session.note_ready(self._shared.status)
        elif tag == 0x45:
            return self._note_error(buffer[at:end])
        elif tag in (0x31, 0x32, 0x33):
            self._expected.popleft()
            if head.portal is not None:
                head.portal.position = self._session.bind()
            if head.closes is not None:
                self._session.cursors.close(head.closes)
        elif tag == 0x74 and head.described is not None:
            head.described.types = types_of(buffer, at)
        elif tag == 0x6E and head.kind == "D":
            self._expected.popleft()
        elif tag == 0x73:  # PortalSuspended
            return self._note_suspension(head)
        elif tag == 0x49 and head.kind == "E":  # EmptyQueryResponse
            self._expected.popleft()
        return None

    def _handle_setting(self, name: bytes, value: bytes) -> None:
        """Handle a session setting."""
        if name == b"standard_conforming_strings" and value != b"on":
            self._shared.unclear = True
            self._session.observation.history.unseen.note(SETTINGS)
        if name == b"application_name" and self._session.transaction is None:
            self._session.names.set_label(value)

    def _handle_catalogue(self, query: CatalogueQuery, tag: int, body: bytes) -> bytes | None:
        """Handle a message with a catalogue query's result."""
        if tag == 0x44:
            (size,) = _u32(body, 2)
            query.rows.append(body[6 : 6 + size])
        elif tag == 0x33:
            query.closed += 1
        elif tag == 0x45 and not query.simple:
            # The server now ignores the application's messages too, so the application must get the
            # error.
            return self._note_error(body)
        if tag == 0x5A or query.closed == 2:
            self._expected.popleft()
            self._shared.resume(query)
        return b""

    def _without_added_columns(
        self, head: ExpectedAnswer, buffer: bytes, at: int, end: int
    ) -> bytes | None:
        """Return a row without the added columns, and store the contents of these columns."""
        done = head.current()
        if done is None:
            return None
        statement = done.statement
        source = done
        done.rows += 1
        if statement.requests is not None and (cursor := self._cursor_of(statement)) is not None:
            source, statement = cursor.done, cursor.done.statement
            source.rows += 1
        if not statement.columns:
            # a function that returns false, as text or in binary
            done.refused = bool(statement.locks) and buffer[at + 2 : at + 7] in _FALSE
            return None
        (number,) = _u16(buffer, at)
        keep = number - len(statement.columns)
        place = at + 2
        for _ in range(keep):
            (size,) = _u32(buffer, place)
            place += 4 + max(size, 0)
        tail = place
        for one in statement.columns:
            (size,) = _u32(buffer, place)
            place += 4
            if size >= 0 and one is not None:
                source.reported.append((one, buffer[place : place + size]))
            elif one is None and size < 0:
                done.empty = True
            place += max(size, 0)
        if done.empty:
            done.rows -= 1
            if source is not done:
                source.rows -= 1
            return b""
        if statement.hidden:
            return b""
        return message(b"D", I16.pack(keep) + buffer[at + 2 : tail])

    def _expected_description(self, head: ExpectedAnswer, buffer: bytes, at: int) -> bytes | None:
        """Return a row description with only the columns that the application expects."""
        if head.described is not None:
            self._expected.popleft()
            statement = head.described.statement
        else:
            done = head.current()
            statement = done.statement if done else None
        if statement is not None and (cursor := self._cursor_of(statement)) is not None:
            statement = cursor.done.statement
        if statement is None or not statement.columns:
            return None
        if statement.hidden:
            return message(b"n", b"") if head.kind == "D" else b""
        (number,) = _u16(buffer, at)
        keep = number - len(statement.columns)
        place = at + 2
        for _ in range(keep):
            place = buffer.index(b"\0", place) + 19
        return message(b"T", I16.pack(keep) + buffer[at + 2 : place])

    def _cursor_of(self, statement: PreparedStatement) -> OpenCursor | None:
        """Return the cursor whose rows a statement returns; ``None`` if there is none."""
        request = statement.requests
        if request is None or request.what != "fetch":
            return None
        return self._session.cursors.named(request.name)

    def _note_completion(self, head: ExpectedAnswer, tag: str) -> bytes | None:
        """Note the end of an execution. Return a corrected message if its tag is of added text."""
        done = head.current()
        if head.kind == "E":
            self._expected.popleft()
        else:
            head.at += 1
        is_known = done is not None and self._cursor_of(done.statement) is not None
        if head.kind == "E" and head.portal is None and not is_known:
            self._session.unclear(PREPARED_EARLIER)
            return None
        if done is None:
            return None
        if head.portal is not None:
            if head.portal.complete:  # a portal that is executed again returns no rows
                return _with_original_tag(done, tag)
            if head.portal.written:
                self._session.note_more_writes(done)
                return _with_original_tag(done, tag)
            done.rows += head.portal.rows
            head.portal.reported += done.reported
            done.reported, done.position = head.portal.reported, head.portal.position
            head.portal.complete = True
        self._session.complete(done, tag)
        return _with_original_tag(done, tag)

    def _note_suspension(self, head: ExpectedAnswer) -> bytes | None:
        """Note that the application has received some of a portal's rows."""
        done, portal = head.current(), head.portal
        if done is not None and done.empty:  # the portal has no row for the application
            fetches = done.statement.requests is not None
            return self._note_completion(head, "FETCH 1" if fetches else "SELECT 1")
        self._expected.popleft()
        if done is not None and (request := done.statement.requests) is not None:
            # SOUND BECAUSE: the server has already moved the cursor by all rows of the FETCH.
            if portal is not None:
                portal.rows += done.rows
            if portal is None or portal.rows < request.forward:
                self._session.cursors.skip(request.name)
            return None
        if done is None or portal is None:
            return None
        if portal.written:
            self._session.note_more_writes(done)
            return None
        portal.rows += done.rows
        portal.reported += done.reported
        done.rows, done.reported, done.position = portal.rows, portal.reported, portal.position
        if done.statement.plan.kind in ("insert", "update", "delete", "merge", "compound"):
            # SOUND BECAUSE: the server executes a write as a whole before it returns the first row,
            # so its rows precede whatever the application sends next.
            portal.written = done.cut = True
            self._session.complete(done, "")
        elif done.statement.plan.single:  # it was the only row
            portal.complete = True
            self._session.complete(done, "SELECT 1")
        else:
            self._session.note_partial_result(done)
        return None

    def _note_error(self, body: bytes) -> bytes | None:
        """Note an error. Return a corrected message if its position refers to a rewritten text."""
        head = self._expected[0]
        fields = {p[:1]: p[1:].decode(errors="replace") for p in body.split(b"\0") if p}
        fatal = fields.get(b"V", "ERROR") != "ERROR"
        self._session.note_error(
            head.current(), fields.get(b"C", ""), fields.get(b"M", ""), fatal=fatal
        )
        if head.kind != "Q":  # the server ignores all messages up to the next S
            while self._expected and self._expected[0].kind not in "SQ":
                one = self._expected.popleft()
                if one.query is not None:
                    self._shared.resume(one.query)
            self._shared.skips = not self._expected
        return _with_original_position(head.prepared, body)


def _with_original_tag(done: ExecutedStatement, tag: str) -> bytes | None:
    """Return the message at the end of the application's statement; ``None`` if unchanged."""
    if not (done.statement.tag or done.empty):
        return None
    rows = "0" if done.empty else tag.rpartition(" ")[2]
    return message(b"C", f"{done.statement.tag or tag.partition(' ')[0]} {rows}\0".encode())


def _without_channel_binding(mechanisms: bytes) -> bytes:
    """Return an offer of authentication without the mechanisms that need TLS on the client's side.

    The proxy has TLS towards the server alone, and a client refuses such an offer without TLS.
    """
    names = [name for name in mechanisms.split(b"\0") if name and not name.endswith(b"-PLUS")]
    return message(b"R", I32.pack(_SASL) + b"".join(name + b"\0" for name in names) + b"\0")


def _with_original_position(made: Prepared | None, body: bytes) -> bytes | None:
    """Return an error whose position refers to the application's text; ``None`` if unchanged."""
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
            return message(b"E", b"\0".join(fields))
    return None
