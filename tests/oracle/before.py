"""What was there before a history begins, where no transaction of it wrote that.

T0's version of a key is one value. Where it is declared, or told by the reads, it stands there
instead of nothing: nil does not name it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Final

from .errors import TooLargeError
from .history import UNKNOWN, History, Op, Txn, is_list_key, is_write, keys


class OpenError(TooLargeError):
    """Only transactions of unknown outcome tell what was there, and they differ."""


@dataclass(frozen=True)
class Before:
    """What T0 wrote, key by key; keys that are not here held nothing.

    Attributes:
        values: of registers a value, of lists a tuple.
        told: the reads tell it: ``values`` is what they tell, and is not given to the tool.
        declared: a transaction wrote it that is declared to be T0; nil names that version, too,
            unless the history has rows.
    """

    values: dict[str, Any] = field(default_factory=dict)
    told: bool = False
    declared: bool = False

    def __post_init__(self) -> None:
        for key, value in self.values.items():
            if isinstance(value, list):  # as JSON has it
                self.values[key] = tuple(value)


#: T0 wrote what was read and nobody wrote.
UNWRITTEN: Final = Before(told=True)


def held(initial: object, key: str) -> object:
    """What T0 wrote to a register."""
    return initial.values.get(key) if isinstance(initial, Before) else initial


def names_of_initial(initial: object, key: str) -> tuple[object, ...]:
    """What a read calls T0's version of a register: its value last."""
    value = held(initial, key)
    alone = isinstance(initial, Before) and not initial.declared and value is not None
    return (value,) if alone else (None, value)


def told(history: History, initial: object) -> object:
    """The same, with what the reads of this history tell.

    Raises:
        OpenError: they leave it open.
    """
    if not (isinstance(initial, Before) and initial.told):
        return initial
    found = {key: _unwritten(history, key) for key in keys(history)}
    values = {key: value for key, value in found.items() if value not in (None, ())}
    return Before(values, told=True)


def _unwritten(history: History, key: str) -> Any:
    """The one value of a key that was read and that nobody wrote: of the first committed read."""
    of_list = is_list_key(history, key)
    written = {
        None if op[0] == "delete" else op[2]
        for t in history
        for op in t.ops
        if is_write(op) and op[1] == key
    }
    seen: dict[str, list[Any]] = {"committed": [], "maybe": []}
    deleted_too = False
    for t in history:
        if t.status == "aborted":
            continue
        for named, value in _read(t, key, of_list=of_list):
            if of_list:
                elements = value or ()
                seen[t.status].append(tuple(takewhile(lambda e: e not in written, elements)))
            elif named == "initial" or (named is None and value not in written):
                seen[t.status].append(value)
            elif named is None and value is None:
                deleted_too = True
    if seen["committed"]:
        return seen["committed"][0]
    possible = set(seen["maybe"])
    if len(possible) > 1 or (deleted_too and possible - {None}):
        raise OpenError(f"what {key} held before")
    return possible.pop() if possible else None


def _read(t: Txn, key: str, *, of_list: bool) -> Iterator[tuple[object, Any]]:
    """What a transaction read of a key: the version's name, if it has one, and its value."""
    from .predicates import matches

    for j, op in enumerate(t.ops):
        if is_write(op) and op[1] == key and not of_list:
            return  # from here on it reads its own
        if op[0] == "r" and op[1] == key and op[2] != UNKNOWN:
            yield t.named(j), op[2]
        elif op[0] == "scan":
            # A returned row that does not match is nobody's.
            yield from ((None, row) for k, row in op[2] if k == key and matches(op[1], k, row))


def without_beginnings(history: History, initial: object) -> History:
    """The history without what its lists began with; a list that begins otherwise is nobody's."""
    if not isinstance(initial, Before):
        return history

    def of(op: Op) -> Op:
        beginning = initial.values.get(op[1]) if op[0] == "r" else None
        if not isinstance(beginning, tuple) or op[2] == UNKNOWN:
            return op
        elements = op[2] or ()
        if elements[: len(beginning)] != beginning:
            return ("r", op[1], ("nobody's", *elements))
        return ("r", op[1], elements[len(beginning) :])

    return tuple(replace(t, ops=tuple(map(of, t.ops))) for t in history)
