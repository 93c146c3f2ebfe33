"""The route of everything else: the relations that a specification asks for, searched for."""

from __future__ import annotations

from isolang.language import facts
from isolang.language.core import Exists, Spec
from isolang.language.heredity import unread_matter, why_not_hereditary
from isolang.language.plan import Kind, Route


class Relational(Route, frozen=True, kw_only=True):
    """The relational route, which decides any specification on a history small enough.

    Attributes:
        not_hereditary: why a part of a history says nothing about the whole; empty if it does.
        unread_matter: whether a transaction of unknown outcome that nobody reads from is tried both
            in and out.
    """

    kind: Kind = "relational"
    not_hereditary: str = ""
    unread_matter: bool = False


def _contains_shown_order(exists: Exists) -> bool:
    """Whether it has no value where the order that lists show contradicts itself."""
    shown = exists.containing
    return exists.kind == "order" and shown is not None and "vo" in facts.names(shown)


def relational(spec: Spec, reasons: tuple[str, ...] = ()) -> Relational:
    """The relational route of a specification that has a check; ``reasons`` say why this one."""
    return Relational(
        spec=spec,
        uses_reads_from=facts.uses_reads_from(spec),
        uses_version_order=any(map(_contains_shown_order, spec.exists)),
        uses_sessions=facts.uses_sessions(spec),
        uses_real_time=facts.uses_real_time(spec),
        warnings=spec.warnings,
        reasons=reasons,
        not_hereditary=why_not_hereditary(spec),
        unread_matter=unread_matter(spec),
    )
