"""Whether a part of a history that violates a specification shows that the whole does.

Take an assignment that meets the specification on the whole, and keep of every relation the pairs
inside the part. Orders stay orders; what is built with ``| & ; ^+ [ ] domain range`` from smaller
relations is smaller; so no check that forbids pairs begins to fail, provided that what pairs are
required to be in, or are taken away by, loses nothing: it may have no composition, no closure and
no end of a relation, and it may not speak of reads, of which some lose their source. Then the part
meets the specification, too.

For the same reason a transaction of unknown outcome that nobody reads from can be left out. Whether
a flag holds is a question about the specification with one more check, so its check counts, too.
"""

from __future__ import annotations

from isolang.language.core import (
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
from isolang.language.facts import children, names
from isolang.language.show import brief

_OF_READS = frozenset(("rf", "wr", "rw", "R", "cand", "po", "tx"))


def why_not_hereditary(spec: Spec) -> str:
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

    Not to the checks of a hereditary specification, and not to its flags if it is hereditary with
    each of them.
    """
    return bool(why_not_hereditary(spec)) or any(
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
