"""The route of a specification: the engine that decides it, and what every route knows about it."""

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
        uses_reads_from: whether the checks use ``rf``; then intrinsic anomalies are violations.
        uses_version_order: whether a witness has version orders, used or not: then no history with
            contradicting list reads has a witness.
        uses_sessions: whether the checks use ``so``.
        uses_real_time: whether the checks use ``rt``, so that a history must have times.
        warnings: the warnings of ``spec``, and those of the compilation (a check that cannot fail).
        reasons: why the faster routes do not apply, a sentence each; and the theorem that this
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
