"""Which engine decides a specification: the fastest one that is exact for it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import TypeVar

from msgspec.structs import replace

from isolang.language.classify.event_graph import NotAnEventGraph, Plan, classify
from isolang.language.classify.plan import Kind, Route
from isolang.language.meaning import mentions
from isolang.language.meaning.core import Spec

__all__ = ["Kind", "Route", "native_plan", "route", "without_real_time", "without_sessions"]


_Given = TypeVar("_Given")
_Made = TypeVar("_Made")
_RECENT = 32


def _remembered(compile_it: Callable[[_Given], _Made]) -> Callable[[_Given], _Made]:
    """Compile each of the specifications that are in use once, however many histories they judge.

    They are known by identity: a record that is kept here cannot give its identity to another one.
    """
    recent: dict[int, tuple[_Given, _Made]] = {}

    @wraps(compile_it)
    def remembering(given: _Given) -> _Made:
        known = recent.get(id(given))
        if known is not None and known[0] is given:
            return known[1]
        made = compile_it(given)
        for oldest in list(recent)[: len(recent) + 1 - _RECENT]:
            recent.pop(oldest, None)
        recent[id(given)] = (given, made)
        return made

    return remembering


@_remembered
def route(spec: Spec) -> Route:
    """Choose how a specification is decided.

    Args:
        spec: of ``load_spec``.

    Raises:
        SpecError: there is nothing to check.
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
    """The route of the native engine: event graphs, and return paths.

    Args:
        spec: of ``load_spec``.

    Raises:
        NotAnEventGraph: it has none; the message says why it is no event graph.
        SpecError: there is nothing to check.
    """
    try:
        return classify(spec)
    except NotAnEventGraph as refusal:
        from isolang.language.classify.return_paths import classify_return_paths

        try:
            return classify_return_paths(spec, refusal.reason)
        except NotAnEventGraph as other:
            refusal.beside = other
            raise refusal from None


@_remembered
def without_sessions(plan: Plan) -> Plan:
    """The plan with ``init`` in place of ``so``.

    It compiles whenever ``plan`` did: renaming a letter maps a finite generating set to one.
    """
    return native_plan(mentions.without_sessions(plan.spec))


@_remembered
def without_real_time(plan: Plan) -> Plan:
    """The plan with ``init`` in place of ``rt``.

    Raises:
        NotAnEventGraph: only real time's own laws made a check one.
    """
    return native_plan(mentions.without_real_time(plan.spec))
