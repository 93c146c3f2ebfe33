"""Models of objects, for histories that ``isolang.linearize`` decides.

A model says what an object does if its operations run one after another. The functions of this
module return models that need no code of your own; ``Model`` makes one from a function.
"""

from isolang.models.model import Model
from isolang.models.operation import Call, Operation
from isolang.models.ready import (
    READY,
    append_list,
    counter,
    mutex,
    queue,
    register,
    set_,
    stack,
    unordered_queue,
)
from isolang.models.verdicts import (
    Linearizability,
    Linearizable,
    NotLinearizable,
    PartialOrder,
    Undecided,
)

__all__ = [
    "READY",
    "Call",
    "Linearizability",
    "Linearizable",
    "Model",
    "NotLinearizable",
    "Operation",
    "PartialOrder",
    "Undecided",
    "append_list",
    "counter",
    "mutex",
    "queue",
    "register",
    "set_",
    "stack",
    "unordered_queue",
]
