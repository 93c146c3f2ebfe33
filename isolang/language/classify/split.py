"""Splits a specification into the part decided by the native engine and the other checks.

A model of a specification is also a model of each part, with the same choices. Therefore a history
that violates a part violates the whole specification. docs/routes.md#in-parts explains how the
search uses a model of the part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from msgspec import Struct
from msgspec.structs import replace

from isolang.errors import SpecError
from isolang.language.classify.event_graph import NotAnEventGraph, Plan
from isolang.language.classify.theorems import event_graph_form
from isolang.language.meaning.core import Check, Exists, Spec
from isolang.language.meaning.lower import CANONICAL_EXISTS
from isolang.language.meaning.mentions import names

_MOST_TRIES = 24


class SpecSplit(Struct, frozen=True, kw_only=True):
    """A specification split into the part decided by the native engine and the other checks.

    Attributes:
        part: the specification with only the checks decided by the engine, and only the
            declarations of relations mentioned by these checks.
        plan: the part's route. It relies on a theorem if the part's checks mention a chosen order.
        unchosen: the declared relations not mentioned in the part; a model of the part has no
            values for them.
    """

    part: Spec
    plan: Plan
    other_checks: tuple[Check, ...]
    unchosen: tuple[Exists, ...]
    flags: tuple[Check, ...]

    @property
    def is_all(self) -> bool:
        """Return whether the part has all checks and mentions all declared relations.

        If so, each of its models is a model of the whole specification.
        """
        return not self.other_checks and not self.unchosen

    @property
    def chosen(self) -> frozenset[str]:
        """The relations that a model of this part chooses, except sources and version orders."""
        return frozenset(e.name for e in self.part.exists if e.name not in CANONICAL_EXISTS)

    def sentence(self) -> str:
        """Return a sentence telling users how the specification is decided."""
        first = _list_checks(self.part.checks)
        if self.unchosen:
            chosen = ", ".join(f"`{exists.name}`" for exists in self.unchosen)
            return (
                f"decided in parts: first {first} by the engine and, if they are "
                f"satisfied, all checks together, with {chosen}"
            )
        if not self.other_checks:
            return (
                f"decided in parts: first {first} by the engine, then each flag together with them"
            )
        others = _list_checks(self.other_checks)
        return (
            f"decided in parts: the engine finds a model of {first}, then "
            f"{others} is evaluated on it; if the model does not satisfy it, "
            "all checks are decided together"
        )


def _list_checks(checks: Sequence[Check]) -> str:
    return ", ".join(f"`{check.name}`" for check in checks)


def split(spec: Spec, plan_of: Callable[[Spec], Plan]) -> SpecSplit | None:
    """Split off the largest set of checks that the native engine can decide together."""
    judged = tuple(check for check in spec.checks if not check.flag)
    flags = tuple(check for check in spec.checks if check.flag)
    # The engine cannot decide negated checks or checks of the kind `empty`.
    possible = tuple(c for c in judged if not c.negated and c.kind != "empty")
    for kept in _largest_first(spec, possible, plan_of):
        part = replace(spec, checks=kept, exists=_needed_declarations(spec, kept), shows=())
        plan = _plan(part, plan_of)
        if isinstance(plan, Plan):
            other_checks = tuple(check for check in judged if check not in kept)
            unchosen = tuple(exists for exists in spec.exists if exists not in part.exists)
            return SpecSplit(
                part=part, plan=plan, other_checks=other_checks, unchosen=unchosen, flags=flags
            )
    return None


def _largest_first(
    spec: Spec, possible: tuple[Check, ...], plan_of: Callable[[Spec], Plan]
) -> Iterator[tuple[Check, ...]]:
    """Yield the sets of checks to try.

    The first sets leave out the checks blamed by compilation errors. All other sets follow, from
    largest to smallest.
    """
    kept = possible
    while kept:
        yield kept
        found = _plan(replace(spec, checks=kept, exists=_needed_declarations(spec, kept)), plan_of)
        blamed = frozenset() if isinstance(found, Plan) else found
        unblamed = tuple(check for check in kept if check.name not in blamed)
        if unblamed == kept:
            break
        kept = unblamed
    tries = 0
    for fewer in range(len(possible) - 1, 0, -1):
        for some in combinations(possible, fewer):
            tries += 1
            if tries > _MOST_TRIES:
                return
            yield some


def _plan(part: Spec, plan_of: Callable[[Spec], Plan]) -> Plan | frozenset[str]:
    """Return the engine's plan for a part.

    If the part does not compile, return the names of the checks blamed by the error.
    """
    try:
        return plan_of(part)
    except NotAnEventGraph as error:
        last = error.return_path_refusal or error
        blamed = frozenset({last.check} if last.check else {error.check})
    except SpecError:
        blamed = frozenset()
    theorem = event_graph_form(part)
    if theorem is None:
        return blamed
    try:
        return replace(plan_of(theorem.spec), theorem=theorem, reasons=(theorem.sentence,))
    except NotAnEventGraph:
        return blamed


def _needed_declarations(spec: Spec, checks: Sequence[Check]) -> tuple[Exists, ...]:
    """Return the declarations of ``rf``, ``ww``, and all relations that the checks depend on."""
    needed = {name for check in checks for e in (check.expr, check.bound) if e for name in names(e)}
    needed |= CANONICAL_EXISTS.keys()
    while True:
        kept = tuple(exists for exists in spec.exists if exists.name in needed)
        parts = (e for x in kept for e in (x.over, x.containing, x.within) if e is not None)
        more = frozenset[str]().union(*map(names, parts)) - needed
        if not more:
            return kept
        needed |= more
