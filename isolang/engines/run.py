"""What every run has: the pre-pass, the independent check of a proof, and the verdict *unknown*."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from isolang.certify.certificate import Certificate
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.proofs import Exhaustion, Proof, Refutation, Relations, Witness
from isolang.explain import names
from isolang.language.classify.event_graph import Plan
from isolang.limits import Spending
from isolang.options import Options
from isolang.problem import AnomalyKind, Problem, build_problem, find_order_contradiction
from isolang.verdict import AnomalyCount, Cause, Unknown, Verdict

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.classify.route import Route
    from isolang.language.meaning.core import Spec

Progress: TypeAlias = Callable[[str], object]

SWITCHED_OFF = "certification was switched off"
_EXAMPLES = 3
_WHAT = {
    Witness: "witness",
    Relations: "chosen relations",
    Refutation: "refutation",
    Exhaustion: "exhaustion of all choices",
}


class Run(ABC):
    """One history against one route.

    Attributes:
        history: the history.
        route: the route.
        spending: the clock.
        options: how to check.
        progress: called with the name of each phase as it begins.
        common: what the verdict will have, whichever it is, as far as it is known.
        problem: of the history, if it was built before.
    """

    def __init__(
        self,
        history: History,
        route: Route,
        spending: Spending,
        options: Options,
        progress: Progress,
    ) -> None:
        """Begin a run."""
        self.history = history
        self.route = route
        self.spending = spending
        self.options = options
        self.progress = progress
        self.common: dict[str, Any] = {"history": history, "spec": route.spec}
        self.problem: Problem | None = None

    @abstractmethod
    def verdict(self) -> Verdict:
        """Decide.

        Raises:
            TimeoutError: the deadline has passed.
            MemoryError: the process may not have more memory.
            UnsupportedError: this engine cannot decide it.
        """

    def prepared(self) -> Problem:
        """Build the problem, and note what the pre-pass found."""
        problem = self.problem or build_problem(self.history)
        self.common["anomalies"] = tuple(
            AnomalyCount(
                name=names.INTRINSIC[AnomalyKind(kind)],
                count=count,
                examples=tuple(
                    a.evidence(problem.history) for a in problem.anomalies(kind, _EXAMPLES)
                ),
            )
            for kind, count in problem.anomaly_counts().items()
        )
        self.common["ignored"] = problem.ignored()
        return problem

    def intrinsic(self, problem: Problem) -> Refutation | None:
        """What the pre-pass alone refutes."""
        anomaly = None
        if self.route.uses_reads_from:
            anomaly = next(iter(problem.anomalies(limit=1)), None)
        elif self.route.uses_version_order:
            anomaly = find_order_contradiction(problem)
        if anomaly is None:
            return None
        from isolang.certify.steps import AnomalyStep

        a = anomaly
        return Refutation((AnomalyStep(int(a.kind), a.txn, a.op, a.other_txn, a.other_op),))

    def note(self, text: str) -> None:
        """Something worth knowing about how the verdict was found."""
        self.common["notes"] = (*self.common.get("notes", ()), text)

    def certified(self, proof: Proof, *, needed: bool = False) -> tuple[bool | None, str]:
        """Whether the checker accepts a proof (``None``: it refuses it), and what it says.

        Args:
            proof: what to check.
            needed: check it even if the user wants no certificate.
        """
        if not self.options.certify and not needed:
            return False, SWITCHED_OFF
        with self.spending.during("certify"):
            self.progress("certify")
            left = self.spending.remaining()
            try:
                self._check(proof, left)
            except CertificateRejected as error:
                return None, str(error)
            except NotCertifiedError as error:
                self.spending.remaining()  # it may have been the time
                return False, str(error).removeprefix("not certified: ")
        return True, f"an independent checker accepted the {_WHAT[type(proof)]}"

    def _check(self, proof: Proof, seconds: float | None) -> None:
        """Have a proof checked: natively where there is a native checker for it."""
        if self.route.kind != "relational" and isinstance(proof, Witness | Refutation):
            from isolang.certify.native import check_natively

            check_natively(self.history, self.route.spec, proof, seconds=seconds or 0.0)
        else:
            from isolang.certify.proofs import check_proof

            check_proof(self.history, self._original, proof, seconds)

    @property
    def _original(self) -> Spec:
        """The specification as the user wrote it."""
        theorem = self.route.theorem if isinstance(self.route, Plan) else None
        return self.route.spec if theorem is None else theorem.original

    def rejected(self, proof: Proof, reason: str) -> Unknown:
        """The verdict that the checker refused the proof, which is kept as evidence."""
        evidence = Certificate.of(self.history, self.route.spec, proof)
        return self.unknown("certificate rejected", reason, evidence=evidence)

    def hardness(self) -> str:
        """Why it may have taken so long, as the end of a sentence; empty if nothing is known."""
        return ""

    def unknown(self, cause: Cause, reason: str, **more: Any) -> Unknown:
        """The verdict that nothing was found out."""
        self.common.update(certified=False, certified_reason="")
        seconds = self.spending.seconds()
        return Unknown(
            reason=f"{cause}: {reason}",
            cause=cause,
            phase=self.spending.phase,
            seconds=seconds,
            **self.common,
            **more,
        )
