"""Cross-checking: the same history through pairs that share nothing, and what they disagree on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from isolang.certify.certificate import Refutation, Witness
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.engines.prove import prove
from isolang.errors import IsolangError, SolverError
from isolang.explain.part import Part, part_of
from isolang.explain.smaller import shrink
from isolang.problem import Problem, build_problem, find_order_contradiction
from isolang.solvers import native
from isolang.solvers.pair import NoModel, WrongModelError, solve_pair
from isolang.solvers.registry import ENGINE, SOLVERS, Pair, choose_pair, fitting

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.classify import Plan

Outcome: TypeAlias = Literal["valid", "invalid", "unknown", "wrong"]

#: In this order: fast without pruning, with a deadline of its own, and installed everywhere.
PARTNERS = (("one_variable", "clingo"), ("integer_order", "z3"), ("one_variable", "native"))
SECONDS = 10.0  # for each pair, if the user gave no limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one pair says about a history.

    Attributes:
        pair: who says it.
        outcome: what; ``wrong``: it gave a model that is none, or none where there is one.
        detail: how far it is certified, or why it is unknown.
        seconds: how long it took.
    """

    pair: Pair
    outcome: Outcome
    detail: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossCheck:
    """The claims about one history.

    Attributes:
        claims: the first one is of the pair that decided.
        minimal: if they disagree, a smallest part found on which two of them do.
    """

    claims: tuple[Claim, ...]
    minimal: History | None = None

    @property
    def disagreement(self) -> bool:
        """Whether two claims contradict each other, or one of them is wrong by itself."""
        return disagree([claim.outcome for claim in self.claims])

    def summary(self) -> str:
        """What came of it, as a sentence."""
        if self.disagreement:
            said = ", ".join(
                f"{c.pair} says {c.outcome}" for c in self.claims if c.outcome != "unknown"
            )
            return f"disagreement: {said}"
        first, *others = self.claims
        agreeing = [c for c in others if c.outcome == first.outcome != "unknown"]
        silent = len(others) - len(agreeing)
        if agreeing and not silent:
            return f"{len(agreeing)} of {len(others)} other pairs agree"
        what = f"{silent} of {len(others)} other pairs did not decide in their time"
        return f"{what}; the verdict rests on its certificate" + (
            f" and on {len(agreeing)} that agree" if agreeing else ""
        )


def disagree(outcomes: Sequence[str]) -> bool:
    """Whether outcomes contradict each other; ``unknown`` contradicts nothing."""
    return "wrong" in outcomes or {"valid", "invalid"} <= set(outcomes)


def partners(chosen: Pair, which: str) -> list[Pair]:
    """The pairs to compare with.

    Args:
        chosen: the pair that decides.
        which: ``auto``: one that shares neither encoding nor solver nor pruning with it; ``all``:
            all that are installed, unpruned and pruned; or ``encoding/solver/prune``.

    Raises:
        SolverError: there is no such pair.
    """
    stages = ("none", "fixpoint")
    if which == "auto":
        every = [*PARTNERS, *fitting()]
        prune = "none" if chosen.prune != "none" else "fixpoint"
        pairs = [Pair(e, s, prune) for e, s in every if s in SOLVERS and SOLVERS[s].installed]
        pairs = [p for p in pairs if not p.is_engine and not p.shares_with(chosen)]
        if not pairs:
            raise SolverError(f"no pair is installed that shares nothing with {chosen}")
        return pairs[:1]
    if which == "all":
        pairs = [Pair(e, s, stage) for e, s in fitting() for stage in stages]
        return [p for p in pairs if p != chosen and (not p.is_engine or p.prune == "fixpoint")]
    return [parse_pair(which)]


def parse_pair(text: str) -> Pair:
    """Read ``encoding/solver/prune``.

    Raises:
        SolverError: there is no such pair, or it is not installed.
    """
    parts = text.split("/")
    if len(parts) != 3:
        raise SolverError(
            f"a pair is encoding/solver/prune, such as one_variable/sat/none (got {text!r})"
        )
    return choose_pair(*parts)[0]


def cross_check(
    history: History,
    plan: Plan,
    chosen: Pair,
    others: Sequence[Pair],
    *,
    seconds: float = SECONDS,
    seed: int = 0,
) -> CrossCheck:
    """Ask several pairs about one history, and shrink it if they disagree.

    Args:
        history: the history.
        plan: of the spec.
        chosen: the pair that decided.
        others: those to compare with.
        seconds: for each pair, and for the shrinking.
        seed: breaks ties.
    """
    claims = [claim(history, plan, p, seconds=seconds, seed=seed) for p in (chosen, *others)]
    found = CrossCheck(claims=tuple(claims))
    if not found.disagreement:
        return found
    pair_of = {c.outcome: c.pair for c in reversed(claims)}
    accused = [pair_of[o] for o in ("valid", "invalid", "wrong") if o in pair_of]
    if ENGINE not in accused:
        accused.append(ENGINE)  # what is wrong was found to be so by the engine's witness
    minimal = _smallest(history, plan, accused, seconds=seconds, seed=seed)
    return CrossCheck(claims=tuple(claims), minimal=minimal)


