"""Searches for a linearization of the operations on one object.

The search is that of J. Wing and C. Gong (J. Parallel Distrib. Comput. 17, 1993), with the just-in-
time order and the memory of visited configurations of G. Lowe (Concurrency Comput. 29(4), 2017),
which Porcupine uses too. Operations return in a fixed order. *Level* i of the search orders
operations until the i-th operation to return is among them. A configuration at a level consists of
the other operations that were ordered early, and of the state. If a configuration led nowhere, no
equal configuration is tried again. From each configuration, the search first goes to the next level
if it can, and then orders one more operation early, those first that return first.

Three rules leave out configurations. Each is sound because of an exchange argument:

* Of two calls that are equal, the one that began and ended no later comes first. SOUND BECAUSE: if
  a linearization has them in the other order, it may swap them: both moments lie within both.
* An operation that never returned need not be ordered. So a configuration is left out if one with
  the same state and the same returning operations, and with fewer of the others, led nowhere.
  SOUND BECAUSE: whatever completes the larger one completes the smaller one.
* A call that only observes is ordered as soon as the state allows it, and not at all if it never
  returned. SOUND BECAUSE: it may be moved forward in any completion, since it changes no state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from isolang.errors import ModelError
from isolang.history.values import preview
from isolang.models.model import Model
from isolang.models.operation import ObjectCall, Operation, exact

_POLL = 1024  # configurations between two looks at the clock
_MOST_DEAD_ENDS = 1000  # configurations that are kept for the report

Path: TypeAlias = "tuple[int, Path] | None"
"""The operations ordered so far, by number, the last one first."""

_Configuration: TypeAlias = "tuple[int, int, int, Path, bool]"
"""The slots of the operations that were ordered early, the bits of those that never returned, the
state, the path, and whether the search has been at the next level from here."""


class WorkLimitError(Exception):
    """Raised when the search has visited as many configurations as it may."""


class DeadEnd(Struct, frozen=True, kw_only=True):
    """Holds where the search for an order ended.

    Attributes:
        order: the numbers of the operations that were ordered.
        state: the state after them.
    """

    order: tuple[int, ...]
    state: Any


class Found(Struct, frozen=True, kw_only=True):
    """The result of a search.

    Attributes:
        order: a linearization, by the numbers of the operations; ``None`` if there is none.
        stuck: the number of the operation that no order could reach; -1 if there is an order.
        dead_ends: for ``stuck``, where the orders before it ended, the longest first.
        configurations: how many configurations the search visited.
    """

    order: tuple[int, ...] | None
    stuck: int = -1
    dead_ends: tuple[DeadEnd, ...] = ()
    configurations: int = 0


class _Level(Struct):
    """The choices at one level of the search.

    Attributes:
        last: the slot, the call and the number of the operation to reach.
        others: the same for each other operation that changes the state, with the slot of the equal
            call that must come first (0 for none).
        observers: the same for each operation that only observes.
        pending: the bit, the call, the number and the bit of the equal call that must come first,
            for each operation that never returned.
        visited: the configurations that were visited: to the returning operations and the state,
            the smallest sets of other operations.
    """

    last: tuple[int, int, int, int]
    others: list[tuple[int, int, int, int]]
    observers: list[tuple[int, int, int]]
    pending: list[tuple[int, int, int, int]]
    visited: dict[int, list[int]]


class Search:
    """Searches for a linearization of the operations on one object."""

    def __init__(
        self,
        operations: Sequence[Operation],
        model: Model,
        *,
        limit: float = math.inf,
        poll: Callable[[], object] = lambda: None,
    ) -> None:
        """Prepare the search.

        Args:
            limit: the number of configurations after which the search gives up.
            poll: called regularly; it ends the search by raising an exception.
        """
        self.operations = operations
        self.model = model
        self.limit = limit
        self.poll = poll
        self.configurations = 0
        self._states: list[Any] = []
        self._number_of_state: dict[Any, int] = {}
        self._calls: list[ObjectCall] = []
        self._steps: dict[int, tuple[int, ...]] = {}
        self._prepare()

    # --- preparation ---

    def _prepare(self) -> None:
        operations = self.operations
        call_of = self._number_calls()
        self._observes = [bool(self.model.observes(call)) for call in self._calls]
        self._many_calls = max(1, len(self._calls))
        by_start = sorted(range(len(operations)), key=lambda i: (operations[i].start, i))
        self._returning = sorted(
            (i for i in by_start if operations[i].end != math.inf),
            key=lambda i: operations[i].end,
        )
        before = self._equal_before(by_start, call_of)
        slot_of: dict[int, int] = {}
        free: list[int] = []
        slots = 0
        pending: list[tuple[int, int, int, int]] = []
        pending_bit: dict[int, int] = {}
        active: dict[int, None] = {}
        at = 0
        self._levels: list[_Level] = []
        self._slot: list[int] = []
        for last in self._returning:
            while at < len(by_start) and operations[by_start[at]].start <= operations[last].end:
                i = by_start[at]
                at += 1
                if operations[i].end == math.inf:
                    if not self._observes[call_of[i]]:
                        pending_bit[i] = 1 << len(pending_bit)
                        first = pending_bit.get(before[i], 0)
                        pending = [*pending, (pending_bit[i], call_of[i], i, first)]
                    continue
                if not free:
                    free.append(slots)
                    slots += 1
                slot_of[i] = 1 << free.pop()
                active[i] = None
            others, observers = [], []
            for i in active:
                # An equal call that has returned is ordered; its slot may have another owner.
                first = slot_of[before[i]] if before[i] in active else 0
                if i != last and self._observes[call_of[i]]:
                    observers.append((slot_of[i], call_of[i], i))
                elif i != last:
                    others.append((slot_of[i], call_of[i], i, first))
                else:
                    entry = (slot_of[i], call_of[i], i, first)
            others.sort(key=lambda other: operations[other[2]].end)
            self._levels.append(
                _Level(last=entry, others=others, observers=observers, pending=pending, visited={})
            )
            self._slot.append(slot_of[last])
            del active[last]
            free.append(slot_of[last].bit_length() - 1)
        self._width = slots

    def _number_calls(self) -> list[int]:
        """Number the calls, so that equal calls have equal numbers."""
        numbers: dict[Any, int] = {}
        call_numbers = []
        for operation in self.operations:
            equal: Any
            try:
                equal = (operation.f, exact(operation.input), exact(operation.output))
                number = numbers.setdefault(equal, len(numbers))
            except TypeError:  # an argument that Python cannot hash: equal to no other
                number = numbers.setdefault(object(), len(numbers))
            if number == len(self._calls):
                self._calls.append(ObjectCall(operation.f, operation.input, operation.output))
            call_numbers.append(number)
        return call_numbers

    def _equal_before(self, by_start: Sequence[int], call_of: Sequence[int]) -> list[int]:
        """Return for each operation an equal one that began and ended no later, or -1."""
        latest: dict[int, int] = {}
        before = [-1] * len(self.operations)
        for i in by_start:
            earlier = latest.get(call_of[i], -1)
            if earlier < 0 or self.operations[earlier].end <= self.operations[i].end:
                before[i] = earlier
                latest[call_of[i]] = i
        return before

    # --- the model ---

    def _state(self, state: Any) -> int:
        try:
            key = exact(state)
            number = self._number_of_state.get(key)
        except TypeError:
            msg = (
                f"model {self.model.name}: a state that Python cannot hash (got {preview(state)}); "
                "use tuples and frozensets instead of lists and sets"
            )
            raise ModelError(msg) from None
        if number is None:
            number = self._number_of_state[key] = len(self._states)
            self._states.append(state)
        return number

    def _after(self, state: int, call: int) -> tuple[int, ...]:
        after = self._steps.get(state * self._many_calls + call)
        return self._next(state, call) if after is None else after

    def _next(self, state: int, call: int) -> tuple[int, ...]:
        """Return the states after a call, by their numbers, and remember them."""
        states = self.model.after(self._states[state], self._calls[call])
        after = tuple(dict.fromkeys(map(self._state, states)))
        self._steps[state * self._many_calls + call] = after
        return after

    # --- the search ---

    def run(self) -> Found:
        """Search.

        Raises:
            WorkLimitError: the search has visited as many configurations as it may.
            ModelError: a function of the model failed.
        """
        levels, many_calls, steps = self._levels, self._many_calls, self._steps
        if not levels:
            return Found(order=())
        deepest, frontier = 0, list[_Configuration]()
        first = self._enter(0, 0, 0, self._state(self.model.initial), None)
        stack = [(0, [first] if first else [])]
        while stack:
            number, todo = stack[-1]
            if not todo:
                stack.pop()
                continue
            mask, pending, state, path, went_deeper = configuration = todo.pop()
            level = levels[number]
            if not went_deeper:
                self._count()
                if number > deepest:
                    deepest, frontier = number, []
                if number == deepest and len(frontier) < _MOST_DEAD_ENDS:
                    frontier.append(configuration)
                slot, call, operation, before = level.last
                deeper_ones = []
                for later in () if before & ~mask else self._after(state, call):
                    deeper, early_ones = number, mask | slot
                    while deeper < len(levels) and early_ones & self._slot[deeper]:
                        early_ones ^= self._slot[deeper]
                        deeper += 1
                    if deeper == len(levels):
                        return self._found((operation, path))
                    entered = self._enter(deeper, early_ones, pending, later, (operation, path))
                    if entered:
                        deeper_ones.append((deeper, [entered]))
                    if self._observes[call]:
                        break
                else:
                    # Whether a call that observes is the last one or not, it comes when it can.
                    todo.append((mask, pending, state, path, True))
                stack += deeper_ones
                continue
            fresh = []
            for slot, call, operation, before in level.others:
                if mask & slot or before & ~mask:
                    continue
                after = steps.get(state * many_calls + call)
                for later in self._next(state, call) if after is None else after:
                    entered = self._enter(number, mask | slot, pending, later, (operation, path))
                    if entered:
                        fresh.append(entered)
            for bit, call, operation, before in level.pending:
                if pending & bit or before & ~pending:
                    continue
                after = steps.get(state * many_calls + call)
                for later in self._next(state, call) if after is None else after:
                    entered = self._enter(number, mask, pending | bit, later, (operation, path))
                    if entered:
                        fresh.append(entered)
            todo += reversed(fresh)
        return Found(
            order=None,
            stuck=self._returning[deepest],
            dead_ends=self._dead_ends(frontier),
            configurations=self.configurations,
        )

    def _enter(
        self, number: int, mask: int, pending: int, state: int, path: Path
    ) -> _Configuration | None:
        """Return a configuration, with all that observes ordered; ``None`` if it was visited."""
        level = self._levels[number]
        for slot, call, operation in level.observers:
            if not mask & slot and state in self._after(state, call):
                mask |= slot
                path = (operation, path)
        visited = level.visited
        key = state << self._width | mask
        smallest = visited.get(key)
        if smallest is None:
            visited[key] = [pending]
        else:
            for other in smallest:
                if not other & ~pending:
                    return None
            visited[key] = [*(other for other in smallest if pending & ~other), pending]
        return mask, pending, state, path, False

    def _count(self) -> None:
        self.configurations += 1
        if self.configurations > self.limit:
            raise WorkLimitError
        if self.configurations % _POLL == 0:
            self.poll()

    def _found(self, path: Path) -> Found:
        return Found(order=_numbers(path), configurations=self.configurations)

    def _dead_ends(self, frontier: Sequence[_Configuration]) -> tuple[DeadEnd, ...]:
        """Return the longest dead end of each state, the longest first."""
        longest: dict[int, tuple[int, ...]] = {}
        for _, _, state, path, _ in frontier:
            order = _numbers(path)
            if len(order) > len(longest.get(state, ())) or state not in longest:
                longest[state] = order
        dead_ends = [DeadEnd(order=order, state=self._states[s]) for s, order in longest.items()]
        return tuple(sorted(dead_ends, key=lambda end: -len(end.order)))


def _numbers(path: Path) -> tuple[int, ...]:
    numbers = []
    while path is not None:
        operation, path = path
        numbers.append(operation)
    return tuple(reversed(numbers))
