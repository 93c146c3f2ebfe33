"""Refutes parts of a history within a work limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from isolang.certify.steps import ChoiceStep, CycleStep, Step
from isolang.explain.known import KnownCycle
from isolang.explain.part import HistoryPart, Sources, reads_of
from isolang.explain.shrink import shrink
from isolang.language.classify.automaton import Automaton
from isolang.language.vocabulary import FILTERED, TESTS
from isolang.problem import Problem, build_problem

Engine: TypeAlias = Callable[
    [Problem, Sequence[Automaton], int, str], tuple[Sequence[Step] | None, int]
]
"""A function (problem, automata, work, strategy) -> (refutation or ``None``, work done).

The refutation is ``None`` if a model exists. The engine does a few million units of work per
second. It raises ``TimeoutError`` if it would need more than ``work``.
"""

# The work limit for all attempts together, and the work it takes to build one part.
EFFORT, _ATTEMPT = 4_000_000, 2_500

# A refutation with more cycles than this is too long to be listed. It remains as it is after this
# much work without success, because the attempts that follow would rarely make it short enough.
_MANY_CYCLES, _VAIN = 24, 150_000
# A search for a refutation of what the last one mentions ends if this is more than a share of the
# last part.
_SAME_SIZE = 7 / 8

# Reads with more candidates than this are removed first, if the part is refuted without them.
_MANY_CANDIDATES = 8
# A part with more transactions than this is not reduced further.
_LARGEST_PART = 400


class PartRefuter:
    """Refutes parts of a history, with a work limit for all parts together.

    Attributes:
        sources: finds the candidates of the history's reads.
    """

    def __init__(
        self, problem: Problem, engine: Engine, *, stopped: Callable[[], bool], work: int
    ) -> None:
        """Prepare the search; :class:`isolang.explain.smaller.Finder` describes the arguments."""
        self.sources = Sources(problem)
        self._engine = engine
        self._stopped = stopped
        self._work = work

    @property
    def remaining_work(self) -> int:
        """The units of work left for further attempts."""
        return max(0, self._work)

    def out_of_effort(self) -> bool:
        """Return whether work or time has run out, so that no further attempt is allowed."""
        return self._work <= 0 or self._stopped()

    def of_cycle(self, cycle: KnownCycle, automata: Sequence[Automaton]) -> Sequence[Step] | None:
        """Return a refutation of the few transactions on a cycle, or ``None`` if none is found."""
        about: list[Step] = [CycleStep("", cycle.edges), *map(ChoiceStep, cycle.shown)]
        tests = any(map(is_of_accesses, automata))
        part = self.sources.relevant_part(about, every_write=tests)
        if part.history.t0 > _LARGEST_PART:
            return None
        found = self.refute(part, automata)
        return None if found is None else part.to_whole(found)

    def minimal(
        self, steps: Sequence[Step], automata: Sequence[Automaton]
    ) -> Sequence[Step] | None:
        """Return a refutation of a minimal part of the history, or ``None`` if none is found."""
        txns = self.sources.closed(steps)
        if len(txns) > _LARGEST_PART or len(txns) <= 2:
            return None
        found: Sequence[Step] | None = None  # about the whole history
        inner: Sequence[Step] = ()  # the same about its part
        least = 0  # the remaining work at which to give up a long refutation
        tests = any(map(is_of_accesses, automata))

        def refuted(part: HistoryPart) -> bool:
            nonlocal found, inner, least
            steps = self.refute(part, automata)
            if steps is None:
                return False
            found, inner, least = part.to_whole(steps), steps, self._work - _VAIN
            return True

        def mentioned(part: HistoryPart) -> HistoryPart:
            """Return what the last refutation, which is of this part, depends on."""
            sources = Sources(build_problem(part.history))
            kept = sorted(sources.relevant(inner, every_write=tests))
            return part.narrowed(kept, part.without_operations())

        part = self.sources.relevant_part(steps, every_write=tests)
        while refuted(part):
            # The refutation of a part may mention fewer operations than the part contains.
            size, part = len(part.ops), mentioned(part)
            if len(part.ops) > size * _SAME_SIZE:
                break
        if found is None:
            return None
        # A refutation that needs a read also needs the read's candidates.
        needed: set[int] = set()
        tried: set[int] = set()
        while not self.out_of_effort():
            many = {
                op: candidates
                for op in reads_of(found)
                if op not in tried
                and len(candidates := self.sources.candidates(op)) > _MANY_CANDIDATES
            }
            if not many:
                break
            op, candidates = many.popitem()
            tried.add(op)
            kept = [i for i, other in enumerate(part.ops) if other != op]
            if refuted(smaller := part.narrowed(kept, part.without_operations())):
                part = smaller
            else:
                needed.update(candidates)

        def enough() -> bool:
            if self._work > least or self.out_of_effort():
                return self.out_of_effort()
            return sum(isinstance(step, CycleStep) for step in found or ()) > _MANY_CYCLES

        # Most of the remaining transactions are needed, so attempts to remove many together would
        # fail.
        shrink(
            part,
            refuted,
            by_transaction=True,
            enough=enough,
            share=1 / 16,
            keep=needed,
            narrow=mentioned,
        )
        return found

    def refute(self, part: HistoryPart, automata: Sequence[Automaton]) -> Sequence[Step] | None:
        """Return a refutation of a part that also refutes the whole history, or ``None``.

        If the part lacks a writer, it has thin-air reads that the whole history does not have, and
        a refutation that uses them is useless. A refutation is also useless if it uses a read with
        a candidate that the part lacks.
        """
        self._work -= _ATTEMPT
        problem = build_problem(part.history)
        if problem.anomalies(limit=1):
            return None
        steps = self._solve(problem, automata)
        if steps is None or not self.sources.keeps_candidates(part, reads_of(steps), problem):
            return None
        return steps

    def _solve(self, problem: Problem, automata: Sequence[Automaton]) -> Sequence[Step] | None:
        """Return a refutation of a problem, or ``None`` if a model exists or the work runs out."""
        if self.out_of_effort():
            return None
        allowed = self._work
        self._work = 0  # no work remains if the search below runs out of it
        try:  # use the strategy that produces proofs made of cycles
            found, work = self._engine(problem, automata, allowed, "cdcl")
        except TimeoutError:
            return None
        self._work = allowed - work
        return found


def is_of_accesses(automaton: Automaton) -> bool:
    """Return whether an automaton tests transactions for the keys they access."""
    return not automaton.relations.isdisjoint((*TESTS, *FILTERED))
