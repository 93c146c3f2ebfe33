"""Which engine decides a specification: the fastest one that is exact for it."""

from __future__ import annotations

from isolang.language.classify import classify
from isolang.language.core import Spec
from isolang.language.plan import Kind, Route

__all__ = ["Kind", "Route", "route"]


def route(spec: Spec) -> Route:
    """Choose how a specification is decided.

    Args:
        spec: of ``load_spec``.

    Raises:
        NotAnEventGraph: no engine decides it; the message says why.
        SpecError: there is nothing to check.
    """
    return classify(spec)
