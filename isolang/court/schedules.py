"""Lists the schedules in which one call is held while others run from beginning to end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from isolang.foresee.predicted import Prediction, Predictions, ScheduledRule
    from isolang.observe.wire.holds import Turn


class CallSchedule(Struct, frozen=True):
    """A schedule of calls; those without a stop run alone.

    Attributes:
        stranger: the call that is held.
        stop: the turn of this call, from 0, before which it is held; ``None`` to hold none.
        between: the calls that run while it is held.
        before: the calls that run before it begins.
    """

    stranger: int
    stop: int | None = None
    between: tuple[int, ...] = ()
    before: tuple[int, ...] = ()


def serial_schedule(order: Sequence[int]) -> CallSchedule:
    """Return the schedule of calls one after another."""
    return CallSchedule(order[-1], before=tuple(order[:-1]))


def serial_orders(calls: int) -> list[tuple[int, ...]]:
    """Return the orders to record: all of up to three calls, else one that begins with each.

    >>> serial_orders(2), serial_orders(4)[1]
    ([(0, 1), (1, 0)], (1, 2, 3, 0))
    """
    numbers = range(calls)
    if calls <= 3:
        return [*permutations(numbers)]
    return [(*numbers[first:], *numbers[:first]) for first in numbers]


def split_schedules(
    calls: int, stops: Callable[[tuple[int, ...], int], Sequence[int]]
) -> Iterator[CallSchedule]:
    """Yield the schedules in which one call is held, those with few calls first.

    Args:
        stops: returns the turns before which a call may be held after other calls.

    >>> [(s.stranger, s.stop, s.between) for s in split_schedules(2, lambda before, call: [2])]
    [(0, 2, (1,)), (1, 2, (0,))]
    """
    for size in range(1, min(calls, 3)):
        for stranger in range(calls):
            others = [call for call in range(calls) if call != stranger]
            for stop in stops((), stranger):
                for between in permutations(others, size):
                    yield CallSchedule(stranger, stop, between)
    if calls == 3:
        for before, stranger, last in permutations(range(calls)):
            for stop in stops((before,), stranger):
                yield CallSchedule(stranger, stop, (last,), (before,))


def predicted_schedule(
    predictions: Predictions,
    prediction: Prediction,
    rule: ScheduledRule,
    call_of: Callable[[int], int | None],
    turns: Callable[[int], Sequence[Turn]],
) -> CallSchedule | None:
    """Return the schedule of a prediction; ``None`` if it cannot be played.

    Args:
        call_of: returns the call that made a transaction of the history.
        turns: returns the turns of a call in the run.
    """
    from isolang.foresee.predicted import schedule

    run, candidate = predictions.run, prediction.candidate
    before, steps, between = schedule(candidate, rule)

    def calls(transactions: Sequence[int]) -> tuple[int, ...]:
        numbers = [call_of(run.numbers[prediction.who[i]]) for i in transactions]
        return tuple(dict.fromkeys(number for number in numbers if number is not None))

    stranger = call_of(run.numbers[prediction.who[candidate.stranger]])
    last = candidate.order.programs[candidate.stranger].steps[:steps][-1]
    if stranger is None or last.sent is None:
        return None
    executed = last.sent.number
    stop = next((n for n, turn in enumerate(turns(stranger)) if turn.executed >= executed), None)
    overlooked = tuple(call for call in calls(between) if call != stranger)
    earlier = tuple(call for call in calls(before) if call not in (stranger, *overlooked))
    return (
        CallSchedule(stranger, stop, overlooked, earlier)
        if stop is not None and overlooked
        else None
    )
