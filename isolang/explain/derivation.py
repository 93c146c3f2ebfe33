"""Derives arguments that people can follow from the clauses of a refutation.

A refutation is a list of clauses replayed by a checker. But people expect an argument such as "this
must hold, otherwise there is that cycle; hence this cycle". IDEA: ignore the order in which the
solver derived clauses, and look for the cheapest derivation of a contradiction from the clauses
given by the history and the axioms (cycles, choices, orders). Unit propagation is forward chaining,
and the cost of a derivation tree is a superior function in Knuth's sense (*A generalization of
Dijkstra's algorithm*, 1977). Therefore Dijkstra's algorithm finds the cheapest derivation. If
propagation alone does not suffice, the search tries case splits, cheapest first.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from isolang.certify.steps import ChoiceStep, CycleStep, Literal, Step
from isolang.explain.argument import (
    Argument,
    CaseSplit,
    Clause,
    Contradiction,
    Derived,
    Refuted,
    Signed,
    canonical_literal,
    negate,
    tidy,
)

MAX_EDGES = 20_000
"""The maximum number of edges in a refutation's cycles; beyond it, no argument is made.

Nobody would read a longer argument.
"""


class TooLongError(Exception):
    """Raised when the search does not find an argument of reasonable size."""


def count_edges(steps: Iterable[Step]) -> int:
    """Return the total number of edges in a refutation's cycles."""
    return sum(len(step.edges) for step in steps if isinstance(step, CycleStep))


def lemmas_for(
    literals: Iterable[Signed], clause_of: Callable[[Signed], Clause | None]
) -> tuple[Derived, ...]:
    """Return the lemmas on which literals depend, even indirectly, each after its premises."""
    found: dict[Signed, Derived] = {}
    stack = [(literal, False) for literal in reversed(tuple(literals))]
    while stack:
        literal, premises_done = stack.pop()
        clause = clause_of(literal)
        if clause is None or literal in found:
            continue
        if premises_done:
            found[literal] = Derived(literal, clause)
            continue
        stack.append((literal, True))
        stack += [(negate(x), False) for x in reversed(clause.literals) if x != literal]
    return tuple(found.values())


