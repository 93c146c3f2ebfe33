"""The names of a specification: what is given with every history, and what the texts declare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from isolang.language import ast

Element = Literal["transaction", "event", "any"]


class Sort(Struct, frozen=True):
    """A set of ``left``, a relation from ``left`` to ``right``, or anything (a parameter)."""

    kind: Literal["set", "relation", "any"]
    left: Element = "any"
    right: Element = "any"

    def __str__(self) -> str:
        if self.kind == "any":
            return "a set or relation"
        if self.kind == "set":
            return "a set" if self.left == "any" else f"a set of {self.left}s"
        if self.left == self.right:
            return "a relation" if self.left == "any" else f"a relation on {self.left}s"
        return f"a relation from {self.left}s to {self.right}s"


ANY = Sort("any")
_TXN = Sort("relation", "transaction", "transaction")
_TXNS = Sort("set", "transaction")
_EVENTS = Sort("relation", "event", "event")


class Builtin(Struct, frozen=True):
    """A name that is given with every history."""

    sort: Sort
    keyed: bool = False


BUILTINS: Mapping[str, Builtin] = {
    "T": Builtin(_TXNS),
    "W": Builtin(_TXNS, keyed=True),
    "R": Builtin(_TXNS, keyed=True),
    "id": Builtin(Sort("relation")),
    "init": Builtin(_TXN),
    "so": Builtin(_TXN),
    "rt": Builtin(_TXN),
    "po": Builtin(_EVENTS),
    "tx": Builtin(Sort("relation", "event", "transaction")),
    "cand": Builtin(_EVENTS, keyed=True),
    "vo": Builtin(_TXN, keyed=True),
}


class Entry(Struct, frozen=True):
    """A name with its sort and, unless it is given, the item that declares it."""

    name: str
    sort: Sort
    keyed: bool
    item: ast.Let | ast.ExistsItem | None

    @property
    def params(self) -> tuple[ast.Ident, ...]:
        """The formal parameters of a definition."""
        return self.item.params if isinstance(self.item, ast.Let) else ()


class Scope(Struct):
    """All names of a specification, and what is legal but probably not meant."""

    entries: dict[str, Entry]
    warnings: list[str] = field(default_factory=list)
