"""Defines operations on an object, and when two values are the same."""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct

from isolang.errors import HistoryError
from isolang.history.values import UNKNOWN, Keyword, Literal, UnknownValue, preview


class ObjectCall(Struct, frozen=True):
    """Holds what a model sees of an operation: the function, its argument, and what came back.

    Attributes:
        f: the name of the function, such as ``enqueue``.
        input: the argument; ``None`` if there is none.
        output: the result; ``isolang.UNKNOWN`` if it is not known, as for a lost answer.
    """

    f: str
    input: Any = None
    output: Any = UNKNOWN

    def returned(self, value: object) -> bool:
        """Return whether the operation returned this value, or may have: the result is unknown."""
        return self.output is UNKNOWN or same(self.output, value)

    def __str__(self) -> str:
        argument = "" if self.input is None else f" {show(self.input)}"
        is_silent = self.output is None or same(self.output, self.input)
        if self.output is UNKNOWN or (is_silent and self.input is not None):
            return f"{self.f}{argument}"
        return f"{self.f}{argument} → {show(self.output)}"


class Operation(ObjectCall, frozen=True, kw_only=True):
    """An operation of a history: a call, when it began, and when it ended.

    An operation precedes another one if it ended before the other began; times are numbers of one
    clock, such as ``time.monotonic_ns()``.

    Attributes:
        start: when the operation was called.
        end: when its result came back; ``math.inf`` if it never did. Such an operation may take
            effect at any time after its start, or never.
        process: the client that called it, for reports. No verdict depends on it, because a client
            has one operation at a time, and real time orders these.
        key: the object that it belongs to, if the history is of several objects.
        line: the line in a file; 0 if there is none.
    """

    start: float = 0
    end: float = math.inf
    process: Any = None
    key: Any = None
    line: int = 0

    def __str__(self) -> str:
        where = [f"line {self.line}"] if self.line else []
        where += [] if self.process is None else [f"process {self.process}"]
        call = ObjectCall.__str__(self)
        return f"{call} ({', '.join(where)})" if where else call


def check_operation(operation: object, number: int) -> Operation:
    """Return the argument if it is an operation whose times are in order.

    Raises:
        HistoryError: otherwise; the message names the operation.
    """
    if not isinstance(operation, Operation):
        got = preview(operation)
        msg = f"operation {number}: not an operation (got {got}, expected an isolang.Operation)"
        raise HistoryError(msg)
    if not isinstance(operation.f, str):
        got = preview(operation.f)
        raise HistoryError(f"operation {number}: wrong function (got {got}, expected its name)")
    if not operation.start <= operation.end:
        got = f"start {operation.start}, end {operation.end}"
        msg = f"operation {number}: {operation}: ends before it starts (got {got})"
        raise HistoryError(msg)
    return operation


def same(value: object, other: object) -> bool:
    """Return whether two values are the same: ``1``, ``1.0``, ``True`` and ``"1"`` are not.

    A list is the same as a tuple with the same elements, and a set as a frozenset.
    """
    if isinstance(value, list | tuple) and isinstance(other, list | tuple):
        return len(value) == len(other) and all(map(same, value, other))
    if isinstance(value, set | frozenset) and isinstance(other, set | frozenset):
        return len(value) == len(other) and {exact(x) for x in value} == {exact(x) for x in other}
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(same(value[key], other[key]) for key in value)
    return type(value) is type(other) and value == other


class _Exact(Struct, frozen=True):
    """Stands for a value in sets: equal only to values that are equal and of the same type."""

    kind: type
    value: Any


_PLAIN = frozenset((int, str, bytes, type(None), Keyword, Literal, UnknownValue))
"""The types whose values are equal to no value of another type in this set."""


def exact(value: Any) -> Any:
    """Return an object that is equal for two values only if they are equal and of the same type.

    Raises:
        TypeError: the value cannot be an element of a set.

    >>> exact((1, 2)) == exact((1, 2)), exact((1, True)) == exact((1, 1))
    (True, False)
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, tuple | frozenset):
        if kind in (tuple, frozenset) and _PLAIN.issuperset(map(type, value)):
            return value
        elements = map(exact, value)
        return _Exact(kind, tuple(elements) if isinstance(value, tuple) else frozenset(elements))
    hash(value)
    return _Exact(kind, value)


def show(value: object) -> str:
    """Return a value as text for reports, in the notation of EDN."""
    match value:
        case None:
            return "nil"
        case bool():
            return str(value).lower()
        case str():
            return preview(value).replace("'", '"')
        case Keyword():
            return f":{value.name}"
        case Literal():
            return value.text
        case list() | tuple():
            return _shortened("[", map(show, value), "]")
        case set() | frozenset():
            return _shortened("#{", sorted(map(show, value)), "}")
        case dict():
            return _shortened("{", (f"{show(k)} {show(v)}" for k, v in value.items()), "}")
    return preview(value)


_MOST_SHOWN = 80  # characters of a value in a report


def _shortened(begin: str, elements: Any, end: str) -> str:
    text = ""
    for element in elements:
        if len(text) + len(element) > _MOST_SHOWN:
            return f"{begin}{text} …{end}"
        text += f" {element}" if text else element
    return f"{begin}{text}{end}"
