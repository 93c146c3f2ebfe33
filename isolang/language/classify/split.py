"""The part of a specification that the native engine decides, and the checks beside it.

Whoever meets a specification meets each part of it, with the same choices: a part that is violated
shows that the whole is. docs/routes.md#in-parts says what a model of the part is good for.
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


class Split(Struct, frozen=True, kw_only=True):
    """A specification in two parts.

    Attributes:
        part: the specification with the checks alone that the engine decides, and what they need.
        plan: how these are decided; by a theorem where they speak of an order.
        beside: the other checks that count.
        unmade: what is to be chosen beside what the part needs: whoever meets the part need not
            have a value for it.
        flags: the checks that do not count.
    """

    part: Spec
    plan: Plan
    beside: tuple[Check, ...]
    unmade: tuple[Exists, ...]
    flags: tuple[Check, ...]

    @property
    def is_all(self) -> bool:
        """Whether a model of the part is one of the specification."""
        return not self.beside and not self.unmade

    @property
    def made(self) -> frozenset[str]:
        """What a model of the part chooses, beside sources and version orders."""
        return frozenset(e.name for e in self.part.exists if e.name not in CANONICAL_EXISTS)

    def sentence(self) -> str:
        """How the specification is decided, for people."""
        first = _listed(self.part.checks)
        if self.unmade:
            chosen = ", ".join(f"`{exists.name}`" for exists in self.unmade)
            return (
                f"decided in parts: {first} by the engine, and where that is met all together, "
                f"with {chosen}"
            )
        if not self.beside:
            return f"decided in parts: {first} by the engine, then each flag together with it"
        return (
            f"decided in parts: {first} by the engine, then {_listed(self.beside)} on the model "
            "found; all together only where that is not met"
        )


def _listed(checks: Sequence[Check]) -> str:
    return ", ".join(f"`{check.name}`" for check in checks)


def split(spec: Spec, plan_of: Callable[[Spec], Plan]) -> Split | None:
    """Find the most checks that the native engine decides together.

    Args:
        spec: the specification.
        plan_of: the route of the native engine; raises ``NotAnEventGraph``.

    Returns:
        The parts; ``None`` if the engine decides none of the checks.
    """
    judged = tuple(check for check in spec.checks if not check.flag)
    flags = tuple(check for check in spec.checks if check.flag)
    # What has no form in the engine need not be tried.
    possible = tuple(c for c in judged if not c.negated and c.kind != "empty")
    for kept in _largest_first(spec, possible, plan_of):
        part = replace(spec, checks=kept, exists=_needed(spec, kept), shows=())
        plan = _plan(part, plan_of)
        if isinstance(plan, Plan):
            beside = tuple(check for check in judged if check not in kept)
            unmade = tuple(exists for exists in spec.exists if exists not in part.exists)
            return Split(part=part, plan=plan, beside=beside, unmade=unmade, flags=flags)
    return None


def _largest_first(
    spec: Spec, possible: tuple[Check, ...], plan_of: Callable[[Spec], Plan]
) -> Iterator[tuple[Check, ...]]:
    """Sets of checks to be tried: without those that refusals blame, then without any."""
    kept = possible
    while kept:
        yield kept
        found = _plan(replace(spec, checks=kept, exists=_needed(spec, kept)), plan_of)
        blamed = frozenset() if isinstance(found, Plan) else found
        left = tuple(check for check in kept if check.name not in blamed)
        if left == kept:
            break
        kept = left
    tries = 0
    for fewer in range(len(possible) - 1, 0, -1):
        for some in combinations(possible, fewer):
            tries += 1
            if tries > _MOST_TRIES:
                return
            yield some


def _plan(part: Spec, plan_of: Callable[[Spec], Plan]) -> Plan | frozenset[str]:
    """How the engine decides a part; or the checks to blame that it does not."""
    try:
        return plan_of(part)
    except NotAnEventGraph as error:
        last = error.beside or error
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


def _needed(spec: Spec, checks: Sequence[Check]) -> tuple[Exists, ...]:
    """What checks need to be chosen; sources and version orders, where there are any, always."""
    wanted = {name for check in checks for e in (check.expr, check.bound) if e for name in names(e)}
    wanted |= CANONICAL_EXISTS.keys()
    while True:
        kept = tuple(exists for exists in spec.exists if exists.name in wanted)
        parts = (e for x in kept for e in (x.over, x.containing, x.within) if e is not None)
        more = frozenset[str]().union(*map(names, parts)) - wanted
        if not more:
            return kept
        wanted |= more
