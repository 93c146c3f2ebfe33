"""Checks a linearization by its definition, with no code of the search.

The definition is that of M. Herlihy and J. Wing (TOPLAS 12(3), 1990): the operations that returned,
and some that did not, in an order that the model allows from its initial state, and in which no
operation comes after one that began when it had ended.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from isolang.models.model import Model
from isolang.models.operation import ObjectCall, Operation


def fault_in(
    linearization: Sequence[Operation], operations: Sequence[Operation], model: Model
) -> str:
    """Return what is wrong with a linearization of a history; empty if nothing is.

    The operations in it must be objects of the history, not equal copies.
    """
    history = {id(operation): operation for operation in operations}
    times = Counter(map(id, linearization))
    if any(identity not in history for identity in times):
        return "it has an operation that the history lacks"
    for identity, operation in history.items():
        if times[identity] > 1:
            return f"it has {operation} twice"
        if not times[identity] and operation.end != math.inf:
            return f"it lacks {operation}, which returned"
    latest = -math.inf
    for operation in linearization:
        latest = max(latest, operation.start)
        if operation.end < latest:
            return f"{operation} comes after an operation that began when it had ended"
    possible: dict[Any, list[Any]] = {}
    for operation in linearization:
        # The states that the object may be in; equal ones are kept, so that none is lost.
        states = possible.setdefault(model.partition(operation), [model.initial])
        call = ObjectCall(operation.f, operation.input, operation.output)
        after = [later for state in states for later in model.after(state, call)]
        if not after:
            return f"the model does not allow {operation} there"
        if len(after) > 1:
            after = [*{(type(state), repr(state)): state for state in after}.values()]
        states[:] = after
    return ""
