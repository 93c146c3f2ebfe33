"""Defines the interface between a watch and a library through which applications use PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from isolang.observe.drivers.hooks import Hooks, Steps

if TYPE_CHECKING:
    from isolang.observe.drivers.driver import DriverWatch

State: TypeAlias = Literal["idle", "open", "failed", "unknown"]
"""The transaction state of a connection; ``unknown`` if the connection is closed or busy."""


class Sent(Protocol):
    """A statement sent by the application, and the library call that sends it.

    Attributes:
        connection: the connection that the statement is sent over.
        text: the statement with placeholders for its values; empty if unknown.
    """

    connection: Any
    text: str

    @property
    def wants_first_only(self) -> bool:
        """Return whether the application receives only the first row of the result."""
        ...

    @property
    def send(self) -> Callable[[], Any]:
        """A function that sends the statement through the application's original library call."""
        ...

    def literal(self) -> str:
        """Return the statement with each value replaced by a literal.

        Return an empty string if some value cannot be written as a literal.
        """
        ...

    def ask(self, query: str, *values: object) -> Steps:
        """Send a query of the watch over the application's connection, and return its rows.

        Args:
            query: the query, which may contain parts of the text returned by :meth:`literal`.
            values: the values for the placeholders in the query.
        """
        ...

    def count(self, result: Any) -> int | None:
        """Return the number of rows received by the application; ``None`` if it is unknown."""
        ...

    def output_rows(self, result: Any, width: int) -> tuple[list[str], list[list[Any]] | None]:
        """Return the rows received by the application from a SELECT of ``width`` columns.

        Returns:
            The names of the columns, or an empty list if they are unknown; and the rows, in the
            same form as from :meth:`returning`.
        """
        ...

    def hidden(self, selected: str) -> Steps:
        """Send a write with a RETURNING clause whose rows are received only by the watch.

        Args:
            selected: the columns of the RETURNING clause.

        Returns:
            The result for the application, which is the same as without the clause; and the
            returned rows, with each value as text, or ``None`` for NULL.
        """
        ...

    def returning(self) -> Steps:
        """Send a write of the application that has its own RETURNING clause.

        Returns:
            The result for the application, and the rows that it received. Each value is in the form
            that the server reads. ``None`` represents NULL, or a value without such a form; instead
            of the rows, ``None`` means that they are unknown.
        """
        ...


class Library(Protocol):
    """A library whose connections can be recorded by a watch.

    Attributes:
        name: the name of the ``Isolation`` method that watches the library.
    """

    name: str

    def hook(self, hooks: Hooks, watch: DriverWatch) -> None:
        """Replace the library's public methods with methods that report to the watch."""
        ...

    def database_of(self, connection: Any) -> tuple[Any, ...]:
        """Return the host, port and database of a connection, in libpq's form.

        Return an empty tuple if the connection is closed.
        """
        ...

    def state(self, connection: Any) -> State:
        """Return the transaction state of a connection."""
        ...

    def begins_transaction(self, connection: Any) -> bool:
        """Return whether the next statement begins a transaction if none is open."""
        ...

    def is_pipelined(self, connection: Any) -> bool:
        """Return whether the connection sends statements before earlier results have arrived."""
        ...

    def was_rolled_back(self, result: Any) -> bool:
        """Return whether the result of a COMMIT shows that the server rolled back instead."""
        ...
