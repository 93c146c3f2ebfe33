"""The route of a specification: which engine decides it, and what every route knows about it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from isolang.language.meaning.core import Spec

Kind: TypeAlias = Literal["event graph", "reachability", "saturation", "relational"]


class Route(Struct, frozen=True, kw_only=True):
    """The way to decide a specification; each kind is a subclass with the input of its engine.

    Attributes:
        spec: the specification.
        kind: the engine that decides it.
        uses_reads_from: whether the checks use ``rf``. If so, intrinsic anomalies are violations.
        uses_version_order: whether a witness has version orders, even if no check uses them. If so,
            a history whose list reads contradict each other has no witness.
        uses_sessions: whether the checks use ``so``.
        uses_real_time: whether the checks use ``rt``. If so, a history must have times.
        warnings: the warnings of ``spec``, and those of the compilation (a check that cannot fail).
        reasons: one sentence for each faster route that does not apply, and the theorem that this
            route relies on, if any.
    """

    spec: Spec
    kind: Kind
    uses_reads_from: bool
    uses_version_order: bool
    uses_sessions: bool
    uses_real_time: bool
    warnings: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
