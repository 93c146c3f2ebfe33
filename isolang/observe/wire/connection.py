"""Speaks PostgreSQL's protocol between an application and its server.

Statements are rewritten on the way to the server (:mod:`isolang.observe.wire.requests`), and the
added columns are removed on the way back (:mod:`isolang.observe.wire.answers`). All other messages
pass unchanged. Messages have the formats of protocol 3.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final, Literal

from isolang.observe.history.history import ObservedHistory
from isolang.observe.history.seen import SeenTransaction
from isolang.observe.observation import Observation
from isolang.observe.session import Session
from isolang.observe.sql.executed import ExecutedStatement
from isolang.observe.unseen import ERRORS, NOT_OBSERVED
from isolang.observe.wire.answers import AnswerRewriter
from isolang.observe.wire.conversation import I32, Conversation, message
from isolang.observe.wire.requests import MustWaitError, RequestRewriter

_u32 = I32.unpack_from
_SSL, _GSS, _CANCEL = 80877103, 80877104, 80877102
_ENCRYPTION_REQUESTS: Final = frozenset(struct.pack("!II", 8, code) for code in (_SSL, _GSS))
"""The messages by which an application asks for encryption before its session."""

_MESSAGES: Final = frozenset(b"QPBDECSHFXdcfp")  # the message letters used by applications
# The letters of the messages that the server accepts only if they are short.
_SHORT: Final = frozenset(b"DECSHX")
# The largest number of bytes in a short message, and in any message.
_MOST_SHORT, _MOST = 10_000, 1 << 30
_OF_APPLICATIONS: Final = tuple(
    0 if tag not in _MESSAGES else _MOST_SHORT if tag in _SHORT else _MOST for tag in range(256)
)
_OF_SERVERS: Final = (1 << 31,) * 256


class MessageBuffer:
    """The bytes of one direction that have not been forwarded yet, because a message is incomplete.

    Attributes:
        rest: the bytes that have not been forwarded yet, except for the last bytes of a message
            that is known to be incomplete.
    """

    def __init__(self) -> None:
        self.rest = b""
        self._more: list[bytes] = []
        self._missing = 0

    def take(self, data: bytes) -> bool:
        """Append received bytes. Return whether the first message may now be complete."""
        self._missing -= len(data)
        if self._missing > 0:
            self._more.append(data)
            return False
        self.rest = b"".join((self.rest, *self._more, data)) if self.rest else data
        self._more.clear()
        return True

    def remove_first(self, length: int) -> bytes:
        """Remove a number of bytes from the beginning, and return them."""
        taken, self.rest = self.rest[:length], self.rest[length:]
        return taken

    def forward(
        self,
        out: list[bytes],
        longest: Sequence[int],
        rewrite: Callable[[int, bytes, int, int], bytes | None],
    ) -> Exception | None:
        """Forward all complete messages, rewriting some of them.

        Args:
            out: the list that the forwarded bytes are added to.
            longest: for each letter, the largest number of bytes in a message.
            rewrite: a function whose arguments are the letter of a message, the bytes that contain
                it, and the begin and end of its body in these bytes. It returns the message to
                forward instead: empty to drop the message, ``None`` to keep it.
        """
        buffer, at, begin, self._missing = self.rest, 0, 0, 0
        size, failure = len(buffer), None
        try:
            while size - at >= 5:
                tag, length = buffer[at], _u32(buffer, at + 1)[0] + 1
                if not 5 <= length <= longest[tag]:
                    raise ValueError("not a message")
                if size - at < length:
                    self._missing = length - (size - at)
                    break
                new = rewrite(tag, buffer, at + 5, at + length)
                if new is not None:
                    out += (buffer[begin:at], new)
                    begin = at + length
                at += length
            out.append(buffer[begin:at])
        except MustWaitError as held:  # the message stays in the buffer until it is handled again
            out += (buffer[begin:at], held.instead)
        except Exception as error:
            out.append(buffer[begin:at])
            failure = error
        self.rest = buffer[at:]
        return failure


class PostgresWire:
    """One connection of an application: its messages in both directions.

    The application's messages have three phases. A connection ``starts`` until the server knows the
    user and the database. After that, its messages are ``observed``, or they ``pass`` without being
    examined, either because the connection cannot be observed or because an earlier message could
    not be understood.

    Attributes:
        cancels: whether the connection only requests that a statement be cancelled.
        broken: whether the server's messages can no longer be understood.
        call: the number of the application's call that the connection belongs to; 0 if unknown.
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
        self._to_client, self._to_server = to_client, to_server
        self.cancels = self.broken = self._ended = False
        self.call = 0
        self._phase: Literal["starts", "observed", "pass"] = "starts"
        self._conversation: Conversation | None = None
        self._requests: RequestRewriter
        self._answers: AnswerRewriter
        self._from_client, self._from_server = MessageBuffer(), MessageBuffer()

    def oldest_event(self) -> int | None:
        """Return the position of this connection's first event that has not been written yet."""
        return None if self._conversation is None else self._conversation.oldest_event()

    def transaction_of(self, backend: int) -> SeenTransaction | None:
        """Return the open transaction, if the connection is that of a process of the server."""
        session = None if self._conversation is None else self._conversation.session
        return None if session is None or session.backend != backend else session.transaction

    def waiting_bytes(self) -> int:
        """Return the number of bytes from the application that wait for a catalogue result."""
        rest = self._from_client.rest
        return len(rest) if rest and self.is_waiting else 0

    @property
    def is_waiting(self) -> bool:
        """Return whether the application's messages wait for a catalogue result."""
        return self._conversation is not None and self._conversation.is_waiting

    @property
    def is_idle(self) -> bool:
        """Return whether the server has answered everything in an observed session."""
        talk = self._conversation
        return talk is not None and not talk.expected and not self._from_client.rest

    def executions(self) -> list[ExecutedStatement]:
        """Return the statements that the server has not answered yet."""
        talk = self._conversation
        return [] if talk is None else [*talk.unanswered_executions()]

    def executed(self) -> int:
        """Return how many statements the open transaction has executed; 0 if none is open."""
        transaction = None if self._conversation is None else self._conversation.session.transaction
        return 0 if transaction is None else transaction.sent

    def handle_client_bytes(self, data: bytes) -> None:
        """Handle bytes from the application."""
        buffer = self._from_client
        if not buffer.take(data):
            return
        out: list[bytes] = []
        if self._phase == "starts":
            self._start(out)
        if self._phase == "observed" and not self.is_waiting:
            failure = buffer.forward(out, _OF_APPLICATIONS, self._requests.rewrite)
            if failure is not None:
                self._give_up(failure)
                self._phase = "pass"
        if self._phase == "pass":
            out.append(buffer.remove_first(len(buffer.rest)))
        if sent := b"".join(out):
            self._to_server(sent)

    def _give_up(self, failure: Exception) -> None:
        """Stop observing after a message that cannot be understood. Count internal errors."""
        if not isinstance(failure, (ValueError, IndexError, struct.error)):
            self._history.unseen.note(ERRORS, repr(failure))
        assert self._conversation is not None
        self._conversation.session.note_broken()

    def _start(self, out: list[bytes]) -> None:
        """Handle the messages sent by the application before the session begins."""
        buffer = self._from_client
        while self._phase == "starts" and len(buffer.rest) >= 8:
            length, code = _u32(buffer.rest)[0], _u32(buffer.rest, 4)[0]
            if not 8 <= length <= _MOST_SHORT:  # the server will reject this message
                self._phase = "pass"
            elif len(buffer.rest) < length:
                break
            elif code in (_SSL, _GSS):
                buffer.remove_first(length)
                self._to_client(b"N")
            else:
                out.append(buffer.remove_first(length))
                self.cancels = code == _CANCEL
                observed = not self.cancels and self._begin(out[-1])
                self._phase = "observed" if observed else "pass"

    def _begin(self, startup: bytes) -> bool:
        """Begin a session with its StartupMessage; return whether it can be observed."""
        parts = startup[8:].split(b"\0")
        reported = dict(zip(parts[::2], parts[1::2], strict=False))
        database = (reported.get(b"database") or reported.get(b"user", b"")).decode(
            errors="replace"
        )
        observation = self._observe(database)
        if observation is None or reported.get(b"replication"):
            self._history.unseen.note(NOT_OBSERVED, database)
            return False
        session = Session(observation, self.call)
        session.names.set_label(reported.get(b"application_name", b""))
        self._conversation = shared = Conversation(session)
        self._requests = RequestRewriter(shared, resume=lambda: self.handle_client_bytes(b""))
        self._answers = AnswerRewriter(shared)
        return True

    def handle_server_bytes(self, data: bytes) -> None:
        """Handle bytes from the server."""
        if self._conversation is None:
            self._to_client(data)
            return
        if self.broken or not self._from_server.take(data):
            return
        out: list[bytes] = []
        failure = self._from_server.forward(out, _OF_SERVERS, self._answers.rewrite)
        if failure is not None:
            self.broken = True
            self._give_up(failure)
        if sent := b"".join(out):
            self._to_client(sent)
        if self._from_client.rest and not self.is_waiting:
            self.handle_client_bytes(b"")

    def refuse(self, data: bytes, why: str) -> bool:
        """Tell the application that the server cannot be reached; return whether it knows now.

        libpq does not show an error that answers a request for encryption, so the error answers the
        message after it.
        """
        if data in _ENCRYPTION_REQUESTS:
            self._to_client(b"N")
            return False
        text = f"isocheck observe cannot connect to the server: {why}".encode()
        self._to_client(message(b"E", b"SFATAL\0VFATAL\0C08001\0M" + text + b"\0\0"))
        return True

    def lost(self) -> None:
        """Note that the connection has ended."""
        if self._ended:
            return
        self._ended = True
        if self._conversation is not None:
            self._conversation.session.lost([*self._conversation.unanswered_executions()])
