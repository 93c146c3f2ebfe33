"""Methods of psycopg's public classes that are replaced for a while, in both of its worlds.

What is done around a method is written once, as a generator that yields the calls of psycopg and is
sent their results: for a connection of asyncio they are awaited.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import wraps
from typing import Any, Final

from isolang.run.steps import awaited, driven

_ASYNC: Final = {"__enter__": "__aenter__", "__exit__": "__aexit__"}


class Hooks:
    """What was replaced, so that it can be put back."""

    def __init__(self) -> None:
        self._replaced: list[tuple[type, str, Any]] = []

    @property
    def active(self) -> bool:
        """Whether methods are replaced now."""
        return bool(self._replaced)

    def around(
        self, owner: str, name: str, steps: Callable[..., Generator[Callable[[], Any], Any, Any]]
    ) -> None:
        """Replace a method by a generator that is given the original one and its arguments."""
        import psycopg

        later, sooner = _ASYNC.get(name, name), getattr(psycopg, owner)
        original = getattr(sooner, name)

        @wraps(original)
        def now(*args: Any, **options: Any) -> Any:
            return driven(steps(original, *args, **options), _called)

        asynchronous = getattr(getattr(psycopg, f"Async{owner}"), later)

        @wraps(asynchronous)
        async def then(*args: Any, **options: Any) -> Any:
            return await awaited(steps(asynchronous, *args, **options), _called)

        self._replace(sooner, name, now)
        self._replace(getattr(psycopg, f"Async{owner}"), later, then)

    def before(self, owner: str, name: str, note: Callable[..., None]) -> None:
        """Call a function with the arguments before a method."""
        import psycopg

        for kind in (getattr(psycopg, owner), getattr(psycopg, f"Async{owner}")):
            self._replace(kind, name, _after(note, getattr(kind, name)))

    def _replace(self, owner: type, name: str, by: Any) -> None:
        self._replaced.append((owner, name, vars(owner).get(name)))
        setattr(owner, name, by)

    def remove(self) -> None:
        """Put everything back."""
        for owner, name, original in reversed(self._replaced):
            if original is None:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
        self._replaced = []


def _after(note: Callable[..., None], original: Any) -> Any:
    @wraps(original)
    def replaced(*args: Any, **options: Any) -> Any:
        note(*args, **options)
        return original(*args, **options)

    return replaced


def _called(call: Callable[[], Any]) -> Any:
    return call()
