"""Decides which levels can be watched, and which stricter levels to try first.

A stricter level is tried first because its witness allows larger cuts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isolang.errors import SpecError
from isolang.language.classify.event_graph import Plan
from isolang.language.classify.plan import Route
from isolang.language.classify.route import route
from isolang.language.hierarchy import IMPLIES, implied_by
from isolang.language.load import load_spec
from isolang.language.meaning.core import Spec
from isolang.language.vocabulary import DEPENDENCIES, NAMED, TESTS, VOCABULARY, relation_of

#: The relations whose edges never lead from a part back to an earlier part, and the tests on the
#: accesses and names of a single transaction. A walk through these relations, or through subsets of
#: them, never leads back to an earlier part either.
_FORWARD: Final = frozenset(
    {
        *("so", "rt", *DEPENDENCIES, *TESTS, *NAMED),
        *(word.name for word in VOCABULARY if word.part_of in DEPENDENCIES),
    }
)

#: The stricter levels to try first. Later reads confirm the version orders chosen by their
#: witnesses.
_STRICT: Final = ("sser", "strong-si")


#: The levels at which an additional read of some version never makes a valid history invalid. At
#: these levels, predicate reads can be checked without the rows of other parts (docs/routes.md,
#: *Predicates in a stream*).
_LEVELS_ALLOWING_ANY_READ: Final = frozenset(
    {"ser", "sser", "si", "strong-si", "pc", "psi", "cc", "ra", "rc", "pl-1", "pl-2", "pl-3"}
)


def why_no_predicates(plan: Plan) -> str:
    """Return the reason why predicate reads cannot be watched at a level.

    Return an empty string if they can be watched.
    """
    name = plan.spec.name.lower()
    if name in _LEVELS_ALLOWING_ANY_READ and dict(load_spec(name).texts) == dict(plan.spec.texts):
        return ""
    return (
        f"a predicate read cannot be watched under {plan.spec.name} "
        f"(expected one of {', '.join(sorted(_LEVELS_ALLOWING_ANY_READ))}); hint: check the "
        "whole history with isocheck check"
    )


def watchable_plan(spec: Spec | str) -> Plan:
    """Compile a level, and check that it can be decided part by part.

    Every violation of such a level is a closed walk of ``so``, ``rt``, ``wr``, ``ww`` and ``rw``.
    Such a walk stays in one part, because none of these edges leads from a part back to an earlier
    part (docs/routes.md, *Cuts of a stream*).

    Raises:
        SpecError: the level has other kinds of violations; the message states the reason.
    """
    chosen = route(load_spec(spec) if isinstance(spec, str) else spec)
    if reason := _reason_not_watchable(chosen):
        raise SpecError(
            f"{chosen.spec.name}: this level cannot be watched, because "
            f"{reason}; hint: check the whole history with isocheck check"
        )
    assert isinstance(chosen, Plan)
    return chosen


def _reason_not_watchable(chosen: Route) -> str:
    if not isinstance(chosen, Plan):
        return "it is decided by relations of the whole history, which has no parts"
    for automaton in chosen.automata:
        if automaton.sites != "transactions":
            return f"its check {automaton.check} walks over single operations"
        used = {relation_of(letter) for letter in (*automaton.steps, *automaton.closing)}
        if foreign := sorted(used - _FORWARD - {""}):
            return (
                f"its check {automaton.check} uses {', '.join(foreign)} "
                "(expected so, rt, wr, ww and rw alone)"
            )
    return ""


def plans_to_try(plan: Plan, *, timed: bool) -> Iterator[Plan]:
    """Yield the plans of the stricter levels to try first, and finally the plan of the level."""
    name = plan.spec.name
    for strict in _STRICT:
        if timed and strict in IMPLIES and strict != name and name in implied_by(strict):
            yield watchable_plan(strict)
    yield plan
