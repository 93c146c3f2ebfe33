"""Decides stacks whose values are distinct, without a search: proposes an order, or a core.

A value whose push and pop overlap may be popped as soon as it was pushed, so it never matters. Any
other value is *inside* at least from the end of its push to the start of its pop. If at some moment
no value must be inside, the stack may be empty then, and the values before and after that moment
are independent. If there is no such moment, some value is at the bottom all the time: its push can
be the first operation, and its pop the last. Whichever of these values is taken, the others decide
alone (cf. the decrease and conquer of LiMo, PLDI 2025).

As for queues, a proposed order is replayed, and a core is decided as if it were all. SOUND BECAUSE:
if a run of a stack loses all operations on some values, and pops that found nothing, it remains a
run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from isolang.models.distinct import DistinctValues, Shortcut, values_of
from isolang.models.operation import Operation


class _Inside(Struct, frozen=True):
    """A value and the time in which it must be inside the stack.

    Attributes:
        since: the end of its push.
        until: the start of its pop; infinite if it is never popped.
        begin: the start of its push.
        last: the end of its pop.
        push: the number of the push.
        pop: the number of the pop; -1 if there is none.
    """

    since: float
    until: float
    begin: float
    last: float
    push: int
    pop: int


class _Moment(Struct, frozen=True, order=True):
    """The place of an operation in the proposed order.

    Attributes:
        time: when it takes effect.
        part: -1 for the operations on a value that leaves at once; 2·i for those of the i-th group
            of values, and 2·i + 1 for a pop that found nothing, after this group.
        place: tells operations at one time apart.
    """

    time: float
    part: int
    place: int
    number: int


def of_stack(operations: Sequence[Operation]) -> Shortcut:
    """Return an order in which values are nested, or the values that cannot be nested."""
    stack = values_of(operations, "pop")
    if stack is None or stack.core:
        return Shortcut(core=stack.core if stack else ())
    taken = _taken_by_lost(operations, stack)
    inside, moments = _split(operations, stack, taken)
    groups = list(_groups(inside))
    for part, group in enumerate(groups):
        order, unordered = _nested(group)
        if unordered and stack.lost:
            return Shortcut()  # the lost pops may have taken other values
        if unordered:
            core = _smallest(unordered)
            return Shortcut(core=tuple(n for v in core for n in (v.push, v.pop) if n >= 0))
        time = min(value.since for value in group)
        for place, number in enumerate(order):
            time = max(time, operations[number].start)
            moments.append(_Moment(time, 2 * part, place, number))
    for number in stack.empty:
        moment = _empty_moment(operations[number], groups, number)
        if moment is None:
            return Shortcut()
        moments.append(moment)
    return Shortcut(order=tuple(moment.number for moment in sorted(moments)))


def _taken_by_lost(operations: Sequence[Operation], stack: DistinctValues) -> dict[int, int]:
    """Return a guess which lost pops took which values: to each push, the pop.

    A lost pop takes, of the values that nobody is known to have popped, the last one that was
    pushed before it began.
    """
    staying = sorted(
        (value.enqueue for value in stack.values if not value.dequeues),
        key=lambda number: operations[number].end,
    )
    taken: dict[int, int] = {}
    waiting: list[int] = []
    at = 0
    for pop in stack.lost:
        while at < len(staying) and operations[staying[at]].end < operations[pop].start:
            waiting.append(staying[at])
            at += 1
        if waiting:
            taken[waiting.pop()] = pop
    return taken


def _split(
    operations: Sequence[Operation], stack: DistinctValues, taken: Mapping[int, int]
) -> tuple[list[_Inside], list[_Moment]]:
    """Return the values that must be inside for some time, and the moments of all others."""
    inside, moments = [], list[_Moment]()
    for value in stack.values:
        push = operations[value.enqueue]
        number = value.dequeues[0] if value.dequeues else taken.get(value.enqueue, -1)
        if number < 0:
            if push.end != math.inf:
                inside.append(_Inside(push.end, math.inf, push.start, math.inf, value.enqueue, -1))
            continue
        pop = operations[number]
        if push.end < pop.start:
            inside.append(_Inside(push.end, pop.start, push.start, pop.end, value.enqueue, number))
            continue
        time = max(push.start, pop.start)
        for which in (value.enqueue, number):
            moments.append(_Moment(time, -1, len(moments), which))
    return inside, moments


def _groups(inside: Sequence[_Inside]) -> Iterator[list[_Inside]]:
    """Yield the values in groups, so that the stack may be empty between two groups."""
    group: list[_Inside] = []
    until = -math.inf
    for value in sorted(inside, key=lambda v: v.since):
        if group and value.since >= until:
            yield group
            group = []
        group.append(value)
        until = max(until, value.until)
    if group:
        yield group


def _nested(group: list[_Inside]) -> tuple[list[int], list[_Inside]]:
    """Return the operations on a group in their order, and values that have none, if there are.

    The values that are still to be ordered, and the pops that follow them, are on a list, because
    values may be nested deeper than Python calls functions.
    """
    order: list[int] = []
    todo: list[list[_Inside] | int] = [group]
    while todo:
        values = todo.pop()
        if isinstance(values, int):
            order.append(values)
            continue
        first, last = min(v.since for v in values), max(v.until for v in values)
        bottom = next((v for v in values if v.begin <= first and v.last >= last), None)
        if bottom is None:
            return order, values
        order.append(bottom.push)
        if bottom.pop >= 0:
            todo.append(bottom.pop)
        todo += reversed(list(_groups([v for v in values if v is not bottom])))
    return order, []


def _smallest(values: list[_Inside]) -> list[_Inside]:
    """Return values that cannot be nested either, and can be if any one of them is left out.

    The values are left out in ever smaller runs, as in delta debugging.
    """
    size = len(values) // 2
    while size:
        at = 0
        while at < len(values):
            rest = values[:at] + values[at + size :]
            if any(_nested(group)[1] for group in _groups(rest)):
                values = rest
            else:
                at += size
        size //= 2
    return values


def _empty_moment(
    pop: Operation, groups: Sequence[Sequence[_Inside]], number: int
) -> _Moment | None:
    """Return a moment between two groups for a pop that found nothing; ``None`` if none fits."""
    empty_since = -math.inf
    for part, group in enumerate((*groups, ())):
        empty_until = min((value.since for value in group), default=math.inf)
        time = max(pop.start, empty_since)
        if time <= min(pop.end, empty_until):
            return _Moment(time, 2 * part - 1, 0, number)
        empty_since = max((value.until for value in group), default=math.inf)
    return None
