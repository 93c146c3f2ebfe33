"""Sends and receives the packets of a connection."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any, Final

from isolang.observe.mariadb.packets import LONGEST, packet

_MOST_WAITING: Final = 1 << 20  # the most bytes to keep before the sender must wait
_MOST_BUFFERED: Final = 1 << 16  # the most bytes to collect before they are sent


class PacketStream(asyncio.Protocol):
    """One side of a proxied connection.

    What is written is collected, and sent as soon as this stream or its peer waits for a packet.

    Attributes:
        sequence: the number of the next packet to send.
        peer: the other side.
    """

    def __init__(self) -> None:
        """Create a stream that has no connection yet."""
        self.sequence = 0
        self.peer: PacketStream | None = None
        self.transport: Any = None
        self._data, self._at = bytearray(), 0
        self._out = bytearray()
        self._waiter: asyncio.Future[None] | None = None
        self._can_write: asyncio.Future[None] | None = None
        self._is_closed = self._is_paused = False

    def connection_made(self, transport: Any) -> None:
        """Take the connection."""
        self.transport = transport
        stream = transport.get_extra_info("socket")
        if stream is not None and stream.family != socket.AF_UNIX:
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        """Keep what was received until somebody reads it."""
        self._data += data
        if len(self._data) - self._at > _MOST_WAITING and not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        """End all waiting."""
        self._is_closed = True
        self._wake()
        self.resume_writing()

    def pause_writing(self) -> None:
        """Let writers wait."""
        self._can_write = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """Let writers go on."""
        if self._can_write is not None and not self._can_write.done():
            self._can_write.set_result(None)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def read(self) -> bytes:
        """Return the next message, which may consist of several packets.

        Raises:
            ConnectionError: the connection has ended.
        """
        while (data := self._next()) is None:
            self.flush()
            if self.peer is not None:
                self.peer.flush()
            if self._is_closed:
                raise ConnectionResetError("the connection has ended")
            if self._is_paused:  # a message that is longer than what may wait
                self._is_paused = False
                self.transport.resume_reading()
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return data

    def _next(self) -> bytes | None:
        data, at, parts = self._data, self._at, list[bytes]()
        while True:
            if len(data) < at + 4:
                return None
            size = int.from_bytes(data[at : at + 3], "little")
            if len(data) < at + 4 + size:
                return None
            sequence = data[at + 3]
            parts.append(bytes(data[at + 4 : at + 4 + size]))
            at += 4 + size
            if size < LONGEST:
                break
        self.sequence = (sequence + 1) & 255
        self._at = at
        if at == len(data):
            data.clear()
            self._at = 0
        elif at > _MOST_BUFFERED:
            del data[:at]
            self._at = 0
        if self._is_paused and len(self._data) - self._at < _MOST_WAITING // 2:
            self._is_paused = False
            self.transport.resume_reading()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def write(self, data: bytes) -> None:
        """Collect a message to send."""
        self._out += packet(data, self.sequence)
        self.sequence = (self.sequence + 1 + len(data) // LONGEST) & 255

    async def encrypt(self, context: ssl.SSLContext, name: str) -> None:
        """Send what was collected, and encrypt what follows.

        Raises:
            OSError: the other side cannot do so, or its certificate is refused.
        """
        self.flush()
        loop = asyncio.get_running_loop()
        self.transport = await loop.start_tls(
            self.transport, self, context, server_hostname=name or None
        )

    def flush(self) -> None:
        """Send what was collected."""
        if self._out:
            self.transport.write(bytes(self._out))
            self._out.clear()

    async def drain(self) -> None:
        """Send what was collected if it is much, and wait until the receiver takes it."""
        if len(self._out) > _MOST_BUFFERED:
            self.flush()
        if self._can_write is not None and not self._is_closed:
            await self._can_write
            self._can_write = None

    def close(self) -> None:
        """Send what was collected, and close the connection."""
        if self.transport is not None:
            self.flush()
            self.transport.close()
