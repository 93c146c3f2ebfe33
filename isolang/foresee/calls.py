"""Represents the recorded calls of an application, and makes them again with labels."""

from __future__ import annotations

import ast
import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

_LABEL: Final[ContextVar[str]] = ContextVar("isolation label", default="")
_CLIENT: Final[ContextVar[int]] = ContextVar("isolation client", default=0)
_CLIENTS: Final = count(1)


def current_label() -> str:
    """Return the label for transactions that begin now; empty outside an :class:`AppCall`."""
    return _LABEL.get()


def current_client() -> int:
    """Return the number of the current :class:`AppCall`; 0 if no call is being made."""
    return _CLIENT.get()


class AppCall(Struct, frozen=True):
    """A recorded call of the application that can be made again.

    Attributes:
        function: the function; the result of a coroutine function is awaited in a new event loop.
        number: the number of transactions that the call ran.
        clients: the numbers of the times that the call was made, as :func:`current_client` returns.
        shown: the text for the call in messages; if empty, messages show the function and its
            arguments.
        sent: for each operation in the call's transaction, the number of statements sent by the
            call up to and including the operation's statement; empty if the recording states this.
    """

    function: Callable[..., object]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    number: int = 1
    clients: list[int] = field(default_factory=list)
    shown: str = ""
    sent: tuple[int, ...] = ()

    def again(self) -> object:
        """Make the call again, labelling its transactions, and return its result."""
        with self.labelling():
            result = self.function(*self.args, **self.kwargs)
            return asyncio.run(_await_result(result)) if inspect.isawaitable(result) else result

    @contextmanager
    def labelling(self) -> Iterator[None]:
        """Label the transactions that begin in this context, and put them in a new session."""
        number = next(_CLIENTS)
        self.clients.append(number)
        before, client = _LABEL.set(self.label), _CLIENT.set(number)
        try:
            yield
        finally:
            _LABEL.reset(before)
            _CLIENT.reset(client)

    def __str__(self) -> str:
        arguments = [*map(repr, self.args), *(f"{name}={v!r}" for name, v in self.kwargs.items())]
        return self.shown or f"{self.name}({', '.join(arguments)})"

    @property
    def label(self) -> str:
        """The label of the call's transactions.

        The label is the text of the call if its arguments can be parsed from that text; otherwise,
        it is the function's name.
        """
        try:
            for one in (*self.args, *self.kwargs.values()):
                if ast.literal_eval(repr(one)) != one:
                    return self.name
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return self.name
        return str(self)

    @property
    def name(self) -> str:
        """The function's name; for a callable object, the name of its class."""
        name: str = getattr(self.function, "__qualname__", type(self.function).__name__)
        return name.rpartition("<locals>.")[2]

    @property
    def where(self) -> str:
        """The ``file:line`` of the function; empty if it is not written in Python."""
        code = getattr(self.function, "__code__", None)
        return f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code else ""

    @property
    def located(self) -> str:
        """The call with the ``file:line`` of its function, for messages."""
        return f"{self} ({self.where})" if self.where else str(self)


async def _await_result(result: Any) -> object:
    return await result
