"""From a history and a plan to a verdict: pre-pass, engine, independent check, explanation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from isolang.certify.certificate import Certificate, Refutation, Witness
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.steps import CycleStep, Step
from isolang.errors import HistoryError, UnsupportedError
from isolang.explain import names
from isolang.explain.explain import explain
from isolang.explain.smaller import Finder, cost
from isolang.limits import Spending
from isolang.problem import AnomalyKind, Problem, build_problem, find_order_contradiction
from isolang.solvers import native
from isolang.verdict import AnomalyCount, Invalid, Unknown, Valid, Verdict

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.automaton import Automaton
    from isolang.language.classify import Plan

Progress = Callable[[str], object]

_EXAMPLES = 3
_SWITCHED_OFF = "certification was switched off"
# Looking for a simpler violation may take twice the engine's time, within these bounds.
_REFINE_SECONDS = (0.75, 4.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to check.

    Attributes:
        certify: have an independent checker accept the verdict.
        seed: breaks ties; equal seeds give equal runs.
    """

    certify: bool = True
    seed: int = 0


def decide(
    history: History,
    plan: Plan,
    spending: Spending,
    options: Options,
    progress: Progress = lambda phase: None,
) -> Verdict:
    """Decide whether a history satisfies a spec.

    Raises:
        HistoryError: the spec needs real time and the history has none, or the columns do not fit
            together.
    """
    if plan.uses_real_time and not history.columns.has_time:
        msg = (
            f"{history.name}: spec {plan.spec.name} uses real time (rt), but the history has none "
            f"({history.real_time or 'no times'}); check it against a level without rt"
        )
        raise HistoryError(msg)
    run = _Run(history, plan, spending, options, progress)
    try:
        return run.verdict()
    except TimeoutError:
        return run.unknown("timeout", f"the time ran out in phase {spending.phase}{run.hardness()}")
    except MemoryError:
        return run.unknown("memory", f"the memory ran out in phase {spending.phase}")
    except UnsupportedError as error:
        return run.unknown("unsupported", str(error))


