"""Runs generators of steps, which let synchronous and asynchronous code share one implementation.

Such a generator yields steps, and receives their results. The function that runs the generator
calls each step, and awaits its result if necessary.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from inspect import isawaitable
from typing import Any, TypeVar

_Step = TypeVar("_Step")
_T = TypeVar("_T")


def run_steps(steps: Generator[_Step, Any, _T], call: Callable[[_Step], object]) -> _T:
    """Call all steps, pass their results and errors to the generator, and return its own result."""
    coroutine = _step_results(steps, call, awaits=False)
    try:
        coroutine.send(None)  # the coroutine ends immediately, because it awaits nothing
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError


async def run_steps_async(steps: Generator[_Step, Any, _T], call: Callable[[_Step], object]) -> _T:
    """Call all steps as :func:`run_steps` does, and await each result that must be awaited."""
    return await _step_results(steps, call, awaits=True)


async def _step_results(
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
