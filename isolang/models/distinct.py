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
    """What is known about operations without a search.

    Attributes:
        order: a proposed linearization, by the numbers of the operations; it may be wrong.
        core: the numbers of a few operations: if all operations have a linearization, these have
            one, too. Empty if no such operations seem to lack one.
    """

    order: tuple[int, ...] | None = None
    core: tuple[int, ...] = ()


class _Value(Struct):
    """The operations on a value, by number: its enqueue, -1 if there is none, and its dequeues."""

    enqueue: int = -1
    dequeues: list[int] = field(default_factory=list)


class _Queue(Struct, frozen=True, kw_only=True):
    """The operations of a queue whose values are distinct.

    Attributes:
        values: the values, each enqueued at most once.
        lost: the dequeues that never returned, in the order of their starts.
        core: the operations on a value that have no linearization; empty if there are none.
    """

    values: list[_Value]
    lost: list[int]
    core: tuple[int, ...] = ()


def of_unordered(operations: Sequence[Operation]) -> Shortcut:
    """Return an order in which each operation takes effect as soon as it can."""
    queue = _queue(operations)
    if queue is None or queue.core:
        return Shortcut(core=queue.core if queue else ())
    moments = []
    for place, value in enumerate(queue.values):
        moment = operations[value.enqueue].start
        if value.dequeues or operations[value.enqueue].end != math.inf:
            moments.append((moment, place, value.enqueue))
        for dequeue in value.dequeues:
            moments.append((max(moment, operations[dequeue].start), place, dequeue))
    return Shortcut(order=tuple(number for *_, number in sorted(moments, key=lambda m: m[:2])))


def of_queue(operations: Sequence[Operation]) -> Shortcut:
    """Return an order in which values leave as they came, or two values that did not."""
    queue = _queue(operations)
    if queue is None or queue.core:
        return Shortcut(core=queue.core if queue else ())
    if overtaken := _overtaken(operations, queue):
        return Shortcut(core=overtaken)
    pairs = _in_order(operations, queue)
    return Shortcut(order=_merged(operations, pairs))


def _queue(operations: Sequence[Operation]) -> _Queue | None:
    """Return the values of a queue; ``None`` if a value repeats, or a dequeue found nothing."""
    values: dict[Any, _Value] = {}
    lost = []
    for number, operation in enumerate(operations):
        takes = operation.f == "dequeue"
        if takes and operation.output is UNKNOWN and operation.end == math.inf:
            lost.append(number)
            continue
        if takes and (operation.output is None or operation.output is UNKNOWN):
            return None
        try:
            key = exact(operation.output if takes else operation.input)
            value = values.setdefault(key, _Value())
        except TypeError:
            return None
        if takes:
            value.dequeues.append(number)
        elif value.enqueue >= 0:
            return None
        else:
            value.enqueue = number
    lost.sort(key=lambda number: operations[number].start)
    wrong = next((v for v in values.values() if not _possible(operations, v)), None)
    core = () if wrong is None else (*(n for n in (wrong.enqueue,) if n >= 0), *wrong.dequeues)
    return _Queue(values=list(values.values()), lost=lost, core=core)


def _possible(operations: Sequence[Operation], value: _Value) -> bool:
    """Return whether the operations on one value have a linearization."""
    if value.enqueue < 0 or len(value.dequeues) > 1:
        return False
    begun = operations[value.enqueue].start
    return not value.dequeues or operations[value.dequeues[0]].end >= begun


def _overtaken(operations: Sequence[Operation], queue: _Queue) -> tuple[int, ...]:
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
            left = operations[a.dequeues[0]].start if a.dequeues else math.inf
            if latest is None or left > leaves:
                latest, leaves = a, left
        if latest is not None and b.dequeues and operations[b.dequeues[0]].end < leaves:
            return (latest.enqueue, b.enqueue, *latest.dequeues, *b.dequeues)
    return ()


def _in_order(operations: Sequence[Operation], queue: _Queue) -> list[tuple[int, int]]:
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
    operations: Sequence[Operation], order: Sequence[tuple[int, int]]
) -> tuple[int, ...] | None:
    """Return all operations, if enqueues and dequeues each come in this order of values.

    The next operation is one that no other must precede in real time; ``None`` if there is none.
    """
    enqueues = [
        enqueue for enqueue, dequeue in order if dequeue >= 0 or operations[enqueue].end != math.inf
    ]
    dequeues = [dequeue for _, dequeue in order if dequeue >= 0]
    first_end = [_least_ends(operations, enqueues), _least_ends(operations, dequeues)]
    i = j = 0
    found = []
    while i < len(enqueues) or j < len(dequeues):
        end = min(first_end[0][i], first_end[1][j])
        if j < len(dequeues) and j < i and operations[dequeues[j]].start <= end:
            found.append(dequeues[j])
            j += 1
        elif i < len(enqueues) and operations[enqueues[i]].start <= end:
            found.append(enqueues[i])
            i += 1
        else:
            return None
    return tuple(found)


def _least_ends(operations: Sequence[Operation], numbers: Sequence[int]) -> list[float]:
    """Return for each place of a list the least end of the operations from there on."""
    ends = (operations[number].end for number in reversed(numbers))
    least = itertools.accumulate(ends, min, initial=math.inf)
    return list(reversed(list(least)))
