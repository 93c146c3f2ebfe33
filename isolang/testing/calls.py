"""Makes a test's calls of the application, and keeps what is needed to make them again."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any, TypeVar

from isolang.foresee.calls import AppCall
from isolang.harm.outcome import answer_of, answer_of_error
from isolang.testing.watching import Watches

_T = TypeVar("_T")


class Calls(Watches):
    """The recordings of one test, and the calls that it makes through :meth:`call`."""

    def setup(self, function: Callable[[], object]) -> None:
        """Call a function that prepares the database, both now and before playing each prediction.

        A test must call ``setup`` before it starts any watch.
        """
        self._setup = function
        function()

    def call(self, function: Callable[..., _T], *args: Any, **kwargs: Any) -> _T:
        """Call a function of the application, and remember the call for :meth:`foresee`.

        The call's transactions are labelled with the text of the call, such as ``pay(1, 30)``. If
        the function is a coroutine function, its result is awaited in a new event loop; in a test
        that runs in an event loop, the result must be awaited.
        """
        if inspect.iscoroutinefunction(function) and _has_loop():
            return self._call_later(function, args, kwargs)  # type: ignore[return-value]
        call = self._remembered(function, args, kwargs)
        if self._setup is None or not self._watches:
            return call.again()  # type: ignore[return-value]
        return self._replays.make(call, self.session)  # type: ignore[return-value]

    async def _call_later(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> object:
        call = self._remembered(function, args, kwargs)
        began, clock = time.time(), time.perf_counter()
        with call.labelling():
            try:
                result = await function(*args, **kwargs)
            except Exception as error:
                self._replays.remember(call, self.session, began, answer_of_error(error, clock))
                raise
        self._replays.remember(call, self.session, began, answer_of(result, clock))
        return result

    def _remembered(
        self, function: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> AppCall:
        """Remember a call, which is about to be made, and return it."""
        call = AppCall(function, args, kwargs)
        self._calls.append(call)
        return call

    def effect(self, effect: object) -> None:
        """Report an effect outside the database, such as a mail that the application sends.

        The harm of a violation compares the effects of the concurrent run with those of each serial
        order. Mails in Django's ``mail.outbox`` need no report.
        """
        self._replays.effects.report(effect)

    def invariant(self, function: Callable[[], object]) -> None:
        """Add a condition that must hold after the calls, for the harm of a violation.

        The function raises an error, or returns ``False``, if the condition does not hold.
        """
        self._replays.effects.invariants.append(function)

    def ignore(self, *names: str) -> None:
        """Add tables and columns that the harm of a violation does not compare.

        A name is that of a table, a column such as ``account.visits``, or a column of all tables
        such as ``*.visits``. A test must call this before it starts any watch.
        """
        self._replays.ignored += names


def _has_loop() -> bool:
    """Return whether an event loop is running in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
