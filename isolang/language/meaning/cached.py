"""Caches results about specifications, whose objects are compared by identity."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")
_RECENT = 32


def cached_by_identity(compute: Callable[[_Argument], _Result]) -> Callable[[_Argument], _Result]:
    """Return a function that caches another function's results for recent arguments.

    Arguments are compared by identity. The cache keeps a reference to each argument, because
    otherwise a new object could be given the same identity.
    """
    recent: dict[int, tuple[_Argument, _Result]] = {}

    @wraps(compute)
    def remembering(argument: _Argument) -> _Result:
        known = recent.get(id(argument))
        if known is not None and known[0] is argument:
            return known[1]
        result = compute(argument)
        for oldest in list(recent)[: len(recent) + 1 - _RECENT]:
            recent.pop(oldest, None)
        recent[id(argument)] = (argument, result)
        return result

    return remembering
