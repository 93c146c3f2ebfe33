"""One history with one encoding and one solver: solved, proved, certified."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from msgspec import Struct

from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.proofs import Exhaustion, Proof, Refutation, Relations, Witness
from isolang.errors import UnsupportedError
from isolang.explain import names
from isolang.language.classify.event_graph import Plan
from isolang.limits import Deadline, Work, out_of_memory
from isolang.options import Options
from isolang.problem import AnomalyKind, Problem, build_problem, find_order_contradiction
from isolang.solvers import engine
from isolang.solvers.answer import Answer, Undecided, Unproved, work_of
from isolang.solvers.registry import Pair, solver_of, theory_of
from isolang.verdict import AnomalyCount

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang.encodings.formula import Formula
    from isolang.encodings.relational.formula import RelationalInput
    from isolang.history.history import History
    from isolang.language.classify.route import Route
    from isolang.language.meaning.core import Spec
    from isolang.pipeline.unsat_core import UnsatCore
    from isolang.problem.polygraph import Polygraph

Progress: TypeAlias = Callable[[str], object]
T = TypeVar("T")

_EXAMPLES = 3
_WHAT = {
    Witness: "witness",
    Relations: "chosen relations",
    Refutation: "refutation",
    Exhaustion: "exhaustion of all choices",
}
# Seconds for each pair of transactions to make and check a visibility on a slow machine.
_SECONDS_PER_PAIR = 1e-5
# What encoding takes, as work: for each clause, and for each step of a relational encoding.
_PER_CLAUSE, _PER_STEP = 5, 5


class Certification(Struct, frozen=True, kw_only=True):
    """What the independent checker says of a proof.

    Attributes:
        outcome: ``not certified``: nobody checked it, or it is beyond the checker.
        reason: who accepted it, or why not.
    """

    outcome: Literal["accepted", "rejected", "not certified"]
    reason: str

    @property
    def accepted(self) -> bool:
        """Whether the proof holds."""
        return self.outcome == "accepted"

    @property
    def rejected(self) -> bool:
        """Whether the proof does not hold."""
        return self.outcome == "rejected"


UNCHECKED = Certification(outcome="not certified", reason="certification was switched off")


class Run:
    """One history, a route, and who decides it.

    Attributes:
        history: the history.
        route: how its specification is decided.
        pair: the encoding, the solver, and how much is pruned before.
        deadline: the clock.
        options: how to check.
        choice: why this pair, where the user left it open.
        progress: called with the name of each phase as it begins.
        simplest: whether to look for the simplest violation.
        work: what deciding and explaining may still do; ``None`` for no limit.
        asked: whether the pair was used; the pre-pass alone may decide.
        statistics: what the solver did, by name, once it has answered.
        notes: how the verdict was found where that is worth knowing, one sentence each.
    """

    def __init__(
        self,
        history: History,
        route: Route,
        pair: Pair,
        deadline: Deadline,
        options: Options,
        *,
        progress: Progress = lambda phase: None,
        choice: str = "",
        problem: Problem | None = None,
        simplest: bool = True,
        work: Work | None = None,
    ) -> None:
        """Begin.

        Args:
            history: the history.
            route: of the specification; the pair applies to it.
            pair: who decides.
            deadline: the clock.
            options: how to check.
            progress: called with the name of each phase as it begins.
            choice: why this pair, where the user left it open.
            problem: of the history, if it was built before.
            simplest: whether to look for the simplest violation.
            work: what deciding and explaining may do; ``None`` for no limit.
        """
        self.history = history
        self.route = route
        self.pair = pair
        self.deadline = deadline
        self.options = options
        self.progress = progress
        self.choice = choice
        self.simplest = simplest
        self.work = work
        self.asked = False
        self.statistics: Mapping[str, float] = {}
        self.notes: list[str] = []
        self._problem = problem
        self._prepared = False
        self._accepted: tuple[Proof, Certification] | None = None

    @property
    def written_spec(self) -> Spec:
        """The specification as the user wrote it, where a theorem replaced it by another."""
        return written_spec(self.route)

    def restart(self, history: History) -> None:
        """Go on with the same history, in which more is written out."""
        self.history = history
        self._problem, self._prepared = None, False

    # --- what is known before a solver is asked ---

    @property
    def problem(self) -> Problem:
        """What is known of the history, and what must be chosen."""
        if self._problem is None or not self._prepared:
            problem = self._problem or build_problem(
                self.history,
                each_read=self.pair.is_engine
                and isinstance(self.route, Plan)
                and engine.looks_at_each_read(self.route.automata),
            )
            if self.pair.of_specification:
                from isolang.encodings.relational.formula import question_of

                problem = question_of(problem, self.written_spec).problem
            self._problem, self._prepared = problem, True
        return self._problem

    def anomalies(self) -> tuple[AnomalyCount, ...]:
        """The intrinsic anomalies that the pre-pass found; none if it was not made."""
        if not self._prepared:
            return ()
        problem = self.problem
        return tuple(
            AnomalyCount(
                name=names.INTRINSIC[AnomalyKind(kind)],
                count=count,
                examples=tuple(
                    a.evidence(problem.history) for a in problem.anomalies(kind, _EXAMPLES)
                ),
            )
            for kind, count in problem.anomaly_counts().items()
        )

    def ignored(self) -> tuple[str, ...]:
        """Reads that the pre-pass left out; empty if it was not made."""
        return self.problem.ignored() if self._prepared else ()

    def contradiction(self) -> Refutation | None:
        """The refutation that the pre-pass alone gives, so that there is nothing to solve."""
        return contradiction(self.problem, self.route)

    def hardness(self) -> str:
        """Why solving may take so long, as the end of a sentence; empty if nothing is known."""
        if not (self._prepared and self.deadline.phase == "solve" and isinstance(self.route, Plan)):
            return ""
        load = engine.load(self.problem.native)
        self.statistics = {"load": load}
        if not engine.HARD[0] <= load <= engine.HARD[1]:
            return ""
        return (
            f"; the history lies in the hard region (rho = {load:.2f}: what its reads demand over "
            "what its concurrency leaves open; docs/hard-region.md)"
        )

    # --- solve ---

    def solve(self) -> Answer:
        """Solve with the chosen pair.

        Raises:
            TimeoutError: the deadline has passed.
            MemoryError: the process may not have more memory.
            SolverError: the pair does not fit together, or is not installed.
            UnsupportedError: the encoding would be too large.
        """
        self.asked = True
        answer = self.ask_engine(self.problem) if self.pair.is_engine else self._ask()
        self.statistics = dict(answer.statistics)
        return answer

    def ask_engine(self, problem: Problem) -> Answer:
        """Solve with the native engine, whichever pair was chosen.

        Raises:
            TimeoutError: the deadline has passed.
            MemoryError: the process may not have more memory.
        """
        assert isinstance(self.route, Plan)
        allowed = 0 if self.work is None else self.work.take()
        answer = engine.solve(
            problem.history.columns,
            problem.native,
            self.route.automata,
            seconds=self.deadline.remaining(),
            seed=self.options.seed,
            progress=self.progress,
            search_bytes=self.options.search_bytes(),
            # Equal runs do equal work in one thread only.
            threads=1 if allowed else self.options.thread_count(),
            work=allowed,
        )
        if self.work is not None:
            self.work.give_back(allowed - answer.work)
        return answer

    def _spend(self, amount: int) -> None:
        """Count work that is about to be done.

        Raises:
            TimeoutError: it is more than is left.
        """
        if self.work is not None:
            self.work.spend(amount)
            if not self.work.left:
                raise TimeoutError

    def out_of_work(self) -> bool:
        """Whether it was the work that ended it, and not the time."""
        if self.work is None or self.work.left:
            return False
        try:
            self.deadline.remaining()
        except TimeoutError:
            return False
        return True

    def _ask(self) -> Answer:
        """Encode, solve and decode."""
        from isolang.encodings.decode import NoOrderError
        from isolang.encodings.registry import ENCODINGS

        pair, problem = self.pair, self.problem
        solver, part = solver_of(pair.solver)
        theory = theory_of(pair.encoding, solver)
        assert theory is not None, f"{pair}: chosen, and the solver does not take the encoding"
        watch = _Stopwatch()
        left = self.deadline.remaining()
        until = None if left is None else time.perf_counter() + left
        more = {}
        subject: Polygraph | RelationalInput
        if pair.of_specification:
            subject = self._question(problem)
            assert subject.cost is not None
            more["open_pairs"] = float(subject.cost.pairs)
        else:
            from isolang.problem.polygraph import build_polygraph, clauses_of, pairs_of

            assert isinstance(self.route, Plan)
            self.progress("prune")
            if pair.prune != "fixpoint":
                self._spend(pairs_of(problem))
            subject = build_polygraph(problem, self.route.automata, pair.prune, until=until)  # type: ignore[arg-type]
            watch.lap("seconds_prune")
            self._spend(_PER_CLAUSE * clauses_of(subject))
        self.progress("encode")
        formula = ENCODINGS[pair.encoding].encode(subject, theory, until=until)
        watch.lap("seconds_encode")
        self.progress("solve")
        allowed = 0 if self.work is None else self.work.take()
        solution = solver.solve(
            formula,
            until=until,
            seed=self.options.seed,
            part=part,
            progress=self.progress,
            work=allowed,
        )
        if self.work is not None:
            self.work.give_back(allowed - work_of(solution, formula))
        watch.lap("seconds_solve")
        result: Proof | Unproved | Undecided
        if solution.values is not None:
            try:
                result = model_of(problem, formula, solution.values)
            except NoOrderError as error:
                result = Undecided(cause="certificate rejected", reason=f"{pair}: {error}")
        else:
            core = None
            if solution.core is not None and len(formula.reads):
                reads = formula.reads[list(solution.core), 0]
                core = tuple(problem.native.read_op[reads].tolist())
            result = Unproved(core=core)
        statistics = {
            **solution.statistics,
            **more,
            "nodes": float(formula.nodes),
            "variables": float(formula.variables),
            "clauses": float(formula.clause_count),
            "edges": float(len(formula.edges)),
            **watch.laps,
        }
        return Answer(result=result, statistics=statistics, formula=formula)

    def _question(self, problem: Problem) -> RelationalInput:
        """The input of an encoding of specifications, if that is not too large."""
        from isolang.encodings.relational.cost import affordable
        from isolang.encodings.relational.formula import RelationalInput

        self.progress("estimate")
        spec = self.written_spec
        cost = affordable(problem, spec, self.deadline.remaining)
        self.notes.append(str(cost))
        self.progress(str(cost))
        self._spend(_PER_STEP * cost.steps)
        return RelationalInput(problem=problem, spec=spec, cost=cost)

    # --- prove ---

    def prove(self, answer: Answer) -> Witness | Relations | Refutation | UnsatCore:
        """Find a proof of what a pair said without one; or a model, which contradicts the pair.

        Raises:
            TimeoutError: there was not enough time.
        """
        from isolang.pipeline.prove import prove

        self.progress("prove")
        return prove(self, answer)

    def as_written(self, witness: Witness) -> Witness | Relations:
        """The relations that the user asked for, where a theorem replaced them by version orders.

        The witness itself where it has them, or where making and checking them would take too long.
        """
        theorem = self.route.theorem if isinstance(self.route, Plan) else None
        if theorem is None or not self.options.certify:
            return witness
        from isolang.pipeline.reconstruct import LARGEST, reconstruct

        n = self.history.columns.transactions()
        try:
            left = self.deadline.remaining()
        except TimeoutError:
            return witness
        soon = left is None or n * n * _SECONDS_PER_PAIR < left / 2
        if n > LARGEST or not soon or self.history.columns.implicit:
            return witness
        with self.deadline.during("certify", to_the_end=True):
            self.progress("certify")
            try:
                return reconstruct(self.history, theorem, witness)
            except MemoryError:
                return witness

    # --- certify ---

    def certify(self, proof: Proof, *, needed: bool = False) -> Certification:
        """Have an independent checker look at a proof.

        That time or memory runs out here costs the certificate, and not the verdict.

        Args:
            proof: what to check.
            needed: check it even if the user wants no certificate.
        """
        if not self.options.certify and not needed:
            return UNCHECKED
        if self._accepted is not None and self._accepted[0] is proof:
            return self._accepted[1]
        with self.deadline.during("certify", to_the_end=True):
            self.progress("certify")
            try:
                self._check(proof, self.deadline.remaining())
            except CertificateRejected as error:
                return Certification(outcome="rejected", reason=str(error))
            except NotCertifiedError as error:
                reason = str(error).removeprefix("not certified: ")
                return Certification(outcome="not certified", reason=reason)
            except TimeoutError:
                reason = "the time ran out before the proof was checked"
                return Certification(outcome="not certified", reason=reason)
            except MemoryError as error:
                reason = out_of_memory(error, "certify")
                return Certification(outcome="not certified", reason=reason)
        reason = f"an independent checker accepted the {_WHAT[type(proof)]}"
        self._accepted = proof, Certification(outcome="accepted", reason=reason)
        return self._accepted[1]

    def _check(self, proof: Proof, seconds: float | None) -> None:
        """Have a proof checked: natively where there is a native checker for it."""
        if isinstance(self.route, Plan) and isinstance(proof, Witness | Refutation):
            from isolang.certify.native import check_natively

            check_natively(self.history, self.route.spec, proof, seconds=seconds or 0.0)
        else:
            from isolang.certify.proofs import check_proof

            check_proof(self.history, self.written_spec, proof, seconds)


def written_spec(route: Route) -> Spec:
    """The specification as the user wrote it, where a theorem replaced it by another."""
    theorem = route.theorem if isinstance(route, Plan) else None
    return route.spec if theorem is None else theorem.original


def contradiction(problem: Problem, route: Route) -> Refutation | None:
    """The refutation that the pre-pass alone gives, so that there is nothing to encode."""
    # What the history states of versions is wrong whatever the specification judges.
    anomaly = next(iter(problem.anomalies(AnomalyKind.CONTRADICTING_VERSIONS, 1)), None)
    if anomaly is not None:
        pass
    elif route.uses_reads_from:
        anomaly = next(iter(problem.anomalies(limit=1)), None)
    elif problem.native.refusal:
        raise UnsupportedError(f"{problem.history.name}: {problem.native.refusal}")
    elif route.uses_version_order:
        anomaly = find_order_contradiction(problem)
    if anomaly is None:
        return None
    from isolang.certify.steps import AnomalyStep

    a = anomaly
    return Refutation((AnomalyStep(int(a.kind), a.txn, a.op, a.other_txn, a.other_op),))


def model_of(problem: Problem, formula: Formula, values: NDArray[np.int8]) -> Witness | Relations:
    """The model that an assignment of a formula stands for.

    Args:
        problem: what the formula was made of.
        formula: what was solved.
        values: 0 or 1 by variable; entry 0 is unused.

    Raises:
        NoOrderError: it is no model: the edges that are there form a cycle.
    """
    from isolang import _native
    from isolang.encodings.decode import decode
    from isolang.encodings.formula import PolygraphFormula
    from isolang.encodings.relational.formula import RelationalFormula, decode_relations

    if isinstance(formula, RelationalFormula):
        return decode_relations(formula, values)
    assert isinstance(formula, PolygraphFormula)
    source, start, txn = decode(formula, values)
    by_op = _native.operation_sources(problem.history.columns, problem.native, source)
    return Witness.of(by_op, start, txn)


def limited(run: Run, body: Callable[[], T]) -> T | Undecided:
    """The result of a computation; or the limit that ended it, or why it is unsupported."""
    try:
        return body()
    except TimeoutError:
        what = "it took more work than it may" if run.out_of_work() else "the time ran out"
        reason = f"{what} in phase {run.deadline.phase}{run.hardness()}"
        return Undecided(cause="timeout", reason=reason)
    except MemoryError as error:
        reason = out_of_memory(error, run.deadline.phase)
        return Undecided(cause="memory", reason=f"{reason}{run.hardness()}")
    except UnsupportedError as error:
        return Undecided(cause="unsupported", reason=str(error))


class _Stopwatch:
    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = now - self._last
        self._last = now
