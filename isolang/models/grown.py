"""Proposes orders for lists and sets that only grow, from what their reads show.

If nothing is removed, the reads of a list or a set come in the order of their sizes, and a value
comes before the first read that shows it. A proposed order is replayed; if it is wrong, the search
decides.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

from isolang.history.values import UNKNOWN
from isolang.models.distinct import Shortcut
from isolang.models.operation import Operation, exact

_Place = tuple[float, int, float]
"""The size that the object has afterwards, whether it is a read, and the start."""


def of_list(operations: Sequence[Operation]) -> Shortcut:
    """Return the order in which the longest read shows the values of a list."""
    reads = _reads(operations)
    if reads is None:
        return Shortcut()
    longest = max(reads.values(), key=len, default=())
    waiting: dict[Any, deque[int]] = {}
    for number in _growing(operations):
        waiting.setdefault(_key(operations[number].input), deque()).append(number)
    sizes: dict[int, float] = {}
    for size, value in enumerate(longest, 1):
        numbers = waiting.get(_key(value))
        if not numbers:
            return Shortcut()
        sizes[numbers.popleft()] = size
    return _in_order(operations, reads, sizes)


def of_set(operations: Sequence[Operation]) -> Shortcut:
    """Return an order in which each value comes just before the smallest read that shows it."""
    reads = _reads(operations)
    if reads is None:
        return Shortcut()
    smallest: dict[Any, float] = {}
    for values in sorted(reads.values(), key=len):
        for value in values:
            smallest.setdefault(_key(value), len(values))
    sizes = {
        number: smallest[key]
        for number in _growing(operations)
        if (key := _key(operations[number].input)) in smallest
    }
    return _in_order(operations, reads, sizes)


def _reads(operations: Sequence[Operation]) -> dict[int, Sequence[Any]] | None:
    """Return the values of each read; ``None`` if other operations than growing were seen."""
    reads: dict[int, Sequence[Any]] = {}
    for number, operation in enumerate(operations):
        if operation.f == "read" and operation.output is not UNKNOWN:
            reads[number] = tuple(operation.output or ())
        elif operation.f not in ("append", "add", "read") or (
            operation.f == "read" and operation.end != math.inf
        ):
            return None
    return reads


def _growing(operations: Sequence[Operation]) -> list[int]:
    """Return the operations that put a value in, in the order of their starts."""
    numbers = [n for n, operation in enumerate(operations) if operation.f != "read"]
    return sorted(numbers, key=lambda number: operations[number].start)


def _key(value: Any) -> Any:
    """Return what identifies a value; values that Python cannot hash are equal to no other."""
    try:
        return exact(value)
    except TypeError:
        return object()


def _in_order(
    operations: Sequence[Operation], reads: dict[int, Sequence[Any]], sizes: dict[int, float]
) -> Shortcut:
    """Return the operations by the size of the object; values that no read shows come last."""
    places: dict[int, _Place] = {}
    for number, operation in enumerate(operations):
        if number in reads:
            places[number] = (len(reads[number]), 1, operation.start)
        elif number in sizes or (operation.f != "read" and operation.end != math.inf):
            places[number] = (sizes.get(number, math.inf), 0, operation.start)
    return Shortcut(order=tuple(sorted(places, key=lambda number: places[number])))
