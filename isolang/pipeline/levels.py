"""Finds out which library levels a history satisfies and which it violates."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from isolang.certify.proofs import Refutation, Witness
from isolang.errors import HistoryError, UnsupportedError, internal_error
from isolang.history.history import History
from isolang.history.not_seen import allowing_hint, unseen_reason
from isolang.history.superseded import without_superseded_reads
from isolang.language.hierarchy import IMPLIES, implied_by
from isolang.language.library import NO_SESSION
from isolang.limits import Deadline, Work
from isolang.options import Options
from isolang.pipeline import decide
from isolang.pipeline.implicit import FEW_SET_READS
from isolang.pipeline.possible import LOST_FACTS
from isolang.pipeline.superseded import open_superseded_reads
from isolang.problem import build_problem
from isolang.verdict import NOTHING_OBSERVED, Invalid, Unknown, Valid

if TYPE_CHECKING:
    from isolang.language.classify.route import Route
    from isolang.verdict import Verdict

Standing: TypeAlias = Literal["satisfied", "violated", "unknown", "no times"]

NEED_TIMES = frozenset(
    ("sser", "strong-si", "sser-nosession", "strong-si-nosession"),
)


# The share of the remaining work that one level may use, and the work charged per operation for
# judging a level.
_SHARE, _PER_OPERATION = 1 / 4, 4
_LIKELY, _MANY_OPERATIONS = "ser", 100_000
# If each transaction accesses one key, these levels are the same. SOUND BECAUSE of two pairs
# a -rw-> b -rw-> c, b has a read and a write of one key. If another write lies between the two, or
# the read sees a later version, there is a cycle with at most one rw, which the weaker level
# forbids, too. Otherwise c overwrites what a read, and a -rw-> c takes the place of both. So each
# cycle has a cycle without adjacent rw, and in one key, without sessions and real time, a cycle
# with at most one rw.
_OF_ONE_KEY: Mapping[str, str] = {
    "si": "ser",
    "strong-si": "sser",
    f"si{NO_SESSION}": f"ser{NO_SESSION}",
    f"strong-si{NO_SESSION}": f"sser{NO_SESSION}",
    f"psi{NO_SESSION}": f"ser{NO_SESSION}",
}
_FIRST_OF_ONE_KEY = f"ser{NO_SESSION}"
_LONGEST_ERROR = 10**15
"""The largest clock error to try, in nanoseconds: eleven days."""


class LevelStanding(Struct, frozen=True, kw_only=True):
    """The result for one level, which was judged or follows from another level's result.

    Attributes:
        name: the level's name in the library.
        standing: whether the history satisfies the level; ``no times`` if the level needs real time
            and the history has no times.
        certified: whether the verdict on the level was certified; if the result follows from
            another level's verdict, whether that verdict was certified.
        follows_from: the level whose verdict this result follows from; empty if this level was
            judged.
        anomaly: the name of the anomaly if the level is violated; otherwise empty.
        reason: the meaning of the anomaly, or why the verdict is unknown.
        seconds: the seconds that judging the level took.
    """

    name: str
    standing: Standing
    certified: bool = False
    follows_from: str = ""
    anomaly: str = ""
    reason: str = ""
    seconds: float = 0.0

    @property
    def out_of_effort(self) -> bool:
        """``True`` if the standing is unknown because a time or work limit was reached."""
        return self.standing == "unknown" and self.reason.startswith("timeout")


class Levels(Struct, frozen=True, kw_only=True):
    """The library levels that a history satisfies and those that it violates.

    Attributes:
        history: the history that the results are about.
        levels: the result for each level by name, in the order of ``IMPLIES``.
        seconds: the total seconds for all checks.
        notes: the history's caveats, preceded by the note that nothing was observed if every valid
            verdict has it.
    """

    history: History
    levels: Mapping[str, LevelStanding]
    seconds: float
    notes: tuple[str, ...] = ()

    def strongest(self) -> tuple[str, ...]:
        """Return the satisfied levels not implied by another satisfied level."""
        good = self._standing("satisfied")
        return tuple(n for n in good if not any(n in implied_by(m) for m in good))

    def weakest_violated(self) -> tuple[str, ...]:
        """Return the violated levels that imply no other violated level."""
        bad = self._standing("violated")
        return tuple(n for n in bad if not any(m in implied_by(n) for m in bad))

    def worth_listing(self) -> tuple[str, ...]:
        """Return the names of the levels to list in a report.

        If every level has the same standing as its form without session order, those forms are left
        out.
        """
        twins = {name: f"{name}{NO_SESSION}" for name in self.levels}
        twins = {name: twin for name, twin in twins.items() if twin in self.levels}
        same = all(
            self.levels[name].standing == self.levels[twin].standing for name, twin in twins.items()
        )
        return tuple(n for n in self.levels if not (same and n in twins.values()))

    def _standing(self, standing: Standing) -> list[str]:
        return [n for n, level in self.levels.items() if level.standing == standing]


def levels_of(
    history: History,
    options: Options = Options(),  # noqa: B008 - frozen
    *,
    progress: Callable[[str], object] = lambda phase: None,
    simplest: bool = True,
    explained: bool = True,
    deadline: Deadline | None = None,
    work: Work | None = None,
    known: Mapping[str, Standing] | None = None,
    with_set_reads: History | None = None,
) -> Levels:
    """Find out which library levels a history satisfies.

    Levels in the middle of the hierarchy are judged first. A level is not judged if its result
    follows from another verdict: a history that satisfies a level satisfies all weaker levels, and
    one that violates a level violates all stronger levels.

    A level is violated if the facts that certainly decided answers violate it, and satisfied if all
    facts satisfy it (:mod:`isolang.history.possible`). If something was not seen, no level is
    satisfied (:mod:`isolang.history.not_seen`).

    Args:
        history: a result of ``load_history`` or ``History.from_transactions``.
        options: the options for checking each level. The timeout applies to each level separately;
            when it expires, the level's result is unknown.
        progress: a function called with the name of each level and each phase when it begins.
        simplest: whether to search for the simplest violation of each level.
        explained: whether to name the anomaly for each violated level. Without these names, judging
            a small history takes a third of the time.
        deadline: the time limit for all levels together; ``None`` for no limit.
        work: the work limit for all levels together; ``None`` for no limit. Each level may use a
            share of the remaining work; if it needs more, its result is unknown.
        known: levels that the caller has judged, as ``satisfied`` or ``violated``. They are not
            judged again.
        with_set_reads: the history of a verdict on this history, which may have more set-reads as
            operations; ``None`` for no verdict.

    Raises:
        HistoryError: if the columns of the history are inconsistent.
        UnsupportedError: if no level can judge the history.

    >>> from isolang import History, Transaction
    >>> history = History.from_transactions([
    ...     Transaction([("r", "x", None), ("w", "y", 1)], session="a"),
    ...     Transaction([("r", "y", None), ("w", "x", 1)], session="b"),
    ... ])
    >>> found = levels_of(history)
    >>> found.strongest(), found.levels["ser"].anomaly
    (('si',), 'write skew')
    """
    levels = _levels_of_facts(
        history, options, progress=progress, simplest=simplest, explained=explained,
        deadline=deadline, work=work, known=known, with_set_reads=with_set_reads,
    )  # fmt: skip
    satisfied = any(level.standing == "satisfied" for level in levels.levels.values())
    if satisfied and (unseen := history.harmful_unseen()):
        return without_satisfied(levels, f"{unseen_reason(unseen)}; {allowing_hint(unseen)}")
    if satisfied and history.lacks_facts:
        return without_satisfied(levels, LOST_FACTS)
    if not satisfied or (whole := history.with_all_facts()) is None:
        return levels
    known = {
        name: level.standing
        for name, level in levels.levels.items()
        if level.standing == "violated" or (known or {}).get(name) == "satisfied"
    }
    upper = _levels_of_facts(
        whole, options, progress=progress, simplest=simplest, explained=explained,
        deadline=deadline, work=work, known=known,
    )  # fmt: skip
    return unknown_where_facts_matter(levels, upper)


def _levels_of_facts(
    history: History,
    options: Options,
    *,
    progress: Callable[[str], object],
    simplest: bool,
    explained: bool,
    deadline: Deadline | None,
    work: Work | None,
    known: Mapping[str, Standing] | None,
    with_set_reads: History | None = None,
) -> Levels:
    """Find out which levels the operations in a history satisfy, as :func:`levels_of` does."""
    start = time.perf_counter()
    current = history if with_set_reads is None else _with_few_set_reads(history, with_set_reads)
    problem = build_problem(current)
    large = history.columns.operations() >= _MANY_OPERATIONS
    wrong_reads = bool(problem.anomaly_counts())
    of_one_key = not (large or wrong_reads) and _accesses_one_key_each(history)
    below = {name: implied_by(name) for name in IMPLIES}
    if of_one_key and not options.certify:  # no checker proves a level by the theorem
        for lesser, greater in _OF_ONE_KEY.items():
            both = implied_by(greater) | {greater}
            below |= {n: (below[n] | both) - {n} for n in IMPLIES if lesser in {n, *below[n]}}
    above = {name: frozenset(m for m in IMPLIES if name in below[m]) for name in IMPLIES}
    found: dict[str, LevelStanding] = {}
    idle: list[bool] = []  # for each valid verdict, whether nothing was observed
    proofs: list[tuple[Refutation, History]] = []  # the refutation of the last invalid verdict
    witnesses: dict[str, tuple[Witness, History]] = {}  # of the levels found satisfied
    likely_first = large and deadline is None and work is None and not wrong_reads
    if not history.columns.has_time:
        found |= {n: LevelStanding(name=n, standing="no times") for n in IMPLIES if n in NEED_TIMES}

    def settle(judged: Mapping[str, LevelStanding], name: str) -> None:
        undecided = [other for other in IMPLIES if other not in found and other not in judged]
        for one, level in judged.items():
            found[one] = level
            follow = {"satisfied": below[one], "violated": above[one]}.get(level.standing, ())
            for other in undecided:
                if other in follow:
                    found[other] = replace(level, name=other, follows_from=name, seconds=0.0)

    for name, standing in (known or {}).items():
        settle({name: LevelStanding(name=name, standing=standing)}, name)

    def decide_one(route: Route, presolve: bool) -> Verdict:
        nonlocal current, problem
        with nullcontext() if work is None else work.part(_SHARE) as part:
            if part is not None:
                part.spend(_PER_OPERATION * history.columns.operations())
            remaining = None if deadline is None else deadline.remaining()
            verdict = decide(
                current,
                route,
                Deadline(_earliest(options.timeout, remaining)),
                options,
                progress,
                problem=problem,
                simplest=simplest,
                explained=explained,
                presolve=presolve,
                work=part,
            )
        if (more := _with_few_set_reads(current, verdict.history)) is not current:
            current, problem = more, build_problem(more)
        if verdict.outcome == "valid":
            idle.append(verdict.nothing_observed)
        if isinstance(verdict, Valid) and isinstance(verdict.witness, Witness):
            witnesses[name] = verdict.witness, verdict.history
        proofs[:] = []
        if (
            options.certify
            and isinstance(verdict, Invalid)
            and isinstance(verdict.refutation, Refutation)
        ):
            proofs.append((verdict.refutation, verdict.history))
        return verdict

    while undecided := frozenset(name for name in IMPLIES if name not in found):
        # A history that violates a level often violates weaker ones too, so levels that many
        # others imply come first, and a model of even stronger checks is unlikely. But explanations
        # begin with the strong levels, whose names users know.
        violation = any(level.standing == "violated" for level in found.values())
        from_below = (violation or wrong_reads) and not explained

        def decided_at_least(
            name: str, undecided: frozenset[str] = undecided, likely: int = 1 + from_below
        ) -> int:
            satisfied, violated = below[name] & undecided, above[name] & undecided
            if wrong_reads and not explained:  # they violate all levels with a condition on reads
                return len(violated)
            return min(1 + len(satisfied), likely * (1 + len(violated)))

        name = max((n for n in IMPLIES if n in undecided), key=decided_at_least)
        # Verdicts on a large history take long, and one is enough if it is serializable, as most
        # are. If it is not, the proof often refutes weaker levels, too.
        if likely_first and _LIKELY in undecided:
            name = _LIKELY
        if of_one_key and violation and _FIRST_OF_ONE_KEY in undecided:
            name = _FIRST_OF_ONE_KEY
        # A search with session order finds a violation faster, and the proof often does not need
        # session order.
        name = next(n for n in (name.removesuffix(NO_SESSION), name) if n in undecided)
        progress(name)
        judged: dict[str, LevelStanding] = {}
        # The witness of a weaker level often proves this one, too, because the engine tries
        # stronger checks first.
        weaker = next((n for n in reversed(witnesses) if large and n in below[name]), None)
        if weaker is not None:
            judged = _proved(
                name, witnesses[weaker], options, work,
                _earliest(options.timeout, None if deadline is None else deadline.remaining()),
            )  # fmt: skip
            if judged:
                witnesses[name] = witnesses[weaker]
        if not judged:
            judged = {name: _level(name, partial(decide_one, presolve=not from_below))}
        if proofs:
            proof, judged_history = proofs.pop()
            part = _part_of(proof, judged_history)
            judged |= {
                other: replace(judged[name], name=other, follows_from=name, seconds=0.0)
                for other in IMPLIES
                if other in below[name] & undecided
                # The part is checked first, because the checker rejects a part faster than the
                # whole.
                if all(
                    _refutes(*one, other, options.timeout)
                    for one in (part, (proof, judged_history))
                )
            }
        settle(judged, name)
    levels = Levels(
        history=history,
        levels={name: found[name] for name in IMPLIES},
        seconds=time.perf_counter() - start,
        notes=((NOTHING_OBSERVED,) if idle and all(idle) else ()) + history.caveats,
    )
    if not levels.weakest_violated() or not open_superseded_reads(history):
        return levels
    others = _levels_of_facts(
        without_superseded_reads(history), options, progress=progress, simplest=simplest,
        explained=explained, deadline=deadline, work=work, known=known,
    )  # fmt: skip
    return _unknown_where_reads_matter(levels, others)


def without_satisfied(levels: Levels, reason: str) -> Levels:
    """Return the levels, with those unknown that a history seems to satisfy."""
    changed = {
        name: replace(level, standing="unknown", certified=False, reason=reason)
        if level.standing == "satisfied"
        else level
        for name, level in levels.levels.items()
    }
    return replace(levels, levels=changed)


def unknown_where_facts_matter(levels: Levels, upper: Levels) -> Levels:
    """Return the levels, with those unknown that a history satisfies only without some facts.

    Args:
        upper: the levels of the history with the facts that only may have decided an answer.
    """
    merged: dict[str, LevelStanding] = {}
    for name, level in levels.levels.items():
        other = upper.levels[name]
        if level.standing == "satisfied" and other.standing == "violated":
            anomaly = f" ({other.anomaly})" if other.anomaly else ""
            reason = f"depends on facts that only may have decided an answer{anomaly}"
            other = replace(level, standing="unknown", certified=False, anomaly="", reason=reason)
        merged[name] = other if level.standing == "satisfied" else level
    return replace(levels, levels=merged, seconds=levels.seconds + upper.seconds)


def _unknown_where_reads_matter(levels: Levels, others: Levels) -> Levels:
    """Return the levels, with those unknown that a history violates only with superseded reads."""
    reason = "depends on superseded reads; hint: --superseded-reads ignore or count"
    merged = {
        name: replace(others.levels[name], standing="unknown", anomaly="", reason=reason)
        if level.standing == "violated" and others.levels[name].standing != "violated"
        else level
        for name, level in levels.levels.items()
    }
    return replace(levels, levels=merged, seconds=levels.seconds + others.seconds)


def least_clock_error(
    history: History,
    level: str,
    options: Options = Options(),  # noqa: B008 - frozen
) -> int | None:
    """Return the smallest clock error, in nanoseconds, under which a history satisfies a level.

    If a clock error leaves two events ordered, so does every smaller clock error. Therefore the
    verdict changes at most once as the error grows, and a binary search finds the smallest error.

    Args:
        history: a history whose times come from a clock, read without a clock error.
        level: the name of a level that uses real time.
        options: the options of each check; the timeout applies to each check separately.

    Returns:
        The clock error; ``None`` if no clock error suffices, or if some verdict is unknown, as
        each is if operations were not seen.

    Raises:
        HistoryError: if the times of the history do not come from a clock.
    """
    from isolang.history.clock_error import with_clock_error

    if history.harmful_unseen():
        return None
    way = _route_of(level)
    history = history.with_all_facts() or history

    def satisfied(error: int) -> bool | None:
        wide = with_clock_error(history, error)
        verdict = decide(wide, way, Deadline(options.timeout), options, simplest=False)
        return None if isinstance(verdict, Unknown) else not isinstance(verdict, Invalid)

    high = 1
    while not (holds := satisfied(high)):
        if holds is None or high > _LONGEST_ERROR:
            return None
        high *= 4
    low = high // 4  # under this clock error, the history violates the level
    while high - low > 1:
        holds = satisfied(middle := (low + high) // 2)
        if holds is None:
            return None
        low, high = (low, middle) if holds else (middle, high)
    return high


def _with_few_set_reads(history: History, judged: History) -> History:
    """Return the history of a verdict if it only has a few more set-reads as operations.

    Orders of different levels usually contradict the same few predicate reads. If their set-reads
    are operations, the verdict on the next level often needs no search.
    """
    few = judged.columns.implicit and len(judged.set_reads) <= FEW_SET_READS
    return judged if few else history


def _accesses_one_key_each(history: History) -> bool:
    """Return whether no transaction accesses several keys, and no read has a predicate."""
    columns = history.columns
    if columns.implicit or len(columns.statement_txn):
        return False
    keys, starts = columns.op_key.tolist(), columns.op_start.tolist()
    return all(len(set(keys[start:end])) <= 1 for start, end in pairwise(starts))


def _earliest(*seconds: float | None) -> float | None:
    return min((one for one in seconds if one is not None), default=None)


@cache
def _route_of(name: str) -> Route:
    from isolang.language.classify.route import route
    from isolang.language.load import load_spec

    return route(load_spec(name))


def _level(name: str, decide_one: Callable[[Route], Verdict]) -> LevelStanding:
    try:
        verdict = decide_one(_route_of(name))
    except HistoryError as error:
        return LevelStanding(name=name, standing="unknown", reason=str(error))
    except TimeoutError:
        return LevelStanding(
            name=name, standing="unknown", reason="timeout: the time limit was reached"
        )
    except (MemoryError, UnsupportedError):
        raise
    except Exception as error:  # after a bug, only the result for this level is unknown
        return LevelStanding(name=name, standing="unknown", reason=internal_error(error))
    standing: dict[str, Standing] = {"valid": "satisfied", "invalid": "violated"}
    violation = verdict.violation if isinstance(verdict, Invalid) else None
    reason = verdict.reason if isinstance(verdict, Unknown) else ""
    return LevelStanding(
        name=name,
        standing=standing.get(verdict.outcome, "unknown"),
        certified=verdict.certified,
        anomaly="" if violation is None else violation.anomaly,
        reason=reason if violation is None else violation.about(),
        seconds=verdict.seconds.total,
    )


def _part_of(proof: Refutation, history: History) -> tuple[Refutation, History]:
    """Return a refutation, renumbered for the part of the history that it needs, and this part."""
    from isolang.explain.part import Sources, operations_of, part_of

    txns = Sources(build_problem(history)).closed(proof.steps)
    part = part_of(history, operations_of(history, txns), txns)
    return Refutation(tuple(part.to_part(proof.steps))), part.history


def _proved(
    name: str,
    witness: tuple[Witness, History],
    options: Options,
    work: Work | None,
    timeout: float | None,
) -> dict[str, LevelStanding]:
    """Return the standing of the level if the witness of another level is accepted for it too."""
    from isolang.certify.errors import CertificateRejected, NotCertifiedError
    from isolang.certify.native import check_natively
    from isolang.language.classify.event_graph import Plan

    plan, (proof, history) = _route_of(name), witness
    if not isinstance(plan, Plan) or not options.certify:
        return {}
    start = time.perf_counter()
    if work is not None:
        work.spend(min(work.left, _PER_OPERATION * history.columns.operations()))
    try:
        check_natively(history, plan.spec, proof, timeout or 0.0)
    except (CertificateRejected, NotCertifiedError):
        return {}
    seconds = time.perf_counter() - start
    return {name: LevelStanding(name=name, standing="satisfied", certified=True, seconds=seconds)}


def _refutes(proof: Refutation, history: History, name: str, timeout: float | None) -> bool:
    """Return whether a refutation found for another level is accepted for this one too."""
    from isolang.certify.errors import CertificateRejected, NotCertifiedError
    from isolang.certify.native import check_natively
    from isolang.certify.steps import CycleStep
    from isolang.language.classify.event_graph import Plan

    plan = _route_of(name)
    if not isinstance(plan, Plan):
        return False
    # If the level has only one check, all cycle steps name that check. If it has several, any of
    # them might forbid a cycle, so the steps keep their names.
    (check, *more) = plan.spec.checks
    steps = (
        replace(step, check=check.name) if isinstance(step, CycleStep) and not more else step
        for step in proof.steps
    )
    try:
        check_natively(history, plan.spec, Refutation(tuple(steps)), timeout or 0.0)
    except (CertificateRejected, NotCertifiedError):
        return False
    return True
