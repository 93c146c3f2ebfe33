"""Connects applications to their server, and forwards messages in both directions."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from typing import Any, Final, TypeVar

from isolang.errors import IsolangError
from isolang.observe.database import Wire
from isolang.observe.wire.address import ServerAddress
from isolang.observe.wire.holds import Holds

_SECONDS_BETWEEN_TASKS: Final = (
    0.2  # the number of seconds between regular tasks, such as writing the history
)
_MOST_WAITING_BYTES: Final = (
    1 << 20
)  # how many bytes from an application may wait while the catalogue is queried

Send = Callable[[bytes], None]
_T = TypeVar("_T")
_LONGEST_GATE: Final = 10.0  # how many seconds a call waits for the connections of others


class _Gate:
    """Holds the first connection of each of several calls until all have one."""

    def __init__(self, calls: Iterable[int]) -> None:
        self._missing = {*calls}
        self._open = asyncio.Event()

    def await_no_longer(self, call: int) -> None:
        """Do not wait for a call: it has a connection, or will have none."""
        self._missing.discard(call)
        if not self._missing:
            self._open.set()

    async def wait(self, call: int) -> None:
        """Wait until all calls have a connection, but not for long."""
        self.await_no_longer(call)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._open.wait(), _LONGEST_GATE)
        self._open.set()


class Listener:
    """A proxy in front of a server, running in its own thread.

    Attributes:
        pause: returns the seconds to hold each connection after an answer of the server, so that
            transactions overlap; ``None`` to hold none.
        holds: stops calls before their statements; ``None`` to stop none.
    """

    def __init__(
        self,
        server: ServerAddress,
        wire: Callable[[Send, Send], Wire],
        regularly: Callable[[], Awaitable[None]],
    ) -> None:
        """Store the server and the handlers; :meth:`start` starts listening.

        Args:
            wire: a function that creates the wire of a connection. Its arguments are two functions
                that send bytes to the application and to the server.
            regularly: a function called several times per second.
        """
        self.server, self.wire, self._regularly = server, wire, regularly
        self.pause: Callable[[], float] | None = None
        self.holds: Holds | None = None
        self.port = 0
        self.clients: set[_Client] = set()
        self._servers: list[asyncio.Server] = []
        self._gate: _Gate
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._ended: asyncio.Event
        self._leaving: asyncio.Event

    def start(self, host: str, port: int) -> None:
        """Start listening; port 0 means any free port.

        Raises:
            IsolangError: the port cannot be used.
        """
        ready = threading.Event()
        failures: list[OSError] = []

        def serve() -> None:
            try:
                asyncio.run(self._listen(host, port, ready))
            except OSError as error:
                failures.append(error)
                ready.set()

        self._thread = threading.Thread(target=serve, daemon=True)
        self._thread.start()
        ready.wait()
        if failures:
            raise IsolangError(
                f"observe: cannot listen at {host}:{port} (got {failures[0]}); hint: choose a "
                "free port with --listen HOST:PORT"
            )

    def open_ports(self, host: str, calls: Sequence[int], *, together: bool = True) -> list[int]:
        """Open a port for each of several calls of the application, and return the ports.

        A transaction belongs to the call of its port.

        Args:
            together: whether the first connections wait for each other.
        """

        async def open_all() -> list[int]:
            self._gate = gate = _Gate(calls if together else ())
            for call in calls:
                self._servers.append(
                    await self._loop.create_server(
                        lambda call=call: _Client(self, call, gate),  # type: ignore[misc]
                        host,
                        0,
                    )
                )
            opened = self._servers[-len(calls) :]
            return [int(server.sockets[0].getsockname()[1]) for server in opened]

        return asyncio.run_coroutine_threadsafe(open_all(), self._loop).result()

    def await_no_longer(self, call: int) -> None:
        """Let the calls with ports of their own no longer wait for one of them."""
        self.call(lambda: self._gate.await_no_longer(call))

    def call(self, function: Callable[[], _T]) -> _T:
        """Return the result of a function that runs between two messages of any connection.

        Raises:
            IsolangError: the listener no longer runs.
        """
        ended: Future[_T] = Future()

        def run() -> None:
            try:
                ended.set_result(function())
            except BaseException as error:
                ended.set_exception(error)

        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(run)
        while self._thread is not None and self._thread.is_alive():
            with suppress(FutureTimeout):
                return ended.result(_SECONDS_BETWEEN_TASKS)
        if ended.done():
            return ended.result()
        raise IsolangError("observe: the proxy has ended, and what it recorded is not complete")

    def leave(self) -> None:
        """Stop listening; the open connections end when their applications end them."""
        self._loop.call_soon_threadsafe(self._leaving.set)

    def stop(self) -> None:
        """Stop listening, and end all connections."""
        if self._thread is not None and self.port:
            self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join()

    async def _listen(self, host: str, port: int, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended, self._leaving = asyncio.Event(), asyncio.Event()
        server = await self._loop.create_server(lambda: _Client(self), host, port)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        while not self._ended.is_set() and not (self._leaving.is_set() and not self.clients):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), _SECONDS_BETWEEN_TASKS)
            if self._leaving.is_set():
                server.close()
            await self._regularly()
        for opened in (server, *self._servers):
            opened.close()
        for client in tuple(self.clients):
            client.abort()
        await asyncio.sleep(0)


class _Client(asyncio.Protocol):
    """The connection of an application."""

    def __init__(self, listener: Listener, call: int = 0, gate: _Gate | None = None) -> None:
        self._listener = listener
        self.wire = listener.wire(self._send, self._pass)
        self.wire.call, self._gate = call, gate
        self.transport: Any = None
        self.paused = False  # true if too many bytes are waiting for the catalogue
        self._is_paused = False
        self._server: _Server | None = None
        self._failure = ""  # why the server cannot be reached

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        _no_delay(transport)
        self._listener.clients.add(self)
        transport.pause_reading()
        self._reaching = asyncio.get_running_loop().create_task(self._connect_to_server())

    async def _connect_to_server(self) -> None:
        """Connect to the server, and start forwarding messages."""
        if self._gate is not None:
            await self._gate.wait(self.wire.call)
        try:
            self._server = await self._listener.server.open_connection(lambda: _Server(self))
        except (OSError, TimeoutError) as error:
            self._failure = str(error) or type(error).__name__
        self.transport.resume_reading()

    def _send(self, data: bytes) -> None:
        self.transport.write(data)

    def _pass(self, data: bytes) -> None:
        if self._server is not None:
            self._server.transport.write(data)

    def data_received(self, data: bytes) -> None:
        if self._failure:
            if self.wire.refuse(data, self._failure):
                self.transport.close()
            return
        if self._listener.holds is None or self._listener.holds.admits(self, data):
            self.take(data)

    def take(self, data: bytes) -> None:
        """Handle bytes from the application."""
        self.wire.handle_client_bytes(data)
        if self.wire.waiting_bytes() > _MOST_WAITING_BYTES:
            self.paused = True
            self.transport.pause_reading()

    @property
    def holds(self) -> Holds | None:
        """Return what stops calls before their statements; ``None`` if nothing does."""
        return self._listener.holds

    def hold(self) -> None:
        """Read nothing from the application for a while."""
        if self._listener.pause is None or self._is_paused:
            return
        self._is_paused = True
        self.transport.pause_reading()
        asyncio.get_running_loop().call_later(self._listener.pause(), self._end_hold)

    def _end_hold(self) -> None:
        self._is_paused = False
        if not self.paused and not self.transport.is_closing():
            self.transport.resume_reading()

    def pause_writing(self) -> None:
        if self._server is not None:
            self._server.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._server is not None and not self._server.transport.is_closing():
            self._server.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        if self._server is None:
            self.ended()
        elif not self._server.transport.is_closing():
            self._server.transport.close()

    def abort(self) -> None:
        """Close both connections immediately."""
        self.ended()
        self.transport.abort()
        if self._server is not None:
            self._server.transport.abort()

    def ended(self) -> None:
        """Note that the server has closed its connection."""
        if not self.wire.cancels:
            self.wire.lost()
        self._listener.clients.discard(self)


class _Server(asyncio.Protocol):
    """The connection to the server on behalf of an application."""

    def __init__(self, client: _Client) -> None:
        self._client = client
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        client = self._client
        if (holds := client.holds) is not None:
            holds.note_statements(client)
        client.wire.handle_server_bytes(data)
        client.hold()
        if client.wire.broken:
            client.abort()
        elif client.paused and not client.wire.is_waiting:
            client.paused = False
            client.transport.resume_reading()

    def pause_writing(self) -> None:
        self._client.transport.pause_reading()

    def resume_writing(self) -> None:
        if not self._client.transport.is_closing():
            self._client.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._client.ended()
        if not self._client.transport.is_closing():
            self._client.transport.close()


def _no_delay(transport: Any) -> None:
    one = transport.get_extra_info("socket")
    if one is not None and one.family != socket.AF_UNIX:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
