"""The run of event graphs: the engine, and the simplest refutation the checker accepts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from isolang.certify.certificate import Certificate
from isolang.certify.proofs import Refutation, Witness
from isolang.engines.run import SWITCHED_OFF, Run
from isolang.language.classify.event_graph import Plan
from isolang.problem import Problem
from isolang.solvers import native
from isolang.solvers.answer import ChosenRelations, NoModel, WrongModelError
from isolang.solvers.registry import choose_pair
from isolang.verdict import Invalid, Unknown, Valid, Verdict

if TYPE_CHECKING:
    from isolang.certify.steps import Step
    from isolang.explain.smaller import Finder
    from isolang.language.classify.automaton import Automaton
    from isolang.language.classify.theorems import Theorem

# Looking for a simpler violation may take twice the engine's time, within these bounds.
_REFINE_SECONDS = (0.2, 4.0)
# Looking at the whole history again is worth it in a check that is done in so many seconds, when
# nobody waits for it; or in so few; or where the engine has let the user wait for as long already.
_SOON, _ANYWAY, _WAITED = 0.1, 0.02, 0.2
# What making and checking a visibility takes, on a slow machine, for each pair of transactions.
_SECONDS_PER_PAIR = 1e-5


class EventGraphRun(Run):
    """A history against the automata of a :class:`Plan`."""

    @property
    def plan(self) -> Plan:
        """The route, which is a plan."""
        assert isinstance(self.route, Plan)
        return self.route

    _problem: Problem | None = None

    def hardness(self) -> str:
        """See :meth:`Run.hardness`: the load of the history, if it is that of the hard region."""
        if self._problem is None or self.spending.phase != "solve":
            return ""
        load = native.load(self._problem.native)
        self.common["statistics"] = {"load": load}
        if not native.HARD[0] <= load <= native.HARD[1]:
            return ""
        return (
            f"; the history lies in the hard region (rho = {load:.2f}: what its reads demand over "
            "what its concurrency leaves open; docs/hard-region.md)"
        )

    def verdict(self) -> Verdict:
        """See :meth:`Run.verdict`."""
        if self.plan.theorem is not None:
            self.note(self.plan.theorem.sentence)
        with self.spending.during("prepare"):
            self.progress("prepare")
            self._problem = problem = self.prepared()
            intrinsic = self.intrinsic(problem)
        if intrinsic is not None:
            return self._invalid(problem, intrinsic)
        with self.spending.during("solve"):
            self.progress("solve")
            answer = self._answer(problem)
        if isinstance(answer, Unknown):
            return answer
        if isinstance(answer, NoModel):
            return self._proved(problem, answer)
        if isinstance(answer, native.Model):
            return self._valid(answer)
        return self._invalid(problem, Refutation.of(answer.steps))

    def _answer(self, problem: Problem) -> native.Model | native.Refutation | NoModel | Unknown:
        """What the chosen solver says."""
        o = self.options
        pair, why = choose_pair(o.encoding, o.solver, o.prune, route=self.plan)
        self.common.update(solver=pair.solver, encoding=pair.encoding, prune=pair.prune, choice=why)
        if pair.is_engine:
            answer = self._engine(problem)
            self.common["statistics"] = dict(answer.statistics)
            return answer
        from isolang.solvers.pair import solve_pair

        try:
            found = solve_pair(
                problem,
                self.plan,
                pair,
                seconds=self.spending.remaining(),
                seed=o.seed,
                progress=self.progress,
            )
        except WrongModelError as error:
            return self.unknown("certificate rejected", f"{pair}: {error}")
        assert not isinstance(found, ChosenRelations)  # this run's encodings are of polygraphs
        self.common["statistics"] = dict(found.statistics)
        return found

    def _proved(self, problem: Problem, claim: NoModel) -> Verdict:
        """The verdict on what a solver without proofs says, which is that there is no model."""
        from isolang.engines.prove import prove
        from isolang.explain.explain import explain_no_model

        pair = f"{self.common['encoding']}/{self.common['solver']}/{self.common['prune']}"
        try:
            with self.spending.during("solve", to_the_end=True):
                self.progress("prove")
                proved = prove(problem, self.plan, claim, self._engine)
        except TimeoutError:
            reason = f"{pair} finds no model, and there was no time for the native engine's proof"
            self.common.update(certified=False, certified_reason=reason)
            return Invalid(
                violation=explain_no_model(problem, pair),
                refutation=Refutation(()),
                seconds=self.spending.seconds(),
                **self.common,
            )
        if isinstance(proved, native.Refutation):
            return self._invalid(problem, Refutation.of(proved.steps))
        # The engine has a model. It counts only if the checker accepts it.
        witness = Witness(proved.source, proved.order_start, proved.order_txn)
        accepted, reason = self.certified(witness, needed=True)
        evidence = Certificate.of(
            self.history,
            self.route.spec,
            Witness.of(proved.source, proved.order_start, proved.order_txn),
        )
        said = "and its witness was accepted" if accepted else f"not certified ({reason})"
        return self.unknown(
            "disagreement",
            f"{pair} finds no model, the native engine does, {said}",
            evidence=evidence,
        )

    def _engine(self, problem: Problem) -> native.Model | native.Refutation:
        return native.solve(
            problem.history.columns,
            problem.native,
            self.plan.automata,
            seconds=self.spending.remaining(),
            seed=self.options.seed,
            progress=self.progress,
            search_bytes=self.options.search_bytes(),
            threads=self.options.thread_count(),
        )

    # --- valid ---

    def _valid(self, model: native.Model) -> Verdict:
        witness = Witness(model.source, model.order_start, model.order_txn)
        theorem = self.plan.theorem
        if theorem is not None and self._can_reconstruct():
            return self._reconstructed(theorem, witness)
        certified, reason = self.certified(witness)
        if certified is None:
            return self.rejected(
                Witness.of(model.source, model.order_start, model.order_txn),
                reason,
            )
        self.common.update(certified=certified, certified_reason=reason)
        if self._original.shows:
            from isolang.engines.shown import shown_of_witness

            with self.spending.during("solve", to_the_end=True):
                self._show(shown_of_witness(self.history, self._original, witness))
        return Valid(witness=model, seconds=self.spending.seconds(), **self.common)

    def _can_reconstruct(self) -> bool:
        """Whether the relations that the user asked for can be made and checked in time."""
        from isolang.engines.reconstruct import LARGEST

        n = self.history.columns.transactions()
        left = self.spending.remaining()
        soon = left is None or n * n * _SECONDS_PER_PAIR < left / 2
        return self.options.certify and n <= LARGEST and soon

    def _reconstructed(self, theorem: Theorem, witness: Witness) -> Verdict:
        """The relations that the specification speaks of, made of version orders."""
        from isolang.engines.reconstruct import reconstruct

        with self.spending.during("certify"):
            self.progress("certify")
            proof = reconstruct(self.history, theorem, witness)
        certified, reason = self.certified(proof)
        if certified is None:
            return self.rejected(proof, reason)
        self.common.update(certified=certified, certified_reason=reason)
        if self._original.shows:
            from isolang.engines.shown import shown_of

            with self.spending.during("solve", to_the_end=True):
                self._show(shown_of(self.history, self._original, proof))
        return Valid(witness=proof, seconds=self.spending.seconds(), **self.common)

    def _show(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.note(line)

    # --- invalid ---

    def _invalid(self, problem: Problem, first: Refutation) -> Verdict:
        """Explain the simplest refutation found that the checker accepts."""
        from isolang.certify.steps import CycleStep
        from isolang.engines.shown import shown_of_violation
        from isolang.explain.explain import explain
        from isolang.explain.smaller import cost

        refutations = [first]
        finder = None
        if any(isinstance(step, CycleStep) for step in first.steps):
            with self.spending.during("solve"):
                self.progress("explain")
                finder = self._finder(problem)
                simpler = finder.simplest(first.steps)
                found = [finder.shortened(simpler), simpler, first.steps]
                refutations = [Refutation(tuple(s)) for s in sorted(found, key=cost)]
        rejected = ""
        for refutation in refutations:
            # What was made of the engine's refutation is believed only if the checker accepts it,
            # whether or not the user wants a certificate.
            derived = refutation.steps != first.steps
            certified, reason = self.certified(refutation, needed=derived)
            if certified is None or (derived and not certified):
                rejected = reason
                continue
            if not self.options.certify:
                certified, reason = False, SWITCHED_OFF
            self.common.update(certified=certified, certified_reason=reason)
            # A certified violation is not given up for lack of time to explain it.
            with self.spending.during("solve", to_the_end=True):
                relaxed = {} if finder is None else finder.relaxed(refutation.steps)
                violation = replace(explain(problem, refutation.steps), relaxed=relaxed)
                if self._original.shows:
                    self._show(shown_of_violation(self.history, self._original))
            return Invalid(
                violation=violation,
                refutation=refutation,
                seconds=self.spending.seconds(),
                **self.common,
            )
        return self.rejected(first, rejected)

    def _finder(self, problem: Problem) -> Finder:
        from isolang.explain.smaller import Finder

        spent = self.spending.seconds()
        least, most = _REFINE_SECONDS
        seconds = min(max(least, 2 * spent.solve), most)
        left = self.spending.remaining()
        if left is not None:
            seconds = min(seconds, left / 4)
        whole = max(_SOON - spent.total, _ANYWAY, 2 * spent.solve - _WAITED)
        return Finder(
            problem, self.plan, self._refute, seconds=seconds, whole=whole, took=spent.solve
        )

    def _refute(
        self, problem: Problem, automata: Sequence[Automaton], seconds: float
    ) -> Sequence[Step] | None:
        """The engine, as :class:`Finder` wants it."""
        answer = native.solve(
            problem.history.columns,
            problem.native,
            automata,
            seconds=seconds,
            seed=self.options.seed,
            strategy="cdcl",  # the one that leaves proofs
        )
        if isinstance(answer, native.Model):
            return None
        return Refutation.of(answer.steps).steps
