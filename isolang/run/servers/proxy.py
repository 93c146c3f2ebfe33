"""Runs a proxy in front of a started server, to delay or lose data and to cut connections."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, Literal, TypeAlias

ServerAddress: TypeAlias = str | tuple[str, int]
"""The address of a server: the path of a socket, or a host and a port."""

Direction: TypeAlias = Literal["requests", "answers"]
IsBlocked: TypeAlias = Callable[[Direction], bool]
"""Returns whether the connection must now hold back data in this direction."""

_CHUNK: Final = 1 << 16
_POLL: Final = 0.02  # the seconds between two checks


class Proxy:
    """A proxy that forwards data between clients and a server, in its own threads.

    Attributes:
        delay: the number of seconds for which the proxy holds data before forwarding it.
    """

    def __init__(
        self,
        server: ServerAddress,
        is_blocked: Callable[[int], IsBlocked] | None = None,
        *,
        name: str = "proxy",
    ) -> None:
        """Listen on a free port, or on a socket with the server's name in a new folder."""
        self.delay = 0.0
        self._is_blocked = is_blocked
        self._server = server
        self._lost: Direction | None = None
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self.where: ServerAddress
        if isinstance(server, str):
            folder = os.path.join(os.path.dirname(server), name)
            os.makedirs(folder, exist_ok=True)
            self.where = os.path.join(folder, os.path.basename(server))
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(self.where)
            os.chmod(self.where, 0o777)  # servers that run as other users must be able to connect
        else:
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.where = self._listener.getsockname()
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> tuple[str, int]:
        """Return the host and port at which the proxy listens, unless it listens on a socket."""
        assert not isinstance(self.where, str)
        return self.where

    def cut_connections(self) -> None:
        """Close all open connections."""
        with self._lock:
            ended, self._open = self._open, set()
        for one in ended:
            _end(one)

    @contextmanager
    def lose_message(self, direction: Direction) -> Iterator[None]:
        """Return a context that drops the next message in this direction and disconnects.

        If the direction is ``requests``, the server never receives the message. If it is
        ``answers``, the server has sent the message, but the client never receives it.
        """
        self._lost = direction
        try:
            yield
        finally:
            self._lost = None

    def close(self) -> None:
        """Stop listening, and close all connections."""
        _end(self._listener)
        self.cut_connections()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # the proxy has been closed
                return
            server = socket.socket(
                socket.AF_UNIX if isinstance(self._server, str) else socket.AF_INET
            )
            try:
                server.connect(self._server)
            except OSError:  # the server is down
                _end(client)
                server.close()
                continue
            with self._lock:
                self._open |= {client, server}
            is_blocked = (
                None if self._is_blocked is None else self._is_blocked(client.getpeername()[1])
            )
            for pair, direction in (((client, server), "requests"), ((server, client), "answers")):
                passed = (*pair, direction, is_blocked)
                threading.Thread(target=self._pass, args=passed, daemon=True).start()

    def _pass(
        self,
        source: socket.socket,
        sink: socket.socket,
        direction: Direction,
        is_blocked: IsBlocked | None,
    ) -> None:
        with suppress(OSError):  # one of the two sockets has been closed
            while data := source.recv(_CHUNK):
                if self._lost == direction:
                    break
                if self.delay:
                    time.sleep(self.delay)
                while is_blocked is not None and is_blocked(direction):
                    time.sleep(_POLL)
                sink.sendall(data)
        with self._lock:
            self._open -= {source, sink}
        _end(source)
        _end(sink)


def _end(one: socket.socket) -> None:
    """Close a socket, even if another thread is waiting for data on it."""
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
