"""Lists all outcomes of a program: the values that its reads could return at some level.

An external read returns the initial value, or a value written by another transaction, even if that
transaction aborts or overwrites the value itself. A read of a key that its own transaction has
written returns the last value written. Each level allows some of these outcomes.

ASSUMPTION: no value comes out of thin air. Each value is computed from previously computed values,
    so ``a = r(x) w(y, a) || b = r(y) w(x, b)`` has the only outcome 0, 0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct

from isolang.programs.syntax import (
    AbortStep,
    Column,
    Combined,
    Compared,
    Computed,
    Condition,
    If,
    Number,
    Program,
    ProgramError,
    ReadStep,
    Step,
    Value,
    Variable,
    WriteStep,
)

MOST: Final = 100_000
"""The maximum number of combinations of sources to try."""

_OPERATORS: Final[Mapping[str, Callable[[int, int], Any]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

Source: TypeAlias = tuple[int, int] | None
"""A transaction and the number of its write to the key, from 0; ``None`` for the initial value."""


class ExecutedOperation(Struct, frozen=True):
    """An operation in an outcome.

    Attributes:
        kind: ``r`` for a read, or ``w`` for a write.
        name: the name of the variable that holds the value of the read; empty if there is none.
        own: whether the operation is a read of a key that its transaction had written.
    """

    kind: str
    key: str
    value: int
    name: str = ""
    own: bool = False


class ExecutedTransaction(Struct, frozen=True):
    """A transaction in an outcome: its operations, and whether it aborted."""

    operations: tuple[ExecutedOperation, ...]
    aborted: bool = False


class _Trace:
    """The execution of a transaction, up to the point where an unknown value is needed.

    An unknown value is ``None``, and so is every value computed from it. At a condition on an
    unknown value, the trace ends for now. If a write writes a constant, its value is known even
    before the values of preceding reads. Two transactions can therefore read from each other, which
    some levels allow.
    """

    def __init__(
        self, steps: Sequence[Step], initial: Mapping[str, int], values: Sequence[int | None]
    ) -> None:
        self.operations: list[tuple[str, str, int | None, str, bool]] = []
        self.writes: dict[str, list[int | None]] = {}
        self.reads: list[str] = []  # the keys of the external reads, in order
        self.open = ""  # the key of the first read whose source has not been chosen
        self.waits = False  # whether a condition on an unknown value stops the trace
        self.aborted = False
        self.refused = False  # whether a read returned a value excluded by the program
        self._initial, self._values = initial, values
        self._named: dict[str, int | None] = {}
        self._execute(steps)

    @property
    def ended(self) -> bool:
        """Return whether no further steps can be executed, at least for now."""
        return bool(self.open) or self.waits or self.aborted

    def done(self) -> ExecutedTransaction:
        """Return the executed transaction; all its values must be known."""
        operations = [
            ExecutedOperation(kind, key, value, name, own)
            for kind, key, value, name, own in self.operations
            if value is not None
        ]
        assert len(operations) == len(self.operations)
        return ExecutedTransaction(tuple(operations), self.aborted)

    def _execute(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case ReadStep():
                    self._read(step)
                case WriteStep():
                    value = _value_if_known(lambda: evaluate(step.value, self._named))  # noqa: B023
                    if value is not None and abs(value) >= 1 << 62:
                        raise ProgramError(f"w({step.key}, …): the value does not fit in 62 bits")
                    self.writes.setdefault(step.key, []).append(value)
                    self.operations.append(("w", step.key, value, "", False))
                case If():
                    chosen = _value_if_known(lambda: is_condition_true(step.condition, self._named))  # noqa: B023
                    self.waits = chosen is None
                    if chosen is not None:
                        self._execute(step.then if chosen else step.otherwise)
                case AbortStep():
                    self.aborted = True
            if self.ended:
                return

    def _read(self, step: ReadStep) -> None:
        own = step.key in self.writes
        if own:
            value = self.writes[step.key][-1]
        elif len(self.reads) == len(self._values):
            self.open = step.key
            return
        else:
            value = self._values[len(self.reads)]
            self.reads.append(step.key)
        if step.expected is not None and value is not None:
            expected = step.expected
            # The trace continues because traces must only grow. If its later writes disappeared,
            # their readers would lose values, and this read might lose its value as a result.
            self.refused |= value != (
                self._initial.get(step.key, 0) if expected == "nil" else expected
            )
        self._named[step.name] = value
        self.operations.append(("r", step.key, value, step.name, own))


class _NotYetError(Exception):
    """Raised when a value is needed but still unknown."""


_Known = TypeVar("_Known")


def _value_if_known(compute: Callable[[], _Known]) -> _Known | None:
    try:
        return compute()
    except _NotYetError:
        return None


def explore(program: Program, *, most: int = MOST) -> list[tuple[ExecutedTransaction, ...]]:
    """Return each outcome of a program once, sorted by the values returned by reads.

    Raises:
        ProgramError: there are more combinations.

    >>> from isolang.programs.syntax import parse_program
    >>> skew = parse_program("r(x) w(y, 1) || r(y) w(x, 1)")
    >>> [[one.operations[0].value for one in outcome] for outcome in explore(skew)]
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    transactions = [steps for _, steps in program.transactions()]
    writes = [dict(_most_writes(steps)) for steps in transactions]
    found: dict[tuple[ExecutedTransaction, ...], None] = {}
    todo: list[tuple[tuple[Source, ...], ...]] = [((),) * len(transactions)]
    tried = 0
    while todo:
        chosen = todo.pop()
        tried += 1
        if tried > most:
            raise ProgramError(
                f"{program.name}: too many combinations of sources for its reads (expected at most "
                f"{most:,}); leave out reads, or state what they return: r(key, value)"
            )
        traces = _execute(transactions, program.initial, chosen)
        if any(trace.refused for trace in traces):
            continue
        for t, trace in enumerate(traces):
            if trace.open:
                sources: list[Source] = [None]
                sources += [
                    (u, i)
                    for u, own in enumerate(writes)
                    if u != t
                    for i in range(own.get(trace.open, 0))
                ]
                todo += [(*chosen[:t], (*chosen[t], one), *chosen[t + 1 :]) for one in sources]
                break
        else:
            # A value that is still unknown will never become known: its source does not happen, or
            # depends on the value itself.
            if not any(map(_has_unknown_values, traces)):
                found[tuple(trace.done() for trace in traces)] = None
    return sorted(found, key=_sort_key)


