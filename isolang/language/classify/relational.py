"""The relational route, which searches for the declared relations of any other specification.

If a specification is closed under sub-histories, a part of a history that violates it shows that
the whole history does. docs/routes.md#closure-under-sub-histories states the condition that this
module tests, and proves it.
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
    """The relational route, which decides any specification if the history is small enough.

    Attributes:
        not_closed: why the verdict on a part of a history may not hold for the whole history, or
            empty if it does hold.
        unread_matter: whether the search must try both to include and to exclude each indeterminate
            transaction that no transaction reads from.
        parts: the part of the specification that the native engine decides before any search, or
            ``None`` if there is none.
    """

    kind: Kind = "relational"
    not_closed: str = ""
    unread_matter: bool = False
    parts: SpecSplit | None = None


def _contains_shown_order(exists: Exists) -> bool:
    """Return whether a relation has no value if list reads show a contradictory order."""
    shown = exists.containing
    return exists.kind == "order" and shown is not None and "vo" in mentions.names(shown)


def relational(
    spec: Spec, reasons: tuple[str, ...] = (), parts: SpecSplit | None = None
) -> Relational:
    """Return the relational route of a specification that has a check.

    Args:
        spec: the specification.
        reasons: one sentence for each other route, which says why that route does not apply.
        parts: the part of the specification that the native engine decides, if there is one.
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
    """Return why the verdict on a part may not hold for the whole history, or an empty text."""
    for check in spec.checks:
        if not check.flag and (reason := _why_check_not_closed(check)):
            return f"check `{check.name}` {reason}"
    for exists in spec.exists:
        if reason := _why_exists_not_closed(exists):
            return f"`exists {exists.name}` {reason}"
    return ""


def unread_matter(spec: Spec) -> bool:
    """Return whether it may matter to include transactions that no transaction reads from.

    It does not matter to the checks of a specification that is closed under sub-histories. It does
    not matter to a flag if the specification together with this flag is closed, too.
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
        return "" if exists.name == "rf" else "is a choice whose range may change"
    if reason := _why_loses_pairs(exists.over):
        return reason
    if exists.containing is not None and (reason := _why_gains_pairs(exists.containing)):
        return reason
    return _why_loses_pairs(exists.within) if exists.within is not None else ""


def _why_gains_pairs(e: Core) -> str:
    """Return why the relation may gain pairs when its parts lose some, or "" if it cannot."""
    if isinstance(e, Diff):
        return _why_gains_pairs(e.left) or _why_loses_pairs(e.right)
    return next(filter(None, map(_why_gains_pairs, children(e))), "")


def _why_loses_pairs(e: Core) -> str:
    """Return why the relation may lose a pair whose two ends both remain, or "" if it cannot."""
    if isinstance(e, Seq | Plus | Star | Domain | Range):
        return f"compares with `{brief(e)}`, which may need others"
    if isinstance(e, Rel) and names(e) & _OF_READS:
        return f"compares with `{e.name}`, which speaks of reads"
    if isinstance(e, Diff):
        return _why_loses_pairs(e.left) or _why_gains_pairs(e.right)
    return next(filter(None, map(_why_loses_pairs, children(e))), "")
