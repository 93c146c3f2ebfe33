"""Decides queues whose values are distinct, without a search: proposes orders, or a small core.

Orders of values that were enqueued at the same time differ in their states until all of them are
dequeued. So a search that chose a wrong order finds out late. If each value is enqueued once, a few
comparisons of times suffice (cf. T. Henzinger, A. Sezgin, V. Vafeiadis, CONCUR 2013).

A proposed order is replayed like any other, and if the replay rejects it, the search decides. A
*core* is the operations on one or two values that have no linearization on their own. SOUND
BECAUSE: if a run of a queue loses all operations on some values, and dequeues that found nothing,
it remains a run. So a linearization of the whole history contains one of the core.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from isolang.history.values import UNKNOWN
from isolang.models.operation import Operation, exact


class Shortcut(Struct, frozen=True, kw_only=True):
    """Holds what is known about operations without a search.

    Attributes:
        order: a proposed linearization, by the numbers of the operations; it may be wrong.
        core: the numbers of a few operations: if all operations have a linearization, these have
            one, too. Empty if no such operations seem to lack one.
    """

    order: tuple[int, ...] | None = None
    core: tuple[int, ...] = ()


NOTHING = Shortcut()


class DistinctValue(Struct):
    """The operations on a value, by number: its enqueue, -1 if there is none, and its dequeues.

    In a stack, these are its push and its pops.
    """

    enqueue: int = -1
    dequeues: list[int] = field(default_factory=list)


class DistinctValues(Struct, frozen=True, kw_only=True):
    """The operations of a queue or a stack whose values are distinct.

    Attributes:
        values: the values, each enqueued at most once.
        lost: the dequeues that never returned, in the order of their starts.
        empty: the dequeues that found nothing, in the order of their starts.
        core: the operations on a value that have no linearization; empty if there are none.
    """

    values: list[DistinctValue]
    lost: list[int]
    empty: list[int]
    core: tuple[int, ...] = ()


def of_unordered(operations: Sequence[Operation]) -> Shortcut:
    """Return an order in which a value enters only when an operation needs it.

    As long as values can leave, they leave. Then the operation comes whose time ends first: an
    enqueue itself, or the enqueue of the value that is to leave.
    """
    queue = values_of(operations, "dequeue")
    if queue is None or queue.core:
        return Shortcut(core=queue.core if queue else ())
    value_of = {number: v for v in queue.values for number in (v.enqueue, *v.dequeues)}
    needed = [
        number
        for number, value in value_of.items()
        if value.dequeues or operations[number].end != math.inf
    ]
    by_end = sorted((*needed, *queue.empty), key=lambda number: -operations[number].end)
    empty, lost = list(reversed(queue.empty)), list(reversed(queue.lost))
    leaving: list[tuple[float, int]] = []  # the dequeues of the values that are in the queue
    inside, staying = 0, 0  # values in the queue, and those of them that nobody is known to take
    placed, order = set[int](), list[int]()
    while by_end:
        if by_end[-1] in placed:
            by_end.pop()
            continue
        first = by_end[-1]
        if leaving and leaving[0][0] <= operations[first].end:
            _, number = heapq.heappop(leaving)
            inside -= 1
        elif empty and not inside and operations[empty[-1]].start <= operations[first].end:
            number = empty.pop()
        elif first not in value_of:  # a dequeue that found nothing
            if not (lost and staying and operations[lost[-1]].start <= operations[first].end):
                return NOTHING
            number = lost.pop()  # took one of the values that would stay
            inside -= 1
            staying -= 1
        else:
            value = value_of[first]
            number = value.enqueue
            inside += 1
            staying += not value.dequeues
            for dequeue in value.dequeues:
                heapq.heappush(leaving, (operations[dequeue].start, dequeue))
        if number in placed:
            return NOTHING
        placed.add(number)
        order.append(number)
    return Shortcut(order=tuple(order))


def of_queue(operations: Sequence[Operation]) -> Shortcut:
    """Return an order in which values leave as they came, or two values that did not."""
    queue = values_of(operations, "dequeue")
    if queue is None or queue.core:
        return Shortcut(core=queue.core if queue else ())
    if overtaken := _overtaken(operations, queue):
        return Shortcut(core=overtaken)
    pairs = _in_order(operations, queue)
    return Shortcut(order=_merged(operations, pairs, queue.empty))


def values_of(operations: Sequence[Operation], taking: str) -> DistinctValues | None:
    """Return the values of a queue or a stack; ``None`` if some value was put in twice.

    Args:
        taking: the function that takes a value out.
    """
    values: dict[Any, DistinctValue] = {}
    lost: list[int] = []
    empty: list[int] = []
    for number, operation in enumerate(operations):
        takes = operation.f == taking
        if takes and operation.output is UNKNOWN and operation.end == math.inf:
            lost.append(number)
            continue
        if takes and operation.output is UNKNOWN:
            return None
        if takes and operation.output is None:
            empty.append(number)
            continue
        try:
            key = exact(operation.output if takes else operation.input)
            value = values.setdefault(key, DistinctValue())
        except TypeError:
            return None
        if takes:
            value.dequeues.append(number)
        elif value.enqueue >= 0:
            return None
        else:
            value.enqueue = number
    for numbers in (lost, empty):
        numbers.sort(key=lambda number: operations[number].start)
    wrong = next((v for v in values.values() if not _possible(operations, v)), None)
    core = () if wrong is None else (*(n for n in (wrong.enqueue,) if n >= 0), *wrong.dequeues)
    return DistinctValues(values=list(values.values()), lost=lost, empty=empty, core=core)


def _possible(operations: Sequence[Operation], value: DistinctValue) -> bool:
    """Return whether the operations on one value have a linearization."""
    if value.enqueue < 0 or len(value.dequeues) > 1:
        return False
    begun = operations[value.enqueue].start
    return not value.dequeues or operations[value.dequeues[0]].end >= begun


def _overtaken(operations: Sequence[Operation], queue: DistinctValues) -> tuple[int, ...]:
    """Return the operations on values a and b, where b came later and left earlier than a.

    If dequeues are lost, a value that did not leave may be one that they took.
    """
    values = [v for v in queue.values if v.dequeues or not queue.lost]
    by_start = sorted(values, key=lambda v: operations[v.enqueue].start)
    by_end = sorted(values, key=lambda v: operations[v.enqueue].end)
    latest, leaves, at = None, -math.inf, 0
    for b in by_start:
        while at < len(by_end) and operations[by_end[at].enqueue].end < operations[b.enqueue].start:
            a = by_end[at]
            at += 1
            leaves_at = operations[a.dequeues[0]].start if a.dequeues else math.inf
            if latest is None or leaves_at > leaves:
                latest, leaves = a, leaves_at
        if latest is not None and b.dequeues and operations[b.dequeues[0]].end < leaves:
            return (latest.enqueue, b.enqueue, *latest.dequeues, *b.dequeues)
    return ()


def _in_order(operations: Sequence[Operation], queue: DistinctValues) -> list[tuple[int, int]]:
    """Return the enqueue and the dequeue (or -1) of each value, the first value first.

    A value comes before those that came or left after it had come or left. Of all values that may
    be next, the next one is that which could leave first. A value that is in the way without
    having left was taken by a dequeue that was lost.
    """
    lost = list(reversed(queue.lost))
    leaving = [v.dequeues[0] if v.dequeues else -1 for v in queue.values]
    came = [operations[v.enqueue] for v in queue.values]
    waiting = sorted(range(len(came)), key=lambda v: -came[v].start)
    waiting_to_leave = sum(number >= 0 for number in leaving)
    by_end = sorted(range(len(came)), key=lambda v: -came[v].end)
    ready: list[tuple[float, int]] = []
    placed = [False] * len(came)
    order: list[tuple[int, int]] = []

    def enter(value: int) -> None:
        begins = operations[leaving[value]].start if leaving[value] >= 0 else math.inf
        heapq.heappush(ready, (max(begins, came[value].start), value))

    while by_end:
        first = by_end[-1]
        if placed[first]:
            by_end.pop()
            continue
        while waiting and came[waiting[-1]].start <= came[first].end:
            value = waiting.pop()
            waiting_to_leave -= leaving[value] >= 0
            enter(value)
        if leaving[first] < 0 and waiting_to_leave and lost:
            leaving[first] = lost.pop()
            enter(first)
        _, value = heapq.heappop(ready)
        if not placed[value]:
            placed[value] = True
            order.append((queue.values[value].enqueue, leaving[value]))
    return order


def _merged(
    operations: Sequence[Operation], order: Sequence[tuple[int, int]], empty: Sequence[int]
) -> tuple[int, ...] | None:
    """Return all operations, if enqueues and dequeues each come in this order of values.

    The next operation is one that no other must precede in real time; ``None`` if there is none.
    Enqueues come last, so that the queue is empty as often as it can be.
    """
    enqueues = [
        enqueue for enqueue, dequeue in order if dequeue >= 0 or operations[enqueue].end != math.inf
    ]
    dequeues = [dequeue for _, dequeue in order if dequeue >= 0]
    lists = (dequeues, empty, enqueues)
    least = [_least_ends(operations, numbers) for numbers in lists]
    at = [0, 0, 0]
    merged: list[int] = []
    while len(merged) < sum(map(len, lists)):
        end = min(ends[place] for ends, place in zip(least, at, strict=True))
        may_be_next = (at[0] < at[2], at[0] == at[2], True)
        for kind, numbers in enumerate(lists):
            if (
                may_be_next[kind]
                and at[kind] < len(numbers)
                and operations[numbers[at[kind]]].start <= end
            ):
                merged.append(numbers[at[kind]])
                at[kind] += 1
                break
        else:
            return None
    return tuple(merged)


def _least_ends(operations: Sequence[Operation], numbers: Sequence[int]) -> list[float]:
    """Return for each place of a list the least end of the operations from there on."""
    ends = (operations[number].end for number in reversed(numbers))
    least = itertools.accumulate(ends, min, initial=math.inf)
    return list(reversed(list(least)))
