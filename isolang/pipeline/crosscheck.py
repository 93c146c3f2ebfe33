"""Decides one history with several encoding-solver pairs, and compares the outcomes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from isolang.certify.proofs import Relations, Witness
from isolang.errors import IsolangError, SolverError
from isolang.explain.part import HistoryPart, whole_part
from isolang.explain.shrink import shrink
from isolang.language.classify.event_graph import Plan
from isolang.limits import Deadline, Work
from isolang.options import Options
from isolang.pipeline.pair_run import PairRun, run_within_limits
from isolang.pipeline.prove import prove
from isolang.pipeline.unsat_core import UnsatCore
from isolang.solvers.answer import Undecided, Unproved
from isolang.solvers.registry import (
    ENGINE,
    NATIVE,
    Pair,
    choose_pair,
    stages_of,
    starts_from_polygraph,
    supported_pairs,
)

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.classify.route import Route

Outcome: TypeAlias = Literal["valid", "invalid", "unknown", "wrong"]

PARTNERS = (
    ("one_variable", "clingo"),
    ("integer_order", "z3"),
    ("one_variable", "native"),
    ("relational", "clingo"),
    ("relational", "z3"),
)
"""The pairs that a cross-check prefers, best first.

A good pair is fast without pruning, can be interrupted, and is widely installed.
"""

# The work limit for each pair (a few seconds), the work limit for shrinking a history, and the work
# charged for each attempt to shrink.
WORK, _SHRINK, _ATTEMPT = 20_000_000, 60_000_000, 3_000


class PairClaim(Struct, frozen=True, kw_only=True):
    """The outcome claimed by one pair for a history.

    Attributes:
        outcome: the outcome; ``wrong`` if the checker rejected the pair's model or proof, or if the
            pair missed a model that exists.
        detail: what was certified, or why the outcome is unknown.
        seconds: the seconds taken by the pair.
    """

    pair: Pair
    outcome: Outcome
    detail: str
    seconds: float


class CrossCheck(Struct, frozen=True, kw_only=True):
    """The claims of several encoding-solver pairs about one history.

    Attributes:
        claims: one claim for each pair; the pair that decided the verdict comes first.
        minimal: the smallest part found on which pairs disagree; ``None`` if the pairs agree on the
            history.
    """

    claims: tuple[PairClaim, ...]
    minimal: History | None = None

    @property
    def disagreement(self) -> bool:
        """``True`` if two claims contradict each other, or if some claim is ``wrong``."""
        return disagree([claim.outcome for claim in self.claims])

    def summary(self) -> str:
        """Return the result of the comparison as a sentence."""
        if self.disagreement:
            claims = ", ".join(
                f"{c.pair} says {c.outcome}" for c in self.claims if c.outcome != "unknown"
            )
            return f"disagreement: {claims}"
        first, *others = self.claims
        agreeing = [c for c in others if c.outcome == first.outcome != "unknown"]
        silent = len(others) - len(agreeing)
        if agreeing and not silent:
            return f"{len(agreeing)} of {len(others)} other pairs agree"
        what = f"{silent} of {len(others)} other pairs did not decide within their limits"
        return f"{what}; the verdict rests on its certificate" + (
            f" and on {len(agreeing)} that agree" if agreeing else ""
        )


def disagree(outcomes: Sequence[str]) -> bool:
    """Return whether the outcomes contain ``wrong``, or both ``valid`` and ``invalid``."""
    return "wrong" in outcomes or {"valid", "invalid"} <= set(outcomes)


def partners(chosen: Pair, which: str, route: Route | None = None) -> list[Pair]:
    """Return the pairs that a cross-check compares with the deciding pair.

    Args:
        which: ``all`` selects all installed pairs, unpruned and pruned. A name of the form
            ``encoding/solver/prune`` selects that pair. ``auto`` selects a pair that shares neither
            encoding nor solver nor pruning with ``chosen``. If there is none, ``auto`` selects one
            pair with another encoding and one with another solver. If a theorem replaced the
            specification, ``auto`` also selects a pair that does not use the theorem.

    Raises:
        SolverError: if the pair does not exist or does not support the specification.
    """
    if which not in ("auto", "all"):
        return [parse_pair(which, route)]
    fit = list(supported_pairs(route))
    if which == "all":
        pairs = [Pair(e, s, p) for e, s in fit for p in stages_of(e) if p != "known"]
        return [pair for pair in pairs if pair != chosen]
    stage = "none" if chosen.prune != "none" else "fixpoint"
    pairs = [Pair(e, s, p) for e, s in (*PARTNERS, *fit) if (e, s) in fit for p in stages_of(e)]
    apart = [p for p in pairs if p.prune == stage and not p.shares_with(chosen)]
    if not apart:
        others = [p for p in pairs if p.encoding != chosen.encoding][:1]
        others += [p for p in pairs if p.solver != chosen.solver.split(":")[0]][:1]
        return list(dict.fromkeys(others))
    by_theorem = isinstance(route, Plan) and route.theorem is not None
    alone = [p for p in apart if by_theorem and not starts_from_polygraph(p.encoding)]
    return list(dict.fromkeys([*apart[:1], *alone[:1]]))


def parse_pair(text: str, route: Route | None = None) -> Pair:
    """Return the pair named by a text of the form ``encoding/solver/prune``.

    Raises:
        SolverError: if the pair does not exist, is not installed, or does not support the
            specification.
    """
    parts = text.split("/")
    if len(parts) != 3:
        raise SolverError(
            "not a pair (expected encoding/solver/prune, such as "
            f"one_variable/sat/none; got {text!r})"
        )
    return choose_pair(*parts, route=route)[0]


def cross_check(
    history: History,
    route: Route,
    chosen: Pair,
    others: Sequence[Pair],
    *,
    seconds: float | None = None,
    work: int = WORK,
    seed: int = 0,
) -> CrossCheck:
    """Decide one history with several encoding-solver pairs, and shrink it if they disagree."""
    claims = [
        claim_of(history, route, pair, seconds=seconds, seed=seed, work=Work(work))
        for pair in (chosen, *others)
    ]
    found = CrossCheck(claims=tuple(claims))
    if not found.disagreement:
        return found
    pair_of = {c.outcome: c.pair for c in reversed(claims)}
    accused = [pair_of[o] for o in ("valid", "invalid", "wrong") if o in pair_of]
    # Shrinking checks no proofs, so it needs the engine's outcome to notice a wrong claim.
    engine = ENGINE if isinstance(route, Plan) else Pair("relational", NATIVE, "none")
    if engine not in accused:
        accused.append(engine)
    minimal = _shrink_history(history, route, accused, seconds=seconds, seed=seed)
    return CrossCheck(claims=tuple(claims), minimal=minimal)


def claim_of(
    history: History,
    route: Route,
    pair: Pair,
    *,
    seconds: float | None,
    seed: int = 0,
    proof: bool = True,
    work: Work | None = None,
) -> PairClaim:
    """Decide a history with a pair, and check the pair's model or refutation."""
    start = time.perf_counter()
    run = PairRun(history, route, pair, Deadline(seconds), Options(seed=seed, threads=1), work=work)
    found = run_within_limits(run, lambda: _outcome_of(run, proof=proof))
    if isinstance(found, Undecided):
        time_limit = "work" if seconds is None or run.out_of_work() else f"{seconds:.3g} s"
        limit = {"timeout": time_limit, "memory": "memory"}.get(found.cause)
        outcome: Outcome = "unknown"
        detail = f"not decided within its {limit}" if limit else found.reason
    else:
        outcome, detail = found
    return PairClaim(pair=pair, outcome=outcome, detail=detail, seconds=time.perf_counter() - start)


