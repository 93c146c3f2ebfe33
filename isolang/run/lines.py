"""The lines of a recorder's file: events in EDN, in the form of Jepsen's.

A client waits for each line, so that what is written again and again is kept: the beginnings of
operations on a key, the shapes of times.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

from isolang.history.values import Keyword, Literal, encode, show

Recorded: TypeAlias = tuple[str, Any, Any]
"""``("r", key, value)``, ``("w", key, value)``, ``("append", key, value)``, ``("delete", key,
None)``; or ``("rp", predicate, rows)``: a literal, and a dictionary."""

UNKNOWN_START: Final = -1  # in place of the time at which an operation was sent

_MOST: Final = 1 << 16  # beginnings that are kept of a name


class _Beginnings(dict[str, str]):
    """Of operations of one name, by their key, a text: ``[:r "x" ``."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def __missing__(self, key: str) -> str:
        if len(self) > _MOST:
            self.clear()
        made = self[key] = f"[:{self._name} {_atom(key)} "
        return made


_BEGINNINGS: Final = {
    name: _Beginnings(name)
    for name in ("r", "w", "append", "r-in", "r-not-in", "rp", "insert", "delete")
}


def planned(operations: Sequence[Recorded]) -> str:
    """Operations before the results of reads are known."""
    return " ".join(
        [
            f"{_BEGINNINGS[name][key]}{'nil' if name == 'r' else value}]"
            if type(key) is str and (name == "r" or type(value) is int)
            else _operation(name, key, None if name == "r" else value)
            for name, key, value in operations
        ]
    )


def done(operations: Sequence[Recorded]) -> str:
    """Operations with their values."""
    # Only texts and integers come from a table: 1, 1.0 and True are one key of a table.
    return " ".join(
        [
            f"{_BEGINNINGS[name][key]}{value}]"
            if type(key) is str and type(value) is int
            else _operation(name, key, value)
            for name, key, value in operations
        ]
    )


def _operation(name: str, key: Any, value: Any) -> str:
    shown = "" if name == "delete" else f" {_atom(value)}"
    return f"[:{name} {_atom(key)}{shown}]"


def between(low: int, high: int) -> Literal:
    """The predicate that a row's value lies in a range, in the place of a key."""
    return Literal(f"[:between :value {low} {high}]")


def head(index: int, kind: str, process: int, when: int) -> str:
    """The beginning of a line, up to the operations."""
    return f"{{:index {index}, :type :{kind}, :process {process}, :time {when}, :f :txn, :value "


def times(flat: Sequence[int]) -> str:
    """The field with the times of the operations.

    Args:
        flat: of each, when it was sent, and when it was answered.
    """
    if UNKNOWN_START in flat:
        pairs = zip(flat[::2], flat[1::2], strict=True)
        shown = ["nil" if sent == UNKNOWN_START else f"[{sent} {end}]" for sent, end in pairs]
        return f", :times [{' '.join(shown)}]"
    return _shape(len(flat) // 2) % tuple(flat)


@lru_cache(maxsize=256)
def _shape(count: int) -> str:
    return f", :times [{' '.join(['[%d %d]'] * count)}]"


def note(index: int, when: int, what: str, value: str) -> str:
    """A line of the process ``:nemesis``."""
    said = show(*encode(value, "a note"))
    return (
        f"{{:index {index}, :type :info, :process :nemesis, "
        f":time {when}, :f :{what}, :value {said}}}\n"
    )


def _atom(value: Any) -> str:
    if value is None:
        return "nil"
    kind = type(value)
    if kind is int:
        return str(value)
    if kind is str and value.isascii() and value.isprintable() and not set(value) & {'"', "\\"}:
        return f'"{value}"'
    if kind is list or kind is tuple:
        return "[" + " ".join([_atom(one) for one in value]) + "]"
    if kind is dict:
        return "{" + " ".join([f"{_atom(key)} {_atom(one)}" for key, one in value.items()]) + "}"
    if kind is Keyword:
        return f":{value.name}"
    if kind is Literal:
        return str(value.text)
    return show(*encode(value, "recorder"))
