"""A proxy between the clients and a server of our own: it delays, cuts and loses what is sent."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, Literal, TypeAlias

Where: TypeAlias = str | tuple[str, int]
"""A socket's path, or a host and a port."""

Direction: TypeAlias = Literal["requests", "answers"]
Held: TypeAlias = Callable[[Direction], bool]
"""Whether what is sent over a connection is held back now."""

_CHUNK: Final = 1 << 16
_POLL: Final = 0.02  # seconds


class Proxy:
    """Passes bytes on, in threads.

    Attributes:
        where: it listens here.
        delay: seconds that everything is kept for before it is passed on.
    """

    def __init__(
        self, server: Where, held: Callable[[int], Held] | None = None, *, name: str = "proxy"
    ) -> None:
        """Listen beside a server: on a socket of the same name in a folder, or on a free port.

        Args:
            server: where it listens.
            held: of a connection from a port; by default nothing is held back.
            name: of the folder that the socket is in.
        """
        self.delay = 0.0
        self._held = held
        self._server = server
        self._lost: Direction | None = None
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self.where: Where
        if isinstance(server, str):
            folder = os.path.join(os.path.dirname(server), name)
            os.makedirs(folder, exist_ok=True)
            self.where = os.path.join(folder, os.path.basename(server))
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(self.where)
            os.chmod(self.where, 0o777)  # a server that runs as another user may connect
        else:
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.where = self._listener.getsockname()
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port, of one that has some."""
        assert not isinstance(self.where, str)
        return self.where

    def cut(self) -> None:
        """End all connections that are open."""
        with self._lock:
            ended, self._open = self._open, set()
        for one in ended:
            _end(one)

    @contextmanager
    def losing(self, direction: Direction) -> Iterator[None]:
        """Lose the next thing that is sent, with the connection that it is sent over.

        What is lost of the ``requests`` never comes to the server; of the ``answers`` the server
        has sent it.
        """
        self._lost = direction
        try:
            yield
        finally:
            self._lost = None

    def close(self) -> None:
        """End everything."""
        _end(self._listener)
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # it was closed
                return
            server = socket.socket(
                socket.AF_UNIX if isinstance(self._server, str) else socket.AF_INET
            )
            try:
                server.connect(self._server)
            except OSError:  # the server is down: so is the client's connection
                _end(client)
                server.close()
                continue
            with self._lock:
                self._open |= {client, server}
            held = None if self._held is None else self._held(client.getpeername()[1])
            for pair, direction in (((client, server), "requests"), ((server, client), "answers")):
                passed = (*pair, direction, held)
                threading.Thread(target=self._pass, args=passed, daemon=True).start()

    def _pass(
        self, source: socket.socket, sink: socket.socket, direction: Direction, held: Held | None
    ) -> None:
        with suppress(OSError):  # one of the two was ended
            while data := source.recv(_CHUNK):
                if self._lost == direction:
                    break
                if self.delay:
                    time.sleep(self.delay)
                while held is not None and held(direction):
                    time.sleep(_POLL)
                sink.sendall(data)
        with self._lock:
            self._open -= {source, sink}
        _end(source)
        _end(sink)


def _end(one: socket.socket) -> None:
    """Close a socket, also while another thread waits for it."""
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