def _outcome_of(run: PairRun, *, proof: bool) -> tuple[Outcome, str]:
    """Return the outcome of a run, and a phrase for what the checker certified."""
    if run.contradiction() is not None:
        return "invalid", "by the pre-pass, which all pairs share"
    answer = run.solve()
    found = answer.result
    if isinstance(found, Undecided):
        return "wrong", found.reason
    if isinstance(found, Unproved) and not proof:
        return "invalid", "not proved"
    proved = prove(run, answer) if isinstance(found, Unproved) else found
    if isinstance(proved, UnsatCore):
        proved = proved.proof
    elif isinstance(proved, Witness):
        proved = run.as_written(proved)
    certification = run.certify(proved)
    if isinstance(found, Unproved) and isinstance(proved, Witness | Relations):
        if certification.accepted:
            return (
                "wrong",
                "this pair finds no model, but the checker accepted a model that the engine found",
            )
        return "invalid", f"not proved, because the engine finds a model ({certification.reason})"
    if certification.rejected:
        return "wrong", f"the checker rejected its proof: {certification.reason}"
    if certification.accepted:
        name = "witness" if answer.outcome == "valid" else "refutation"
        return answer.outcome, f"{name} accepted"
    return answer.outcome, certification.reason


def _shrink_history(
    history: History, route: Route, pairs: Sequence[Pair], *, seconds: float | None, seed: int
) -> History:
    """Shrink a history as long as the pairs disagree on it, and return the result.

    The search removes sessions first, then transactions, then operations.
    """
    deadline, work = Deadline(seconds), Work(_SHRINK)

    def late() -> bool:
        try:
            deadline.remaining()
        except TimeoutError:
            return True
        return not work.left

    def disagree_on(part: HistoryPart) -> bool:
        work.spend(_ATTEMPT)
        if late():
            return False
        remaining = deadline.remaining()
        outcomes = []
        for pair in pairs:
            try:
                with work.part(1 / 4) as own:
                    one = claim_of(
                        part.history,
                        route,
                        pair,
                        seconds=remaining,
                        seed=seed,
                        proof=False,
                        work=own,
                    )
            except IsolangError:
                return False
            outcomes.append(one.outcome)
        return disagree(outcomes)

    part = whole_part(history)
    for session in dict.fromkeys(history.columns.txn_session.tolist()):
        if disagree_on(smaller := _without_session(part, session)):
            part = smaller

    part = shrink(part, disagree_on, by_transaction=True, enough=late)
    return shrink(part, disagree_on, by_transaction=False, enough=late).history


def _without_session(part: HistoryPart, session: int) -> HistoryPart:
    """Return the part without the given session, numbered as in the whole history."""
    session_of = part.whole.columns.txn_session
    txns = [i for i, t in enumerate(part.txns[:-1]) if session_of[t] != session]
    ops = [op for t in txns for op in part.history.operations_of(t)]
    return part.narrowed(ops, [t for t in txns if not part.history.operations_of(t)])
