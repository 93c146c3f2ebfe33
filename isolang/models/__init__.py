"""Models of objects, for histories that ``isolang.linearize`` decides.

A model says what an object does if its operations run one after another. The functions of this
module return models that need no code of your own; ``Model`` makes one from a function.
"""

from isolang.models.model import Model
from isolang.models.operation import ObjectCall, Operation
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
    Undetermined,
)

__all__ = [
    "READY",
    "Linearizability",
    "Linearizable",
    "Model",
    "NotLinearizable",
    "ObjectCall",
    "Operation",
    "PartialOrder",
    "Undetermined",
    "append_list",
    "counter",
    "mutex",
    "queue",
    "register",
    "set_",
    "stack",
    "unordered_queue",
]
