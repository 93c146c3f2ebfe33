"""Decides whether templates are robust at a level, which changes help, and their lowest levels.

The lowest levels are found by lowering one program at a time. The order of the programs does not
matter, because the optimum is unique (B. Vandevoort, B. Ketsman, F. Neven, *Allocating Isolation
Levels to Transactions in a Multiversion Setting*, PODS 2023).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from isolang.errors import UnsupportedError
from isolang.foresee.robust import candidates, reduced_at, robust
from isolang.foresee.schedules import MOST_STEPS, Level, SearchBudget, SplitSchedule, levels_of
from isolang.foresee.split import Counterexample, counterexample
from isolang.foresee.templates import Templates

MOST_CANDIDATES: Final = 500
"""The largest number of candidates to run when searching for a counterexample."""

_MOST_SORTED: Final = 20  # how many candidates to find before the first one is executed

MOST_MENDS: Final = 3
"""The largest number of reads to change to make templates robust."""

Standing: TypeAlias = Literal["robust", "not robust", "unknown"]
_Read: TypeAlias = tuple[str, int]  # a program, and the number of a step


class Mend(Struct, frozen=True, kw_only=True):
    """A change to a program that replaces a read with an update that changes no value.

    Attributes:
        step: the number of the read among the program's steps, from 0.
    """

    program: str
    step: int
    read: str
    update: str


class Decision(Struct, frozen=True, kw_only=True):
    """The answer to whether templates are robust at given levels.

    Attributes:
        standing: the answer; ``unknown`` if the search gave up, or if candidates were found but
            none led to a certified counterexample.
        counterexample: a non-serializable execution; ``None`` unless the templates are not robust.
        gave_up: the reason why the search gave up; empty if it was complete.
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
    split: str | None = None,
    reduced: Templates | None = None,
) -> Decision:
    """Decide whether templates are robust. If they are not, find a short counterexample.

    A counterexample allowed by databases with row locks is preferred to shorter counterexamples
    that they do not allow.

    Args:
        templates: the templates.
        levels: the isolation level of each program.
        sessions: whether any transaction may follow any other in its session. If false, sessions
            are ignored.
        most: the largest number of candidates to run.
        work: the number of steps after which the search gives up.
        split: decide only whether this program is safe, as :func:`.robust.candidates` says.
        reduced: the reduced templates, if they are already known.

    >>> from isolang.foresee.templates import templates as of
    >>> from isolang.programs.syntax import parse_templates
    >>> skew = of(parse_templates("program P(c, d) where c != d r(x[c]) r(x[d]) w(x[c], 0)"))
    >>> found = decide(skew, {"P": "si"})
    >>> found.standing, found.counterexample.names, found.counterexample.forbidden.certified
    ('not robust', ('P(c1, c2)', 'P(c2, c1)'), True)
    """
    against, tried = "ser" if sessions else "pl-3", 0
    refused: Counterexample | None = None
    gave_up = ""
    try:
        reduced = reduced or reduced_at(templates, levels)
        if robust(reduced, levels, sessions=sessions, budget=SearchBudget(work), split=split):
            return Decision(standing="robust")
        budget = SearchBudget(work)
        every = candidates(templates, levels, sessions=sessions, budget=budget, split=split)
        for candidate in itertools.islice(_plainest_first(every), most):
            tried += 1
            found = counterexample(templates, levels, candidate, against=against)
            if found is not None and not (found.refused_by_rows or found.refused_by_gaps):
                return Decision(standing="not robust", counterexample=found, tried=tried)
            refused = refused or found
    except UnsupportedError as error:
        gave_up = str(error)
    if refused is not None:
        return Decision(standing="not robust", counterexample=refused, tried=tried)
    standing: Standing = "unknown" if tried or gave_up else "robust"
    return Decision(standing=standing, tried=tried, gave_up=gave_up)


def _plainest_first(every: Iterator[SplitSchedule]) -> Iterator[SplitSchedule]:
    """Yield candidates, of the first ones those whose T1 has different parameters before others."""
    first: list[SplitSchedule] = []
    gave_up: UnsupportedError | None = None
    try:
        first += itertools.islice(every, _MOST_SORTED)
    except UnsupportedError as error:
        gave_up = error
    yield from sorted(first, key=lambda one: (len(one.chain), _equal_parameters(one)))
    if gave_up is not None:
        raise gave_up
    yield from every


def _equal_parameters(candidate: SplitSchedule) -> int:
    values = candidate.split.values.values()
    return len(values) - len(set(values))


