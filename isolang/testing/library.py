"""The interface of the libraries through which applications speak to PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from isolang.testing.hooks import Hooks, Steps

if TYPE_CHECKING:
    from isolang.testing.driver import DriverWatch

State: TypeAlias = Literal["idle", "open", "failed", "unknown"]
"""Of the transaction of a connection; ``unknown``: it is closed, or has not been answered."""


class Sent(Protocol):
    """A statement of the application, and how its library sends it.

    Attributes:
        connection: that it is sent over.
        text: as it is written, without its values; empty if that is not known.
    """

    connection: Any
    text: str

    @property
    def first_only(self) -> bool:
        """Return whether of several rows the application gets the first one."""
        ...

    @property
    def send(self) -> Callable[[], Any]:
        """The application's own call."""
        ...

    def literal(self) -> str:
        """The statement with a literal for each value; empty if they cannot be spelt."""
        ...

    def ask(self, query: str, *values: object) -> Steps:
        """Send a query of the watch, made of the parts of :meth:`literal`, and give its rows."""
        ...

    def count(self, result: Any) -> int | None:
        """Return how many rows the application received; ``None`` if that is unknown."""
        ...

    def output_rows(self, result: Any, width: int) -> tuple[list[str], list[list[Any]] | None]:
        """The rows that the application was given, of a SELECT with so many columns.

        Returns:
            The names of the columns, if they are known, and the rows: as of :meth:`returning`.
        """
        ...

    def hidden(self, selected: str) -> Steps:
        """Send a write that returns what the application does not see.

        Returns:
            What the application is given, and the rows: each value as text, or ``None``.
        """
        ...

    def returning(self) -> Steps:
        """Send a write that returns something to the application.

        Returns:
            What the application is given, and the rows: each value as the server reads it, or
            ``None``, also where it is not known how that spells it; ``None`` if no row is known.
        """
        ...


class Library(Protocol):
    """One of the libraries that are watched.

    Attributes:
        name: of the method that watches it.
    """

    name: str

    def hook(self, hooks: Hooks, watch: DriverWatch) -> None:
        """Have its public methods tell the watch."""
        ...

    def place(self, connection: Any) -> tuple[Any, ...]:
        """Host, port and database, as libpq has them; nothing once it is closed."""
        ...

    def state(self, connection: Any) -> State:
        """Return the state of the transaction of a connection."""
        ...

    def begins(self, connection: Any) -> bool:
        """Return whether a statement begins a transaction, where there is none."""
        ...

    def pipelined(self, connection: Any) -> bool:
        """Return whether statements are sent before earlier ones are answered."""
        ...

    def refused(self, result: Any) -> bool:
        """Return whether what a COMMIT was answered says that it rolled back."""
        ...
