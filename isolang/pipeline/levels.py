"""Finds the levels of the library that a history satisfies, and the weakest that it violates."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from isolang.certify.proofs import Refutation
from isolang.errors import HistoryError, UnsupportedError, internal_error
from isolang.language.hierarchy import IMPLIES, implied_by
from isolang.language.library import NO_SESSION
from isolang.limits import Deadline, Work
from isolang.options import Options
from isolang.pipeline import decide
from isolang.problem import build_problem
from isolang.verdict import NOTHING_OBSERVED, Invalid, Unknown

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.classify.route import Route
    from isolang.verdict import Verdict

Standing: TypeAlias = Literal["satisfied", "violated", "unknown", "no times"]

NEED_TIMES = frozenset(
    ("sser", "strong-si", "sser-nosession", "strong-si-nosession"),
)


# The share of the remaining work that one level may use, and the work that each level counts for
# each operation of the history.
_SHARE, _PER_OPERATION = 1 / 4, 4
_LONGEST_ERROR = 10**15
"""The largest clock error to try, in nanoseconds: eleven days."""


class LevelStanding(Struct, frozen=True, kw_only=True):
    """The result for one level, which was judged or follows from the result for another level.

    Attributes:
        name: the name of the level in the library.
        standing: whether the history satisfies the level; ``no times`` if the level needs real time
            and the history has none.
        certified: whether the verdict was certified, or the verdict from which this result follows.
        follows_from: the level from whose verdict this result follows; empty if this level was
            judged.
        anomaly: the name of the anomaly if the level is violated.
        reason: the meaning of the anomaly, or why the verdict is unknown.
        seconds: how long judging took.
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
        """``True`` if the standing is unknown because the time or the work ran out."""
        return self.standing == "unknown" and self.reason.startswith("timeout")