class _Run:
    def __init__(
        self,
        history: History,
        plan: Plan,
        spending: Spending,
        options: Options,
        progress: Progress,
    ) -> None:
        self._history = history
        self._plan = plan
        self._spending = spending
        self._options = options
        self._progress = progress
        self._problem: Problem | None = None
        self._common: dict[str, Any] = {"history": history, "spec": plan.spec}

    def unknown(self, cause: Any, reason: str, **more: Any) -> Unknown:
        """The verdict that nothing was found out."""
        self._common.update(certified=False, certified_reason="")
        seconds = self._spending.seconds()
        return Unknown(
            reason=f"{cause}: {reason}",
            cause=cause,
            phase=self._spending.phase,
            seconds=seconds,
            **self._common,
            **more,
        )

    def hardness(self) -> str:
        """Why the engine may have needed so long, as the end of a sentence."""
        if self._problem is None or self._spending.phase != "solve":
            return ""
        load = native.load(self._problem.native)
        self._common["statistics"] = {"load": load}
        if not native.HARD[0] <= load <= native.HARD[1]:
            return ""
        return (
            f"; the history lies in the hard region (rho = {load:.2f}: what its reads demand over "
            "what its concurrency leaves open; docs/hard-region.md)"
        )

    def verdict(self) -> Verdict:
        with self._spending.during("prepare"):
            self._progress("prepare")
            self._problem = problem = build_problem(self._history)
            self._common["anomalies"] = _anomalies(problem)
            self._common["ignored"] = problem.ignored()
            intrinsic = self._intrinsic(problem)
        if intrinsic is not None:
            return self._invalid(problem, intrinsic)
        with self._spending.during("solve"):
            self._progress("solve")
            self._common.update(solver=native.NAME, encoding=native.ENCODING)
            answer = native.solve(
                self._history.columns,
                problem.native,
                self._plan.automata,
                seconds=self._spending.remaining(),
                seed=self._options.seed,
                progress=self._progress,
            )
        self._common["statistics"] = dict(answer.statistics)
        if isinstance(answer, native.Model):
            return self._valid(answer)
        return self._invalid(problem, Refutation.of(answer.steps))

    def _intrinsic(self, problem: Problem) -> Refutation | None:
        """What the pre-pass alone refutes."""
        anomaly = None
        if self._plan.uses_reads_from:
            anomaly = next(iter(problem.anomalies(limit=1)), None)
        elif self._plan.uses_version_order:
            anomaly = find_order_contradiction(problem)
        if anomaly is None:
            return None
        a = anomaly
        return Refutation.of([("anomaly", int(a.kind), a.txn, a.op, a.other_txn, a.other_op)])

    # --- valid ---

    def _valid(self, model: native.Model) -> Verdict:
        witness = Witness(model.source, model.order_start, model.order_txn)
        certified, reason = self._certified(witness)
        if certified is None:
            return self._rejected(
                Witness.of(model.source, model.order_start, model.order_txn),
                reason,
            )
        self._common.update(certified=certified, certified_reason=reason)
        return Valid(witness=model, seconds=self._spending.seconds(), **self._common)

    # --- invalid ---

    def _invalid(self, problem: Problem, first: Refutation) -> Verdict:
        """Explain the simplest refutation found that the checker accepts."""
        refutations = [first]
        finder = None
        if any(isinstance(step, CycleStep) for step in first.steps):
            with self._spending.during("solve"):
                self._progress("explain")
                finder = self._finder(problem)
                simpler = finder.simplest(first.steps)
                found = [finder.shortened(simpler), simpler, first.steps]
                refutations = [Refutation(tuple(s)) for s in sorted(found, key=cost)]
        rejected = ""
        for refutation in refutations:
            # What was made of the engine's refutation is believed only if the checker accepts it,
            # whether or not the user wants a certificate.
            derived = refutation.steps != first.steps
            certified, reason = self._certified(refutation, needed=derived)
            if certified is None or (derived and not certified):
                rejected = reason
                continue
            if not self._options.certify:
                certified, reason = False, _SWITCHED_OFF
            self._common.update(certified=certified, certified_reason=reason)
            # A certified violation is not given up for lack of time to explain it.
            with self._spending.during("solve", to_the_end=True):
                relaxed = {} if finder is None else finder.relaxed(refutation.steps)
                violation = replace(explain(problem, refutation.steps), relaxed=relaxed)
            return Invalid(
                violation=violation,
                refutation=refutation,
                seconds=self._spending.seconds(),
                **self._common,
            )
        return self._rejected(first, rejected)

    def _finder(self, problem: Problem) -> Finder:
        spent = self._spending.seconds().solve
        least, most = _REFINE_SECONDS
        seconds = min(max(least, 2 * spent), most)
        left = self._spending.remaining()
        if left is not None:
            seconds = min(seconds, left / 4)
        return Finder(problem, self._plan, self._refute, seconds=seconds)

    def _refute(
        self, problem: Problem, automata: Sequence[Automaton], seconds: float
    ) -> Sequence[Step] | None:
        """The engine, as :class:`Finder` wants it."""
        answer = native.solve(
            problem.history.columns,
            problem.native,
            automata,
            seconds=seconds,
            seed=self._options.seed,
            strategy="cdcl",  # the one that leaves proofs
        )
        if isinstance(answer, native.Model):
            return None
        return Refutation.of(answer.steps).steps

    # --- certificates ---

    def _certified(
        self, proof: Witness | Refutation, *, needed: bool = False
    ) -> tuple[bool | None, str]:
        """Whether the checker accepts a proof (``None``: it refuses it), and what it says."""
        if not self._options.certify and not needed:
            return False, _SWITCHED_OFF
        with self._spending.during("certify"):
            self._progress("certify")
            from isolang.certify.native import check_natively

            left = self._spending.remaining()
            try:
                check_natively(self._history, self._plan.spec, proof, seconds=left or 0.0)
            except CertificateRejected as error:
                return None, str(error)
            except NotCertifiedError as error:
                self._spending.remaining()  # it may have been the time
                return False, str(error).removeprefix("not certified: ")
        what = "witness" if isinstance(proof, Witness) else "refutation"
        return True, f"an independent checker accepted the {what}"

    def _rejected(self, proof: Witness | Refutation, reason: str) -> Unknown:
        evidence = Certificate.of(self._history, self._plan.spec, proof)
        return self.unknown("certificate rejected", reason, evidence=evidence)


def _anomalies(problem: Problem) -> tuple[AnomalyCount, ...]:
    return tuple(
        AnomalyCount(
            name=names.INTRINSIC[AnomalyKind(kind)],
            count=count,
            examples=tuple(a.evidence(problem.history) for a in problem.anomalies(kind, _EXAMPLES)),
        )
        for kind, count in problem.anomaly_counts().items()
    )
