"""Finds the relations mentioned by a specification, and its forms without sessions or times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from isolang.language.meaning.cached import cached_by_identity
from isolang.language.meaning.core import (
    Check,
    Core,
    Diff,
    Domain,
    Exists,
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
    Spec,
    Star,
    Union,
)
from isolang.language.syntax.ast import KeyClass
from isolang.language.vocabulary import (
    COMPARING_GROUPS,
    COMPARING_SESSIONS,
    COMPARING_TIMES,
    FROM_T0,
    OF_EVENTS,
    OF_READS,
    OVERWRITING,
    SPLIT,
)


def children(e: Core) -> tuple[Core, ...]:
    """Return the direct subexpressions of an expression."""
    match e:
        case Rel() | Named():
            return ()
        case Union() | Seq() | Inter():
            return e.parts
        case Diff() | Product():
            return (e.left, e.right)
        case ForKey():
            return (e.body,)
        case Inverse() | Plus() | Star() | Opt() | Lift() | Domain() | Range():
            return (e.arg,)


def rebuild(e: Core, parts: tuple[Core, ...]) -> Core:
    """Return ``e`` with its direct subexpressions replaced by ``parts``, in ``children`` order."""
    match e:
        case Rel() | Named():
            return e
        case Union() | Seq() | Inter():
            return replace(e, parts=parts)
        case Diff() | Product():
            return replace(e, left=parts[0], right=parts[1])
        case ForKey():
            return replace(e, body=parts[0])
        case Inverse() | Plus() | Star() | Opt() | Lift() | Domain() | Range():
            return replace(e, arg=parts[0])


def names(e: Core) -> frozenset[str]:
    """Return the relations and sets mentioned in an expression."""
    if isinstance(e, Rel):
        return frozenset((e.name,))
    if isinstance(e, Named):
        return frozenset((e.word,))
    return frozenset().union(*map(names, children(e)))


def _judged_expressions(spec: Spec) -> Iterator[Core]:
    """Yield the expressions that a verdict depends on.

    These are the expressions in unflagged checks and in declarations other than ``rf`` and ``ww``.
    """
    for check in spec.checks:
        if not check.flag:
            yield check.expr
            if check.bound is not None:
                yield check.bound
    for exists in spec.exists:
        if exists.name not in ("rf", "ww"):
            yield exists.over
            yield from (bound for bound in (exists.containing, exists.within) if bound)


@cached_by_identity
def mentioned(spec: Spec) -> frozenset[str]:
    """Return the relations and sets that a specification's verdict depends on."""
    return frozenset().union(*map(names, _judged_expressions(spec)))


def uses_reads_from(spec: Spec) -> bool:
    """Return whether a verdict depends on ``rf``, directly or through relations such as ``wr``.

    Only in this case do intrinsic anomalies (aborted read, thin-air read, …) violate the
    specification.
    """
    return bool(mentioned(spec) & (OF_READS | {"rf"}))


def uses_version_order(spec: Spec) -> bool:
    """Return whether a verdict depends on ``ww``, directly or through ``rw``."""
    return bool(mentioned(spec) & (OVERWRITING | {"ww"}))


def distinguishes_reads(spec: Spec) -> bool:
    """Return whether a verdict distinguishes predicate reads from item reads."""
    return bool(mentioned(spec) & (SPLIT | {"pred"}))


def uses_sessions(spec: Spec) -> bool:
    """Return whether a verdict depends on sessions."""
    return bool(mentioned(spec) & COMPARING_SESSIONS)


def uses_real_time(spec: Spec) -> bool:
    """Return whether a verdict depends on times; if so, a history must have times."""
    return bool(mentioned(spec) & COMPARING_TIMES)


def uses_groups(spec: Spec) -> bool:
    """Return whether a verdict depends on session groups; if so, a history must have groups."""
    return bool(mentioned(spec) & COMPARING_GROUPS)


@cached_by_identity
def named_sets(spec: Spec) -> frozenset[Named]:
    """Return the names of labels and levels that a specification's verdict depends on."""
    return frozenset().union(*map(_named, _judged_expressions(spec)))


@cached_by_identity
def key_classes(spec: Spec) -> frozenset[KeyClass]:
    """Return the classes of keys that a specification's verdict depends on."""
    return frozenset().union(*map(_classes, _judged_expressions(spec)))


def _named(e: Core) -> frozenset[Named]:
    if isinstance(e, Named):
        return frozenset((e,))
    return frozenset().union(*map(_named, children(e)))


def _classes(e: Core) -> frozenset[KeyClass]:
    own = frozenset((e.within,)) if isinstance(e, ForKey) and e.within else frozenset[KeyClass]()
    return own.union(*map(_classes, children(e)))


def uses_events(spec: Spec) -> bool:
    """Return whether a specification uses relations between individual operations.

    If so, the identity relation also contains operations. The declaration of ``rf`` does not count.
    """
    parts: list[Core | None] = [e for check in spec.checks for e in (check.expr, check.bound)]
    for exists in spec.exists:
        if exists.name != "rf":
            parts += [exists.over, exists.containing, exists.within]
    parts += [e for _, e in spec.shows]
    return any(names(e) & OF_EVENTS for e in parts if e is not None)


def without_sessions(spec: Spec) -> Spec:
    """Return the specification with ``init`` in place of ``so``.

    Any other relation that compares sessions becomes ``init`` if it contains ``init``, and empty
    otherwise.

    SOUND BECAUSE ``so`` contains ``init``: if ``so`` were simply removed, the initial transaction
    could come after a writer.
    """
    return _replace_words(spec, _least(COMPARING_SESSIONS), "without sessions")


def without_real_time(spec: Spec) -> Spec:
    """Return the specification with each relation that compares times replaced by its least value.

    The least value is ``init`` or the empty relation.
    """
    return _replace_words(spec, _least(COMPARING_TIMES - OF_EVENTS), "without real time")


def _least(words: Iterable[str]) -> dict[str, Core]:
    """Return, for each word, an expression for the pairs it contains in every history.

    The expression is ``init`` or an empty relation.
    """
    init = Rel("init")
    return {name: init if name in FROM_T0 else Seq((init, init)) for name in words}


def _replace_words(spec: Spec, by: Mapping[str, Core], suffix: str) -> Spec:
    def expr(e: Core) -> Core:
        if isinstance(e, Rel):
            return by.get(e.name, e)
        return rebuild(e, tuple(map(expr, children(e))))

    def bound(e: Core | None) -> Core | None:
        return None if e is None else expr(e)

    def check(c: Check) -> Check:
        return replace(c, expr=expr(c.expr), bound=bound(c.bound))

    def exists(x: Exists) -> Exists:
        return replace(x, over=expr(x.over), containing=bound(x.containing), within=bound(x.within))

    return replace(
        spec,
        name=f"{spec.name} {suffix}",
        checks=tuple(map(check, spec.checks)),
        exists=tuple(map(exists, spec.exists)),
        shows=tuple((name, expr(e)) for name, e in spec.shows),
        definitions={name: expr(e) for name, e in spec.definitions.items()},
    )


def union_parts(e: Core | None) -> tuple[Core, ...]:
    """Return the parts of a union, with nested unions flattened; for ``None``, an empty tuple."""
    if isinstance(e, Union):
        return tuple(inner for part in e.parts for inner in union_parts(part))
    return () if e is None else (e,)
