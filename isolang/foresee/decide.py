"""Answers whether a service may run at a level: the decision, what mends it, the lowest levels.

Lowering one program at a time finds the lowest levels, in any order: the optimum is unique
(B. Vandevoort, B. Ketsman, F. Neven, *Allocating Isolation Levels to Transactions in a Multiversion
Setting*, PODS 2023).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from isolang.errors import UnsupportedError
from isolang.foresee.robust import LEVELS, MOST_STEPS, Level, SearchBudget, candidates, robust
from isolang.foresee.split import Counterexample, counterexample
from isolang.foresee.templates import Templates

MOST_CANDIDATES: Final = 500
"""The greatest number of candidates that are run for one counterexample."""

MOST_MENDS: Final = 3
"""The greatest number of reads that a mend changes."""

Standing: TypeAlias = Literal["robust", "not robust", "unknown"]


class Mend(Struct, frozen=True, kw_only=True):
    """A read that becomes an update that changes nothing.

    Attributes:
        program: the program.
        step: the number of the step in its program, from 0.
        read: the read, as the program has it.
        update: the update in its place.
    """

    program: str
    step: int
    read: str
    update: str


class Decision(Struct, frozen=True, kw_only=True):
    """The answer whether templates are robust at a level.

    Attributes:
        standing: the answer; ``unknown`` if the search gave up, or if candidates were found, and
            none of them is certified.
        counterexample: an execution that fails, if they are not robust.
        tried: how many candidates were run.
        gave_up: why the search gave up; empty if it did not.
    """

    standing: Standing
    counterexample: Counterexample | None = None
    tried: int = 0
    gave_up: str = ""


def decide(
    templates: Templates,
    levels: Mapping[str, Level],
    *,
    sessions: bool = True,
    most: int = MOST_CANDIDATES,
    work: int = MOST_STEPS,
) -> Decision:
    """Decide whether templates are robust, with the shortest counterexample if they are not.

    Of two counterexamples, one that databases with locks of rows let happen comes first.

    Args:
        templates: the templates.
        levels: the level of each program.
        sessions: whether any transaction may follow any other one in its session.
        most: the greatest number of candidates to run.
        work: the number of steps after which the search gives up.

    >>> from isolang.foresee.templates import templates as of
    >>> from isolang.programs.syntax import parse_templates
    >>> skew = of(parse_templates("program P(c, d) where c != d r(x[c]) r(x[d]) w(x[c], 0)"))
    >>> found = decide(skew, {"P": "si"})
    >>> found.standing, found.counterexample.names, found.counterexample.forbidden.certified
    ('not robust', ('P(c1, c2)', 'P(c2, c1)'), True)
    """
    against, tried = "ser" if sessions else "pl-3", 0
    refused_by_rows: Counterexample | None = None
    gave_up = ""
    try:
        every = candidates(templates, levels, sessions=sessions, budget=SearchBudget(work))
        for candidate in itertools.islice(every, most):
            tried += 1
            found = counterexample(templates, levels, candidate, against=against)
            if found is not None and not found.refused_by_rows:
                return Decision(standing="not robust", counterexample=found, tried=tried)
            refused_by_rows = refused_by_rows or found
    except UnsupportedError as error:
        gave_up = str(error)
    if refused_by_rows is not None:
        return Decision(standing="not robust", counterexample=refused_by_rows, tried=tried)
    standing: Standing = "unknown" if tried or gave_up else "robust"
    return Decision(standing=standing, tried=tried, gave_up=gave_up)


def mends(
    templates: Templates,
    levels: Mapping[str, Level],
    *,
    sessions: bool = True,
    most: int = MOST_MENDS,
    work: int = MOST_STEPS,
) -> tuple[tuple[Mend, ...], ...]:
    """Return the smallest sets of reads that make templates robust if they are updates instead.

    Args:
        templates: the templates.
        levels: the level of each program.
        sessions: whether any transaction may follow any other one in its session.
        most: the greatest number of reads in a set.
        work: the number of steps after which the search gives up.

    Returns:
        All sets of the smallest size; none if every set is larger than ``most``.

    Raises:
        UnsupportedError: if a search gave up.
    """
    reads: dict[tuple[str, int], Mend] = {}
    for branch in templates.branches:
        for one in branch.statements:
            if one.kind == "read" and one.keyed:
                reads[branch.program, one.step] = Mend(
                    program=branch.program,
                    step=one.step,
                    read=one.text,
                    update=f"u{one.text.removeprefix('r')}",
                )
    budget = SearchBudget(work)
    for size in range(1, most + 1):
        found: list[tuple[Mend, ...]] = []
        for picked in itertools.combinations(reads, size):
            budget.step()
            changed = templates.promoted(picked)
            if robust(changed, levels, sessions=sessions, budget=budget):
                found.append(tuple(reads[one] for one in picked))
        if found:
            return tuple(found)
    return ()


def lowest(
    templates: Templates, *, sessions: bool = True, work: int = MOST_STEPS
) -> dict[str, Level]:
    """Return the lowest level of each program at which all of them together are robust.

    Args:
        templates: the templates.
        sessions: whether any transaction may follow any other one in its session.
        work: the number of steps after which the search gives up.

    Raises:
        UnsupportedError: if a search gave up.
    """
    budget = SearchBudget(work)
    levels: dict[str, Level] = dict.fromkeys(templates.programs, "ssi")
    for program in templates.programs:
        for level in LEVELS:
            changed = {**levels, program: level}
            if robust(templates, changed, sessions=sessions, budget=budget):
                levels[program] = level
                break
    return levels


def maximal(
    templates: Templates, level: Level, *, sessions: bool = True
) -> Iterator[tuple[str, ...]]:
    """Yield the largest sets of programs that are robust at a level, for the literature's tables.

    Args:
        templates: the templates.
        level: the level of all programs.
        sessions: whether any transaction may follow any other one in its session.
    """
    found: list[tuple[str, ...]] = []
    names = templates.programs
    for size in range(len(names), 0, -1):
        for some in itertools.combinations(names, size):
            if any(set(some) <= set(one) for one in found):
                continue
            if robust(templates.of(some), dict.fromkeys(some, level), sessions=sessions):
                found.append(some)
                yield some
