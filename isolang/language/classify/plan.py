"""A route: how a specification is decided, with what every route knows of it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from isolang.language.meaning.core import Spec

Kind: TypeAlias = Literal["event graph", "reachability", "saturation", "relational"]


class Route(Struct, frozen=True, kw_only=True):
    """How a specification is decided; each kind is a subclass with what its engine needs.

    Attributes:
        spec: the specification.
        kind: which engine decides it.
        uses_reads_from: whether the checks use ``rf``; then intrinsic anomalies are violations.
        uses_version_order: whether an assignment has version orders, used or not: then there is
            none where list reads contradict each other.
        uses_sessions: whether they use ``so``.
        uses_real_time: whether they use ``rt``; a history must have times then.
        warnings: of ``spec``, and what the compilation shows (a check that cannot fail).
        reasons: why the faster routes were not taken, a sentence each; and the theorem by which
            this one was, if it needed one.
    """

    spec: Spec
    kind: Kind
    uses_reads_from: bool
    uses_version_order: bool
    uses_sessions: bool
    uses_real_time: bool
    warnings: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
