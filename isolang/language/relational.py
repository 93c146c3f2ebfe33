"""The route of everything else: the relations that a specification asks for, searched for."""

from __future__ import annotations

from dataclasses import dataclass

from isolang.language import facts
from isolang.language.core import Spec
from isolang.language.heredity import why_not_hereditary
from isolang.language.plan import Kind, Route


@dataclass(frozen=True, slots=True, kw_only=True)
class Relational(Route):
    """The relational route, which decides any specification on a history small enough.

    Attributes:
        not_hereditary: why a part of a history says nothing about the whole; empty if it does.
    """

    kind: Kind = "relational"
    not_hereditary: str = ""


def relational(spec: Spec, reasons: tuple[str, ...] = ()) -> Relational:
    """The relational route of a specification that has a check; ``reasons`` say why this one."""
    mentioned = facts.mentioned(spec)
    return Relational(
        spec=spec,
        uses_reads_from=facts.uses_reads_from(spec),
        uses_version_order=bool(mentioned & {"ww", "rw", "vo"}),
        uses_sessions=facts.uses_sessions(spec),
        uses_real_time=facts.uses_real_time(spec),
        warnings=spec.warnings,
        reasons=reasons,
        not_hereditary=why_not_hereditary(spec),
    )
