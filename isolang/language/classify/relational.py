"""The route of everything else: the relations that a specification asks for, searched for.

A part of a history that violates a specification shows that the whole does if the specification is
closed under sub-histories: docs/routes.md#closure-under-sub-histories has the condition that is
decided here, and its proof.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.language.classify.plan import Kind, Route
from isolang.language.meaning import mentions
from isolang.language.meaning.core import (
    Check,
    Core,
    Diff,
    Domain,
    Exists,
    Plus,
    Range,
    Rel,
    Seq,
    Spec,
    Star,
)
from isolang.language.meaning.mentions import children, names
from isolang.language.meaning.show import brief
from isolang.language.vocabulary import OF_READS

if TYPE_CHECKING:
    from isolang.language.classify.split import Split


class Relational(Route, frozen=True, kw_only=True):
    """The relational route, which decides any specification on a history small enough.

    Attributes:
        not_closed: why a part of a history says nothing about the whole; empty if it does.
        unread_matter: whether a transaction of unknown outcome that nobody reads from is tried both
            in and out.
        parts: what the native engine decides of it, before anything is searched for; ``None`` if
            that is nothing.
    """

    kind: Kind = "relational"
    not_closed: str = ""
    unread_matter: bool = False
    parts: Split | None = None


def _contains_shown_order(exists: Exists) -> bool:
    """Whether it has no value where the order that lists show contradicts itself."""
    shown = exists.containing
    return exists.kind == "order" and shown is not None and "vo" in mentions.names(shown)


def relational(spec: Spec, reasons: tuple[str, ...] = (), parts: Split | None = None) -> Relational:
    """The relational route of a specification that has a check.

    Args:
        spec: the specification.
        reasons: why this one, a sentence each.
        parts: what the native engine decides of it.
    """
    return Relational(
        spec=spec,
        uses_reads_from=mentions.uses_reads_from(spec),
        uses_version_order=any(map(_contains_shown_order, spec.exists)),
        uses_sessions=mentions.uses_sessions(spec),
        uses_real_time=mentions.uses_real_time(spec),
        warnings=spec.warnings,
        reasons=reasons if parts is None else (*reasons, parts.sentence()),
        parts=parts,
        not_closed=why_not_closed(spec),
        unread_matter=unread_matter(spec),
    )


_OF_READS = OF_READS | {"rf", "R", "cand", "po", "tx", "pred"}


def why_not_closed(spec: Spec) -> str:
    """Why a part of a history says nothing about the whole; empty if it does."""
    for check in spec.checks:
        if not check.flag and (reason := _of_check(check)):
            return f"check `{check.name}` {reason}"
    for exists in spec.exists:
        if reason := _of_exists(exists):
            return f"`exists {exists.name}` {reason}"
    return ""


def unread_matter(spec: Spec) -> bool:
    """Whether it may matter if a transaction that nobody reads from is included.

    Not to the checks of a specification closed under sub-histories, and not to its flags if it is
    closed with each of them.
    """
    return bool(why_not_closed(spec)) or any(
        check.flag and _of_check(check) for check in spec.checks
    )


def _of_check(check: Check) -> str:
    if check.negated:
        return "demands a violation (`not`)"
    return _shrinking(check.expr) or (_kept(check.bound) if check.bound is not None else "")


def _of_exists(exists: Exists) -> str:
    if exists.kind == "choice":
        return "" if exists.name == "rf" else "is a choice whose range may change"
    if reason := _kept(exists.over):
        return reason
    if exists.containing is not None and (reason := _shrinking(exists.containing)):
        return reason
    return _kept(exists.within) if exists.within is not None else ""


def _shrinking(e: Core) -> str:
    """Why a value may get pairs that it did not have, when its parts lose some."""
    if isinstance(e, Diff):
        return _shrinking(e.left) or _kept(e.right)
    return next(filter(None, map(_shrinking, children(e))), "")


def _kept(e: Core) -> str:
    """Why a value may lose a pair whose ends are both there."""
    if isinstance(e, Seq | Plus | Star | Domain | Range):
        return f"compares with `{brief(e)}`, which may need others"
    if isinstance(e, Rel) and names(e) & _OF_READS:
        return f"compares with `{e.name}`, which speaks of reads"
    if isinstance(e, Diff):
        return _kept(e.left) or _shrinking(e.right)
    return next(filter(None, map(_kept, children(e))), "")
