"""Decides a history along a route, in four stages: solve, prove, certify and explain."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypedDict, assert_never

from msgspec.structs import replace

from isolang.arrays import np
from isolang.caveat import Caveat
from isolang.certify.certificate import Certificate
from isolang.certify.proofs import Exhaustion, Proof, Refutation, Relations, Witness
from isolang.errors import HistoryError
from isolang.history.columns import COMMITTED, UNKNOWN_BEGIN, UNKNOWN_END
from isolang.language.classify.event_graph import Plan
from isolang.language.library import assumption_of, list_library
from isolang.language.meaning.mentions import mentioned, uses_groups
from isolang.limits import Deadline, Seconds, Work
from isolang.options import Options
from isolang.pipeline.implicit import Implicit, may_stay_implicit
from isolang.pipeline.names import missing_levels_reason, unmatched_name_notes
from isolang.pipeline.observed import observes_other_sessions
from isolang.pipeline.pair_run import (
    COMPARE_OPERATIONS,
    UNCHECKED,
    Certification,
    PairRun,
    Progress,
    run_within_limits,
    written_spec,
)
from isolang.solvers.answer import Answer, Undecided, Unproved
from isolang.solvers.registry import choose_pair
from isolang.verdict import NOTHING_OBSERVED, AnomalyCount, Invalid, Unknown, Valid, Verdict

if TYPE_CHECKING:
    from isolang.certify.steps import Step
    from isolang.explain.part_refuter import Engine
    from isolang.explain.smaller import Finder
    from isolang.history.history import History
    from isolang.language.classify.automaton import Automaton
    from isolang.language.classify.route import Route
    from isolang.language.meaning.core import Spec
    from isolang.pipeline.unsat_core import UnsatCore
    from isolang.problem import Problem

_NO_MOMENTS = (
    "no operation has times of its own, so a statement may have been "
    "answered as late as its transaction ended, and COMMIT may have "
    "been sent as early as the transaction began"
)

_SECOND_WORK, _SECOND_WORK_PER_OPERATION = 20_000, 20
"""The work limits for the second verdict, without stated versions; most histories need less.
"""

_FEW_TRANSACTIONS = 400
"""So many transactions are searched in less time than a search of stronger checks would take."""

UNCERTIFIED = Certification(outcome="not certified", reason="")


def decide(
    history: History,
    route: Route,
    deadline: Deadline,
    options: Options,
    progress: Progress = lambda phase: None,
    *,
    problem: Problem | None = None,
    simplest: bool = True,
    explained: bool = True,
    presolve: bool = True,
    work: Work | None = None,
) -> Verdict:
    """Decide whether a history satisfies a spec.

    Args:
        history: the history to decide.
        route: the route of the specification.
        deadline: the time limit of the check.
        options: the options of the check.
        progress: a function called with the name of each phase when it begins.
        problem: the problem of the history; ``None`` if it has not been built yet.
        simplest: whether to search for the simplest violation. Otherwise the first violation found
            by the engine is reported.
        explained: whether to explain an invalid verdict. Otherwise its violation is
            ``UNEXPLAINED``, which saves most of the time for a small history.
        presolve: whether the engine looks first for a model of stronger checks, which most
            histories have.
        work: the work limit for deciding and explaining; ``None`` for no limit.

    Raises:
        HistoryError: if the history lacks the real time or the groups that the specification needs,
            or if its columns are inconsistent.
        SolverError: if the encoding-solver pair does not exist, or cannot decide the specification.
    """
    if route.uses_real_time and not history.columns.has_time:
        msg = (
            f"{history.name}: the level {route.spec.name} uses real time, but "
            f"the history has none ({history.real_time or 'no times'}); check "
            "the history against a level without real time"
        )
        raise HistoryError(msg)
    if uses_groups(route.spec) and not history.columns.has_groups:
        msg = (
            f"{history.name}: the level {route.spec.name} refers to groups, but "
            "no transaction of the history names one; hint: `:group` of "
            "operation maps, `group` of transactions"
        )
        raise HistoryError(msg)
    if history.columns.implicit and not may_stay_implicit(route):
        history, problem = history.written_out(), None
    open_choice = {options.encoding, options.solver, options.prune} == {"auto"}
    if route.kind == "relational" and open_choice:
        from isolang.language.classify.relational import Relational
        from isolang.pipeline.parts import decide_in_parts

        assert isinstance(route, Relational)

        def by(way: Route, problem: Problem) -> Verdict:
            return decide(
                history, way, deadline, options, progress, problem=problem, simplest=simplest,
                explained=explained, presolve=presolve, work=work,
            )  # fmt: skip

        # If deciding in parts runs out of time or memory, the search over all checks reports that.
        with suppress(TimeoutError, MemoryError):
            if route.parts is not None and not _unjudgeable_reason(route.spec, history):
                verdict = decide_in_parts(history, route, deadline, by, problem=problem)
                if verdict is not None:
                    return verdict
    pair, choice = choose_pair(options.encoding, options.solver, options.prune, route=route)
    if pair.of_specification and isinstance(route, Plan):
        from isolang.language.classify.relational import relational

        route = relational(written_spec(route), route.reasons)
        history, problem = history.written_out(), None
    run = PairRun(
        history,
        route,
        pair,
        deadline,
        options,
        progress=progress,
        choice=choice,
        problem=problem,
        simplest=simplest,
        explained=explained,
        presolve=presolve,
        work=work,
    )
    if reason := _unjudgeable_reason(run.written_spec, history):
        return _unknown_verdict(run, Undecided(cause="unsupported", reason=reason))
    found = run_within_limits(run, lambda: _verdict(run))
    return _unknown_verdict(run, found) if isinstance(found, Undecided) else found


def _unjudgeable_reason(spec: Spec, history: History) -> str:
    """Return why the specification cannot judge the history; empty if it can."""
    if history.files and not history.columns.transactions():
        return "the history has no transaction, so it could not have violated any level"
    if missing := missing_levels_reason(history, spec):
        return missing
    if not history.levels:
        return ""
    main = re.fullmatch(r"library:(.*)\.iso", spec.source)
    level = next((e.alias_of or e.name for e in list_library() if main and e.name == main[1]), "")
    if level in history.levels:
        return ""
    known = ", ".join(name for name in history.levels if "-" not in name)
    what = history.notes[0] if history.notes else "such a history"
    return f"{what}; {spec.name} does not apply to it, only {known} and stronger levels"


def _unknown_moments(history: History) -> Iterator[str]:
    """Yield a sentence if some operations of committed transactions have no times."""
    columns = history.columns
    if not columns.has_operation_times:
        yield _NO_MOMENTS
        return
    unknown = (columns.op_begin == UNKNOWN_BEGIN) | (columns.op_end == UNKNOWN_END)
    committed = np.repeat(columns.txn_status == COMMITTED, np.diff(columns.op_start))
    if not (unknown & committed).any():
        return
    bounds = "each of them ran between the begin and the end of its transaction"
    if columns.two_clocks:
        bounds = (
            "the order of lines does not bound them, because the operations have their own clock; "
            "hint: `:time` in every map"
        )
    which = f"{int((unknown & committed).sum())} of {int(committed.sum())} operations"
    yield f"{which} have no times of their own: {bounds}"


def _verdict(run: PairRun) -> Verdict:
    if isinstance(run.route, Plan) and run.route.theorem is not None:
        run.notes.append(run.route.theorem.sentence)
    if assumption := assumption_of(run.written_spec.texts):
        run.notes.append(Caveat(f"assumption: {assumption}"))
    run.notes += map(Caveat, unmatched_name_notes(run.history, run.written_spec))
    if mentioned(run.written_spec) & COMPARE_OPERATIONS:
        run.notes += map(Caveat, _unknown_moments(run.history))
    implicit = Implicit(run) if run.history.columns.implicit else None
    while True:
        with run.deadline.during("prepare"):
            run.progress("prepare")
            contradiction = run.contradiction()
        if contradiction is not None:
            return _invalid_verdict(run, contradiction)
        run.deadline.remaining()
        if implicit is not None:
            nearby = _refute_nearby(run, implicit.contradicted())
            if nearby is not None:
                return _invalid_verdict(run, nearby)
        # An answer counts even if the deadline passes while the solver is returning it.
        with run.deadline.during("solve", to_the_end=True):
            run.progress("solve")
            answer = run.solve()
            if isinstance(answer.result, Relations):
                _judge_flags(run, answer)
        if implicit is None or not isinstance(answer.result, Witness):
            break
        if (whole := implicit.complete(answer.result)) is not None:
            answer = replace(answer, result=whole)
            break
    match answer.result:
        case Witness() | Relations():
            return _valid_verdict(run, answer.result)
        case Refutation():
            return _invalid_verdict(run, answer.result)
        case Unproved():
            return _verdict_without_proof(run, answer)
        case Undecided():
            return _unknown_verdict(run, answer.result)
        case Exhaustion():
            raise AssertionError("no solver searches all choices")
        case _:
            assert_never(answer.result)


def _refute_nearby(run: PairRun, reads: Sequence[int]) -> Refutation | None:
    """Return a refutation that needs only one of these reads and the transactions near it.

    If there is none, return ``None``. If a predicate read missed a row, its session has usually
    seen a version of this row, earlier or in the same transaction. Then a few transactions violate
    most levels, but searching the whole history for them may take long.
    """
    if not (reads and run.pair.is_engine and isinstance(run.route, Plan)):
        return None
    with suppress(TimeoutError, MemoryError), run.deadline.during("solve", to_the_end=True):
        finder = _finder(run)
        for read in reads:
            steps = finder.around(read)
            if steps is not None:
                refutation = Refutation(tuple(steps))
                if run.certify(refutation, needed=True).accepted:
                    return refutation
    return None


def _verdict_without_proof(run: PairRun, answer: Answer) -> Verdict:
    """Return the verdict once a pair has claimed, without a proof, that no model exists."""
    from isolang.pipeline.prove import prove

    try:
        with run.deadline.during("solve", to_the_end=True):
            proved = prove(run, answer)
    except (TimeoutError, MemoryError) as error:
        from isolang.explain.explain import explain_no_model

        lacking = "time" if isinstance(error, TimeoutError) else "memory"
        reason = f"{run.pair} finds no model, but there was no {lacking} for a proof"
        return Invalid(
            violation=explain_no_model(run.problem, str(run.pair)),
            refutation=Refutation(()),
            **_common_fields(run, Certification(outcome="not certified", reason=reason)),
        )
    if isinstance(proved, Refutation):
        return _invalid_verdict(run, proved)
    if not isinstance(proved, Witness | Relations):
        return _verdict_from_core(run, proved)
    # If the checker accepts the model, the pair's claim was wrong.
    certification = run.certify(proved, needed=True)
    check = f"not certified ({certification.reason})"
    if certification.accepted:
        check = "and the checker accepted its model"
    return _unknown_verdict(
        run,
        Undecided(
            cause="disagreement",
            reason=f"{run.pair} finds no model, the native engine finds one, {check}",
        ),
        evidence=proved,
    )


# --- valid ---


def _valid_verdict(run: PairRun, found: Witness | Relations) -> Verdict:
    proof = run.as_written(found) if isinstance(found, Witness) else found
    certification = run.certify(proof)
    if certification.rejected:
        return _rejected_proof_verdict(run, proof, certification)
    if isinstance(proof, Relations) and not isinstance(run.route, Plan):
        from isolang.language.classify.relational import Relational
        from isolang.pipeline.parts import included_transactions_note

        assert isinstance(run.route, Relational)
        run.notes += included_transactions_note(run.history, run.route, proof.included)
    # In a history with ``levels``, the keys stand for something else that was observed, such as the
    # total of a bank.
    keys = not run.history.levels
    # Implicit set-reads observe other sessions too: they missed rows written by other transactions.
    if (
        keys
        and isinstance(found, Witness)
        and not run.history.columns.implicit
        and not observes_other_sessions(run.history, found)
    ):
        run.notes.append(NOTHING_OBSERVED)
    if run.written_spec.shows:
        from isolang.pipeline.shown import show_lines, show_lines_of_witness

        with run.deadline.during("solve", to_the_end=True):
            if isinstance(proof, Relations):
                run.notes += show_lines(run.history, run.written_spec, proof)
            else:
                run.notes += show_lines_of_witness(run.history, run.written_spec, proof)
    return Valid(witness=proof, **_common_fields(run, certification))


def _judge_flags(run: PairRun, answer: Answer) -> None:
    """Add a note for each flag of the specification that says whether the flag holds.

    A flag holds if no model of the other checks satisfies its check.
    """
    from isolang.encodings.relational.formula import RelationalFormula, with_units
    from isolang.solvers.registry import solver_of

    assert isinstance(answer.formula, RelationalFormula)
    for name, met in answer.formula.relations.flags.items():
        solver, part = solver_of(run.pair.solver)
        try:
            remaining = run.deadline.remaining()
            found = solver.solve(
                with_units(answer.formula, [met]),
                until=None if remaining is None else time.perf_counter() + remaining,
                seed=run.options.seed,
                part=part,
            )
        except TimeoutError:
            word = "is unknown: the time limit was reached"
        else:
            word = (
                "does not hold, because some choice satisfies it" if found.satisfiable else "holds"
            )
        run.notes.append(f"flag `{name}` {word}")


# --- invalid ---


def _invalid_verdict(run: PairRun, first: Refutation) -> Verdict:
    """Return the invalid verdict with the simplest certified refutation found."""
    from isolang.certify.steps import CycleStep
    from isolang.explain.violation import UNEXPLAINED

    refutations = [first]
    finder = None
    if run.simplest and run.explained and any(isinstance(step, CycleStep) for step in first.steps):
        # If this search runs out of time or memory, the first violation is reported.
        with suppress(TimeoutError, MemoryError), run.deadline.during("solve", to_the_end=True):
            run.progress("explain")
            finder = _finder(run)
            allowed = finder.parts.remaining_work
            simpler = finder.simplest(first.steps)
            if run.work is not None:
                run.work.spend(allowed - finder.parts.remaining_work)
            found = [finder.shortened(simpler), simpler, first.steps]
            from isolang.explain.smaller import difficulty

            refutations = [Refutation(tuple(s)) for s in sorted(found, key=difficulty)]
    certification = UNCERTIFIED
    for refutation in refutations:
        # A simpler refutation is used only if the checker accepts it, even if the user does not
        # want a certificate.
        derived = refutation.steps != first.steps
        certification = run.certify(refutation, needed=derived)
        if certification.rejected or (derived and not certification.accepted):
            continue
        if not run.options.certify:
            certification = UNCHECKED
        if not run.explained:
            return Invalid(
                violation=UNEXPLAINED, refutation=refutation, **_common_fields(run, certification)
            )
        from isolang.explain.explain import explain

        # A certified violation is reported even if time runs out while it is being explained.
        with run.deadline.during("solve", to_the_end=True):
            if finder is None or run.history.levels:  # relaxed levels are not judged
                relaxed = {}
            else:
                relaxed = finder.relaxed(refutation.steps)
            relaxed |= _outcome_without_versions(run, refutation)
            violation = replace(explain(run.problem, refutation.steps), relaxed=relaxed)
            _show_violation(run)
        return Invalid(
            violation=violation, refutation=refutation, **_common_fields(run, certification)
        )
    return _rejected_proof_verdict(run, first, certification)


def _outcome_without_versions(run: PairRun, refutation: Refutation) -> dict[str, str]:
    """Return the outcome without the stated versions, if the refutation uses versions.

    Some stores number versions in an order other than the order of installation. The outcome tells
    users of such a store whether the violation depends on the version numbers.
    """
    if not run.history.columns.has_versions or not isinstance(run.route, Plan):
        return {}
    from isolang.certify.errors import CertificateRejected, NotCertifiedError
    from isolang.certify.native import check_natively
    from isolang.explain.part_refuter import EFFORT

    plain = run.history.without_versions()
    outcome = "unknown"
    with suppress(TimeoutError, MemoryError):
        remaining = run.deadline.remaining()
        with suppress(CertificateRejected, NotCertifiedError):
            check_natively(plain, run.route.spec, refutation, seconds=remaining or 0.0)
            return {}
        most = min(EFFORT, _SECOND_WORK + _SECOND_WORK_PER_OPERATION * plain.columns.operations())
        work = Work(most if run.work is None else min(most, run.work.left))
        judged = decide(
            plain, run.route, Deadline(remaining), run.options, simplest=False, work=work
        )
        outcome = judged.outcome
    return {"without the versions that it states": outcome}


def _verdict_from_core(run: PairRun, core: UnsatCore) -> Verdict:
    from isolang.explain.exhausted import explain_exhausted
    from isolang.explain.violation import UNEXPLAINED

    certification = run.certify(core.proof)
    if certification.rejected:
        return _rejected_proof_verdict(run, core.proof, certification)
    if not run.explained:
        return Invalid(
            violation=UNEXPLAINED, refutation=core.proof, **_common_fields(run, certification)
        )
    with run.deadline.during("solve", to_the_end=True):
        violation = explain_exhausted(run.problem, core.transactions, core.checks, run.route.spec)
        _show_violation(run)
    return Invalid(violation=violation, refutation=core.proof, **_common_fields(run, certification))


def _show_violation(run: PairRun) -> None:
    if run.written_spec.shows:
        from isolang.pipeline.shown import show_lines_of_violation

        run.notes += show_lines_of_violation(run.history, run.written_spec)


def refuter(seed: int, remaining: Callable[[], float | None] | None = None) -> Engine:
    """Return a function that refutes problems with the native engine.

    It is used by the search for simpler violations.

    Args:
        remaining: a function that returns the remaining seconds; ``None`` for no time limit.
    """
    from isolang.solvers import engine

    def refute(
        problem: Problem, automata: Sequence[Automaton], work: int, strategy: str
    ) -> tuple[Sequence[Step] | None, int]:
        found = engine.solve(
            problem.history.columns,
            problem.native,
            automata,
            seconds=None if remaining is None else remaining(),
            seed=seed,
            presolve=problem.native.n > _FEW_TRANSACTIONS,
            strategy=strategy,
            work=work,
        )
        result = found.result
        return result.steps if isinstance(result, Refutation) else None, found.work

    return refute


def _finder(run: PairRun) -> Finder:
    """Prepare the search for simpler refutations, limited to a quarter of the remaining time."""
    from isolang.explain.part_refuter import EFFORT
    from isolang.explain.smaller import Finder

    assert isinstance(run.route, Plan)
    remaining = run.deadline.remaining()
    until = None if remaining is None else time.perf_counter() + remaining / 4

    def seconds() -> float | None:
        return None if until is None else max(0.001, until - time.perf_counter())

    return Finder(
        run.problem,
        run.route,
        refuter(run.options.seed, seconds),
        work=EFFORT if run.work is None else min(EFFORT, run.work.left),
        stopped=lambda: until is not None and time.perf_counter() > until,
    )


# --- fields of verdicts ---


class _Common(TypedDict):
    """The values of the fields common to all verdicts."""

    history: History
    spec: Spec
    certified: bool
    certified_reason: str
    seconds: Seconds
    statistics: Mapping[str, float]
    solver: str
    encoding: str
    prune: str
    choice: str
    anomalies: tuple[AnomalyCount, ...]
    ignored: tuple[str, ...]
    notes: tuple[str, ...]


def _common_fields(run: PairRun, certification: Certification) -> _Common:
    return _Common(
        history=run.history,
        spec=run.route.spec,
        certified=certification.accepted,
        certified_reason=certification.reason,
        seconds=run.deadline.seconds(),
        statistics=run.statistics,
        solver=run.pair.solver if run.pair_used else "",
        encoding=run.pair.encoding if run.pair_used else "",
        prune=run.pair.prune if run.pair_used else "",
        choice=run.choice if run.pair_used else "",
        anomalies=run.anomalies(),
        ignored=run.ignored(),
        notes=tuple(run.notes),
    )


def _rejected_proof_verdict(run: PairRun, proof: Proof, certification: Certification) -> Unknown:
    """Return the unknown verdict for a proof that the checker rejected, with the proof in it."""
    why = Undecided(cause="certificate rejected", reason=certification.reason)
    return _unknown_verdict(run, why, evidence=proof)


def _unknown_verdict(run: PairRun, why: Undecided, *, evidence: Proof | None = None) -> Unknown:
    certificate = None
    if evidence is not None:
        certificate = Certificate.of(run.history, run.route.spec, evidence)
    return Unknown(
        reason=f"{why.cause}: {why.reason}",
        cause=why.cause,
        phase=run.deadline.phase,
        evidence=certificate,
        **_common_fields(run, UNCERTIFIED),
    )
