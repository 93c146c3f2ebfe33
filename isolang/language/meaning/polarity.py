"""Warns if a specification requires less than its author probably intended.

A history satisfies a specification iff *some* choice meets its checks. Therefore the choice that
makes the checks easiest is always allowed. For example, a chosen relation with only upper bounds
may be empty, and a check after ``not`` is met as soon as some choice violates it.
"""

from __future__ import annotations

from collections.abc import Iterator

from isolang.language.meaning.core import Check, Core, Diff, Exists, ForKey, Rel, Spec, Union
from isolang.language.meaning.mentions import children, names
from isolang.language.meaning.show import brief
from isolang.language.syntax.source import Position, message_at
from isolang.language.vocabulary import OVERWRITING

_WITHIN_RW = {name: (name.replace("rw", "wr"), "ww") for name in sorted(OVERWRITING)}


def polarity_warnings(spec: Spec) -> list[str]:
    """Return warnings, with places and hints, about parts that are legal but probably mistakes.

    The warnings concern only relations and checks in the main text, because a fragment in another
    text may be intentionally incomplete.
    """
    own = [check for check in spec.checks if check.file == spec.source]
    chosen = {exists.name for exists in spec.exists}
    warnings: list[str] = []
    for check in own:
        warnings += _warn_of_mixed_keys(spec, check)
        warnings += _warn_of_implied_check(spec, check)
        warnings += _warn_of_negation(spec, check, chosen)
        for part in _compared(check):
            warnings += _warn_of_difference(spec, check, part, chosen)
    for exists in spec.exists:
        if exists.kind == "relation" and _declared_in(spec, exists):
            warnings += _warn_of_missing_bound(spec, exists)
    return warnings


def _warn_of_mixed_keys(spec: Spec, check: Check) -> Iterator[str]:
    """Warn that the cycles forbidden by a check may have steps on different keys."""
    if check.kind == "acyclic" and isinstance(check.expr, ForKey) and _is_keyed(check.expr):
        key, body = check.expr.key, brief(check.expr.body)
        what = (
            f"warning: `acyclic for {key}: …` builds one graph over all keys, "
            "so the steps of a cycle may have different keys"
        )
        hint = f"a graph for each key is `for each {key}: acyclic {body}`"
        yield message_at(check.pos, spec.texts, what, hint=hint)


def _is_keyed(e: Core) -> bool:
    return (isinstance(e, Rel) and e.key is not None) or any(map(_is_keyed, children(e)))


def _warn_of_implied_check(spec: Spec, check: Check) -> Iterator[str]:
    """Warn that a check cannot fail because a declaration already implies it."""
    if check.flag or check.negated or check.kind != "require" or not isinstance(check.bound, Rel):
        return
    bound = check.bound
    inside = _contents(spec, bound.name, frozenset())
    if bound.key is None and all(part in inside for part in _summands(check.expr)):
        what = (
            f"warning: check `{check.name}` cannot fail: `exists {bound.name}` is declared to "
            f"contain `{brief(check.expr)}`"
        )
        hint = "remove it, or require more than the declaration does"
        yield message_at(check.pos, spec.texts, what, hint=hint)


def _contents(spec: Spec, name: str, seen: frozenset[str]) -> set[Core]:
    """Return the relations contained in a chosen relation under every choice."""
    found: set[Core] = {Rel(name)}
    for exists in spec.exists:
        if exists.name == name and exists.key is None and exists.containing is not None:
            found |= set(_summands(exists.containing))
        if exists.within == Rel(name) and exists.key is None and exists.name not in seen:
            found |= _contents(spec, exists.name, seen | {name})
    if Rel("so") in found or Rel("rt") in found:
        found.add(Rel("init"))
    return found


def _summands(e: Core) -> list[Core]:
    if isinstance(e, Union):
        return [inner for part in e.parts for inner in _summands(part)]
    return [e]


def _declared_in(spec: Spec, exists: Exists) -> bool:
    return exists.over.pos is not None and exists.over.pos.file == spec.source


