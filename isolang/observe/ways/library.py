"""Moves a library's connections to the proxy, and notes the callers of its statements."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from isolang.observe.sql.notes import CallNote
from isolang.observe.unseen import OUTSIDE, table_added_to
from isolang.observe.ways.callers import caller
from isolang.observe.ways.hooks import Hooks, Steps
from isolang.observe.ways.inside import PROXIES, InsideProxy
from isolang.observe.wire.address import CONNECTS_ITSELF, OWN_CONNECTIONS

if TYPE_CHECKING:
    from typing import Self

    from isolang.observe.unseen import Unseen


class Library(Protocol):
    """A library through which applications use a database.

    Attributes:
        name: the name of the ``Isolation`` method that watches the library.
        proxy: the class of the proxy that its connections go through.
    """

    name: str
    proxy: type[InsideProxy]

    def hook(self, hooks: Hooks, watch: LibraryWatch) -> None:
        """Replace the library's ``connect``, and note each statement that it sends."""
        ...

    def connections(self) -> tuple[type, ...]:
        """Return the classes of the library's connections."""
        ...

    def backend(self, connection: Any) -> int:
        """Return the number of the server's process for a connection; 0 if it is closed."""
        ...

    def is_pipelined(self, connection: Any) -> bool:
        """Return whether a call may return before its statement is sent."""
        ...

    def address(self, connection: Any) -> tuple[str, int]:
        """Return the host and the port of a connection's server."""
        ...


class LibraryWatch:
    """A context manager that records what an application does through one library.

    Attributes:
        proxy: the proxy that the library's connections go through.
    """

    def __init__(
        self,
        proxy: InsideProxy,
        library: Library,
        *,
        label: Callable[[], str] = str,
        client: Callable[[], int] = int,
    ) -> None:
        """Store the settings.

        Args:
            label: a function that returns the name of the application's current call.
            client: a function that returns the number of that call; 0 if there is none.
        """
        self.proxy, self.library = proxy, library
        self._label, self._client = label, client
        self._hooks = Hooks()
        self._ending = ExitStack()

    def __enter__(self) -> Self:
        """Move the library's new connections to the proxy.

        Raises:
            IsolangError: the library is not installed.
        """
        self.library.hook(self._hooks, self)
        if "sqlalchemy" in sys.modules:
            from isolang.observe.ways.mapped import renew_connections

            self._ending.callback(renew_connections(self))
        return self

    def __exit__(self, *_: object) -> None:
        """Let the library connect to the server again."""
        self._ending.close()
        self._hooks.remove()

    @property
    def unseen(self) -> Unseen:
        """The counts of activity that was not recorded, by kind, with an example of each.

        They are false if all of them are harmless.
        """
        return self.proxy.unseen()

    # --- calls of the library ---

    def is_own(self) -> bool:
        """Return whether the observer itself opens a connection."""
        return CONNECTS_ITSELF.get()

    def connected(self, connection: Any) -> Any:
        """Note that a connection goes through the proxy, and return it."""
        PROXIES[connection] = self.proxy
        return connection

    def noted(
        self, connection: Any, text: str, send: Callable[[], Any], *, repeats: bool = False
    ) -> Steps:
        """Note the caller of a statement while the library sends it."""
        note = self.note(connection, text, repeats=repeats)
        sent = False
        try:
            result = yield send
            sent = self.library.is_pipelined(connection)  # perhaps later
            return result
        finally:
            if note is not None and not sent:
                self.proxy.notes.remove(*note)

    def note(
        self, connection: Any, text: str, *, repeats: bool = False, later: bool = False
    ) -> tuple[int, CallNote] | None:
        """Note the caller of the next statement; return the note and where it waits.

        A statement over a connection that does not go through the proxy is counted as unseen.
        """
        if not self.proxy.is_here():
            return None  # the proxy's thread, which takes notes, is in the parent
        if PROXIES.get(connection) is not self.proxy:
            self._note_outside(connection, text)
            return None
        backend = self.library.backend(connection)
        if not (backend and text):
            return None
        note = CallNote(text, caller(), self._label(), self._client(), repeats, later)
        self.proxy.notes.add(backend, note)
        return backend, note

    def is_missed(self, connection: Any) -> bool:
        """Return whether a connection of the library reaches the watched server unseen."""
        return isinstance(connection, self.library.connections()) and self._is_missed(connection)

    def _is_missed(self, connection: Any) -> bool:
        through = PROXIES.get(connection)
        if through is self.proxy or connection in OWN_CONNECTIONS:
            return False
        if through is not None:
            return through.is_over and self.proxy.serves(through.server.host, through.server.port)
        return self.proxy.serves(*self.library.address(connection))

    def _note_outside(self, connection: Any, text: str) -> None:
        """Count a statement over a connection that does not go through the proxy."""
        through = PROXIES.get(connection)
        if self._is_missed(connection):
            self.proxy.outside.note(OUTSIDE, text, table=table_added_to(text))
        elif through is None and connection not in OWN_CONNECTIONS:
            host, port = self.library.address(connection)
            self.proxy.outside.note("databases", f"{host}:{port}" if host else "")


def text_of(query: Any, connection: Any) -> str:
    """Return the text of a statement of psycopg or psycopg2; empty if it cannot be told."""
    if isinstance(query, bytes):
        return query.decode(errors="replace")
    if hasattr(query, "as_string"):
        return str(query.as_string(connection))
    return query if isinstance(query, str) else ""


def noting(watch: LibraryWatch, *, repeats: bool = False) -> Any:
    """Return the steps of a method whose owner has a connection and whose argument is a text."""

    def steps(original: Any, owner: Any, query: Any = "", *args: Any, **options: Any) -> Steps:
        send = partial(original, owner, query, *args, **options)
        connection = owner.connection
        return (
            yield from watch.noted(connection, text_of(query, connection), send, repeats=repeats)
        )

    return steps
