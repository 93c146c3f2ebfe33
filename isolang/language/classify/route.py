"""Chooses the route of a specification: the fastest engine that is exact for it."""

from __future__ import annotations

from contextlib import suppress

from msgspec.structs import replace

from isolang.language.classify.event_graph import NotAnEventGraph, Plan, classify
from isolang.language.classify.plan import Kind, Route
from isolang.language.meaning import mentions
from isolang.language.meaning.cached import cached_by_identity
from isolang.language.meaning.core import Spec

__all__ = ["Kind", "Route", "native_plan", "route", "without_real_time", "without_sessions"]


@cached_by_identity
def route(spec: Spec) -> Route:
    """Choose the fastest engine that is exact for a specification.

    The native engine decides the specification if its checks compile to automata, or if by a
    theorem it is equivalent to a specification whose checks do. Otherwise the route is relational,
    and the native engine decides as many checks as possible before the search.

    Args:
        spec: a specification with at least one check.

    Returns:
        The route, including the reasons why faster routes do not apply.

    Raises:
        SpecError: if the specification has no check.
    """
    try:
        return native_plan(spec)
    except NotAnEventGraph as error:
        reasons = error.reasons()
    from isolang.language.classify.relational import relational
    from isolang.language.classify.split import split
    from isolang.language.classify.theorems import event_graph_form

    theorem = event_graph_form(spec)
    if theorem is not None:
        with suppress(NotAnEventGraph):
            plan = native_plan(theorem.spec)
            return replace(plan, theorem=theorem, reasons=(*reasons, theorem.sentence))
    return relational(spec, reasons, split(spec, native_plan))


def native_plan(spec: Spec) -> Plan:
    """Compile a specification for the native engine, to event graphs or else to return paths.

    Raises:
        NotAnEventGraph: if the specification does not compile. The message explains why it does not
            compile to event graphs, and ``return_path_refusal`` explains why it does not compile to
            return paths.
        SpecError: if the specification has no check.
    """
    try:
        return classify(spec)
    except NotAnEventGraph as refusal:
        from isolang.language.classify.return_paths import classify_return_paths

        try:
            return classify_return_paths(spec, refusal.reason)
        except NotAnEventGraph as other:
            refusal.return_path_refusal = other
            raise refusal from None


@cached_by_identity
def without_sessions(plan: Plan) -> Plan:
    """Return the plan for the same specification with ``init`` in place of ``so``.

    The new specification compiles because renaming a letter turns one finite generating set into
    another.
    """
    return native_plan(mentions.without_sessions(plan.spec))


@cached_by_identity
def without_real_time(plan: Plan) -> Plan:
    """Return the plan for the same specification with ``init`` in place of ``rt``.

    Raises:
        NotAnEventGraph: if a check compiles only because real time is an order.
    """
    return native_plan(mentions.without_real_time(plan.spec))
