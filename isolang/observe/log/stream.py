"""Reads the binary log from a MariaDB server, as a replica does.

The server sends the events that are in the log, then waits for new ones. Without new ones, it sends
a heartbeat, so a reader that receives nothing at all has lost its server.

A non-blocking reader, whose connection the server resets at the end of the log, may lose events
that it has not read. This one blocks, and its owner closes the connection.
"""

from __future__ import annotations

import random
import socket
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from isolang.observe.log import events
from isolang.observe.log.events import Event, LogError, parse_event, parse_rotate

_DUMP: Final = 0x12  # the command COM_BINLOG_DUMP
_ANNOTATIONS: Final = 2
_HEARTBEAT_S: Final = 5
_CHECKSUM_BYTES: Final = 4
_SETTINGS: Final = (
    "SET @mariadb_slave_capability = 4, @master_binlog_checksum = @@global.binlog_checksum, "
    f"@master_heartbeat_period = {_HEARTBEAT_S * 1_000_000_000}",
    "SET SESSION net_write_timeout = 3600",
)


class LogPosition(Struct, frozen=True, order=True):
    """A position in the log.

    Attributes:
        order: the number of characters in the file's name, as log 999,999 precedes 1,000,000.
    """

    order: int
    file: str
    offset: int


def position(file: str, offset: int) -> LogPosition:
    """Return a position in a file of the log."""
    return LogPosition(len(file), file, offset)


class LogStream:
    """The events of a server's log behind a position."""

    def __init__(self, connect: Callable[[], Any], start: LogPosition) -> None:
        """Connect as a replica. The role needs the privilege REPLICATION SLAVE."""
        self.position = start
        self._closed = self._checked = False
        self._connection = connect()
        with self._connection.cursor() as cursor:
            for statement in _SETTINGS:
                cursor.execute(statement)
        # Of two readers with the same number, the server disconnects the first.
        replica = random.SystemRandom().randrange(1 << 24, 1 << 32)
        request = struct.pack("<IHI", start.offset, _ANNOTATIONS, replica) + start.file.encode()
        # PyMySQL knows passwords, TLS and packets; it has no public method for this command.
        self._connection._execute_command(_DUMP, request)
        self._connection._read_timeout = 12 * _HEARTBEAT_S

    def __iter__(self) -> Iterator[Event]:
        """Yield events until the stream is closed.

        Raises:
            LogError: the server has ended the stream.
        """
        while True:
            try:
                data = self._connection._read_packet().get_all_data()
            except Exception as error:
                if self._closed:
                    return
                raise LogError(f"the server's log ended: {error}") from error
            if data[:1] != b"\0":
                raise LogError("the server ended its log")
            event = parse_event(self._without_checksum(data[1:]))
            if event.kind == events.ROTATE:
                self.position = position(*parse_rotate(event))
            elif event.kind == events.HEARTBEAT:
                file = event.body.rstrip(b"\0").decode("utf-8", "replace")
                if file == self.position.file and event.end > self.position.offset:
                    self.position = position(file, event.end)
            elif event.end and event.kind != events.FORMAT:
                self.position = position(self.position.file, event.end)
            yield event

    def _without_checksum(self, data: bytes) -> bytes:
        kind = data[4]
        correct = zlib.crc32(data[:-_CHECKSUM_BYTES]).to_bytes(4, "little") == data[-4:]
        if kind == events.FORMAT:
            # The byte in front of this event's checksum says whether the file's events have one.
            self._checked = data[-_CHECKSUM_BYTES - 1] == 1
        elif kind not in (events.ROTATE, events.HEARTBEAT) and self._checked and not correct:
            raise LogError(f"an event of type {kind} with a wrong checksum")
        elif kind not in (events.ROTATE, events.HEARTBEAT) and not self._checked:
            return data
        return data[:-_CHECKSUM_BYTES] if correct else data

    def close(self) -> None:
        """End the iteration, also one that waits in another thread."""
        self._closed = True
        with suppress(OSError, AttributeError):
            self._connection._sock.shutdown(socket.SHUT_RDWR)
        self._connection._force_close()
