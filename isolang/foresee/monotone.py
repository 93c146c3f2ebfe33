"""Checks that a level allows predictions: it must be monotone and must not compare times."""

from __future__ import annotations

from collections.abc import Iterator

from isolang.errors import SpecError
from isolang.language.meaning.core import (
    Core,
    Diff,
    Inter,
    Inverse,
    Lift,
    Named,
    Opt,
    Rel,
    Spec,
    Union,
)
from isolang.language.meaning.mentions import children, mentioned
from isolang.language.vocabulary import COMPARING_TIMES, MOMENTS


def require_monotone(spec: Spec) -> None:
    """Check that a level is monotone.

    A level is monotone if every part of a valid history is also valid, provided that the part
    contains, with each transaction, the earlier transactions of its session and the transactions it
    reads from. A sufficient condition is checked: the level has no check under ``not``, no flag,
    and no difference except one that subtracts ``id``, and each check has one of the following
    bounds. A bound is the name of a relation, or a union, an intersection or an inverse of bounds.
    Whether such a bound relates two transactions does not depend on any other transactions.

    Raises:
        SpecError: the condition does not hold; the message names the offending part.
    """
    for check in spec.checks:
        if check.negated:
            raise _rejection(spec, f"`{check.name}` is negated by `not`")
        if check.flag:
            raise _rejection(spec, f"`{check.name}` is a flag")
        if check.bound is not None and not _depends_on_pair_only(check.bound):
            raise _rejection(spec, f"the bound of `{check.name}` runs through other transactions")
        if any(_differences(check.expr)):
            raise _rejection(spec, f"`{check.name}` contains a difference")
    for exists in spec.exists:
        for part in (exists.over, exists.containing, exists.within):
            if part is not None and any(_differences(part)):
                raise _rejection(spec, f"`exists {exists.name}` contains a difference")


def require_no_times(spec: Spec) -> None:
    """Check that a level does not compare times, because predicted histories have no times.

    Raises:
        SpecError: the level compares times.
    """
    if times := sorted(mentioned(spec) & {*COMPARING_TIMES, *MOMENTS}):
        names = ", ".join(f"`{name}`" for name in times)
        raise SpecError(
            f"{spec.name}: the level compares times ({names}), but a predicted "
            "history has no times (expected a level without real time); hint: "
            "ser for sser, si for strong-si"
        )


def _rejection(spec: Spec, what: str) -> SpecError:
    return SpecError(
        f"{spec.name}: the level is not monotone: {what} (expected checks "
        "without `not`, flags and differences, so that each part of a "
        "valid history is valid); hint: predict at another level"
    )


def _depends_on_pair_only(e: Core) -> bool:
    """Return whether the relation between two transactions depends only on these two."""
    if isinstance(e, Union | Inter | Inverse | Opt | Lift):
        return all(map(_depends_on_pair_only, children(e)))
    return isinstance(e, Rel | Named)


def _differences(e: Core) -> Iterator[Diff]:
    # If anything but `id` is subtracted, leaving out transactions may add pairs to the difference.
    if isinstance(e, Diff) and e.right != Rel("id"):
        yield e
    for part in children(e):
        yield from _differences(part)
