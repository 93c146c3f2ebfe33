"""All outcomes of a program: what its reads may return, whatever the level.

An external read returns the initial value or what another transaction wrote, be that aborted or
overwritten by its own transaction; a read of a key that its transaction wrote returns that write.
The level decides later which of these outcomes it allows.

ASSUMPTION: no value comes out of thin air. Each is computed from values that were computed before
it, so ``a = r(x) w(y, a) || b = r(y) w(x, b)`` has the outcome 0, 0 alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct

from isolang.programs.syntax import (
    Abort,
    Combined,
    Compared,
    Computed,
    Condition,
    If,
    Number,
    Program,
    ProgramError,
    Read,
    Step,
    Value,
    Variable,
    Write,
)

MOST: Final = 100_000
"""Combinations of sources that are tried."""

_OPERATORS: Final[Mapping[str, Callable[[int, int], Any]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

Source: TypeAlias = tuple[int, int] | None
"""A transaction and which of its writes of the key, from 0; ``None`` for the initial value."""


class Operation(Struct, frozen=True):
    """An operation as it happened.

    Attributes:
        kind: ``r`` or ``w``.
        key: the key.
        value: what it returned, or wrote.
        name: of a read, what the program calls it; may be empty.
        own: whether it is a read of what its own transaction wrote.
    """

    kind: str
    key: str
    value: int
    name: str = ""
    own: bool = False


class Done(Struct, frozen=True):
    """A transaction as it happened."""

    operations: tuple[Operation, ...]
    aborted: bool = False


class _Trace:
    """A transaction, as far as the values of its reads are known.

    A value that is not known yet is ``None``, and so is what is computed from it; a condition on it
    ends the trace for now. A write of a constant therefore has its value before the reads that come
    before it: two transactions may read from each other, at levels that allow it.
    """

    def __init__(
        self, steps: Sequence[Step], initial: Mapping[str, int], values: Sequence[int | None]
    ) -> None:
        self.operations: list[tuple[str, str, int | None, str, bool]] = []
        self.writes: dict[str, list[int | None]] = {}
        self.reads: list[str] = []  # the keys of its external reads
        self.open = ""  # the key of the first external read without a source
        self.waits = False  # for the value of a condition
        self.aborted = False
        self.refused = False  # a read returned what the program excludes
        self._initial, self._values = initial, values
        self._named: dict[str, int | None] = {}
        self._run(steps)

    @property
    def ended(self) -> bool:
        """Whether no further step happens, or none is known."""
        return bool(self.open) or self.waits or self.aborted

    def done(self) -> Done:
        """The transaction, whose values are all known."""
        operations = [
            Operation(kind, key, value, name, own)
            for kind, key, value, name, own in self.operations
            if value is not None
        ]
        assert len(operations) == len(self.operations)
        return Done(tuple(operations), self.aborted)

    def _run(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case Read():
                    self._read(step)
                case Write():
                    value = _known(lambda: evaluate(step.value, self._named))  # noqa: B023
                    if value is not None and abs(value) >= 1 << 62:
                        raise ProgramError(f"w({step.key}, …): a value beyond 62 bits")
                    self.writes.setdefault(step.key, []).append(value)
                    self.operations.append(("w", step.key, value, "", False))
                case If():
                    chosen = _known(lambda: holds(step.condition, self._named))  # noqa: B023
                    self.waits = chosen is None
                    if chosen is not None:
                        self._run(step.then if chosen else step.otherwise)
                case Abort():
                    self.aborted = True
            if self.ended:
                return

    def _read(self, step: Read) -> None:
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
            # The trace goes on: if it lost its writes, who read them would lose their values, and
            # this read perhaps its own, which is no growth.
            self.refused |= value != (
                self._initial.get(step.key, 0) if expected == "nil" else expected
            )
        self._named[step.name] = value
        self.operations.append(("r", step.key, value, step.name, own))


class _NotYetError(Exception):
    """A value is not known yet."""


_Known = TypeVar("_Known")


def _known(compute: Callable[[], _Known]) -> _Known | None:
    try:
        return compute()
    except _NotYetError:
        return None


def explore(program: Program, *, most: int = MOST) -> list[tuple[Done, ...]]:
    """All outcomes, each once, in the order of the values that their reads return.

    Args:
        program: what runs.
        most: how many combinations of sources are tried.

    Raises:
        ProgramError: there are more.

    >>> from isolang.programs.syntax import parse_program
    >>> skew = parse_program("r(x) w(y, 1) || r(y) w(x, 1)")
    >>> [[one.operations[0].value for one in outcome] for outcome in explore(skew)]
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    transactions = [steps for _, steps in program.transactions()]
    writes = [dict(_writes(steps)) for steps in transactions]
    found: dict[tuple[Done, ...], None] = {}
    todo: list[tuple[tuple[Source, ...], ...]] = [((),) * len(transactions)]
    tried = 0
    while todo:
        chosen = todo.pop()
        tried += 1
        if tried > most:
            raise ProgramError(
                f"{program.name}: too many combinations of sources of its reads (expected at most "
                f"{most:,}); leave out reads, or say what they return: r(key, value)"
            )
        traces = _run(transactions, program.initial, chosen)
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
            # What has no value now never gets one: its source does not happen, or depends on it.
            if not any(map(_unknown, traces)):
                found[tuple(trace.done() for trace in traces)] = None
    return sorted(found, key=_order)


