"""The names that are in scope in a specification, and suggestions for unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping

from msgspec import Struct, field

from isolang.language.syntax import ast
from isolang.language.syntax.source import did_you_mean
from isolang.language.vocabulary import BUILTIN_WORDS, FRAGMENTS, Sort, Word

ANY = Sort("any")
BUILTINS: Mapping[str, Word] = {word.name: word for word in BUILTIN_WORDS}
"""The builtin words (those defined for every history), by name."""


class ScopeEntry(Struct, frozen=True):
    """A name with its sort and the item that declares it; builtin names have no such item."""

    name: str
    sort: Sort
    keyed: bool
    item: ast.Let | ast.ExistsItem | None

    @property
    def params(self) -> tuple[ast.Ident, ...]:
        """The definition's formal parameters; empty if the name has none."""
        return self.item.params if isinstance(self.item, ast.Let) else ()


class Scope(Struct):
    """All names in a specification, with warnings about likely mistakes."""

    entries: dict[str, ScopeEntry]
    warnings: list[str] = field(default_factory=list)


_ELSEWHERE = {
    "fr": "the relation that herd's cat calls `fr` is `rw`, the anti-dependency",
    "mo": "the relation that memory models call `mo` is `ww`, the version order",
    "_": "all pairs of transactions are `T * T`",
}
"""For names that users may know from other languages, hints with the names used in this one."""


def suggest_name(name: str, known: Collection[str]) -> str:
    """Return a hint for an unknown name."""
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
    """Return the known names that are similar to a name.

    For a two-letter name, these are the names that differ in one letter. For any other name, it is
    the closest known name, if any. Two letters are too few for a similarity ratio: it would rank
    `W` as the closest to `wv`.
    """
    folded, known = name.lower(), sorted(names)
    if folded in known or len(folded) != 2:
        return difflib.get_close_matches(folded, known, 1, 0.6)
    pairs = [other for other in known if len(other) == 2]
    near = [other for other in pairs if (other[0] == folded[0]) != (other[1] == folded[1])]
    return near or difflib.get_close_matches(folded, [n for n in known if len(n) > 1], 1, 0.6)