def _has_unknown_values(trace: _Trace) -> bool:
    """Return whether any value in a trace is still unknown."""
    return any(value is None for _, _, value, _, _ in trace.operations)


def _execute(
    transactions: Sequence[Sequence[Step]],
    initial: Mapping[str, int],
    chosen: Sequence[Sequence[Source]],
) -> list[_Trace]:
    """Execute each transaction as far as its sources' values are known.

    SOUND BECAUSE a trace only grows when values become known. Therefore, the result does not depend
    on the order in which they become known.
    """
    values: list[list[int | None]] = [[None] * len(sources) for sources in chosen]
    while True:
        traces = [
            _Trace(steps, initial, own) for steps, own in zip(transactions, values, strict=True)
        ]
        now: list[list[int | None]] = []
        for t, sources in enumerate(chosen):
            own: list[int | None] = [None] * len(sources)
            for n, (source, key) in enumerate(zip(sources, traces[t].reads, strict=False)):
                if source is None:
                    own[n] = initial.get(key, 0)
                else:
                    writes = traces[source[0]].writes.get(key, [])
                    own[n] = writes[source[1]] if source[1] < len(writes) else None
            now.append(own)
        if now == values:
            return traces
        values = now


def _most_writes(steps: Sequence[Step]) -> Iterator[tuple[str, int]]:
    """Yield each key that a transaction may write, with the largest number of writes to it."""
    counts: dict[str, int] = {}
    for step in steps:
        if isinstance(step, WriteStep):
            counts[step.key] = counts.get(step.key, 0) + 1
        elif isinstance(step, If):
            ways = [dict(_most_writes(step.then)), dict(_most_writes(step.otherwise))]
            for key in {**ways[0], **ways[1]}:
                counts[key] = counts.get(key, 0) + max(way.get(key, 0) for way in ways)
    yield from counts.items()


def _sort_key(outcome: Sequence[ExecutedTransaction]) -> tuple[object, ...]:
    reads = tuple(op.value for one in outcome for op in one.operations if op.kind == "r")
    every = tuple((op.kind, op.key, op.value) for one in outcome for op in one.operations)
    return reads, every, tuple(one.aborted for one in outcome)


def evaluate(value: Value, named: Mapping[str, int | None]) -> int:
    """Return the value of an expression, given the values of the named reads.

    Raises:
        KeyError: the expression depends on a read that did not happen.
        _NotYetError: the expression depends on a read whose value is still unknown.
    """
    match value:
        case Number():
            return value.value
        case Column():  # occurs only in updates, which the parser rejects in programs with outcomes
            raise ProgramError(f"`.{value.name}` has no value here")
        case Variable():
            found = named[value.name]
            if found is None:
                raise _NotYetError
            return found
        case Computed():
            left, right = evaluate(value.left, named), evaluate(value.right, named)
            return int(_OPERATORS[value.op](left, right))


def is_condition_true(condition: Condition, named: Mapping[str, int | None]) -> bool:
    """Return whether a condition holds, given the values of reads (see :func:`evaluate`)."""
    match condition:
        case Compared():
            left, right = evaluate(condition.left, named), evaluate(condition.right, named)
            return bool(_OPERATORS[condition.op](left, right))
        case Combined(op="not", parts=(only,)):
            return not is_condition_true(only, named)
        case Combined():
            found = [is_condition_true(part, named) for part in condition.parts]
            return all(found) if condition.op == "and" else any(found)


def satisfies(outcome: Sequence[ExecutedTransaction], condition: Condition) -> bool:
    """Return whether an outcome satisfies a condition; false if a named read did not happen."""
    named = {op.name: op.value for one in outcome for op in one.operations if op.name}
    try:
        return is_condition_true(condition, named)
    except KeyError:
        return False
