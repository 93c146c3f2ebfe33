"""Which engine decides a specification: the fastest one that is exact for it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from isolang.language.classify import NotAnEventGraph, classify
from isolang.language.core import Spec
from isolang.language.plan import Kind, Route
from isolang.language.relational import relational
from isolang.language.theorems import event_graph_form

__all__ = ["Kind", "Route", "route"]


def route(spec: Spec) -> Route:
    """Choose how a specification is decided.

    Args:
        spec: of ``load_spec``.

    Raises:
        SpecError: there is nothing to check.
    """
    try:
        return classify(spec)
    except NotAnEventGraph as error:
        what = f"check `{error.check}`: {error.reason}" if error.check else error.reason
        reasons = (f"no event graph: {what}",)
    theorem = event_graph_form(spec)
    if theorem is not None:
        with suppress(NotAnEventGraph):
            plan = classify(theorem.spec)
            return replace(plan, theorem=theorem, reasons=(*reasons, theorem.sentence))
    return relational(spec, reasons)
