"""Simpler violations than the first one found: of fewer relations, in a smaller part."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from isolang.certify.steps import ChoiceStep, CycleStep, Edge, ExhaustionStep, Step
from isolang.explain.derivation import LARGEST, edges_in
from isolang.explain.known import KnownCycle, KnownGraph
from isolang.explain.part import Part, Sources, reads_of, transactions_of
from isolang.explain.shrink import shrink
from isolang.language.classify.automaton import Automaton
from isolang.language.vocabulary import FILTERED, TESTS, relation_of, whole_letter
from isolang.problem import Problem, build_problem

if TYPE_CHECKING:
    from isolang.language.classify.event_graph import Plan

Engine: TypeAlias = Callable[
    [Problem, Sequence[Automaton], int, str], tuple[Sequence[Step] | None, int]
]
"""Problem, automata, work, strategy -> a refutation, or ``None`` if there is a model; and the work.

Work is counted as the engine polls: some millions are a second. Raises ``TimeoutError`` after it.
"""

# All attempts together may take this much work, and building the part of an attempt counts as some.
EFFORT, _ATTEMPT = 4_000_000, 2_500
# The whole history is searched without rw for a short while only. Its verdict without a relation is
# part of what is told, and costs as much as the verdict itself: of a history with more operations
# than this, who wants to know asks for the other level.
_WITHOUT_RW = 250_000
_RELAXED_WORK, _LARGEST_WHOLE = 1_000_000, 50_000

# People follow as many cycles.
_FOLLOWED = 4
_RW_WEIGHT = 2
_OBVIOUS = {"wr", "ww"}
# How many short cycles of known edges are tried, and how many of those that violate no check by
# themselves; and how many of their edges, and reads, are looked at.
_TRIED, _OTHERS, _LOOKED, _LONGEST_CYCLE = 24, 4, 500_000, 8
# And this many transactions before and after the middle one of the refutation are looked at.
_AROUND = 400
# What is looked for nothing shorter than: one cycle, of two edges and one rw.
_SHORT = (1, 1 + _RW_WEIGHT)
# Of a read with more candidates than this it is asked first whether it is needed.
_MANY = 8
# A part with more transactions than this is not searched for a smaller one.
_LARGEST_PART = 400
_RELAXED = {"so": "without sessions", "rt": "without real time"}


def cost(steps: Sequence[Step]) -> tuple[int, ...]:
    """How hard a refutation is to follow, and how much it takes for granted.

    Fewer cycles than people can follow, where half as many more make no difference; then without
    real time, and without sessions: only what needs them is told by them. Then fewer cycles, and
    fewer edges, of which an rw counts as two: people follow reads-from more easily, but not around
    half of the history. That a transaction wrote after the one it read from is easy to see, and
    counts last.
    """
    relations = _relations(steps)
    cycles = [step.edges for step in steps if isinstance(step, CycleStep)]
    told = [edges for edges in cycles if len(edges) > 2 or {e.relation for e in edges} != _OBVIOUS]
    return (
        max(0, len(told) - _FOLLOWED).bit_length(),
        "rt" in relations,
        "so" in relations,
        len(told),
        sum(map(_weight, told)),
        sum(map(len, told)),
        sum(edge.relation in ("so", "rt") for edges in told for edge in edges),
        sum(map(len, cycles)),
    )


def _weight(edges: Sequence[Edge]) -> int:
    return sum(_RW_WEIGHT if edge.relation == "rw" else 1 for edge in edges)


class Finder:
    """Looks for a simpler violation, with a limited amount of work.

    These steps are about a few transactions, and looking at those costs little, however large
    the history is. To look at the whole history again, without some relations, costs as much as its
    refutation did, or more: that has a limit of its own. No limit is a time, so that equal
    histories have equal explanations, however busy the machine is.
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
        """Take what was refuted.

        Args:
            problem: of the history.
            plan: of the specification.
            engine: what refutes.
            stopped: whether the time is up that the user allows.
            work: how much all attempts at parts may take.
        """
        self._problem = problem
        self._plan = plan
        self._engine = engine
        self._sources = Sources(problem)
        self._stopped = stopped
        self._left = work
        self._known: KnownGraph | None = None
        self._relaxed: dict[str, Plan] = {}
        self._outcomes: dict[str, str] = {}  # relation -> of the whole history without it
        self._of_whole: dict[str, Sequence[Step] | None] = {}  # relation -> refutation without it

    @property
    def left(self) -> int:
        """The work that attempts at parts may still take."""
        return max(0, self._left)

    def _enough(self) -> bool:
        return self._left <= 0 or self._stopped()

    def simplest(self, steps: Sequence[Step]) -> Sequence[Step]:
        """The simplest refutation found; never a worse one than ``steps``."""
        best = steps
        attempts: tuple[Callable[[Sequence[Step]], Sequence[Step] | None], ...] = (self._short,)
        if edges_in(steps) <= LARGEST:
            # Small parts first: a whole history without its sessions may take long.
            attempts += (self.without_rw, self._in_a_part, self._relaxed_steps)
        for attempt in attempts:
            # Around a short cycle that is no whole argument there may be nothing simpler.
            for start in (best,) if best is steps or cost(best)[3:] <= _SHORT else (best, steps):
                if self._enough():
                    return best
                found = attempt(start)
                if found is not None and cost(found) < cost(best):
                    best = found
        return best

    def shortened(self, steps: Sequence[Step]) -> Sequence[Step]:
        """The same cycles in fewer words.

        One ``so`` in place of a run of them, ``rt`` likewise; ``wr`` in place of ``so`` or ``rt``
        where the later one reads from the earlier one. The words of a check need not allow that:
        the result must be checked.
        """
        choices: dict[Step, None] = {}

        def instead(edge: Edge) -> Edge:
            if edge.relation not in ("so", "rt") or edge.a == self._problem.history.t0:
                return edge
            op, key = self._sources.reads_from(edge.b, edge.a)
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
        """The outcome without sessions, and without real time, if the steps have such edges."""
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
        """A refutation without ``rw``: a cycle of the smaller automaton is one of the whole."""
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

    def of_cycle(self, cycle: KnownCycle, plan: Plan | None = None) -> Sequence[Step] | None:
        """A refutation of the few transactions that a cycle is about.

        Args:
            cycle: of known edges.
            plan: of another specification than that of the refutation.
        """
        automata = (plan or self._plan).automata
        about: list[Step] = [CycleStep("", cycle.edges), *map(ChoiceStep, cycle.shown)]
        tests = any(map(_is_of_accesses, automata))
        part = self._sources.relevant_part(about, every_write=tests)
        if part.history.t0 > _LARGEST_PART:
            return None
        found = self._refute(part, automata)
        return None if found is None else part.to_whole(found)

    def around(self, op: int) -> Sequence[Step] | None:
        """A refutation of a read's candidates by what its session knew of the key.

        Args:
            op: a read of many candidates, such as one that says that no matching row was there.
        """
        part = self._sources.around(op, every_write=any(map(_is_of_accesses, self._plan.automata)))
        # Without sessions more levels are violated by the same steps.
        found = (
            self._refute(part, self._relaxed_plan("so").automata) if self._has_sessions() else None
        )
        if found is None:
            found = self._refute(part, self._plan.automata)
        return None if found is None else [_with_init_as("so", s) for s in part.to_whole(found)]

    def _has_sessions(self) -> bool:
        """Return whether there are checks of sessions that are event graphs without them."""
        of_sessions = any("so" in a.relations for a in self._plan.automata)
        return of_sessions and self._can_do_without("so")

    # --- attempts ---

    def _short(self, steps: Sequence[Step], relaxed: str = "") -> Sequence[Step] | None:
        """A refutation of the few transactions of a short cycle of known edges.

        Args:
            steps: a refutation; nothing is looked for if it is as short.
            relaxed: a relation to do without.
        """
        if cost(steps)[3:] <= _SHORT and not relaxed:
            return None
        plan = self._relaxed_plan(relaxed) if relaxed else self._plan
        relations = frozenset(r for a in plan.automata for r in a.relations) | {"rw"}
        if self._known is None:
            among = self._around(steps)
            self._known = KnownGraph(self._problem, effort=_LOOKED, among=among)
        best: Sequence[Step] | None = None
        given = cost(steps)
        least = given[4] if given[3] == 1 and not relaxed else sys.maxsize
        cycles, _ = self._known.short_cycles(
            relations, longest=min(_LONGEST_CYCLE, least - 1), most=_TRIED, effort=_LOOKED
        )
        walks = [tuple(edge.relation for edge in cycle.edges) for cycle in cycles]
        may = {w: any(a.may_forbid(w) for a in plan.automata) for w in dict.fromkeys(walks)}
        # What may violate a check by itself comes first; around a few others may be a violation.
        alone = [cycle for cycle, walk in zip(cycles, walks, strict=True) if may[walk]]
        others = [cycle for cycle, walk in zip(cycles, walks, strict=True) if not may[walk]]
        for cycle in alone if relaxed else (*alone, *others[:_OTHERS]):
            if self._enough() or _weight(cycle.edges) >= least:
                continue
            found = self.of_cycle(cycle, plan)
            if found is not None and (best is None or cost(found) < cost(best)):
                best, least = found, cost(found)[4]
        return best

    def _around(self, steps: Sequence[Step]) -> tuple[int, int]:
        """Of a large history, the transactions around those of a refutation, from and before."""
        n = self._problem.native.n
        middle = sorted(transactions_of(steps, self._problem.history)) or [0]
        low = max(0, min(middle[len(middle) // 2] - _AROUND, n - 2 * _AROUND))
        return low, min(n, low + 2 * _AROUND)

    def _needs_rw(self, weaker: Sequence[Automaton]) -> bool:
        """Return whether one line of all transactions shows that no refutation does without ``rw``.

        SOUND BECAUSE where all relations but ``ww`` and ``rw`` together have no cycle, every
        version order may follow one linear extension of them; then all but ``rw`` go forward, and
        no cycle of any automaton is without it. Not so where list reads show version orders.
        """
        if self._sources.show_orders():
            return False
        used = {relation_of(r) for a in weaker for r in a.steps}
        return self._problem.fits_one_total_order(sessions="so" in used, real_time="rt" in used)

    def _relaxed_steps(self, steps: Sequence[Step]) -> Sequence[Step] | None:
        """A refutation without session or real-time order, where the current one has them."""
        best: Sequence[Step] | None = None
        for relation in ("rt", "so"):
            if relation not in _relations(best or steps) or not self._can_do_without(relation):
                continue
            whole = self._relaxed_whole(relation)
            if self._outcomes[relation] == "valid":
                continue
            found = self._short(best or steps, relation) or whole
            if found is None:
                found = self._in_a_part(best or steps, relation)
            if found is not None:
                best = [_with_init_as(relation, step) for step in found]
        return best

    def _relaxed_whole(self, relation: str) -> Sequence[Step] | None:
        """A refutation of the whole history without a relation; notes the outcome."""
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
        """A refutation of the whole history; ``None`` if there is none.

        Raises:
            TimeoutError: the work is done, or the user's time is up.
        """
        if self._stopped():
            raise TimeoutError
        found, _ = self._engine(self._problem, automata, work, strategy)
        return found

    def _relaxed_plan(self, relation: str) -> Plan:
        """The plan without a relation."""
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

    def _in_a_part(self, steps: Sequence[Step], relaxed: str = "") -> Sequence[Step] | None:
        """A refutation of a part of the history from which nothing more can be left out.

        Args:
            steps: a refutation, whose transactions are the part to begin with.
            relaxed: a relation to do without.
        """
        plan = self._relaxed_plan(relaxed) if relaxed else self._plan
        txns = self._sources.closed(steps)
        if len(txns) > _LARGEST_PART or len(txns) <= 2:
            return None
        found: Sequence[Step] | None = None

        def refuted(part: Part) -> bool:
            nonlocal found
            steps = self._refute(part, plan.automata)
            found = steps or found
            return steps is not None

        tests = any(map(_is_of_accesses, plan.automata))
        part = self._sources.relevant_part(steps, every_write=tests)
        if not refuted(part):
            return None
        # What a refutation of the part speaks of may be less than the part.
        while found is not None:
            inner = Sources(build_problem(part.history))
            kept = sorted(inner.relevant(found, every_write=tests))
            if len(kept) == len(part.ops):
                break
            smaller = part.narrowed(kept, part.without_operations())
            if not refuted(smaller):
                break
            part = smaller
        # What cannot do without a read cannot do without its candidates.
        needed: set[int] = set()
        tried: set[int] = set()
        while found is not None and not self._enough():
            inner = Sources(build_problem(part.history))
            many = {op: inner.candidates(op) for op in reads_of(found)}
            many = {o: c for o, c in many.items() if len(c) > _MANY and part.ops[o] not in tried}
            if not many:
                break
            op, candidates = many.popitem()
            tried.add(part.ops[op])
            kept = [i for i in range(len(part.ops)) if i != op]
            if refuted(smaller := part.narrowed(kept, part.without_operations())):
                part = smaller
            else:
                needed.update(part.txns[txn] for txn in candidates)
        # All of it is needed for something by now: large steps would be in vain.
        part = shrink(
            part, refuted, by_transaction=True, enough=self._enough, share=1 / 16, keep=needed
        )
        return None if found is None else part.to_whole(found)

    def _refute(self, part: Part, automata: Sequence[Automaton]) -> Sequence[Step] | None:
        """A refutation of a part by cycles.

        One by an intrinsic anomaly is not wanted: leaving a writer out makes its readers thin-air
        reads, which is true of the part, not of the whole. Nor is one that makes use of a source
        having been left out.
        """
        problem = build_problem(part.history)
        if problem.anomalies(limit=1):
            return None
        steps = self._solve(problem, automata)
        if steps is None or not self._sources.keeps_candidates(part, reads_of(steps), problem):
            return None
        return steps

    def _solve(self, problem: Problem, automata: Sequence[Automaton]) -> Sequence[Step] | None:
        """A refutation; ``None`` if there is none, or if the work is done."""
        self._left -= _ATTEMPT
        if self._enough():
            return None
        allowed = self._left
        self._left = 0  # unless it ends before
        try:  # the search that leaves proofs by cycles
            found, work = self._engine(problem, automata, allowed, "cdcl")
        except TimeoutError:
            return None
        self._left = allowed - work
        return found


def _joined(edges: Sequence[Edge]) -> list[Edge]:
    """A cycle with one edge in place of each run of ``so``, and of ``rt``."""
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
    """The relations of the cycles."""
    cycles = (step.edges for step in steps if isinstance(step, CycleStep))
    return {relation_of(edge.relation) for edges in cycles for edge in edges}


def _with_init_as(relation: str, step: Step) -> Step:
    """A step about a relaxed spec as one about the spec itself, where ``init`` was the relation."""
    if not isinstance(step, CycleStep):
        return step
    edges = tuple(
        Edge(relation if e.relation == "init" else e.relation, *e.plain()[1:]) for e in step.edges
    )
    return CycleStep(step.check, edges)


def _is_of_accesses(automaton: Automaton) -> bool:
    """Return whether it asks what transactions access besides what its steps say."""
    return not automaton.relations.isdisjoint((*TESTS, *FILTERED))