def _unknown(trace: _Trace) -> bool:
    """Whether a value is missing; a condition that waits does so for one of these."""
    return any(value is None for _, _, value, _, _ in trace.operations)


def _run(
    transactions: Sequence[Sequence[Step]],
    initial: Mapping[str, int],
    chosen: Sequence[Sequence[Source]],
) -> list[_Trace]:
    """Each transaction as far as its sources have values.

    SOUND BECAUSE a trace only grows as values become known, so the result does not depend on the
    order in which they do.
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


def _writes(steps: Sequence[Step]) -> Iterator[tuple[str, int]]:
    """How often a transaction may write each key, at most."""
    counts: dict[str, int] = {}
    for step in steps:
        if isinstance(step, Write):
            counts[step.key] = counts.get(step.key, 0) + 1
        elif isinstance(step, If):
            ways = [dict(_writes(step.then)), dict(_writes(step.otherwise))]
            for key in {**ways[0], **ways[1]}:
                counts[key] = counts.get(key, 0) + max(way.get(key, 0) for way in ways)
    yield from counts.items()


def _order(outcome: Sequence[Done]) -> tuple[object, ...]:
    reads = tuple(op.value for one in outcome for op in one.operations if op.kind == "r")
    every = tuple((op.kind, op.key, op.value) for one in outcome for op in one.operations)
    return reads, every, tuple(one.aborted for one in outcome)


def evaluate(value: Value, named: Mapping[str, int | None]) -> int:
    """A value, with what the reads returned.

    Raises:
        KeyError: it depends on a read that did not happen.
        _NotYetError: it depends on a read whose value is not known yet.
    """
    match value:
        case Number():
            return value.value
        case Variable():
            found = named[value.name]
            if found is None:
                raise _NotYetError
            return found
        case Computed():
            left, right = evaluate(value.left, named), evaluate(value.right, named)
            return int(_OPERATORS[value.op](left, right))


def holds(condition: Condition, named: Mapping[str, int | None]) -> bool:
    """Whether a condition holds; see :func:`evaluate`."""
    match condition:
        case Compared():
            left, right = evaluate(condition.left, named), evaluate(condition.right, named)
            return bool(_OPERATORS[condition.op](left, right))
        case Combined(op="not", parts=(only,)):
            return not holds(only, named)
        case Combined():
            found = [holds(part, named) for part in condition.parts]
            return all(found) if condition.op == "and" else any(found)


def satisfies(outcome: Sequence[Done], condition: Condition) -> bool:
    """Whether an outcome satisfies a condition; never if a read that it names did not happen."""
    named = {op.name: op.value for one in outcome for op in one.operations if op.name}
    try:
        return holds(condition, named)
    except KeyError:
        return False
