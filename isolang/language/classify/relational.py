"""The relational route, which uses a search to decide specifications without a faster route.

If a specification is closed under sub-histories, a history violates it as soon as a part of the
history does. docs/routes.md#closure-under-sub-histories states and proves the condition tested by
this module.
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
    from isolang.language.classify.split import SpecSplit


class Relational(Route, frozen=True, kw_only=True):
    """The relational route, which can decide any specification if the history is small enough.

    Attributes:
        not_closed: the reason why a violation in part of a history need not be a violation in the
            whole history; empty if it always is.
        unread_matter: whether the search must try both including and excluding each indeterminate
            transaction that no transaction reads from.
        parts: the specification split into the checks decided by the native engine before the
            search, and the other checks; ``None`` if the engine decides none.
    """

    kind: Kind = "relational"
    not_closed: str = ""
    unread_matter: bool = False
    parts: SpecSplit | None = None


def _contains_shown_order(exists: Exists) -> bool:
    """Return whether a declared order must contain ``vo``, the order shown by list reads."""
    shown = exists.containing
    return exists.kind == "order" and shown is not None and "vo" in mentions.names(shown)


def relational(
    spec: Spec, reasons: tuple[str, ...] = (), parts: SpecSplit | None = None
) -> Relational:
    """Return the relational route of a specification."""
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
        unread_matter=depends_on_unread(spec),
    )


_OF_READS = OF_READS | {"rf", "R", "cand", "po", "tx", "pred"}


def why_not_closed(spec: Spec) -> str:
    """Explain why a specification may not be closed under sub-histories; ``""`` if it is closed.

    If it is closed, every violation in a part of a history is a violation in the whole history.
    """
    for check in spec.checks:
        if not check.flag and (reason := _why_check_not_closed(check)):
            return f"check `{check.name}` {reason}"
    for exists in spec.exists:
        if reason := _why_exists_not_closed(exists):
            return f"`exists {exists.name}` {reason}"
    return ""


def depends_on_unread(spec: Spec) -> bool:
    """Return whether a verdict may depend on including transactions that are never read from.

    The verdict for a specification closed under sub-histories does not depend on this. Nor does the
    result for a flagged check, if the specification together with this check is also closed.
    """
    return bool(why_not_closed(spec)) or any(
        check.flag and _why_check_not_closed(check) for check in spec.checks
    )


def _why_check_not_closed(check: Check) -> str:
    if check.negated:
        return "demands a violation (`not`)"
    return _why_gains_pairs(check.expr) or (
        _why_loses_pairs(check.bound) if check.bound is not None else ""
    )


def _why_exists_not_closed(exists: Exists) -> str:
    if exists.kind == "choice":
        return "" if exists.name == "rf" else "chooses from a range that may change"
    if reason := _why_loses_pairs(exists.over):
        return reason
    if exists.containing is not None and (reason := _why_gains_pairs(exists.containing)):
        return reason
    return _why_loses_pairs(exists.within) if exists.within is not None else ""


def _why_gains_pairs(e: Core) -> str:
    """Explain why a relation may have more pairs in part of a history than in the whole.

    The result is empty if that cannot happen.
    """
    if isinstance(e, Diff):
        return _why_gains_pairs(e.left) or _why_loses_pairs(e.right)
    return next(filter(None, map(_why_gains_pairs, children(e))), "")


def _why_loses_pairs(e: Core) -> str:
    """Explain why part of a history may lose a pair even though it contains both elements.

    The result is empty if that cannot happen.
    """
    if isinstance(e, Seq | Plus | Star | Domain | Range):
        return f"compares with `{brief(e)}`, which may depend on other choices"
    if isinstance(e, Rel) and names(e) & _OF_READS:
        return f"compares with `{e.name}`, which concerns reads"
    if isinstance(e, Diff):
        return _why_loses_pairs(e.left) or _why_gains_pairs(e.right)
    return next(filter(None, map(_why_loses_pairs, children(e))), "")
