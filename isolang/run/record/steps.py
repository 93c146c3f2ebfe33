"""Runs generators of steps, which threads and coroutines share.

Such a generator yields steps and receives their results. The function that runs it calls each step,
and awaits the result if necessary.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from inspect import isawaitable
from typing import Any, TypeVar

_Step = TypeVar("_Step")
_T = TypeVar("_T")


def driven(steps: Generator[_Step, Any, _T], call: Callable[[_Step], object]) -> _T:
    """Call all steps, pass their results and errors to the generator, and return its result."""
    coroutine = _driven(steps, call, awaits=False)
    try:
        coroutine.send(None)  # it ends at once, because it awaits nothing
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError


async def awaited(steps: Generator[_Step, Any, _T], call: Callable[[_Step], object]) -> _T:
    """Call all steps as `driven` does, and await results that can be awaited."""
    return await _driven(steps, call, awaits=True)


async def _driven(
    steps: Generator[_Step, Any, _T], call: Callable[[_Step], object], *, awaits: bool
) -> _T:
    try:
        step = next(steps)
        while True:
            try:
                result = call(step)
                if awaits and isawaitable(result):
                    result = await result
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
