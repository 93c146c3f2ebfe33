"""Finds every kind of anomaly in a history, each with a count and a small, certified example.

A verdict reports only the simplest violation found. People debugging a database need all kinds:
mild and severe anomalies, cycles and intrinsic anomalies. Reads with an intrinsic anomaly would
hide cycles, so they are removed before the search for cycles. Each example is certified against the
whole history.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from isolang.certify.proofs import Refutation
from isolang.certify.steps import AnomalyStep, Step
from isolang.errors import UnsupportedError
from isolang.explain import names
from isolang.explain.explain import explain
from isolang.explain.known import KnownCycle, KnownGraph
from isolang.explain.part import HistoryPart, part_with_same_transactions
from isolang.explain.violation import Counted, Finding, Findings
from isolang.history.superseded import counted_reads, without_superseded_reads
from isolang.language.classify.event_graph import Plan
from isolang.limits import Deadline, Work
from isolang.options import Options
from isolang.pipeline.decision import decide, refuter
from isolang.pipeline.known_cycles import (
    is_certified,
    named_cycles,
    refutations_of_cycle,
    with_contradicting_set_reads,
    with_set_reads_of,
    without_wrong_reads,
)
from isolang.pipeline.levels import Levels, levels_of
from isolang.pipeline.superseded import open_superseded_reads
from isolang.problem import Problem, build_problem
from isolang.verdict import Invalid

if TYPE_CHECKING:
    from isolang.history.history import History

# Levels, weakest first. An example is reported with the first level that forbids it.
_WEAKEST_FIRST: Final = (
    "pl-1", "pl-2", "rc-nosession", "ra-nosession", "cc-nosession", "psi-nosession", "pc-nosession",
    "si-nosession", "ser-nosession", "rc", "ra", "cc", "psi", "pc", "si", "ser",
)  # fmt: skip
# The work limit for the whole search, and the share of the remaining work available for judging all
# levels.
_WORK, _LEVELS_SHARE = 150_000_000, 1 / 2
# Limits for the search for cycles of known edges: the number of reads and edges to visit, and the
# number of cycles to find per shape.
_VISITED: Final = 20_000_000
_CYCLES: Final = 100_000
_ATTEMPTS: Final = 3  # the number of cycles to try per name


def findings_of(
    history: History,
    options: Options = Options(),  # noqa: B008 - frozen
    *,
    progress: Callable[[str], object] = lambda phase: None,
) -> Findings:
    """Find every kind of anomaly in a history.

    Raises:
        UnsupportedError: if the history cannot be judged.

    >>> from isolang import History, Transaction
    >>> history = History.from_transactions([
    ...     Transaction([("r", "x", None), ("w", "x", 1), ("r", "z", 7)]),
    ...     Transaction([("r", "x", None), ("w", "x", 2)]),
    ... ])
    >>> [(one.anomaly, one.count, one.counted) for one in findings_of(history).anomalies]
    [('thin-air read', 1, 'reads'), ('lost update', 1, 'components')]
    """
    deadline = Deadline(options.timeout)
    incomplete = ""
    if reads := open_superseded_reads(history):
        incomplete = f"{counted_reads(history, reads)} were left out, because each was superseded"
        history = without_superseded_reads(history)
    found = _Collector(history, options, progress, deadline).all()
    return replace(
        found,
        not_finished="; ".join(filter(None, (incomplete, found.not_finished))),
        behind=_findings_behind_thin_air(history, options, progress, deadline, found),
    )


def _findings_behind_thin_air(
    history: History,
    options: Options,
    progress: Callable[[str], object],
    deadline: Deadline,
    found: Findings,
) -> tuple[Finding, ...]:
    """Return the additional findings if thin-air reads are taken as reads of the initial state.

    If the database had rows before the history began, nearly every read is a thin-air read. Then
    anomalies among the writes that replaced these rows, such as lost updates, are found only if the
    values of thin-air reads are taken as initial values.
    """
    from isolang.history.before import with_initial

    counts = {one.anomaly: one.count for one in found.anomalies}
    if "thin-air read" not in counts or history.options.get("initial_value"):
        return ()
    progress("behind thin-air reads")
    try:
        other = with_initial(history, unwritten=True)
    except UnsupportedError:
        return ()
    more = _Collector(other, options, progress, deadline).all()
    return tuple(one for one in more.anomalies if one.count > counts.get(one.anomaly, 0))


class _Collector:
    def __init__(
        self,
        history: History,
        options: Options,
        progress: Callable[[str], object],
        deadline: Deadline,
    ) -> None:
        self._history, self._problem, self._cut = with_contradicting_set_reads(history)
        self._options = options
        self._progress = progress
        self._deadline = deadline
        self._work = Work(_WORK)
        self._plans: dict[str, Plan] = {}
        self._found: dict[str, Finding] = {}

    def all(self) -> Findings:
        self._progress("anomalies of reads")
        self._intrinsic()
        self._progress("cycles")
        try:
            part, inner = without_wrong_reads(self._history, self._problem)
        except UnsupportedError as error:  # several transactions appended one element
            return self._result(self._levels_of(self._history), str(error))
        complete = self._cycles(part, inner, KnownGraph(inner, effort=_VISITED))
        self._progress("levels")
        standing = self._levels(part, inner)
        complete &= not any(one.out_of_effort for one in standing.levels.values())
        return self._result(standing, self._not_finished(complete))

    def _out_of_effort(self) -> bool:
        return not self._work.left or self._late()

    def _late(self) -> bool:
        try:
            self._deadline.remaining()
        except TimeoutError:
            return True
        return False

    def _not_finished(self, complete: bool) -> str:
        if self._late():
            return "the time limit was reached, so there may be more"
        if self._cut or not complete or not self._work.left:
            return "the work limit was reached, so there may be more"
        return ""

    def _result(self, standing: Levels, not_finished: str) -> Findings:
        order = {name: i for i, name in enumerate((*names.INTRINSIC.values(), *names.SEVERITY))}
        found = sorted(
            self._found.values(), key=lambda one: order.get(names.base_name(one.anomaly), 99)
        )
        violated = [n for n, level in standing.levels.items() if level.standing == "violated"]
        weakest = standing.weakest_violated()
        return Findings(
            anomalies=tuple(found),
            weakest_violated=weakest,
            also_violated=tuple(n for n in violated if n not in weakest),
            not_finished=not_finished,
        )

    # --- intrinsic anomalies ---

    def _intrinsic(self) -> None:
        for kind, count in self._problem.anomaly_counts().items():
            (one,) = self._problem.anomalies(kind, 1)
            step = AnomalyStep(int(kind), one.txn, one.op, one.other_txn, one.other_op)
            levels = self._judged_by(("pl-1", "pl-2", "psi-nosession"))
            level, certified = self._certified([step], levels)
            self._add([step], count, "reads", level or levels[-1], certified)

    def _judged_by(self, levels: Sequence[str]) -> Sequence[str]:
        """Return the given levels that can judge the history.

        If none of them can, return one other level that can.
        """
        allowed = self._history.levels
        found = [level for level in levels if not allowed or level in allowed]
        return found or allowed[:1]

    # --- cycles ---

    def _cycles(self, part: HistoryPart, problem: Problem, graph: KnownGraph) -> bool:
        """Add one finding per cycle name, and return whether the search was complete."""
        seen: dict[str, list[KnownCycle]] = {}
        where: dict[str, dict[frozenset[str], set[int]]] = {}  # name -> relations -> components
        found, all_seen = named_cycles(problem, graph, part.history, most=_CYCLES, effort=_VISITED)
        for name, relations, cycle in found:
            seen.setdefault(name, []).append(cycle)
            where.setdefault(name, {}).setdefault(relations, set()).add(cycle.component)
        for name, cycles in seen.items():
            for cycle in sorted(cycles, key=lambda one: len(one.edges))[:_ATTEMPTS]:
                if name in self._found or self._out_of_effort():
                    break
                count = max(map(len, where[name].values()))
                self._try(part, problem, cycle, count)
        return all_seen

    def _try(self, part: HistoryPart, problem: Problem, cycle: KnownCycle, count: int) -> None:
        """Add a cycle as a finding, with the weakest level that its transactions violate."""
        for level in self._judged_by(_WEAKEST_FIRST):
            plan = self._plan(level)
            if self._out_of_effort():
                return
            engine = refuter(self._options.seed, self._deadline.remaining)
            refutations = refutations_of_cycle(part, problem, cycle, plan, engine, self._work)
            for steps in refutations:
                if is_certified(self._history, plan.spec, steps):
                    self._add(steps, count, "components", level, True)
                    return
            if refutations:
                return

    # --- levels ---

    def _levels(self, part: HistoryPart, problem: Problem) -> Levels:
        """Judge all levels, and add each violation whose anomaly has not been found yet."""
        standing = self._levels_of(self._history)
        clean = standing
        if self._problem.anomalies(limit=1):
            clean = self._levels_of(part.history)
        violated = [n for n, level in clean.levels.items() if level.standing == "violated"]
        for name in dict.fromkeys((*clean.weakest_violated(), *violated)):
            level = clean.levels[name]
            if level.anomaly in self._found:
                continue
            if self._out_of_effort():
                break
            plan = self._plan(name)
            verdict = decide(
                part.history, plan, self._deadline, self._options, problem=problem, work=self._work
            )
            if isinstance(verdict, Invalid) and isinstance(verdict.refutation, Refutation):
                steps, refuted = verdict.refutation.steps, verdict.history
                judged = with_set_reads_of(self._history, refuted)
                whole = part_with_same_transactions(judged, refuted).to_whole(steps)
                found, certified = self._certified(whole, (name,), judged)
                if found:
                    self._add(whole, 1, "levels", name, certified, history=judged)
        return standing

    def _levels_of(self, history: History) -> Levels:
        with self._work.part(_LEVELS_SHARE) as part:
            return levels_of(
                history,
                replace(self._options, timeout=None),
                progress=self._progress,
                deadline=self._deadline,
                work=part,
            )

    # --- findings ---

    def _plan(self, level: str) -> Plan:
        from isolang.language.classify.route import route
        from isolang.language.load import load_spec

        if level not in self._plans:
            plan = route(load_spec(level))
            assert isinstance(plan, Plan), f"{level} is decided as an event graph"
            self._plans[level] = plan
        return self._plans[level]

    def _certified(
        self, steps: Sequence[Step], levels: Sequence[str], history: History | None = None
    ) -> tuple[str, bool]:
        """Return the first level for which the checker accepts a refutation."""
        for level in levels:
            if is_certified(history or self._history, self._plan(level).spec, steps):
                return level, True
        return "", False

    def _add(
        self,
        steps: Sequence[Step],
        count: int,
        counted: Counted,
        level: str,
        certified: bool,
        *,
        history: History | None = None,
    ) -> None:
        violation = explain(self._problem if history is None else build_problem(history), steps)
        self._found.setdefault(
            violation.anomaly,
            Finding(
                anomaly=violation.anomaly,
                count=count,
                counted=counted,
                level=level,
                certified=certified,
                violation=violation,
            ),
        )
