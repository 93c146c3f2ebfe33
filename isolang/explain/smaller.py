"""Finds simpler refutations, which use fewer relations or concern smaller parts of a history."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from isolang.certify.steps import ChoiceStep, CycleStep, Edge, ExhaustionStep, Step
from isolang.explain.derivation import MAX_EDGES, count_edges
from isolang.explain.known import KnownGraph
from isolang.explain.part import transactions_of
from isolang.explain.part_refuter import EFFORT, Engine, PartRefuter, is_of_accesses
from isolang.language.classify.automaton import Automaton
from isolang.language.vocabulary import relation_of, whole_letter
from isolang.problem import Problem

if TYPE_CHECKING:
    from isolang.language.classify.event_graph import Plan

# The work limits for two searches in the whole history: without rw, and without session order or
# real time. The second search costs as much as the verdict itself, so it is omitted for histories
# with more operations than the third number.
_WITHOUT_RW = 250_000
_RELAXED_WORK, _LARGEST_WHOLE = 1_000_000, 50_000

# The number of cycles that people can follow in one argument.
_FOLLOWED = 4
_RW_WEIGHT = 2
_OBVIOUS = {"wr", "ww"}
# Limits for short cycles of known edges: the number of cycles to try, the number of these that may
# violate no check by themselves, the number of edges and reads to visit, and the number of edges in
# a cycle.
_TRIED, _OTHERS, _VISITED, _LONGEST_CYCLE = 24, 4, 500_000, 8
# The search for known edges considers this many transactions before, and as many after, the middle
# of the refutation.
_NEIGHBOURHOOD = 400
# The cost of the simplest refutation: one cycle with two edges, one of which is rw.
_SHORTEST = (1, 1 + _RW_WEIGHT)
_RELAXED = {"so": "without sessions", "rt": "without real time"}


def difficulty(steps: Sequence[Step]) -> tuple[int, ...]:
    """Return a sort key for how hard a refutation is to follow, and how much it assumes.

    The first number is the bit length of the number of cycles beyond what people can follow. The
    next numbers say whether the refutation needs real time and session order. Then come the number
    of cycles and the number of edges. Here an ``rw`` edge counts as two, because people follow
    reads-from edges more easily, unless there are very many of them. A cycle of ``wr`` and ``ww``,
    in which a transaction read from one that wrote later, is easy to see, so only the last number
    includes such cycles.
    """
    letters: set[str] = set()
    long = weight = length = ordered = every = 0
    for step in steps:
        if not isinstance(step, CycleStep):
            continue
        of_cycle = [edge.relation for edge in step.edges]
        letters.update(of_cycle)
        every += len(of_cycle)
        if len(of_cycle) <= 2 and set(of_cycle) == _OBVIOUS:
            continue
        long += 1
        length += len(of_cycle)
        weight += len(of_cycle) + (_RW_WEIGHT - 1) * of_cycle.count("rw")
        ordered += of_cycle.count("so") + of_cycle.count("rt")
    relations = set(map(relation_of, letters))
    return (
        max(0, long - _FOLLOWED).bit_length(),
        "rt" in relations,
        "so" in relations,
        long,
        weight,
        length,
        ordered,
        every,
    )


def _weight(edges: Sequence[Edge]) -> int:
    return sum(_RW_WEIGHT if edge.relation == "rw" else 1 for edge in edges)


class Finder:
    """Searches for a simpler refutation within a work limit.

    A refutation concerns a few transactions, and a search among these costs little, however large
    the history is. A search in the whole history, without some relations, costs at least as much as
    the first refutation, so it has its own limit. The limits are not times, because equal histories
    must get equal explanations, however busy the machine is.
    """

    def __init__(
        self,
        problem: Problem,
        plan: Plan,
        engine: Engine,
        *,
        stopped: Callable[[], bool] = lambda: False,
        work: int = EFFORT,
    ) -> None:
        """Prepare the search."""
        self._problem = problem
        self._plan = plan
        self._engine = engine
        self.parts = PartRefuter(problem, engine, stopped=stopped, work=work)
        self._stopped = stopped
        self._known: KnownGraph | None = None
        self._relaxed: dict[str, Plan] = {}
        self._outcomes: dict[str, str] = {}  # for each relation, the outcome without it
        # for each relation, a refutation without it
        self._of_whole: dict[str, Sequence[Step] | None] = {}

    def simplest(self, steps: Sequence[Step]) -> Sequence[Step]:
        """Return the simplest refutation found; it is at least as simple as ``steps``."""
        best = steps
        attempts: tuple[Callable[[Sequence[Step]], Sequence[Step] | None], ...] = (
            self._short_refutation,
        )
        if count_edges(steps) <= MAX_EDGES:
            # Small parts come first, because a search in the whole history may take a long time.
            attempts += (self.without_rw, self._minimal, self._relaxed_steps)
        for attempt in attempts:
            # If the best refutation so far is a short cycle, it may be only a part of an argument,
            # from which no simpler refutation can be reached. Therefore the attempt also starts
            # from the given steps.
            for start in (
                (best,) if best is steps or difficulty(best)[3:] <= _SHORTEST else (best, steps)
            ):
                if self.parts.out_of_effort():
                    return best
                found = attempt(start)
                if found is not None and difficulty(found) < difficulty(best):
                    best = found
        return best

    def shortened(self, steps: Sequence[Step]) -> Sequence[Step]:
        """Return the steps with shorter cycles.

        Consecutive ``so`` edges, or consecutive ``rt`` edges, become one edge. A ``so`` or ``rt``
        edge becomes a ``wr`` edge if its second transaction reads from the first. The checker must
        verify the result, because it may be that no check forbids the shorter cycles.
        """
        choices: dict[Step, None] = {}

        def instead(edge: Edge) -> Edge:
            if edge.relation not in ("so", "rt") or edge.a == self._problem.history.t0:
                return edge
            op, key = self.parts.sources.reads_from(edge.b, edge.a)
            if op < 0:
                return edge
            choices.setdefault(ChoiceStep(op))
            return Edge("wr", edge.a, edge.b, key, op)

        changed = [
            CycleStep(step.check, tuple(instead(edge) for edge in _merge_order_edges(step.edges)))
            if isinstance(step, CycleStep)
            else step
            for step in steps
        ]
        return [*choices, *changed]

    def relaxed(self, steps: Sequence[Step]) -> dict[str, str]:
        """Return the outcomes without session order and without real time, if steps use them."""
        relations = _relations(steps)
        found = {}
        for relation, name in _RELAXED.items():
            if relation not in relations:
                continue
            if relation not in self._outcomes:
                self._relaxed_whole(relation)
            found[name] = self._outcomes[relation]
        return found

    def without_rw(self, steps: Sequence[Step]) -> Sequence[Step] | None:
        """Return a refutation that does not use ``rw``, or ``None`` if none is found.

        Such a refutation also holds for the specification with all its relations.
        """
        if "rw" not in _relations(steps):
            return None
        if "rw" in self._of_whole:
            return self._of_whole["rw"]
        self._of_whole["rw"] = found = self._whole_without_rw()
        return found

    def _whole_without_rw(self) -> Sequence[Step] | None:
        weaker = [
            replace(
                a,
                steps={r: s for r, s in a.steps.items() if whole_letter(r) != "rw"},
                back=(),
                direct=frozenset(),
            )
            for a in self._plan.automata
        ]
        if self._needs_rw(weaker):
            return None
        try:
            return self._refute_whole(weaker, _WITHOUT_RW)
        except TimeoutError:
            return None

    def around(self, op: int) -> Sequence[Step] | None:
        """Return a refutation of all candidates of a read by versions known to its session."""
        if not self.parts.sources.candidates(op):
            return None  # the pre-pass has already shown that the read has no candidate
        part = self.parts.sources.around(
            op, every_write=any(map(is_of_accesses, self._plan.automata))
        )
        # Steps without session order refute more levels.
        found = (
            self.parts.refute(part, self._relaxed_plan("so").automata)
            if self._has_sessions()
            else None
        )
        if found is None:
            found = self.parts.refute(part, self._plan.automata)
        return None if found is None else [_undo_init("so", s) for s in part.to_whole(found)]

    def _has_sessions(self) -> bool:
        """Return whether the checks use session order, and are also event graphs without it."""
        of_sessions = any("so" in a.relations for a in self._plan.automata)
        return of_sessions and self._can_do_without("so")

    # --- attempts ---

    def _short_refutation(self, steps: Sequence[Step], relaxed: str = "") -> Sequence[Step] | None:
        """Return a refutation of the few transactions on a short cycle of known edges."""
        if difficulty(steps)[3:] <= _SHORTEST and not relaxed:
            return None
        plan = self._relaxed_plan(relaxed) if relaxed else self._plan
        relations = frozenset(r for a in plan.automata for r in a.relations) | {"rw"}
        if self._known is None:
            among = self._range_around(steps)
            self._known = KnownGraph(self._problem, effort=_VISITED, among=among)
        best: Sequence[Step] | None = None
        current = difficulty(steps)
        least = current[4] if current[3] == 1 and not relaxed else sys.maxsize
        cycles, _ = self._known.short_cycles(
            relations, longest=min(_LONGEST_CYCLE, least - 1), most=_TRIED, effort=_VISITED
        )
        walks = [tuple(edge.relation for edge in cycle.edges) for cycle in cycles]
        may = {w: any(a.may_forbid(w) for a in plan.automata) for w in dict.fromkeys(walks)}
        # Cycles that may violate a check by themselves are tried first, followed by a few others.
        alone = [cycle for cycle, walk in zip(cycles, walks, strict=True) if may[walk]]
        others = [cycle for cycle, walk in zip(cycles, walks, strict=True) if not may[walk]]
        for cycle in alone if relaxed else (*alone, *others[:_OTHERS]):
            if self.parts.out_of_effort() or _weight(cycle.edges) >= least:
                continue
            found = self.parts.of_cycle(cycle, plan.automata)
            if found is not None and (best is None or difficulty(found) < difficulty(best)):
                best, least = found, difficulty(found)[4]
        return best

    def _range_around(self, steps: Sequence[Step]) -> tuple[int, int]:
        """Return the start and end of a range of transactions around the refutation's middle."""
        n = self._problem.native.n
        middle = sorted(transactions_of(steps, self._problem.history)) or [0]
        low = max(0, min(middle[len(middle) // 2] - _NEIGHBOURHOOD, n - 2 * _NEIGHBOURHOOD))
        return low, min(n, low + 2 * _NEIGHBOURHOOD)

    def _needs_rw(self, weaker: Sequence[Automaton]) -> bool:
        """Return whether a total order of transactions shows that every refutation needs ``rw``.

        SOUND BECAUSE if all relations except ``ww`` and ``rw`` together have no cycle, every
        version order may follow one linear extension of these relations. Then all edges except
        ``rw`` lead forward in this extension, and every cycle of any automaton needs ``rw``. If
        list reads show version orders, the version orders may be unable to follow it.
        """
        if self.parts.sources.show_orders():
            return False
        used = {relation_of(r) for a in weaker for r in a.steps}
        return self._problem.fits_one_total_order(sessions="so" in used, real_time="rt" in used)

    def _minimal(self, steps: Sequence[Step]) -> Sequence[Step] | None:
        return self.parts.minimal(steps, self._plan.automata)

    def _relaxed_steps(self, steps: Sequence[Step]) -> Sequence[Step] | None:
        """Return a refutation without session order or real time.

        Return ``None`` if the current refutation uses neither, or if none is found.
        """
        best: Sequence[Step] | None = None
        for relation in ("rt", "so"):
            if relation not in _relations(best or steps) or not self._can_do_without(relation):
                continue
            whole = self._relaxed_whole(relation)
            if self._outcomes[relation] == "valid":
                continue
            found = self._short_refutation(best or steps, relation) or whole
            if found is None:
                found = self.parts.minimal(best or steps, self._relaxed_plan(relation).automata)
            if found is not None:
                best = [_undo_init(relation, step) for step in found]
        return best

    def _relaxed_whole(self, relation: str) -> Sequence[Step] | None:
        """Return a refutation of the whole history that does not use a given relation.

        The outcome without the relation is stored.
        """
        if relation in self._of_whole:
            return self._of_whole[relation]
        self._of_whole[relation] = None
        self._outcomes[relation] = "unknown"
        if not self._can_do_without(relation):
            return None
        if self._problem.history.columns.operations() > _LARGEST_WHOLE:
            return None
        automata = self._relaxed_plan(relation).automata
        try:
            found = self._refute_whole(automata, _RELAXED_WORK, "auto")
        except TimeoutError:
            return None
        self._outcomes[relation] = "valid" if found is None else "invalid"
        exhausted = found is None or any(isinstance(step, ExhaustionStep) for step in found)
        self._of_whole[relation] = None if exhausted else found
        return self._of_whole[relation]

    def _refute_whole(
        self, automata: Sequence[Automaton], work: int, strategy: str = "cdcl"
    ) -> Sequence[Step] | None:
        """Return a refutation of the whole history, or ``None`` if it satisfies the automata."""
        if self._stopped():
            raise TimeoutError
        found, _ = self._engine(self._problem, automata, work, strategy)
        return found

    def _relaxed_plan(self, relation: str) -> Plan:
        """Return the specification's plan without ``so`` or ``rt``; the plan is cached."""
        from isolang.language.classify.route import without_real_time, without_sessions

        if relation not in self._relaxed:
            relaxed = without_sessions if relation == "so" else without_real_time
            self._relaxed[relation] = relaxed(self._plan)
        return self._relaxed[relation]

    def _can_do_without(self, relation: str) -> bool:
        """Return whether the checks are still event graphs without a relation."""
        from isolang.language.classify.event_graph import NotAnEventGraph

        try:
            self._relaxed_plan(relation)
        except NotAnEventGraph:
            return False
        return True


def _merge_order_edges(edges: Sequence[Edge]) -> list[Edge]:
    """Merge successive ``so`` edges of a cycle into one edge, and successive ``rt`` edges too."""
    joined: list[Edge] = []
    for edge in edges:
        last = joined[-1] if joined else None
        if last is not None and edge.relation in ("so", "rt") and last.relation == edge.relation:
            joined[-1] = Edge(edge.relation, last.a, edge.b)
        else:
            joined.append(edge)
    first, last = joined[0], joined[-1]
    if len(joined) > 1 and first.relation in ("so", "rt") and first.relation == last.relation:
        joined = [Edge(first.relation, last.a, first.b), *joined[1:-1]]
    return joined


def _relations(steps: Iterable[Step]) -> set[str]:
    """Return the relations of all edges in the steps' cycles."""
    cycles = (step.edges for step in steps if isinstance(step, CycleStep))
    return {relation_of(letter) for letter in {edge.relation for edges in cycles for edge in edges}}


def _undo_init(relation: str, step: Step) -> Step:
    """Translate a step about a relaxed specification into one about the original specification.

    In the relaxed specification, ``init`` replaces the relation; the translation undoes that.
    """
    if not isinstance(step, CycleStep):
        return step
    edges = tuple(
        Edge(relation if e.relation == "init" else e.relation, *e.plain()[1:]) for e in step.edges
    )
    return CycleStep(step.check, edges)