def mends(
    templates: Templates,
    levels: Mapping[str, Level],
    *,
    sessions: bool = True,
    most: int = MOST_MENDS,
    work: int = MOST_STEPS,
) -> tuple[tuple[Mend, ...], ...]:
    """Find the smallest sets of reads to replace with updates to make the templates robust.

    Args:
        templates: the templates, which are not robust.
        levels: the isolation level of each program.
        sessions: whether any transaction may follow any other in its session. If false, sessions
            are ignored.
        most: the largest number of reads in a set.
        work: the number of steps after which the search gives up.

    Returns:
        All sets of the smallest sufficient size; empty if no set of at most ``most`` reads
        suffices.

    Raises:
        UnsupportedError: the search gave up.
    """
    reads: dict[_Read, Mend] = {}
    for branch in templates.branches:
        for one in branch.statements:
            if one.kind == "read" and one.keyed:
                reads[branch.program, one.step] = Mend(
                    program=branch.program,
                    step=one.step,
                    read=one.text,
                    update=f"u{one.text.removeprefix('r')}",
                )
    search = _MendSearch(templates, levels, reads, sessions=sessions, budget=SearchBudget(work))
    place = {one: number for number, one in enumerate(reads)}
    for size in range(1, most + 1):
        search.extend(frozenset(), size)
        if search.found:
            every = [sorted(some, key=place.__getitem__) for some in search.found]
            every.sort(key=lambda some: [place[one] for one in some])
            return tuple(tuple(reads[one] for one in some) for some in every)
    return ()


class _MendSearch:
    """Searches for sets of reads that make templates robust when replaced with updates."""

    def __init__(
        self,
        templates: Templates,
        levels: Mapping[str, Level],
        reads: Collection[_Read],
        *,
        sessions: bool,
        budget: SearchBudget,
    ) -> None:
        self._templates, self._levels, self._reads = templates, levels, reads
        self._sessions, self._budget = sessions, budget
        self._candidates: dict[frozenset[_Read], SplitSchedule | None] = {}
        self.found: set[frozenset[_Read]] = set()

    def extend(self, some: frozenset[_Read], more: int) -> None:
        """Find the sufficient sets consisting of ``some`` and exactly ``more`` further reads.

        SOUND BECAUSE: a split schedule remains a split schedule if only other programs change.
        Therefore, for any remaining candidate, each sufficient set contains a further read in one
        of the candidate's programs. This read is on a relation also accessed by another transaction
        of the candidate, because without a conflict, an update changes nothing.
        """
        candidate = self._candidate(some)
        if candidate is None or not more:
            if candidate is None:
                self.found.add(some)
            return
        for one in _reads_to_promote(candidate):
            if one in self._reads and one not in some:
                self.extend(some | {one}, more - 1)

    def _candidate(self, some: frozenset[_Read]) -> SplitSchedule | None:
        """Return a split schedule that is still possible after some reads have become updates."""
        if some not in self._candidates:
            every = candidates(
                reduced_at(self._templates.promoted(some), self._levels),
                self._levels,
                sessions=self._sessions,
                budget=self._budget,
            )
            self._candidates[some] = next(every, None)
        return self._candidates[some]


def _reads_to_promote(candidate: SplitSchedule) -> Iterator[_Read]:
    """Yield a candidate's reads on relations accessed by several of its transactions."""
    every = [one.branch for one in (candidate.split, *candidate.chain)]
    accessing = Counter(
        relation for own in every for relation in {one.relation for one in own.statements}
    )
    found = {
        (own.program, one.step): None
        for own in every
        for one in own.statements
        if one.kind == "read" and one.keyed and accessing[one.relation] > 1
    }
    yield from found


def lowest(
    templates: Templates, *, of: Level = "si", sessions: bool = True, work: int = MOST_STEPS
) -> dict[str, Level]:
    """Return the lowest level of each program such that all programs together are robust.

    Args:
        templates: the templates.
        of: the levels are those of this level's database.
        sessions: whether any transaction may follow any other in its session. If false, sessions
            are ignored.
        work: the number of steps after which the search gives up.

    Raises:
        UnsupportedError: the search gave up.
    """
    budget = SearchBudget(work)
    every = levels_of(of)
    levels: dict[str, Level] = dict.fromkeys(templates.programs, every[-1])
    templates = reduced_at(templates, dict.fromkeys(every, of))
    for program in templates.programs:
        for level in every:
            changed = {**levels, program: level}
            if robust(templates, changed, sessions=sessions, budget=budget):
                levels[program] = level
                break
    return levels
