"""Writes expressions in the native checker's prefix form: ``(| so wr (; ww (? rw)))``.

Words of the prefix form consist of relations between transactions and of tests. The form has no
intersections or inverses, and expresses ``for x:`` only as a union over keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from msgspec.structs import replace

from isolang.certify.errors import NotCertifiedError
from isolang.language.meaning.core import (
    Core,
    Diff,
    ForKey,
    Lift,
    Named,
    Opt,
    Plus,
    Rel,
    Seq,
    Star,
    Union,
)
from isolang.language.meaning.mentions import children, rebuild
from isolang.language.syntax.ast import KeyClass
from isolang.language.vocabulary import (
    FILTERED,
    FROM_T0,
    NAMED,
    OF_READS,
    PARTS,
    RELATIONS,
    STATEMENT_LETTERS,
    TESTS,
)

TO_WRITE = "to-write"
"""The letter for a ``ww`` that leads to the write itself and is always followed by ``po``.

It replaces ``ww`` before ``po`` in expressions; no edge has this name."""
_KEYED = (*OF_READS, "ww")


_AT: Final = "@"
"""The separator between a letter and the number of the name that restricts it.

For example, ``wr@0`` is ``wr`` for the keys selected by the first name."""

NameOf: TypeAlias = tuple[str, tuple[str, ...], bool]
"""A name in quotes: ``keys``, ``label`` or ``level``; its patterns; and whether it is negated."""


def _letter(e: Core) -> str:
    """Return the letter of a relation or a test; for any other expression, an empty string."""
    name, known = (
        (e.arg, (*TESTS, *NAMED))
        if isinstance(e, Lift)
        else (e, (*RELATIONS, *STATEMENT_LETTERS, TO_WRITE))
    )
    if not isinstance(name, Rel) or name.key is not None:
        return ""
    return name.name if name.name.partition(_AT)[0] in known else ""


def number_names(expr: Core) -> tuple[Core, tuple[NameOf, ...]]:
    """Replace each quoted name with a number. Return the new expression and the list of names."""
    found: list[NameOf] = []

    def number(of: NameOf) -> str:
        if of not in found:
            found.append(of)
        return f"{_AT}{found.index(of)}"

    def named(e: Core, classes: Mapping[str, KeyClass]) -> Core:
        if isinstance(e, Named):
            return Rel(e.word + number((e.word, (e.name,), False)))
        if isinstance(e, Diff) and e.left == Rel("T") and isinstance(e.right, Named):
            return Rel(e.right.word + number((e.right.word, (e.right.name,), True)))
        if isinstance(e, Rel) and e.key is not None and e.key in classes and e.name not in FROM_T0:
            within = classes[e.key]
            return replace(e, name=e.name + number(("keys", within.patterns, within.negated)))
        if isinstance(e, ForKey):
            inner = {key: of for key, of in classes.items() if key != e.key}
            inner |= {e.key: e.within} if e.within is not None else {}
            return ForKey(e.key, named(e.body, inner))
        return rebuild(e, tuple(named(part, classes) for part in children(e)))

    return named(expr, {}), tuple(found)


def _whole(name: str) -> tuple[str, str]:
    """Split a numbered name into the bare name and the rest (the separator and the number)."""
    whole, at, number = name.partition(_AT)
    return whole, at + number


def plain(expr: Core) -> Core:
    """Return ``expr`` without ``for x:``, for example with ``ww`` for the union of all ``ww[x]``.

    If the expression contains a part of ``wr`` or ``rw``, such as ``pwr``, then ``wr`` and ``rw``
    are replaced by the unions of their parts.

    Raises:
        NotCertifiedError: if a ``for`` requires two relations to have the same key.
    """
    expr = _without_key_variables(expr)
    split = any(isinstance(e, Rel) and _whole(e.name)[0] in parts for e in walk(expr)
                for parts in PARTS.values())  # fmt: skip
    return _in_parts(expr) if split else expr


def _in_parts(expr: Core) -> Core:
    if isinstance(expr, Rel) and _whole(expr.name)[0] in PARTS:
        whole, number = _whole(expr.name)
        return Union(tuple(Rel(part + number) for part in PARTS[whole]))
    if isinstance(expr, (Union, Seq)):
        return replace(expr, parts=tuple(map(_in_parts, expr.parts)))
    if isinstance(expr, (Plus, Star, Opt)):
        return replace(expr, arg=_in_parts(expr.arg))
    return expr


def _without_key_variables(expr: Core) -> Core:
    if isinstance(expr, ForKey):
        return _over_keys(expr.key, expr.body)
    if isinstance(expr, Lift) and isinstance(expr.arg, ForKey):
        return _over_keys(expr.arg.key, Lift(expr.arg.body))
    if isinstance(expr, Lift) and isinstance(expr.arg, Union):
        return Union(tuple(_without_key_variables(Lift(part)) for part in expr.arg.parts))
    if isinstance(expr, Union):
        return Union(tuple(_without_key_variables(part) for part in expr.parts))
    if isinstance(expr, Seq):
        return Seq(tuple(_without_key_variables(part) for part in expr.parts))
    if isinstance(expr, Plus):
        return Plus(_without_key_variables(expr.arg))
    if isinstance(expr, Star):
        return Star(_without_key_variables(expr.arg))
    if isinstance(expr, Opt):
        return Opt(_without_key_variables(expr.arg))
    return expr


def _over_keys(key: str, body: Core) -> Core:
    if isinstance(body, Union):  # for x: (a | b)  =  (for x: a) | (for x: b)
        return Union(tuple(_over_keys(key, part) for part in body.parts))
    if isinstance(body, Rel) and body.key == key and _whole(body.name)[0] in _KEYED:
        return Rel(body.name)
    if body == Plus(Rel("ww", key)):  # the versions of a key have a total order, so ww[x]^+ = ww[x]
        return Rel("ww")
    if isinstance(body, Lift) and isinstance(body.arg, Rel) and body.arg.key == key:
        return Lift(Rel(body.arg.name))  # `[W]` is the union of `[W[x]]` over all keys x
    if isinstance(body, Seq) and (found := _filtered(body.parts, key)) is not None:
        return found
    if isinstance(body, Seq):  # for x: (a ; b)  =  a ; (for x: b), if x does not occur in a
        speaking = [i for i, part in enumerate(body.parts) if _mentions_key(part, key)]
        if len(speaking) > 1:
            first, last = speaking[0], speaking[-1] + 1
            inner = _filtered(body.parts[first:last], key)
            if inner is not None:
                before, after = body.parts[:first], body.parts[last:]
                return _without_key_variables(Seq((*before, inner, *after)))
        elif speaking:
            parts = list(body.parts)
            parts[speaking[0]] = _over_keys(key, parts[speaking[0]])
            return _without_key_variables(Seq(tuple(parts)))
    if not _mentions_key(body, key):
        return _without_key_variables(body)
    raise NotCertifiedError(
        f"not certified: 'for {key}:' restricts relations to one key, which "
        "no event graph can express"
    )


def _mentions_key(e: Core, key: str) -> bool:
    return any(isinstance(part, Rel) and part.key == key for part in walk(e))


def _filtered(parts: tuple[Core, ...], key: str) -> Core | None:
    """Return the letters, such as ``r[A,B]``, for ``[A[x]] ; r ; [B[x]]``.

    A, r and B may be unions. If the parts have a different form, return ``None``.
    """
    if len(parts) != 3:
        return None
    first, middle, last = map(_alternatives, parts)
    names = []
    for a in first:
        for r in middle:
            for b in last:
                ends = [end.arg if isinstance(end, Lift) else None for end in (a, b)]
                if not isinstance(r, Rel) or any(
                    not isinstance(end, Rel) or end.key != key or _whole(end.name)[0] not in TESTS
                    for end in ends
                ):
                    return None
                if r.name == "init":
                    names.append("init")  # no cycle contains T0, so tests of T0 do not matter
                    continue
                tests = [_whole(end.name) for end in ends if isinstance(end, Rel)]
                label = f"{r.name}[{','.join(test for test, _ in tests)}]"
                if label not in FILTERED:
                    return None
                names.append(label + tests[0][1])
    return Union(tuple(map(Rel, names)))


def _alternatives(e: Core) -> tuple[Core, ...]:
    if isinstance(e, Lift) and isinstance(e.arg, Union):
        return tuple(Lift(part) for part in e.arg.parts)
    return (
        tuple(a for part in e.parts for a in _alternatives(part)) if isinstance(e, Union) else (e,)
    )


def walk(expr: Core) -> Iterator[Core]:
    """Yield ``expr`` and all its subexpressions, outer expressions first."""
    yield expr
    for name in expr.__struct_fields__:
        value = getattr(expr, name)
        for child in value if name == "parts" else (value,):
            if isinstance(child, Core):
                yield from walk(child)


def prefix_text(expr: Core) -> str:
    """Return the expression in the native checker's prefix form.

    Raises:
        NotCertifiedError: if the prefix form cannot express this expression.
    """

    def text(e: Core) -> str:
        if letter := _letter(e):
            return letter
        if e == Rel("id") or e == Lift(Rel("T")):
            return "id"
        if isinstance(e, Union):
            return f"(| {' '.join(text(part) for part in e.parts)})"
        if isinstance(e, Seq):
            return f"(; {' '.join(text(part) for part in e.parts)})"
        if isinstance(e, (Plus, Star, Opt)):
            sign = {Plus: "+", Star: "*", Opt: "?"}[type(e)]
            return f"({sign} {text(e.arg)})"
        raise NotCertifiedError(f"not certified: {_describe(e)} is not part of an event graph")

    return text(plain(number_names(expr)[0]))


def accepts_empty_word(expr: Core) -> bool:
    """Return whether an expression accepts the empty word.

    Raises:
        NotCertifiedError: if the prefix form cannot express this expression.
    """

    def empty(e: Core) -> bool:
        if _letter(e):
            return False
        if isinstance(e, Union):
            return any(map(empty, e.parts))
        if isinstance(e, Seq):
            return all(map(empty, e.parts))
        return empty(e.arg) if isinstance(e, Plus) else True

    prefix_text(expr)  # raises NotCertifiedError if the prefix form cannot express the expression
    return empty(plain(number_names(expr)[0]))


def _describe(expr: Core) -> str:
    if isinstance(expr, Rel):
        return f"'{expr.name}[{expr.key}]'" if expr.key else f"'{expr.name}'"
    return f"an expression of the form {type(expr).__name__}"