def _chosen_in(e: Core, chosen: set[str]) -> list[str]:
    """Return the chosen relations that an expression depends on."""
    found = set(names(e))
    for name, parts in _WITHIN_RW.items():
        if name in found:
            found |= set(parts)
    return sorted(found & chosen)


def _warn_of_negation(spec: Spec, check: Check, chosen: set[str]) -> Iterator[str]:
    if not check.negated or check.flag:
        return
    found = _chosen_in(check.expr, chosen)
    if check.bound is not None:
        found += [name for name in _chosen_in(check.bound, chosen) if name not in found]
    if found:
        which = " and ".join(f"`{name}`" for name in found)
        what = (
            f"warning: check `{check.name}`: `not` is satisfied as soon as one "
            f"choice of {which} fails `{check.kind}`"
        )
        hint = (
            f"to forbid it for every choice, write `flag {check.kind} …`; to "
            "require it of every choice, leave out `not`"
        )
        yield message_at(check.pos, spec.texts, what, hint=hint)


def _compared(check: Check) -> Iterator[Core]:
    r"""Yield what a check compares; ``for each x: require a in b`` is ``empty for x: a \ b``."""
    body = check.expr
    while isinstance(body, ForKey):
        body = body.body
    if check.kind == "empty" and body is not check.expr and isinstance(body, Diff):
        yield from (body.left, body.right)
        return
    yield check.expr
    if check.bound is not None:
        yield check.bound


def _warn_of_difference(spec: Spec, check: Check, e: Core, chosen: set[str]) -> Iterator[str]:
    if isinstance(e, Diff) and (found := _chosen_in(e.right, chosen)):
        pos = e.right.pos or check.pos
        what = (
            f"warning: check `{check.name}`: `{brief(e)}` gets smaller as `{found[0]}`, which is "
            "chosen, gets larger"
        )
        hint = (
            "subtract what is given (`\\ id`, `\\ so`), or intersect with the inverse of an order"
        )
        yield message_at(pos, spec.texts, what, hint=hint)
        return
    for child in children(e):
        yield from _warn_of_difference(spec, check, child, chosen)


def _warn_of_missing_bound(spec: Spec, exists: Exists) -> Iterator[str]:
    """Warn that choosing the empty relation, or the relation of all pairs, always works."""
    easier_with: set[str] = set()
    for check in spec.checks:
        if not check.flag:
            easier_with |= _easier_values(check, exists.name)
    for other in spec.exists:
        if other.containing is not None and exists.name in names(other.containing):
            easier_with.add("smaller")
        for part in (other.within, other.over):
            if part is not None and exists.name in names(part):
                easier_with.add("larger")
    pos = exists.over.pos or Position(spec.source, 0, 0)
    if easier_with == {"smaller"} and exists.containing is None:
        what = (
            f"warning: the empty relation always works as `{exists.name}`, "
            "because nothing requires a pair"
        )
        hint = "bound it from below: `containing …`, or `require … in " + f"{exists.name}`"
        yield message_at(pos, spec.texts, what, hint=hint)
    elif easier_with == {"larger"} and exists.within is None:
        what = (
            "warning: the relation of all pairs always works as "
            f"`{exists.name}`, because nothing forbids a pair"
        )
        hint = "bound it from above: `within …`, or a check that it be acyclic"
        yield message_at(pos, spec.texts, what, hint=hint)


def _easier_values(check: Check, name: str) -> set[str]:
    """Return the sizes of a relation that make a check easier: ``smaller``, ``larger``, or both."""
    found = {"smaller" if up else "larger" for up in _occurrences(check.expr, name)}
    if check.bound is not None:
        found |= {"larger" if up else "smaller" for up in _occurrences(check.bound, name)}
    if check.negated:
        found = {"larger" if size == "smaller" else "smaller" for size in found}
    return found


def _occurrences(e: Core, name: str) -> Iterator[bool]:
    """Yield, for each use of a relation in ``e``, whether ``e`` grows with the relation."""
    match e:
        case Rel():
            if e.name == name:
                yield True
        case Diff():
            yield from _occurrences(e.left, name)
            for up in _occurrences(e.right, name):
                yield not up
        case _:
            for child in children(e):
                yield from _occurrences(child, name)
