"""Decides whether a history of objects is linearizable with respect to a model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from copy import copy
from typing import Any, Final, TypeAlias

from isolang.errors import HistoryError, ModelError
from isolang.limits import (
    Deadline,
    default_memory,
    interrupt_after,
    memory_cap,
    out_of_memory,
)
from isolang.models.exhaust import has_linearization
from isolang.models.model import Model
from isolang.models.operation import ObjectCall, Operation, check_operation, exact
from isolang.models.replay import fault_in
from isolang.models.search import Found, Search, WorkLimitError
from isolang.models.verdicts import (
    Linearizability,
    Linearizable,
    NotLinearizable,
    PartialOrder,
    Undetermined,
)
from isolang.options import Options

MOST_CONFIRMED: Final = 300_000
"""The number of configurations after which the second algorithm for *invalid* gives up."""

_MOST_OF_CORE: Final = 100_000  # configurations that the search of a core may visit


def linearize(
    operations: Iterable[Operation],
    model: Model,
    *,
    timeout: float | None = None,
    memory: float | None = None,
    limit: int | None = None,
    certify: bool = True,
) -> Linearizability:
    """Decide whether a history is linearizable: whether an order of it is a run of a model.

    Args:
        operations: the operations, in any order; ``isolang.load_operations`` reads them from a
            file.
        model: the model of each object: one from :mod:`isolang.models`, or your own
            ``isolang.Model``.
        timeout: the number of seconds after which the verdict is unknown; ``None`` for no limit.
        memory: the number of megabytes that the search may allocate, as for ``isolang.check``.
        limit: the number of configurations that the search may visit, after which the verdict is
            unknown. Unlike ``timeout``, it gives the same result on each machine.
        certify: whether to confirm the verdict with a second algorithm. For *valid*, it replays the
            linearization; for *invalid*, it tries all orders again, if they are not too many.

    Returns:
        ``Linearizable``, ``NotLinearizable`` or ``Undetermined``; see :mod:`isolang.models`.

    Raises:
        HistoryError: an operation is malformed, or the model does not know it.
        ModelError: a function of the model failed, or returned what it must not.
        OptionError: an option is out of bounds.

    >>> from isolang import Operation, linearize, models
    >>> verdict = linearize([
    ...     Operation("enqueue", 1, None, start=0, end=1),
    ...     Operation("enqueue", 2, None, start=2, end=3),
    ...     Operation("dequeue", output=2, start=4, end=5),
    ... ], models.queue())
    >>> verdict.outcome, str(verdict.stuck), verdict.longest[0].state
    ('invalid', 'dequeue → 2', (1, 2))
    """
    if not isinstance(model, Model):
        got = type(model).__name__
        raise ModelError(f"linearize: not a model (got {got}, expected an isolang.Model)")
    options = Options(timeout=timeout, memory=memory, certify=certify)
    history = _checked(operations)
    deciding = _Deciding(history, model, Deadline(options.timeout), limit)
    cap = default_memory() if options.memory is None else options.memory
    try:
        with memory_cap(cap), interrupt_after(options.timeout):
            return deciding.decide(certify=certify)
    except TimeoutError:
        return deciding.undecided(f"the time limit of {options.timeout:g} s was reached")
    except MemoryError as error:
        return deciding.undecided(out_of_memory(error, "solve"))
    except WorkLimitError:
        return deciding.undecided(f"the limit of configurations ({limit:,}) was reached")


def _checked(operations: Iterable[Operation]) -> tuple[Operation, ...]:
    """Return the operations; one object that comes twice becomes two operations."""
    by_identity: dict[int, Operation] = {}
    for number, item in enumerate(operations, 1):
        operation = check_operation(item, number)
        if id(operation) in by_identity:
            operation = copy(operation)
        by_identity[id(operation)] = operation
    return tuple(by_identity.values())


_Part: TypeAlias = tuple[Any, tuple[int, ...]]
"""An object, and its operations by number."""


class _Deciding:
    def __init__(
        self,
        history: tuple[Operation, ...],
        model: Model,
        deadline: Deadline,
        limit: int | None,
    ) -> None:
        self.history = history
        self.model = model
        self.deadline = deadline
        self.limit = limit
        self.configurations = 0
        self.confirmed = True

    def decide(self, *, certify: bool) -> Linearizability:
        with self.deadline.during("prepare"):
            parts = self.parts()
        orders: list[tuple[int, ...]] = []
        # Few operations first: an object that is wrong may be found before one that is too hard.
        for key, numbers in sorted(parts, key=lambda part: len(part[1])):
            with self.deadline.during("solve"):
                decided, result = self.shortened(numbers)
            if result.order is None:
                return self.invalid(key, decided, result, certify=certify)
            orders.append(tuple(numbers[i] for i in result.order))
        linearization = tuple(self.history[i] for i in merged(orders, self.history))
        if not certify:
            return self.valid(linearization, certified=False, why="not asked for")
        with self.deadline.during("certify"):
            fault = fault_in(linearization, self.history, self.model)
        if fault:
            return self.undecided(f"the checker rejected the linearization: {fault}")
        return self.valid(
            linearization, certified=True, why="an independent checker replayed the linearization"
        )

    def parts(self) -> list[_Part]:
        """Return the objects of the history, in the order of their first operations."""
        keys: dict[Any, Any] = {}
        parts: dict[Any, list[int]] = {}
        for number, operation in enumerate(self.history):
            try:
                self.model.accept(ObjectCall(operation.f, operation.input, operation.output))
            except (ValueError, HistoryError) as error:
                where = f"line {operation.line}" if operation.line else f"operation {number + 1}"
                msg = f"{where}: model {self.model.name}: {operation.f}: {error}"
                raise HistoryError(msg) from None
            key = self.model.partition(operation)
            try:
                name = exact(key)
            except TypeError:
                msg = f"model {self.model.name}: partition (got {key!r}, expected a hashable value)"
                raise ModelError(msg) from None
            keys.setdefault(name, key)
            parts.setdefault(name, []).append(number)
        return [(keys[name], tuple(numbers)) for name, numbers in parts.items()]

    def shortened(self, numbers: Sequence[int]) -> tuple[Sequence[int], Found]:
        """Return operations on one object and what was found of them: of all, or of the core."""
        own = [self.history[i] for i in numbers]
        shortcut = self.model.shortcut(own)
        order = shortcut.order
        if order is not None and not fault_in([own[i] for i in order], own, self.model):
            return numbers, Found(order=order)
        if shortcut.core:
            core = [numbers[i] for i in shortcut.core]
            with suppress(WorkLimitError):
                result = self.search(core, most=_MOST_OF_CORE)
                if result.order is None:
                    return core, result
        return numbers, self.search(numbers)

    def search(self, numbers: Sequence[int], *, most: float = math.inf) -> Found:
        allowed = math.inf if self.limit is None else self.limit - self.configurations
        search = Search(
            [self.history[i] for i in numbers],
            self.model,
            limit=min(allowed, most),
            poll=self.deadline.remaining,
        )
        try:
            return search.run()
        finally:
            self.configurations += search.configurations

    def valid(
        self, linearization: tuple[Operation, ...], *, certified: bool, why: str
    ) -> Linearizable:
        return Linearizable(
            operations=self.history, model=self.model, linearization=linearization,
            certified=certified, certified_reason=why, configurations=self.configurations,
            seconds=self.deadline.seconds(),
        )  # fmt: skip

    def invalid(
        self, key: Any, numbers: Sequence[int], result: Found, *, certify: bool
    ) -> Linearizability:
        own = [self.history[i] for i in numbers]
        stuck = own[result.stuck]
        certified, why = False, "not asked for"
        if certify:
            certified, why = self.confirm(own)
            if why == _CONTRADICTED:
                return self.undecided(why)
        return NotLinearizable(
            operations=self.history, model=self.model, key=key, stuck=stuck,
            window=tuple(operation for operation in own if operation.start <= stuck.end),
            longest=tuple(
                PartialOrder(order=tuple(own[i] for i in end.order), state=end.state)
                for end in result.dead_ends
            ),
            certified=certified, certified_reason=why, configurations=self.configurations,
            seconds=self.deadline.seconds(),
        )  # fmt: skip

    def confirm(self, own: Sequence[Operation]) -> tuple[bool, str]:
        """Return whether the second algorithm finds no order either, and a sentence about it."""
        try:
            with self.deadline.during("certify", to_the_end=True):
                possible = has_linearization(
                    own, self.model, most=MOST_CONFIRMED, poll=self.deadline.remaining
                )
        except TimeoutError:
            return False, "the time limit was reached before a second algorithm confirmed it"
        if possible is None:
            return False, (
                f"a second algorithm gave up after {MOST_CONFIRMED:,} configurations, so the "
                "verdict rests on the search alone"
            )
        if possible:
            return False, _CONTRADICTED
        return True, "a second algorithm, which leaves out no order, found none either"

    def undecided(self, reason: str) -> Undetermined:
        return Undetermined(
            operations=self.history, model=self.model, reason=reason,
            configurations=self.configurations, seconds=self.deadline.seconds(),
        )  # fmt: skip


_CONTRADICTED: Final = (
    "the search found no order, and a second algorithm found one; this is a bug of isolang, or the "
    "model's step returned different states for equal arguments"
)


def merged(orders: Sequence[Sequence[int]], history: Sequence[Operation]) -> list[int]:
    """Return one linearization of all objects, given one of each (Herlihy and Wing, theorem 1).

    Each operation takes effect at the earliest moment that its order allows, which lies between its
    start and its end.
    """
    moments = [
        (moment, part, place, number)
        for part, order in enumerate(orders)
        for place, (number, moment) in enumerate(
            zip(order, itertools.accumulate((history[i].start for i in order), max), strict=True)
        )
    ]
    return [number for *_, number in sorted(moments)]
