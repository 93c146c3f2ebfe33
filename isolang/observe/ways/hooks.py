"""Temporarily replaces methods of a library's public classes, so that calls can be recorded."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import wraps
from typing import Any, TypeAlias

from isolang.run.record.steps import run_steps, run_steps_async

Steps: TypeAlias = Generator[Callable[[], Any], Any, Any]
"""A generator that runs instead of a method: it yields functions to call, and receives the results.

The same generator can run as a coroutine that awaits the result of each call.
"""


class Hooks:
    """Replaces methods of classes, and keeps the originals until they are restored."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any]] = []

    @property
    def active(self) -> bool:
        """Return whether any method is currently replaced."""
        return bool(self._replaced)

    def replace_method(
        self, owner: type, name: str, steps: Callable[..., Steps], *, awaits: bool = False
    ) -> None:
        """Replace a method with the steps of a generator.

        Args:
            owner: the class that has the method.
            name: the name of the method.
            steps: the generator function; it receives the original method and the arguments of the
                call.
            awaits: whether the method is a coroutine function.
        """
        original = getattr(owner, name)

        @wraps(original)
        def now(*args: Any, **options: Any) -> Any:
            return run_steps(steps(original, *args, **options), _called)

        @wraps(original)
        async def then(*args: Any, **options: Any) -> Any:
            return await run_steps_async(steps(original, *args, **options), _called)

        self.replace(owner, name, then if awaits else now)

    def call_before(self, owner: type, name: str, note: Callable[..., None]) -> None:
        """Replace a method with one that first calls ``note`` with the same arguments."""
        original = getattr(owner, name)

        @wraps(original)
        def replacement(*args: Any, **options: Any) -> Any:
            note(*args, **options)
            return original(*args, **options)

        self.replace(owner, name, replacement)

    def replace(self, owner: Any, name: str, by: Any) -> None:
        """Replace an attribute of a class or a module."""
        self._replaced.append((owner, name, vars(owner).get(name)))
        setattr(owner, name, by)

    def remove(self) -> None:
        """Restore all replaced methods."""
        for owner, name, original in reversed(self._replaced):
            if original is None:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
        self._replaced = []


def _called(call: Callable[[], Any]) -> Any:
    return call()
