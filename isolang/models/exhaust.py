"""Decides by a second algorithm, with no code of the search, that operations have no linearization.

The algorithm goes once through the calls and the returns in the order of time, and keeps every
configuration that is possible: which operations have taken effect, and the state. It leaves out
nothing, so it needs more memory than the search, and it may give up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from isolang.models.model import Model
from isolang.models.operation import ObjectCall, Operation


def has_linearization(
    operations: Sequence[Operation],
    model: Model,
    *,
    most: int,
    poll: Callable[[], object] = lambda: None,
) -> bool | None:
    """Return whether the operations on one object have a linearization.

    Args:
        most: the number of configurations after which the result is ``None``: not known.
        poll: called for each event; it ends the search by raising an exception.
    """
    events = [(operation.start, 0, number) for number, operation in enumerate(operations)]
    events += [
        (operation.end, 1, number)
        for number, operation in enumerate(operations)
        if operation.end != math.inf
    ]
    open_: set[int] = set()
    possible = {_key(frozenset(), model.initial): (frozenset[int](), model.initial)}
    for _, returns, number in sorted(events):
        poll()
        if not returns:
            open_.add(number)
            continue
        # Operations take effect no earlier than they must: before one of them returns.
        todo = list(possible.values())
        reached = dict(possible)
        while todo:
            done, state = todo.pop()
            if number in done:
                continue
            for other in open_ - done:
                call = operations[other]
                for later in model.after(state, ObjectCall(call.f, call.input, call.output)):
                    configuration = (done | {other}, later)
                    key = _key(*configuration)
                    if key not in reached:
                        reached[key] = configuration
                        todo.append(configuration)
            most -= 1
            if most < 0:
                return None
        open_.discard(number)
        possible = {}
        for done, state in reached.values():
            if number in done:
                possible[_key(done - {number}, state)] = (done - {number}, state)
        if not possible:
            return False
    return True


def _key(done: frozenset[int], state: Any) -> Any:
    """Return what tells configurations apart; equal states of different types are different."""
    return done, state, type(state), repr(state)
