"""Defines the interface of libraries through which applications connect to PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from isolang.testing.hooks import Hooks, Steps

if TYPE_CHECKING:
    from isolang.testing.driver import DriverWatch

State: TypeAlias = Literal["idle", "open", "failed", "unknown"]
"""The state of a connection's transaction; ``unknown`` if the connection is closed or busy."""


class Sent(Protocol):
    """A statement of the application, with the way in which its library sends it.

    Attributes:
        connection: the connection over which it is sent.
        text: the text of the statement, without its values; empty if it is not known.
    """

    connection: Any
    text: str

    @property
    def first_only(self) -> bool:
        """Return whether the application receives only the first of several rows."""
        ...

    @property
    def send(self) -> Callable[[], Any]:
        """The call of the application."""
        ...

    def literal(self) -> str:
        """Return the statement with a literal for each value; empty if a value has no literal."""
        ...

    def ask(self, query: str, *values: object) -> Steps:
        """Send a query of the watch, made of parts of :meth:`literal`, and return its rows."""
        ...

    def count(self, result: Any) -> int | None:
        """Return how many rows the application received; ``None`` if that is unknown."""
        ...

    def output_rows(self, result: Any, width: int) -> tuple[list[str], list[list[Any]] | None]:
        """Return the rows that the application received from a SELECT of ``width`` columns.

        Returns:
            The names of the columns, if they are known, and the rows as :meth:`returning` has them.
        """
        ...

    def hidden(self, selected: str) -> Steps:
        """Send a write that returns rows to the watch but not to the application.

        Returns:
            The result for the application, and the rows: each value as text, or ``None``.
        """
        ...

    def returning(self) -> Steps:
        """Send a write that returns rows to the application.

        Returns:
            The result for the application, and the rows: each value as the server reads it, or
            ``None`` (also if its spelling is not known); ``None`` if no row is known.
        """
        ...


class Library(Protocol):
    """A library that can be watched.

    Attributes:
        name: the name of the method that watches the library.
    """

    name: str

    def hook(self, hooks: Hooks, watch: DriverWatch) -> None:
        """Make the public methods of the library report to the watch."""
        ...

    def place(self, connection: Any) -> tuple[Any, ...]:
        """Return host, port and database as libpq has them; empty if the connection is closed."""
        ...

    def state(self, connection: Any) -> State:
        """Return the state of the transaction of a connection."""
        ...

    def begins(self, connection: Any) -> bool:
        """Return whether a statement begins a transaction if none is open."""
        ...

    def pipelined(self, connection: Any) -> bool:
        """Return whether statements are sent before earlier statements are answered."""
        ...

    def refused(self, result: Any) -> bool:
        """Return whether the result of a COMMIT says that the server rolled back."""
        ...
