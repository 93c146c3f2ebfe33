"""The names of a specification: given with every history, declared by a text, or meant."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping

from msgspec import Struct, field

from isolang.language.syntax import ast
from isolang.language.syntax.source import did_you_mean
from isolang.language.vocabulary import FRAGMENTS, GIVEN, Sort, Word

ANY = Sort("any")
BUILTINS: Mapping[str, Word] = {word.name: word for word in GIVEN}
"""The names that are given with every history."""


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


_ELSEWHERE = {
    "fr": "what herd's cat calls `fr` is `rw`, the anti-dependency",
    "mo": "what is `mo` for memory models is `ww`, the version order",
    "_": "all pairs of transactions are `T * T`",
}
"""Names that people know from elsewhere."""


def what_was_meant(name: str, known: Collection[str]) -> str:
    """The hint for a name that is not among the known ones.

    Args:
        name: as it stands in the text, in letters of any case.
        known: what could stand in its place, in the order in which it is listed.
    """
    if name in _ELSEWHERE:
        return _ELSEWHERE[name]
    if name in FRAGMENTS:
        return f'write `include "{FRAGMENTS[name]}"`, which defines it'
    folded = {candidate.lower(): candidate for candidate in known}
    if near := _near(name, folded):
        return did_you_mean(folded[other] for other in near)
    if fragments := _near(name, FRAGMENTS):
        return f'did you mean `{fragments[0]}`, of `include "{FRAGMENTS[fragments[0]]}"`?'
    return "known are " + ", ".join(known)


def _near(name: str, names: Collection[str]) -> list[str]:
    """The names that may be meant: those that differ in one of two letters, else the closest.

    Two letters are too short for a ratio, by which `W` is nearest to `wv`.
    """
    wanted, known = name.lower(), sorted(names)
    if wanted in known or len(wanted) != 2:
        return difflib.get_close_matches(wanted, known, 1, 0.6)
    pairs = [other for other in known if len(other) == 2]
    near = [other for other in pairs if (other[0] == wanted[0]) != (other[1] == wanted[1])]
    return near or difflib.get_close_matches(wanted, [n for n in known if len(n) > 1], 1, 0.6)
