"""Finds refutations that are simpler than the first one: with fewer relations, or smaller parts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from isolang.certify.steps import ChoiceStep, CycleStep, Edge, ExhaustionStep, Step
from isolang.explain.derivation import LARGEST, edges_in
from isolang.explain.known import KnownGraph
from isolang.explain.part import transactions_of
from isolang.explain.part_refuter import EFFORT, Engine, PartRefuter, is_of_accesses
from isolang.language.classify.automaton import Automaton
from isolang.language.vocabulary import relation_of, whole_letter
from isolang.problem import Problem

if TYPE_CHECKING:
    from isolang.language.classify.event_graph import Plan

# The work of searching the whole history without rw, and of searching it without sessions or real
# time. The latter costs as much as the verdict itself, so it is left out for histories with more
# operations than the last number.
_WITHOUT_RW = 250_000
_RELAXED_WORK, _LARGEST_WHOLE = 1_000_000, 50_000

# The number of cycles that people can follow.
_FOLLOWED = 4
_RW_WEIGHT = 2
_OBVIOUS = {"wr", "ww"}
# The most short cycles of known edges to try, the most of them that violate no check by themselves,
# the most edges and reads to visit, and the most edges of a cycle.
_TRIED, _OTHERS, _VISITED, _LONGEST_CYCLE = 24, 4, 500_000, 8
# Known edges are searched for among this many transactions before and after the middle of the
# refutation.
_NEIGHBOURHOOD = 400
# The cost of one cycle with two edges, one of which is rw. No refutation is simpler.
_SHORTEST = (1, 1 + _RW_WEIGHT)
_RELAXED = {"so": "without sessions", "rt": "without real time"}


def cost(steps: Sequence[Step]) -> tuple[int, ...]:
    """Return how hard a refutation is to follow, and how much it presupposes, as a sort key.

    The first number is by how much (in powers of two) the cycles exceed what people can follow. The
    next ones say whether real time and sessions are needed. Then come the number of cycles and of
    edges, of which an rw counts as two, because people follow reads-from more easily, but not
    around half of the history. A cycle of ``wr`` and ``ww``, in which a transaction read from a
    transaction that wrote later, is easy to see and counts last.
    """
    relations = _relations(steps)
    cycles = [step.edges for step in steps if isinstance(step, CycleStep)]
    long = [edges for edges in cycles if len(edges) > 2 or {e.relation for e in edges} != _OBVIOUS]
    return (
        max(0, len(long) - _FOLLOWED).bit_length(),
        "rt" in relations,
        "so" in relations,
        len(long),
        sum(map(_weight, long)),
        sum(map(len, long)),
        sum(edge.relation in ("so", "rt") for edges in long for edge in edges),
        sum(map(len, cycles)),
    )


def _weight(edges: Sequence[Edge]) -> int:
    return sum(_RW_WEIGHT if edge.relation == "rw" else 1 for edge in edges)


class Finder:
    """Searches for a simpler refutation with a limited amount of work.

    A refutation is about a few transactions, and searching these costs little, however large the
    history is. To search the whole history again, without some relations, costs as much as its
    refutation did, or more. So this search has its own limit. The limits are not times, because
    equal histories must have equal explanations, however busy the machine is.

    Attributes:
        parts: the search among parts of the history.
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
        """Prepare the search.

        Args:
            problem: the refuted problem.
            plan: the plan of the specification.
            engine: the function that refutes problems.
            stopped: the function that returns whether the time that the user allows has passed.
            work: the work that all attempts at parts may cost.
        """
        self._problem = problem
        self._plan = plan
        self._engine = engine
        self.parts = PartRefuter(problem, engine, stopped=stopped, work=work)
        self._stopped = stopped
        self._known: KnownGraph | None = None
        self._relaxed: dict[str, Plan] = {}
        self._outcomes: dict[str, str] = {}  # by relation, the outcome without it
        self._of_whole: dict[str, Sequence[Step] | None] = {}  # relation -> refutation found

    def simplest(self, steps: Sequence[Step]) -> Sequence[Step]:
        """Return the simplest refutation found; it is at least as simple as ``steps``."""
        best = steps
        attempts: tuple[Callable[[Sequence[Step]], Sequence[Step] | None], ...] = (self._short,)
        if edges_in(steps) <= LARGEST:
            # Small parts come first, because a whole history without its sessions may take long.
            attempts += (self.without_rw, self._minimal, self._relaxed_steps)
        for attempt in attempts:
            # A short cycle may be only a part of an argument, and then lead to nothing simpler.
            for start in (best,) if best is steps or cost(best)[3:] <= _SHORTEST else (best, steps):
                if self.parts.out_of_effort():
                    return best
                found = attempt(start)
                if found is not None and cost(found) < cost(best):
                    best = found
        return best

    def shortened(self, steps: Sequence[Step]) -> Sequence[Step]:
        """Return the steps with shorter cycles.

        One ``so`` or ``rt`` edge replaces several of them in a row. A ``wr`` edge replaces ``so``
        or ``rt`` if the later transaction reads from the earlier one. The checker must verify the
        result, because perhaps no check forbids the shorter cycles.
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
            CycleStep(step.check, tuple(instead(edge) for edge in _joined(step.edges)))
            if isinstance(step, CycleStep)
            else step
            for step in steps
        ]
        return [*choices, *changed]

    def relaxed(self, steps: Sequence[Step]) -> dict[str, str]:
        """Return the outcomes without sessions and without real time, if the steps use these."""
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
        """Return a refutation without ``rw``, whose cycles are cycles of all relations, too."""
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
        """Return a refutation of all candidates of a read, from the versions that its session knew.

        Args:
            op: a read with many candidates, such as a set-read of a row that was not returned.
        """
        if not self.parts.sources.candidates(op):
            return None  # the read is known to have no possible version
        part = self.parts.sources.around(
            op, every_write=any(map(is_of_accesses, self._plan.automata))
        )
        # More levels are violated by the same steps if these use no sessions.
        found = (
            self.parts.refute(part, self._relaxed_plan("so").automata)
            if self._has_sessions()
            else None
        )
        if found is None:
            found = self.parts.refute(part, self._plan.automata)
        return None if found is None else [_with_init_as("so", s) for s in part.to_whole(found)]

    def _has_sessions(self) -> bool:
        """Return whether checks use sessions and would be event graphs also without sessions."""
        of_sessions = any("so" in a.relations for a in self._plan.automata)
        return of_sessions and self._can_do_without("so")

    # --- attempts ---

    def _short(self, steps: Sequence[Step], relaxed: str = "") -> Sequence[Step] | None:
        """Return a refutation of the few transactions on a short cycle of known edges, or ``None``.

        Args:
            steps: the current refutation. If none can be shorter, the result is ``None``.
            relaxed: a relation to leave out.
        """
        if cost(steps)[3:] <= _SHORTEST and not relaxed:
            return None
        plan = self._relaxed_plan(relaxed) if relaxed else self._plan
        relations = frozenset(r for a in plan.automata for r in a.relations) | {"rw"}
        if self._known is None:
            among = self._around(steps)
            self._known = KnownGraph(self._problem, effort=_VISITED, among=among)
        best: Sequence[Step] | None = None
        current = cost(steps)
        least = current[4] if current[3] == 1 and not relaxed else sys.maxsize
        cycles, _ = self._known.short_cycles(
            relations, longest=min(_LONGEST_CYCLE, least - 1), most=_TRIED, effort=_VISITED
        )
        walks = [tuple(edge.relation for edge in cycle.edges) for cycle in cycles]
        may = {w: any(a.may_forbid(w) for a in plan.automata) for w in dict.fromkeys(walks)}
        # Cycles that may violate a check by themselves come first, and then a few other cycles.
        alone = [cycle for cycle, walk in zip(cycles, walks, strict=True) if may[walk]]
        others = [cycle for cycle, walk in zip(cycles, walks, strict=True) if not may[walk]]
        for cycle in alone if relaxed else (*alone, *others[:_OTHERS]):
            if self.parts.out_of_effort() or _weight(cycle.edges) >= least:
                continue
            found = self.parts.of_cycle(cycle, plan.automata)
            if found is not None and (best is None or cost(found) < cost(best)):
                best, least = found, cost(found)[4]
        return best

    def _around(self, steps: Sequence[Step]) -> tuple[int, int]:
        """Return the first transaction and the end of a range around the middle of a refutation."""
        n = self._problem.native.n
        middle = sorted(transactions_of(steps, self._problem.history)) or [0]
        low = max(0, min(middle[len(middle) // 2] - _NEIGHBOURHOOD, n - 2 * _NEIGHBOURHOOD))
        return low, min(n, low + 2 * _NEIGHBOURHOOD)

    def _needs_rw(self, weaker: Sequence[Automaton]) -> bool:
        """Return whether one total order of transactions shows that every refutation needs ``rw``.

        SOUND BECAUSE if all relations except ``ww`` and ``rw`` together have no cycle, every
        version order may follow one linear extension of them. Then all edges except ``rw`` go
        forward, and every cycle of any automaton needs ``rw``. If list reads show version orders,
        this may fail.
        """
        if self.parts.sources.show_orders():
            return False
        used = {relation_of(r) for a in weaker for r in a.steps}
        return self._problem.fits_one_total_order(sessions="so" in used, real_time="rt" in used)

    def _minimal(self, steps: Sequence[Step]) -> Sequence[Step] | None:
        return self.parts.minimal(steps, self._plan.automata)

    def _relaxed_steps(self, steps: Sequence[Step]) -> Sequence[Step] | None:
        """Return a refutation without sessions or real time, if the current one uses them."""
        best: Sequence[Step] | None = None
        for relation in ("rt", "so"):
            if relation not in _relations(best or steps) or not self._can_do_without(relation):
                continue
            whole = self._relaxed_whole(relation)
            if self._outcomes[relation] == "valid":
                continue
            found = self._short(best or steps, relation) or whole
            if found is None:
                found = self.parts.minimal(best or steps, self._relaxed_plan(relation).automata)
            if found is not None:
                best = [_with_init_as(relation, step) for step in found]
        return best

    def _relaxed_whole(self, relation: str) -> Sequence[Step] | None:
        """Return a refutation of the whole history without a relation, and store the outcome."""
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
        """Return a refutation of the whole history, or ``None`` if it satisfies the automata.

        Raises:
            TimeoutError: if the work or the user's time ran out.
        """
        if self._stopped():
            raise TimeoutError
        found, _ = self._engine(self._problem, automata, work, strategy)
        return found

    def _relaxed_plan(self, relation: str) -> Plan:
        """Return the plan without a relation."""
        from isolang.language.classify.route import without_real_time, without_sessions

        if relation not in self._relaxed:
            relaxed = without_sessions if relation == "so" else without_real_time
            self._relaxed[relation] = relaxed(self._plan)
        return self._relaxed[relation]

    def _can_do_without(self, relation: str) -> bool:
        """Return whether the checks are event graphs also without a relation."""
        from isolang.language.classify.event_graph import NotAnEventGraph

        try:
            self._relaxed_plan(relation)
        except NotAnEventGraph:
            return False
        return True


def _joined(edges: Sequence[Edge]) -> list[Edge]:
    """Return a cycle in which one edge replaces each run of ``so``, and each run of ``rt``."""
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
    """Return the relations of the edges in the cycles of the steps."""
    cycles = (step.edges for step in steps if isinstance(step, CycleStep))
    return {relation_of(edge.relation) for edges in cycles for edge in edges}


def _with_init_as(relation: str, step: Step) -> Step:
    """Return a step about a relaxed spec as one about the spec, with its ``init`` renamed."""
    if not isinstance(step, CycleStep):
        return step
    edges = tuple(
        Edge(relation if e.relation == "init" else e.relation, *e.plain()[1:]) for e in step.edges
    )
    return CycleStep(step.check, edges)
