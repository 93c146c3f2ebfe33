"""Solves one history with one encoding and one solver, and certifies the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from msgspec import Struct

from isolang.arrays import np
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.proofs import Exhaustion, Proof, Refutation, Relations, Witness
from isolang.errors import UnsupportedError
from isolang.explain import names
from isolang.language.classify.event_graph import Plan
from isolang.language.meaning.mentions import mentioned
from isolang.language.vocabulary import MOMENTS, OF_STATEMENTS
from isolang.limits import Deadline, Work, out_of_memory
from isolang.options import Options
from isolang.problem import AnomalyKind, Problem, build_problem, find_order_contradiction
from isolang.solvers import engine
from isolang.solvers.answer import Answer, Undecided
from isolang.solvers.registry import Pair
from isolang.verdict import AnomalyCount

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolang.history.history import History
    from isolang.language.classify.route import Route
    from isolang.language.meaning.core import Spec

Progress: TypeAlias = Callable[[str], object]
T = TypeVar("T")

COMPARE_OPERATIONS = frozenset((*MOMENTS, *OF_STATEMENTS))
"""The relations that compare moments of operations or of COMMIT."""
_EXAMPLES = 3
_PROOF_NAMES = {
    Witness: "witness",
    Relations: "chosen relations",
    Refutation: "refutation",
    Exhaustion: "exhaustion of all choices",
}
# The seconds per pair of transactions that a slow machine takes to make and check a visibility
# relation.
_SECONDS_PER_PAIR = 1e-5


class Certification(Struct, frozen=True, kw_only=True):
    """The result of certifying a proof.

    Attributes:
        outcome: the result; ``not certified`` if no checker ran, or if the checker could not
            decide.
        reason: which checker accepted the proof, or why none did, in words.
    """

    outcome: Literal["accepted", "rejected", "not certified"]
    reason: str

    @property
    def accepted(self) -> bool:
        """Return whether the checker accepted the proof."""
        return self.outcome == "accepted"

    @property
    def rejected(self) -> bool:
        """Return whether the checker rejected the proof."""
        return self.outcome == "rejected"


UNCHECKED = Certification(outcome="not certified", reason="certification was turned off")


class PairRun:
    """The state of one check, which decides a history with one encoding-solver pair.

    Attributes:
        pair: the encoding, the solver, and the stage of pruning before the search.
        choice: why this pair was chosen; empty if the user chose the pair.
        progress: a function called with the name of each phase when it begins.
        presolve: whether the engine looks first for a model of stronger checks.
        work: the remaining work for deciding and explaining; ``None`` for no limit.
        likely_order: transactions in the order in which they probably happened; empty if no such
            order is known.
        pair_used: whether the pair was used; false if the pre-pass alone decided.
        statistics: the solver's statistics by name; empty until the solver has answered.
        notes: remarks on how the verdict was found, one sentence each.
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
        explained: bool = True,
        presolve: bool = True,
        work: Work | None = None,
    ) -> None:
        """Prepare a check."""
        self.history = history
        self.route = route
        self.pair = pair
        self.deadline = deadline
        self.options = options
        self.progress = progress
        self.choice = choice
        self.simplest = simplest
        self.explained = explained
        self.presolve = presolve
        self.work = work
        self.rows: NDArray[np.int32] | None = None
        self.likely_order: Sequence[int] = ()
        self.pair_used = False
        self.statistics: Mapping[str, float] = {}
        self.notes: list[str] = []
        self._problem = problem
        self._prepared = False
        self._accepted: tuple[Proof, Certification] | None = None

    @property
    def written_spec(self) -> Spec:
        """The specification as the user wrote it, before any theorem replaced it."""
        return written_spec(self.route)

    def restart(self, history: History, rows: NDArray[np.int32] | None) -> None:
        """Continue with a history that has more set-reads as operations."""
        self.history, self.rows = history, rows
        self._problem, self._prepared = None, False

    # --- before a solver is called ---

    @property
    def problem(self) -> Problem:
        """The problem of the history, built when it is first needed."""
        if self._problem is None or not self._prepared:
            problem = self._problem or build_problem(
                self.history,
                each_read=self.looks_at_each_read,
                rows=self.rows,
                moments=self.compares_moments,
            )
            if self.pair.of_specification:
                from isolang.encodings.relational.formula import relational_input

                problem = relational_input(problem, self.written_spec).problem
            self._problem, self._prepared = problem, True
        return self._problem

    @property
    def looks_at_each_read(self) -> bool:
        """Return whether the engine distinguishes individual reads within a transaction."""
        return (
            self.pair.is_engine
            and isinstance(self.route, Plan)
            and engine.distinguishes_repeated_reads(self.route.automata)
        )

    @property
    def compares_moments(self) -> bool:
        """Return whether the engine may compare moments of operations or of COMMIT."""
        if not (self.pair.is_engine and isinstance(self.route, Plan)) or self.looks_at_each_read:
            return True
        compared = mentioned(self.written_spec) | mentioned(self.route.spec)
        return bool(compared & COMPARE_OPERATIONS)

    def anomalies(self) -> tuple[AnomalyCount, ...]:
        """Return the intrinsic anomalies found by the pre-pass; empty if it has not run."""
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
        """Return phrases about reads ignored by the pre-pass; empty if it has not run."""
        return self.problem.ignored() if self._prepared else ()

    def contradiction(self) -> Refutation | None:
        """Return the refutation found by the pre-pass without a search; ``None`` if none."""
        return contradiction(self.problem, self.route)

    def hardness(self) -> str:
        """Return why solving takes long, as the end of a sentence; empty if unknown."""
        if not (self._prepared and self.deadline.phase == "solve" and isinstance(self.route, Plan)):
            return ""
        load = engine.constraint_load(self.problem.native)
        self.statistics = {"load": load}
        if not engine.HARD_LOADS[0] <= load <= engine.HARD_LOADS[1]:
            return ""
        return (
            f"; the history is in the hard region (rho = {load:.2f}, which compares what its "
            "reads demand with what its concurrency leaves open; docs/hard-region.md)"
        )

    # --- solve ---

    def solve(self) -> Answer:
        """Solve the problem with the run's encoding and solver.

        Raises:
            TimeoutError: if the deadline has passed.
            MemoryError: if the process would need more memory than allowed.
            SolverError: if the solver does not support the encoding, or is not installed.
            UnsupportedError: if the encoding would be too large.
        """
        self.pair_used = True
        if self.pair.is_engine:
            answer = self.solve_natively(self.problem)
        else:
            from isolang.pipeline.encoded import solve_encoded

            answer = solve_encoded(self)
        self.statistics = dict(answer.statistics)
        return answer

    def solve_natively(self, problem: Problem) -> Answer:
        """Solve a problem with the native engine, even if another pair was chosen.

        Raises:
            TimeoutError: if the deadline has passed.
            MemoryError: if the process would need more memory than allowed.
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
            presolve=self.presolve,
            search_bytes=self.options.search_bytes(),
            # Equal runs do equal work only on a single thread.
            threads=1 if allowed else self.options.thread_count(),
            work=allowed,
            likely_order=self.likely_order,
        )
        if self.work is not None:
            self.work.give_back(allowed - answer.work)
        return answer

    def spend(self, amount: int) -> None:
        """Subtract the next step's work from the remaining work.

        Raises:
            TimeoutError: if no work remains for another step.
        """
        if self.work is not None:
            self.work.spend(amount)
            if not self.work.left:
                raise TimeoutError

    def out_of_work(self) -> bool:
        """Return whether the work limit was reached before the deadline."""
        if self.work is None or self.work.left:
            return False
        try:
            self.deadline.remaining()
        except TimeoutError:
            return False
        return True

    def as_written(self, witness: Witness) -> Witness | Relations:
        """Return the proof of validity for the specification as the user wrote it.

        If a theorem replaced the specification, this proof consists of the relations required by
        the original one, built from the witness. If no theorem replaced it, or if building and
        checking the relations would take too long, the result is the witness itself.
        """
        theorem = self.route.theorem if isinstance(self.route, Plan) else None
        if theorem is None or not self.options.certify:
            return witness
        from isolang.pipeline.reconstruct import LARGEST, reconstruct

        n = self.history.columns.transactions()
        try:
            remaining = self.deadline.remaining()
        except TimeoutError:
            return witness
        soon = remaining is None or n * n * _SECONDS_PER_PAIR < remaining / 2
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
        """Verify a proof with an independent checker.

        If the checker runs out of time or memory, the verdict stays the same but is not certified.
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
                reason = "the time limit was reached before the proof was checked"
                return Certification(outcome="not certified", reason=reason)
            except MemoryError as error:
                reason = out_of_memory(error, "certify")
                return Certification(outcome="not certified", reason=reason)
        reason = f"an independent checker accepted the {_PROOF_NAMES[type(proof)]}"
        self._accepted = proof, Certification(outcome="accepted", reason=reason)
        return self._accepted[1]

    def _check(self, proof: Proof, seconds: float | None) -> None:
        """Check a proof with the native checker, or by definition if that does not support it."""
        if isinstance(self.route, Plan) and isinstance(proof, Witness | Refutation):
            from isolang.certify.native import check_natively

            check_natively(self.history, self.route.spec, proof, seconds=seconds or 0.0)
        else:
            from isolang.certify.proofs import check_proof

            check_proof(self.history, self.written_spec, proof, seconds)


def written_spec(route: Route) -> Spec:
    """Return the specification of a route as the user wrote it, before any theorem replaced it."""
    theorem = route.theorem if isinstance(route, Plan) else None
    return route.spec if theorem is None else theorem.original


def contradiction(problem: Problem, route: Route) -> Refutation | None:
    """Return the refutation found by the pre-pass without a search; ``None`` if there is none.

    Raises:
        UnsupportedError: if the problem cannot be judged.
    """
    # Stated versions that contradict each other violate every specification.
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


def run_within_limits(run: PairRun, body: Callable[[], T]) -> T | Undecided:
    """Return the result of a computation, or why it ended without one.

    It is ``Undecided`` if a limit stopped the computation, or if the history or the specification
    is not supported.
    """
    try:
        return body()
    except TimeoutError:
        what = "the work limit was reached" if run.out_of_work() else "the time limit was reached"
        reason = f"{what} in phase {run.deadline.phase}{run.hardness()}"
        return Undecided(cause="timeout", reason=reason)
    except MemoryError as error:
        reason = out_of_memory(error, run.deadline.phase)
        return Undecided(cause="memory", reason=f"{reason}{run.hardness()}")
    except UnsupportedError as error:
        return Undecided(cause="unsupported", reason=str(error))