class Reasoner:
    """Searches for a short argument that derives a contradiction from a set of clauses."""

    def __init__(
        self, clauses: Iterable[Clause], fact: Callable[[Literal], bool | None], attempts: int
    ) -> None:
        """Prepare the search."""
        self._fact = fact
        self._attempts = attempts
        self._clauses: list[Clause] = []
        # for each literal, the clauses that contain its opposite
        self._uses: defaultdict[Signed, list[int]] = defaultdict(list)
        self._open: list[
            tuple[Signed, ...]
        ] = []  # for each clause, the literals not decided by the history alone
        for clause in clauses:
            truths = [self._truth(literal) for literal in clause.literals]
            if True in truths:
                continue
            number = len(self._clauses)
            self._clauses.append(clause)
            undecided = tuple(
                x for x, truth in zip(clause.literals, truths, strict=True) if truth is None
            )
            self._open.append(undecided)
            for literal in undecided:
                self._uses[negate(literal)].append(number)

    def _truth(self, literal: Signed) -> bool | None:
        value = self._fact(literal[1])
        return None if value is None else value == literal[0]

    def argue(self) -> Argument:
        """Find an argument in which every branch ends in a cycle.

        Raises:
            TooLongError: if no such argument is found within the allowed number of attempts.
        """
        return tidy(self._argue({}))

    def propagated(self) -> Argument | None:
        """Return the argument by unit propagation alone, or ``None`` if that does not suffice.

        The argument is not tidied: it may end in a read without a source, with a lemma for each
        candidate.
        """
        found = self._propagate({})
        return None if found.conflict is None else found.argument()

    def _argue(self, assumed: Mapping[Signed, float]) -> Argument:
        known = dict(assumed)
        lemmas: list[Derived | Refuted] = []
        while True:
            found = self._propagate(known)
            if found.conflict is not None:
                return Argument((*lemmas, *found.lemmas()), Contradiction(found.conflict))
            step = self._look_ahead(known, found)
            if isinstance(step, CaseSplit):
                return Argument(tuple(lemmas), step)
            if step is not None:
                lemmas.append(step)
                known[step.literal] = 0.0
                continue
            return Argument(tuple(lemmas), self._branch(known, found))

    # --- unit propagation, cheapest first ---

    def _propagate(self, known: Mapping[Signed, float]) -> _Propagation:
        self._attempts -= 1
        if self._attempts < 0:
            raise TooLongError
        missing = [len(literals) for literals in self._open]
        spent = [clause.weight for clause in self._clauses]
        found = _Propagation(known=known)
        best = float("inf")
        queue: list[tuple[float, int, Signed, int]] = []
        ticket = 0
        for literal, cost in known.items():
            heapq.heappush(queue, (cost, ticket, literal, -1))
            ticket += 1
        for number, literals in enumerate(self._open):
            if not literals and spent[number] < best:
                best, found.conflict = spent[number], self._clauses[number]
            if len(literals) == 1:
                heapq.heappush(queue, (spent[number], ticket, literals[0], number))
                ticket += 1
        while queue:
            cost, _, literal, reason = heapq.heappop(queue)
            if cost >= best:
                break
            if literal in found.reason:
                continue
            found.reason[literal] = None if reason < 0 else self._clauses[reason]
            for number in self._uses[literal]:
                missing[number] -= 1
                spent[number] += cost
                if missing[number] == 0 and spent[number] < best:
                    best, found.conflict = spent[number], self._clauses[number]
                elif missing[number] == 1:
                    for last in self._open[number]:
                        if negate(last) not in found.reason and last not in found.reason:
                            heapq.heappush(queue, (spent[number], ticket, last, number))
                            ticket += 1
        found.cost = best
        return found

    # --- case splits ---

    def _undecided(self, found: _Propagation) -> list[Signed]:
        """Return the undecided literals of clauses that have no true literal yet.

        Literals of short clauses come first.
        """
        score: defaultdict[Signed, float] = defaultdict(float)
        for literals in self._open:
            if any(literal in found.reason for literal in literals):
                continue
            undecided = [literal for literal in literals if negate(literal) not in found.reason]
            for literal in undecided:
                score[canonical_literal(True, literal[1])] += 4.0 ** -min(len(undecided), 20)
        return sorted(score, key=lambda literal: (-score[literal], str(literal)))

    def _look_ahead(
        self, known: Mapping[Signed, float], found: _Propagation
    ) -> CaseSplit | Refuted | None:
        """Try assumptions, and return a case split or a literal proved by refuting them.

        Return ``None`` if no assumption is refuted.
        """
        best: tuple[float, CaseSplit] | None = None
        failed: tuple[float, Signed, _Propagation] | None = None
        ends: dict[Signed, _Propagation] = {}
        for variable in self._undecided(found)[:40]:
            cases = (variable, negate(variable))
            for case in cases:
                tried = self._propagate({**known, case: 0.0})
                if tried.conflict is not None:
                    ends[case] = tried
                    if failed is None or tried.cost < failed[0]:
                        failed = (tried.cost, case, tried)
            if all(case in ends for case in cases):
                cost = sum(ends[case].cost for case in cases)
                if best is None or cost < best[0]:
                    best = (cost, CaseSplit(None, tuple((c, ends[c].argument()) for c in cases)))
        for clause, literals in zip(self._clauses, self._open, strict=True):
            if not isinstance(clause.step, ChoiceStep):
                continue
            if any(literal in found.reason for literal in literals):
                continue
            undecided = [literal for literal in literals if negate(literal) not in found.reason]
            if len(undecided) == len(literals) > 1 and all(
                literal in ends for literal in undecided
            ):
                cost = sum(ends[literal].cost for literal in undecided) - 1.0
                if best is None or cost < best[0]:
                    cases_of = tuple((x, ends[x].argument()) for x in undecided)
                    best = (cost, CaseSplit(clause.step, cases_of))
        if best is not None:
            return best[1]
        if failed is not None:
            return Refuted(negate(failed[1]), failed[2].argument())
        return None

    def _branch(self, known: Mapping[Signed, float], found: _Propagation) -> CaseSplit:
        undecided = self._undecided(found)
        if not undecided:
            # the contradiction may depend on clauses derived only by the solver
            raise TooLongError
        case = undecided[0]
        cases = tuple((c, self._argue({**known, c: 0.0})) for c in (case, negate(case)))
        return CaseSplit(None, cases)


class _Propagation:
    """The literals derived by one propagation, each with its reason."""

    __slots__ = ("conflict", "cost", "known", "reason")

    def __init__(self, known: Mapping[Signed, float]) -> None:
        self.known = known
        self.reason: dict[Signed, Clause | None] = {}
        self.conflict: Clause | None = None
        self.cost = float("inf")

    def lemmas(self) -> tuple[Derived, ...]:
        """Return the lemmas needed for the conflict, each after its premises."""
        assert self.conflict is not None
        return lemmas_for(map(negate, self.conflict.literals), self.reason.get)

    def argument(self) -> Argument:
        assert self.conflict is not None
        return Argument(self.lemmas(), Contradiction(self.conflict))
