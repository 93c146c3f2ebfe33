"""Refuses levels that a part of a valid history may violate: predictions need the others."""

from __future__ import annotations

from collections.abc import Iterator

from isolang.errors import SpecError
from isolang.language.meaning.core import Core, Diff, Rel, Spec
from isolang.language.meaning.mentions import children, mentioned
from isolang.language.vocabulary import COMPARING_TIMES, MOMENTS


def require_monotone(spec: Spec) -> None:
    """Refuse a level that is not monotone, by its name and the part that is not.

    A level is monotone if each part of a valid history that is closed under sessions and reads is
    valid too. It is if its checks have no ``not``, no flag, no difference but the one of ``id``,
    and as a bound only the name of a relation.

    Args:
        spec: the level.

    Raises:
        SpecError: the level is not monotone.
    """
    for check in spec.checks:
        if check.negated:
            raise _refused(spec, f"`{check.name}` stands under `not`")
        if check.flag:
            raise _refused(spec, f"`{check.name}` is a flag")
        if check.bound is not None and not isinstance(check.bound, Rel):
            raise _refused(spec, f"`{check.name}` has an expression as its bound")
        if any(_differences(check.expr)):
            raise _refused(spec, f"`{check.name}` has a difference")
    for exists in spec.exists:
        for part in (exists.over, exists.containing, exists.within):
            if part is not None and any(_differences(part)):
                raise _refused(spec, f"`exists {exists.name}` has a difference")


def require_no_times(spec: Spec) -> None:
    """Refuse a level that compares times, because a predicted history has none.

    Raises:
        SpecError: the level compares times.
    """
    if times := sorted(mentioned(spec) & {*COMPARING_TIMES, *MOMENTS}):
        names = ", ".join(f"`{name}`" for name in times)
        raise SpecError(
            f"{spec.name}: it compares times ({names}), and a predicted history has none "
            "(expected a level without real time); hint: ser for sser, si for strong-si"
        )


def _refused(spec: Spec, what: str) -> SpecError:
    return SpecError(
        f"{spec.name}: not monotone: {what} (expected checks without `not`, flags and differences, "
        "so that part of a valid history is valid); hint: predict at another level"
    )


def _differences(e: Core) -> Iterator[Diff]:
    # Without `id`, a difference may gain pairs when transactions are left out.
    if isinstance(e, Diff) and e.right != Rel("id"):
        yield e
    for part in children(e):
        yield from _differences(part)
