"""Defines a model: the sequential behaviour that a history of an object is compared with."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from isolang.errors import ModelError
from isolang.history.values import preview
from isolang.models.distinct import Shortcut
from isolang.models.operation import ObjectCall, Operation


def by_key(operation: Operation) -> Any:
    """Return the object that an operation names as its own: the partition of most models."""
    return operation.key


def no_shortcut(operations: Sequence[Operation]) -> Shortcut:
    """Return nothing: the search decides."""
    return Shortcut()


def observes_nothing(call: ObjectCall) -> bool:
    """Return ``False``: a call may change the state."""
    return False


def accept_all(call: ObjectCall) -> None:
    """Accept any call."""


class Model(Struct, frozen=True):
    """Describes what an object does if its operations run one after another.

    A history is linearizable if some order of its operations is a run of the model, and keeps the
    order of operations that did not overlap (M. Herlihy, J. Wing, TOPLAS 12(3), 1990).

    Attributes:
        initial: the state before the first operation. States are values that Python can hash, such
            as numbers, tuples and frozensets, and equal states behave alike.
        step: returns the possible next states, given a state and an :class:`ObjectCall`: no state
            if the operation cannot happen there with its result, one state if the object is
            deterministic. If the result is ``isolang.UNKNOWN``, these are the states after all
            results that are possible. ``step`` must not change the state that it is given, and
            must return the same states whenever it is called with the same arguments.
        partition: returns the object that an operation belongs to, something that Python can hash.
            Each object has a state of its own, and is judged on its own. By default, the
            operation's ``key``.
        name: the name in reports.
        accept: called with each call before the search. It raises ``ValueError`` if the model does
            not know the function, or not with this argument.
        observes: returns whether a call never changes the state, whatever the state, as a read.
            The search then has fewer orders to try.
        shortcut: proposes an order of the operations on an object, or a few operations that have
            none, for the queues that come with isolang.

    A counter that counts up, and returns the count:

    >>> from isolang import Model, Operation, linearize
    >>> def step(count, call):
    ...     return [count + 1] if call.returned(count + 1) else []
    >>> tickets = Model(initial=0, step=step, name="tickets")
    >>> linearize([
    ...     Operation("next", output=2, start=0, end=3),
    ...     Operation("next", output=1, start=1, end=2),
    ... ], tickets).outcome
    'valid'
    """

    initial: Any
    step: Callable[[Any, ObjectCall], Iterable[Any]]
    partition: Callable[[Operation], Hashable] = by_key
    name: str = "model"
    accept: Callable[[ObjectCall], object] = accept_all
    observes: Callable[[ObjectCall], bool] = observes_nothing
    shortcut: Callable[[Sequence[Operation]], Shortcut] = no_shortcut

    def __post_init__(self) -> None:
        for field in ("step", "partition", "accept", "observes", "shortcut"):
            if not callable(getattr(self, field)):
                got = type(getattr(self, field)).__name__
                raise ModelError(f"model {self.name}: {field} (got {got}, expected a function)")

    def after(self, state: Any, call: ObjectCall) -> list[Any]:
        """Return the states that ``step`` returns.

        Raises:
            ModelError: ``step`` failed, or did not return states.
        """
        try:
            return list(self.step(state, call))
        except (TimeoutError, MemoryError):
            raise  # a limit was reached, whatever the code was doing
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            msg = f"model {self.name}: step failed for {call} in state {preview(state)} ({reason})"
            raise ModelError(msg) from error
