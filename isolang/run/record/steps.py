"""What is done around a transaction or a call, written once for threads and for coroutines.

It is a generator that yields steps and is sent what each of them gave; whoever drives it knows how
a step is called, and whether what it gives is awaited.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from inspect import isawaitable
from typing import Any, TypeVar

_Step = TypeVar("_Step")
_T = TypeVar("_T")


def driven(steps: Generator[_Step, Any, _T], call: Callable[[_Step], object]) -> _T:
    """Do all steps; what they raise, the generator is told."""
    coroutine = _driven(steps, call, awaits=False)
    try:
        coroutine.send(None)  # as nothing is awaited, it ends
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError


async def awaited(steps: Generator[_Step, Any, _T], call: Callable[[_Step], object]) -> _T:
    """Do all steps likewise, and await what they give where it can be."""
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
