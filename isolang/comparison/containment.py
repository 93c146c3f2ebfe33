"""Shows from the form of two expressions that one relation contains the other in every history.

The operators of the language other than the right side of a difference are monotone: a larger
operand gives a larger result. No history is needed for such a proof, and the names may mean
anything: it also covers relations that no automaton knows, such as those of times and of sets.
"""

from __future__ import annotations

from functools import lru_cache

from isolang.language.meaning.core import (
    Check,
    Core,
    Diff,
    Domain,
    ForKey,
    Inter,
    Inverse,
    Lift,
    Named,
    Opt,
    Plus,
    Product,
    Range,
    Rel,
    Seq,
    Star,
    Union,
)
from isolang.language.meaning.mentions import children, rebuild

_ID = Rel("id")


def follows_from(weaker: Check, stronger: Check) -> bool:
    """Return whether a check is met wherever another one is, because its relation is contained.

    If the result is false, the check may still follow from the other.

    SOUND BECAUSE a subset of a relation without cycles has none, and a subset of an empty relation
    is empty; a superset of a relation that has a cycle, or a pair, has it, too. A relation is
    acyclic iff its transitive closure is irreflexive, and an empty relation is both.
    """
    if weaker.negated != stronger.negated:
        return False
    if weaker.negated:
        weaker, stronger = stronger, weaker
    if "require" in (weaker.kind, stronger.kind):
        return (
            weaker.kind == stronger.kind
            and weaker.bound is not None
            and stronger.bound is not None
            and contains(stronger.expr, weaker.expr)
            and contains(weaker.bound, stronger.bound)
        )
    if weaker.kind == "empty" != stronger.kind:
        return False
    small, large = (
        Plus(check.expr) if check.kind == "acyclic" else check.expr for check in (weaker, stronger)
    )
    if stronger.kind == "empty":
        small = weaker.expr  # if it is empty, so is its closure
    return contains(large, small)


@lru_cache(maxsize=4096)
def contains(large: Core, small: Core) -> bool:
    """Return whether the form of two expressions shows that the first contains the second.

    If the result is false, nothing is known. The sets of the language are treated as relations are.

    SOUND BECAUSE each rule below is valid for all relations. A name without a key is the union over
    all keys, so it contains the name with a key.

    >>> contains(Seq((Union((Rel("so"), Rel("rt"))), Opt(Rel("rw")))), Rel("so"))
    True
    """
    if large == small:
        return True
    match large, small:
        case _, Union(parts=parts):
            return all(contains(large, part) for part in parts)
        case _, Opt(arg=arg):
            return contains(large, _ID) and contains(large, arg)
        case _, Star(arg=arg):
            return contains(large, _ID) and contains(large, Plus(arg))
        case ((Plus() | Star()), Plus(arg=arg)):  # the large relation is transitive
            return contains(large, arg)
        case ForKey(within=within), ForKey() if within in (None, small.within):
            if large.key == small.key or large.key not in _keys(small.body):
                return contains(large.body, _renamed(small.body, small.key, large.key))
        case Diff(), Diff() if contains(small.right, large.right):
            return contains(large.left, small.left)
    return _is_in_part_of(large, small) or _contains_part_of(large, small)


def _is_in_part_of(large: Core, small: Core) -> bool:
    """Return whether the large relation contains the other by a rule for the large one."""
    match large:
        case Union(parts=parts):
            return any(contains(part, small) for part in parts)
        case Inter(parts=parts):
            return all(contains(part, small) for part in parts)
        case Opt(arg=arg):
            return contains(_ID, small) or contains(arg, small)
        case Star(arg=arg):
            return contains(_ID, small) or contains(Plus(arg), small)
        case Plus(arg=arg):
            return contains(arg, small) or _is_composed(large, arg, small)
        case Seq(parts=parts):
            return _compose_within(_flat(parts), _steps_of(small))
        case Rel(name=name, key=None) if isinstance(small, Rel):
            return small.name == name
        case Rel(name="id") if isinstance(small, Lift):
            return True
    return False


def _contains_part_of(large: Core, small: Core) -> bool:
    """Return whether the large relation contains the small one by a rule for the small one."""
    match large, small:
        case _, Inter(parts=parts):
            return any(contains(large, part) for part in parts)
        case _, Diff(left=left):
            return contains(large, left)
        case _, ForKey(key=key, body=body) if key not in _keys(large):
            return contains(large, body)
        case _, Seq(parts=parts) if not isinstance(large, Seq):
            kept = [part for part in _flat(parts) if not contains(_ID, part)]
            return len(kept) < len(_flat(parts)) and contains(large, _composed(kept))
        case Product(left=a, right=b), Product(left=c, right=d):
            return contains(a, c) and contains(b, d)
        case (
            (Lift(arg=a), Lift(arg=b))
            | (Inverse(arg=a), Inverse(arg=b))
            | (Domain(arg=a), Domain(arg=b))
            | (Range(arg=a), Range(arg=b))
        ):
            return contains(a, b)
    return False


def _is_composed(closure: Plus, arg: Core, small: Core) -> bool:
    """Return whether a composition is one of relations that a transitive closure contains."""
    steps = _steps_of(small)
    return any(
        contains(arg, _composed(steps[:n])) and contains(closure, _composed(steps[n:]))
        for n in range(1, len(steps))
    )


def _compose_within(large: tuple[Core, ...], small: tuple[Core, ...]) -> bool:
    """Return whether a composition of relations contains another composition."""
    if not small:
        return all(contains(step, _ID) for step in large)
    if not large:
        return all(contains(_ID, step) for step in small)
    first, rest = large[0], large[1:]
    return (
        (contains(_ID, small[0]) and _compose_within(large, small[1:]))
        or (contains(first, _ID) and _compose_within(rest, small))
        or any(
            contains(first, _composed(small[:n])) and _compose_within(rest, small[n:])
            for n in range(1, len(small) + 1)
        )
    )


def _steps_of(e: Core) -> tuple[Core, ...]:
    return _flat(e.parts) if isinstance(e, Seq) else (e,)


def _flat(parts: tuple[Core, ...]) -> tuple[Core, ...]:
    """Return the parts of a composition, with those of compositions inside it in their place."""
    return tuple(step for part in parts for step in _steps_of(part))


def _composed(steps: tuple[Core, ...] | list[Core]) -> Core:
    return _ID if not steps else steps[0] if len(steps) == 1 else Seq(tuple(steps))


def _keys(e: Core) -> frozenset[str]:
    """Return all key variables in an expression, whether it binds them or not."""
    own = frozenset((e.key,)) if isinstance(e, Rel | ForKey) and e.key else frozenset[str]()
    return own.union(*map(_keys, children(e)))


def _renamed(e: Core, key: str, other: str) -> Core:
    """Return an expression with a free key variable renamed."""
    if isinstance(e, Rel):
        return Rel(e.name, other, e.pos) if e.key == key else e
    if isinstance(e, Named) or (isinstance(e, ForKey) and key == e.key):
        return e
    return rebuild(e, tuple(_renamed(part, key, other) for part in children(e)))
