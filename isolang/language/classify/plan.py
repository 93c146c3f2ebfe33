"""The route of a specification: the engine that decides it, and the fields common to all routes."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from isolang.language.meaning.core import Spec

Kind: TypeAlias = Literal["event graph", "reachability", "saturation", "relational"]


class Route(Struct, frozen=True, kw_only=True):
    """The way a specification is decided. Subclasses add the inputs of their engines.

    Attributes:
        uses_reads_from: whether the checks use ``rf``. If so, intrinsic anomalies are violations.
        uses_version_order: whether a witness includes version orders, even if no check uses them.
            If so, a history whose list reads contradict each other has no witness.
        uses_real_time: whether the checks use ``rt``. If so, the history must have times.
        warnings: the warnings of ``spec``, and warnings about checks that cannot fail.
        reasons: a sentence for each faster route explaining why it does not apply, and a sentence
            for the theorem that this route relies on, if any.
    """

    spec: Spec
    kind: Kind
    uses_reads_from: bool
    uses_version_order: bool
    uses_sessions: bool
    uses_real_time: bool
    warnings: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