def claim(
    history: History, plan: Plan, pair: Pair, *, seconds: float, seed: int = 0, proof: bool = True
) -> Claim:
    """What a pair says about a history, its model or its refutation checked.

    Args:
        history: the history.
        plan: of the spec.
        pair: whom to ask.
        seconds: how long it may take.
        seed: breaks ties.
        proof: have the engine prove that there is no model, where the pair says so without proof.
    """
    start = time.perf_counter()
    try:
        outcome, detail = _asked(history, plan, pair, until=start + seconds, seed=seed, proof=proof)
    except (TimeoutError, MemoryError) as error:
        what = "memory" if isinstance(error, MemoryError) else f"{seconds:.3g} s"
        outcome, detail = "unknown", f"not decided within its {what}"
    return Claim(pair=pair, outcome=outcome, detail=detail, seconds=time.perf_counter() - start)


def _asked(
    history: History, plan: Plan, pair: Pair, *, until: float, seed: int, proof: bool
) -> tuple[Outcome, str]:
    from isolang.certify.native import check_natively

    def left() -> float:
        if until <= time.perf_counter():
            raise TimeoutError
        return until - time.perf_counter()

    def engine(problem: Problem) -> native.Model | native.Refutation:
        return native.solve(
            problem.history.columns, problem.native, plan.automata, seconds=left(), seed=seed
        )

    problem = build_problem(history)
    if has_intrinsic_violation(problem, plan):
        return "invalid", "by the pre-pass, which all pairs share"
    try:
        answer = (
            engine(problem)
            if pair.is_engine
            else solve_pair(problem, plan.automata, pair, seconds=left(), seed=seed)
        )
        if isinstance(answer, NoModel):
            if not proof:
                return "invalid", "not proved"
            proved = prove(problem, plan, answer, engine)
            if isinstance(proved, native.Model):
                witness = Witness(proved.source, proved.order_start, proved.order_txn)
                check_natively(history, plan.spec, witness, seconds=left())
                return "wrong", "it finds no model, but the checker accepted one of the engine"
            answer = proved
        valid = isinstance(answer, native.Model)
        checked = (
            Witness(answer.source, answer.order_start, answer.order_txn)
            if isinstance(answer, native.Model)
            else Refutation.of(answer.steps)
        )
        check_natively(history, plan.spec, checked, seconds=left())
    except WrongModelError as error:
        return "wrong", str(error)
    except CertificateRejected as error:
        return "wrong", f"the checker refused its proof: {error}"
    except NotCertifiedError as error:
        return ("valid" if valid else "invalid"), str(error)
    return ("valid", "witness accepted") if valid else ("invalid", "refutation accepted")


def has_intrinsic_violation(problem: Problem, plan: Plan) -> bool:
    """Whether the pre-pass alone refutes a problem, so that there is nothing to encode."""
    if plan.uses_reads_from:
        return bool(problem.anomalies(limit=1))
    return plan.uses_version_order and find_order_contradiction(problem) is not None


def _smallest(
    history: History, plan: Plan, pairs: Sequence[Pair], *, seconds: float, seed: int
) -> History:
    """Leave out sessions, then transactions, then operations, while the pairs still disagree."""
    until = time.perf_counter() + seconds

    def still(part: Part) -> bool:
        left = until - time.perf_counter()
        if left <= 0:
            return False
        try:
            said = [
                claim(part.history, plan, pair, seconds=left, seed=seed, proof=False).outcome
                for pair in pairs
            ]
        except IsolangError:
            return False
        return disagree(said)

    part = part_of(history, range(history.columns.operations()))
    for ops in list(_sessions(history)):
        gone = set(ops)
        kept = [i for i, op in enumerate(part.ops) if op not in gone]
        if kept and still(smaller := _narrowed(part, kept)):
            part = smaller
    part = shrink(part, still, by_transaction=True, until=until)
    return shrink(part, still, by_transaction=False, until=until).history


def _sessions(history: History) -> Iterator[list[int]]:
    """The operations of each session."""
    sessions: dict[int, list[int]] = {}
    for txn in range(history.t0):
        session = int(history.columns.txn_session[txn])
        sessions.setdefault(session, []).extend(history.operations_of(txn))
    yield from sessions.values()


def _narrowed(part: Part, kept: list[int]) -> Part:
    from isolang.history import sub_history

    return part.narrowed(sub_history(part.history, kept), kept)
