"""Whether a history is linearizable, by trying all orders, written from the definition.

M. Herlihy, J. Wing, TOPLAS 12(3), 1990, section 2: a history is linearizable if it can be extended
by responses to pending invocations, so that what is complete, in some order that contains the
order of real time, is a sequential history of the object. Responses to some pending invocations
only, so the others never happened.
"""

from __future__ import annotations

import itertools
import math


def linearizations(operations, model):
    """Every linearization of the operations on one object, as tuples of numbers."""
    numbers = range(len(operations))
    returned = [i for i in numbers if operations[i].end != math.inf]
    pending = [i for i in numbers if operations[i].end == math.inf]
    for many in range(len(pending) + 1):
        for extended in itertools.combinations(pending, many):
            for order in itertools.permutations([*returned, *extended]):
                if _keeps_real_time(order, operations) and _is_a_run(order, operations, model):
                    yield order


def is_linearizable(operations, model):
    """Whether the operations, each on the object of its key, are linearizable."""
    keys = {operation.key for operation in operations}
    return all(
        any(True for _ in linearizations([o for o in operations if o.key == key], model))
        for key in keys
    )


def _keeps_real_time(order, operations):
    return not any(
        operations[later].end < operations[earlier].start
        for earlier, later in itertools.combinations(order, 2)
    )


def _is_a_run(order, operations, model):
    states = [model.initial]
    for number in order:
        states = [after for state in states for after in model.step(state, operations[number])]
    return bool(states)