class Levels(Struct, frozen=True, kw_only=True):
    """The levels of the library that a history satisfies and violates.

    Attributes:
        history: the history.
        levels: the result for each level by name, in the order of ``IMPLIES``.
        seconds: how long all checks took together.
        notes: the caveats of the history; and that nothing was observed, if all valid verdicts say
            so.
    """

    history: History
    levels: Mapping[str, LevelStanding]
    seconds: float
    notes: tuple[str, ...] = ()

    def strongest(self) -> tuple[str, ...]:
        """Return the satisfied levels that no other satisfied level implies."""
        good = self._standing("satisfied")
        return tuple(n for n in good if not any(n in implied_by(m) for m in good))

    def weakest_violated(self) -> tuple[str, ...]:
        """Return the violated levels that imply no other violated level."""
        bad = self._standing("violated")
        return tuple(n for n in bad if not any(m in implied_by(n) for m in bad))

    def worth_listing(self) -> tuple[str, ...]:
        """Return the levels to list in a report.

        If each level and its form without sessions have the same standing, the forms without
        sessions are left out.
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
    deadline: Deadline | None = None,
    work: Work | None = None,
) -> Levels:
    """Find out which levels of the library a history satisfies.

    The search begins in the middle of the hierarchy. A level is not judged if its verdict follows
    from another verdict: a history that satisfies a level satisfies all levels that it implies,
    and a history that violates a level violates all levels that imply it.

    Args:
        history: the result of ``load_history`` or ``History.from_transactions``.
        options: how to check each level; the timeout limits each level, which is unknown if the
            timeout passes.
        progress: called with the name of each level, and of each phase, as it begins.
        simplest: whether to report the anomaly of the simplest violation found.
        deadline: the time limit for all levels together; ``None`` for no limit.
        work: the limit of work for all levels together, of which each level may use a share of the
            remainder; ``None`` for no limit. A level that needs more work is unknown.

    Raises:
        HistoryError: the columns of the history do not fit together.
        UnsupportedError: no level can judge the history.

    >>> from isolang import History, Transaction
    >>> history = History.from_transactions([
    ...     Transaction([("r", "x", None), ("w", "y", 1)], session="a"),
    ...     Transaction([("r", "y", None), ("w", "x", 1)], session="b"),
    ... ])
    >>> found = levels_of(history)
    >>> found.strongest(), found.levels["ser"].anomaly
    (('si',), 'write skew')
    """
    start = time.perf_counter()
    problem = build_problem(history)
    below = {name: implied_by(name) for name in IMPLIES}
    above = {name: frozenset(m for m in IMPLIES if name in below[m]) for name in IMPLIES}
    found: dict[str, LevelStanding] = {}
    idle: list[bool] = []  # for each valid verdict, whether nothing was observed
    proofs: list[tuple[Refutation, History]] = []  # the refutation of the last invalid verdict
    if not history.columns.has_time:
        found |= {n: LevelStanding(name=n, standing="no times") for n in IMPLIES if n in NEED_TIMES}

    def decide_one(route: Route) -> Verdict:
        with nullcontext() if work is None else work.part(_SHARE) as part:
            if part is not None:
                part.spend(_PER_OPERATION * history.columns.operations())
            remaining = None if deadline is None else deadline.remaining()
            verdict = decide(
                history,
                route,
                Deadline(_earlier(options.timeout, remaining)),
                options,
                progress,
                problem=problem,
                simplest=simplest,
                work=part,
            )
        if verdict.outcome == "valid":
            idle.append(verdict.nothing_observed)
        proofs[:] = []
        if isinstance(verdict, Invalid) and isinstance(verdict.refutation, Refutation):
            proofs.append((verdict.refutation, verdict.history))
        return verdict

    while undecided := frozenset(name for name in IMPLIES if name not in found):

        def decides(name: str, undecided: frozenset[str] = undecided) -> int:
            return min(len(below[name] & undecided), len(above[name] & undecided))

        name = max((n for n in IMPLIES if n in undecided), key=decides)
        # A search with sessions finds a violation sooner, and its proof often needs no session.
        name = next(n for n in (name.removesuffix(NO_SESSION), name) if n in undecided)
        progress(name)
        judged = {name: _level(name, decide_one)}
        if proofs:
            proof, judged_history = proofs.pop()
            part = _part_of(proof, judged_history)
            judged |= {
                other: replace(judged[name], name=other, follows_from=name, seconds=0.0)
                for other in IMPLIES
                if options.certify and other in below[name] & undecided
                # The part is checked first, because the checker rejects it faster.
                if all(
                    _refutes(*one, other, options.timeout)
                    for one in (part, (proof, judged_history))
                )
            }
        for one, level in judged.items():
            found[one] = level
            follow = {"satisfied": below[one], "violated": above[one]}.get(level.standing, ())
            for other in follow:
                if other in undecided and other not in judged:
                    found[other] = replace(level, name=other, follows_from=name, seconds=0.0)
    return Levels(
        history=history,
        levels={name: found[name] for name in IMPLIES},
        seconds=time.perf_counter() - start,
        notes=((NOTHING_OBSERVED,) if idle and all(idle) else ()) + history.caveats,
    )


def least_clock_error(
    history: History,
    level: str,
    options: Options = Options(),  # noqa: B008 - frozen
) -> int | None:
    """Return the least clock error, in nanoseconds, with which a history satisfies a level.

    Events that are ordered with a larger clock error are also ordered with a smaller one.
    Therefore the verdict changes only once, and a binary search finds the least error.

    Args:
        history: a history with the times of a clock and without a clock error.
        level: a level that uses real time.
        options: how to check; the timeout limits each verdict.

    Returns:
        The clock error; ``None`` if no error suffices, or if some verdict is unknown.

    Raises:
        HistoryError: the history has no times of a clock.
    """
    from isolang.history.clock_error import with_clock_error
    from isolang.language.classify.route import route
    from isolang.language.load import load_spec

    way = route(load_spec(level))

    def satisfied(error: int) -> bool | None:
        wide = with_clock_error(history, error)
        verdict = decide(wide, way, Deadline(options.timeout), options, simplest=False)
        return None if isinstance(verdict, Unknown) else not isinstance(verdict, Invalid)

    high = 1
    while not (holds := satisfied(high)):
        if holds is None or high > _LONGEST_ERROR:
            return None
        high *= 4
    low = high // 4  # violates the level
    while high - low > 1:
        holds = satisfied(middle := (low + high) // 2)
        if holds is None:
            return None
        low, high = (low, middle) if holds else (middle, high)
    return high


def _earlier(*seconds: float | None) -> float | None:
    return min((one for one in seconds if one is not None), default=None)


def _level(name: str, decide_one: Callable[[Route], Verdict]) -> LevelStanding:
    from isolang.language.classify.route import route
    from isolang.language.load import load_spec

    try:
        verdict = decide_one(route(load_spec(name)))
    except HistoryError as error:
        return LevelStanding(name=name, standing="unknown", reason=str(error))
    except TimeoutError:
        return LevelStanding(name=name, standing="unknown", reason="timeout: the time ran out")
    except (MemoryError, UnsupportedError):
        raise
    except Exception as error:  # a bug makes only one level unknown
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
    """Return the part of a history that a refutation mentions, and the refutation of that part."""
    from isolang.explain.part import Sources, operations_of, part_of

    txns = Sources(build_problem(history)).closed(proof.steps)
    part = part_of(history, operations_of(history, txns), txns)
    return Refutation(tuple(part.to_part(proof.steps))), part.history


def _refutes(proof: Refutation, history: History, name: str, timeout: float | None) -> bool:
    """Return whether the checker accepts a refutation of one level for another level."""
    from isolang.certify.errors import CertificateRejected, NotCertifiedError
    from isolang.certify.native import check_natively
    from isolang.certify.steps import CycleStep
    from isolang.language.classify.event_graph import Plan
    from isolang.language.classify.route import route
    from isolang.language.load import load_spec

    plan = route(load_spec(name))
    if not isinstance(plan, Plan):
        return False
    # If the level has several checks, it is open which of them forbids a cycle, so steps keep their
    # check.
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
