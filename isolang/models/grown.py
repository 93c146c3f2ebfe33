"""Proposes orders for lists and sets that only grow, from what their reads show.

If nothing is removed, the reads of a list or a set come in the order of their sizes, and a value
comes before the first read that shows it. A proposed order is replayed; if it is wrong, the search
decides, and leaves out what no read allows. SOUND BECAUSE: a read that returned is in every
linearization, and each state before it is a part of what it shows, and each state after it has all
that it shows.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

from isolang.history.values import UNKNOWN
from isolang.models.distinct import Shortcut
from isolang.models.operation import ObjectCall, Operation, exact, same

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

    def allows(state: Sequence[Any], call: ObjectCall) -> bool:
        grows = call.f == "append" and len(state) < len(longest)
        return not grows or same(longest[len(state)], call.input)

    return Shortcut(order=_in_order(operations, reads, sizes), allows=allows)


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
    before, largest = dict[float, int](), 0  # to each size of a read, the next smaller one
    for size in sorted(map(len, reads.values())):
        before.setdefault(size, largest)
        largest = size

    def allows(state: Sequence[Any], call: ObjectCall) -> bool:
        # All values of the next smaller read come first. If a state has as many, it has these,
        # because each state is comparable with each read.
        if call.f != "add":
            return True
        return len(state) >= before.get(smallest.get(_key(call.input), math.inf), largest)

    return Shortcut(order=_in_order(operations, reads, sizes), allows=allows)


def _reads(operations: Sequence[Operation]) -> dict[int, Sequence[Any]] | None:
    """Return the values of each read that returned; ``None`` if anything is not known."""
    reads: dict[int, Sequence[Any]] = {}
    for number, operation in enumerate(operations):
        if operation.f not in ("append", "add", "read"):
            return None
        if operation.f == "read" and operation.end != math.inf:
            if operation.output is UNKNOWN:
                return None
            reads[number] = tuple(operation.output or ())
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
) -> tuple[int, ...]:
    """Return the operations by the size of the object; values that no read shows come last."""
    places: dict[int, _Place] = {}
    for number, operation in enumerate(operations):
        if number in reads:
            places[number] = (len(reads[number]), 1, operation.start)
        elif number in sizes or (operation.f != "read" and operation.end != math.inf):
            places[number] = (sizes.get(number, math.inf), 0, operation.start)
    return tuple(sorted(places, key=lambda number: places[number]))
