"""The run of relations: what a specification asks for is searched for, and the answer evaluated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from isolang.certify.certificate import Certificate
from isolang.certify.proofs import Exhaustion, Relations
from isolang.encodings.cost import affordable
from isolang.encodings.decode import NoOrderError
from isolang.encodings.relational import Chosen, Encoding
from isolang.encodings.relational_formula import question_of
from isolang.engines.core_part import CorePart
from isolang.engines.run import SWITCHED_OFF, Run
from isolang.engines.shown import shown_of, shown_of_violation
from isolang.explain.exhausted import explain_exhausted
from isolang.explain.explain import explain
from isolang.history.columns import MAYBE
from isolang.language.classify.relational import Relational
from isolang.problem import Problem, build_problem
from isolang.solvers import relational as back_end
from isolang.solvers.registry import Pair
from isolang.verdict import Invalid, Valid, Verdict

if TYPE_CHECKING:
    from isolang.certify.proofs import Refutation

DEFAULT = Pair(back_end.ENCODING, back_end.NAME, "none")

# Looking for the part of a history that is to blame may take this much longer than the answer.
_REFINE_SECONDS = (2.0, 20.0)
# So many transactions are named in a line.
_NAMED = 12


class RelationalRun(Run):
    """A history against any specification.

    Attributes:
        pair: the encoding, which is this one, and the solver.
        choice: why these.
    """

    pair = DEFAULT
    choice = ""

    @property
    def relational(self) -> Relational:
        """The route, which is a relational one."""
        assert isinstance(self.route, Relational)
        return self.route

    def verdict(self) -> Verdict:
        """See :meth:`Run.verdict`."""
        self.common.update(encoding=self.pair.encoding)
        with self.spending.during("prepare"):
            self.progress("prepare")
            problem = self.prepared()
            intrinsic = self.intrinsic(problem)
        if intrinsic is not None:
            return self._contradicted(problem, intrinsic)
        with self.spending.during("solve"):
            self.progress("estimate")
            cost = affordable(problem, self.route.spec, self._tick())
            self.note(str(cost))
            self.progress(str(cost))
            encoding = Encoding(problem, self.route.spec, tick=self._tick())
            solver = back_end.solver_for(encoding, self.pair.solver, seed=self.options.seed)
            self.common.update(solver=self.pair.solver, choice=self.choice)
            if self.pair != DEFAULT or self.options.encoding != "auto":
                self.common.update(prune=self.pair.prune)
            left = self.spending.remaining()
            try:
                found = solver.satisfiable(seconds=left, progress=self.progress)
            except NoOrderError as error:
                return self.unknown("certificate rejected", f"{self.pair}: {error}")
            self.common["statistics"] = {
                **solver.statistics(),
                "open_pairs": cost.pairs,
                "clauses": encoding.clauses,
            }
            if found:
                chosen = encoding.chosen(solver.true)
                self._judge_flags(encoding, solver)
        if found:
            return self._valid(chosen)
        if self.pair.solver != back_end.NAME:
            contradicted = self._contradicting(encoding)
            if contradicted is not None:
                return contradicted
        return self._invalid(problem)

    def prepared(self) -> Problem:
        """See :meth:`Run.prepared`: what nobody reads from is in or out, if that may matter."""
        self.problem = question_of(
            self.problem or build_problem(self.history), self.route.spec
        ).problem
        return super().prepared()

    def _tick(self) -> Callable[[], object]:
        """What a long computation calls now and then, so that it ends with the time."""
        return self.spending.remaining

    def _contradicting(self, encoding: Encoding) -> Verdict | None:
        """The verdict that the native solver has a model where the chosen one found none."""
        with self.spending.during("solve", to_the_end=True):
            self.progress("prove")
            solver = back_end.Solver(encoding, seed=self.options.seed)
            try:
                if not solver.satisfiable(seconds=self._patience()):
                    return None
            except TimeoutError:
                return None  # the search for the part to blame has the last word
            chosen = encoding.chosen(solver.true)
        proof = Relations(chosen.included, chosen.relations)
        accepted, reason = self.certified(proof, needed=True)
        said = "and its relations were accepted" if accepted else f"not certified ({reason})"
        return self.unknown(
            "disagreement",
            f"{self.pair} finds no model, the native solver does, {said}",
            evidence=Certificate.of(self.history, self.route.spec, proof),
        )

    # --- valid ---

    def _valid(self, chosen: Chosen) -> Verdict:
        proof = Relations(chosen.included, chosen.relations)
        certified, reason = self.certified(proof)
        if certified is None:
            return self.rejected(proof, reason)
        self.common.update(certified=certified, certified_reason=reason)
        if line := self._kept(proof):
            self.note(line)
        with self.spending.during("solve", to_the_end=True):
            for line in shown_of(self.history, self.route.spec, proof):
                self.note(line)
        return Valid(witness=proof, seconds=self.spending.seconds(), **self.common)

    def _kept(self, proof: Relations) -> str:
        """Which transactions of unknown outcome took effect, where that may be for no read."""
        if not self.relational.unread_matter:
            return ""
        status = self.history.columns.txn_status
        maybe = {t for t in range(self.history.t0) if status[t] == MAYBE}
        if not maybe:
            return ""
        kept = [self.history.label(t) for t in proof.included if t in maybe]
        named = ", ".join(kept[:_NAMED]) + (", …" if len(kept) > _NAMED else "")
        these = f"these took effect: {named or 'none'}"
        return f"of {len(maybe)} transactions of unknown outcome {these}"

    def _judge_flags(self, encoding: Encoding, solver: back_end.RelationalSolver) -> None:
        """A flag holds iff no assignment that meets the other checks also meets it."""
        for name, met in encoding.flags.items():
            left = self.spending.remaining()
            possible = solver.satisfiable(seconds=left, assumptions=[met])
            word = "does not hold: some choice meets it" if possible else "holds"
            self.note(f"flag `{name}` {word}")

    # --- invalid ---

    def _contradicted(self, problem: Problem, refutation: Refutation) -> Verdict:
        """The history contradicts itself."""
        certified, reason = self.certified(refutation)
        if certified is None:
            return self.rejected(refutation, reason)
        self.common.update(certified=certified, certified_reason=reason)
        return Invalid(
            violation=explain(problem, refutation.steps),
            refutation=refutation,
            seconds=self.spending.seconds(),
            **self.common,
        )

    def _invalid(self, problem: Problem) -> Verdict:
        with self.spending.during("solve", to_the_end=True):
            self.progress("explain")
            part = CorePart(
                problem, self.relational, seed=self.options.seed, seconds=self._patience()
            ).found()
            proof = Exhaustion(part.transactions)
        certified, reason = self.certified(proof)
        if certified is None:
            return self.rejected(proof, reason)
        if not self.options.certify:
            certified, reason = False, SWITCHED_OFF
        self.common.update(certified=certified, certified_reason=reason)
        with self.spending.during("solve", to_the_end=True):
            violation = explain_exhausted(problem, part.transactions, part.checks, self.route.spec)
            for line in shown_of_violation(self.history, self.route.spec):
                self.note(line)
        return Invalid(
            violation=violation,
            refutation=proof,
            seconds=self.spending.seconds(),
            **self.common,
        )

    def _patience(self) -> float:
        least, most = _REFINE_SECONDS
        seconds = min(max(least, 2 * self.spending.seconds().solve), most)
        try:
            left = self.spending.remaining()
        except TimeoutError:
            return 0.0
        return seconds if left is None else min(seconds, left / 3)
