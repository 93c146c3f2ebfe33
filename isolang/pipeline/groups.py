"""Groups the violations of a level by their statements and tables, the harmful ones first.

A verdict explains the simplest violation found. In an application's recording, that may be a report
that saw half of a transaction, while a lost update that needs more words goes unmentioned. So this
module looks for all short cycles of known edges that violate the level. It puts those into one
group that have the same pairs of statements on the same tables. Each group is shown with one
certified example, its most harmful one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from isolang.arrays import np
from isolang.certify.proofs import Refutation
from isolang.errors import UnsupportedError, internal_error
from isolang.explain import names
from isolang.explain.explain import explain
from isolang.explain.known import KnownCycle, KnownGraph
from isolang.explain.part import part_with_same_transactions
from isolang.explain.violation import (
    EdgeView,
    PlainReason,
    Violation,
    ViolationGroup,
    ViolationGroups,
)
from isolang.history.columns import APPEND, READ, WRITE
from isolang.history.remarks import reads_columns
from isolang.history.row_text import table_of
from isolang.history.statement_text import shape_of_text
from isolang.language.classify.event_graph import Plan
from isolang.limits import Deadline, Work
from isolang.options import Options
from isolang.pipeline.decision import decide, refuter
from isolang.pipeline.known_cycles import (
    direct_refutations,
    is_certified,
    named_cycles,
    refutations_of_cycle,
    with_contradicting_set_reads,
    with_set_reads_of,
    without_wrong_reads,
)
from isolang.problem import build_problem
from isolang.verdict import Invalid, Valid

if TYPE_CHECKING:
    from isolang.certify.steps import Edge, Step
    from isolang.explain.part import HistoryPart
    from isolang.history.history import History
    from isolang.language.classify.route import Route
    from isolang.problem import Problem

_HARMFUL_FIRST: Final = (
    *names.INTRINSIC.values(), "G0", "G1c", "lost update", "predicate write skew", "write skew",
    "G2", "long fork", "phantom", "causality violation", "G-single", "fractured read",
    "non-monotonic read",
)  # fmt: skip
"""The names of anomalies in the order of their harm to an application.

An update that is lost, and a condition that no longer holds, corrupt data. A reader that saw a
mixture of two states often does no harm.
"""
# Limits: the units of work for refutations, the number of edges and reads to visit, the number of
# cycles to find for each shape, and to put into groups for each name, the number of cycles to try
# for each group, and the number of groups.
_WORK: Final = 10_000_000
_VISITED: Final = 2_000_000
_CYCLES: Final = 20_000
_MOST_OF_NAME: Final = 1_000
_ATTEMPTS: Final = 3
_MOST_GROUPS: Final = 24
# A history with more operations than this is not searched.
_LARGEST: Final = 2_000_000
# The largest number of verdicts on the rest of a history, and of operations in this history.
_MOST_VERDICTS: Final = 16
_LARGEST_REST: Final = 50_000
_LIMIT_REACHED: Final = "the work limit was reached, so there may be more"

_Pair: TypeAlias = tuple[str, str, str]
"""A table, the statement that read from it, and the statement that wrote to it."""


class _Group(Struct):
    """The violations of one group.

    Attributes:
        cycles: the cycles of known edges that may violate the level, by name.
        proof: the verdict with the example and its refutation; ``None`` if it is not known whether
            the level forbids the cycles.
        at_least: whether there may be more violations than ``transactions``.
    """

    pairs: tuple[_Pair, ...]
    cycles: dict[str, list[KnownCycle]] = field(default_factory=dict)
    transactions: dict[str, set[frozenset[int]]] = field(default_factory=dict)
    proof: Invalid | None = None
    at_least: bool = False

    def add(self, name: str, transactions: frozenset[int]) -> None:
        """Count a violation."""
        self.transactions.setdefault(name, set()).add(transactions)

    @property
    def anomaly(self) -> str:
        """Return the name of the example, or of the most harmful cycle if there is none."""
        if self.proof is not None:
            return self.proof.violation.anomaly
        return min(self.cycles, key=_harm)

    def place(self) -> tuple[int, int]:
        """Return the sort key: the harm, and then the number of violations."""
        return _harm(self.anomaly), -len(self.transactions.get(self.anomaly, ()))

    def sets(self) -> set[frozenset[int]]:
        """Return the sets of transactions of all names."""
        return {one for sets in self.transactions.values() for one in sets}

    def shown(self) -> ViolationGroup:
        """Return the group with its example."""
        assert self.proof is not None
        statements = [text for _, *both in self.pairs for text in both if text]
        return ViolationGroup(
            anomaly=self.anomaly,
            count=max(1, len(self.transactions.get(self.anomaly, ()))),
            at_least=self.at_least,
            tables=tuple(dict.fromkeys(table for table, _, _ in self.pairs)),
            statements=tuple(dict.fromkeys(statements)),
            programs=_programs(self.proof.violation),
            violation=self.proof.violation,
        )


def _programs(violation: Violation) -> tuple[str, ...]:
    """Return the names of the programs of a violation, without the arguments of calls."""
    ends = {end for _, cycle in violation.cycles() for edge in cycle.edges for end in edge.ends}
    labels = [t.labels[-1] for t in violation.transactions if t.labels and t.number in ends]
    return tuple(dict.fromkeys(label.partition("(")[0] for label in labels))


def _length(cycle: KnownCycle) -> tuple[int, int]:
    """Return the numbers of edges and of keys, by which cycles are easier to follow."""
    return len(cycle.edges), len({edge.key for edge in cycle.edges})


def _harm(name: str) -> int:
    """Return the place of an anomaly in the order of harm."""
    plain = names.base_name(name)
    return _HARMFUL_FIRST.index(plain) if plain in _HARMFUL_FIRST else len(_HARMFUL_FIRST)


def with_groups(
    verdict: Invalid,
    route: Route,
    options: Options = Options(),  # noqa: B008 - frozen
) -> tuple[Invalid, ViolationGroups]:
    """Group the violations of an invalid history, and return the verdict with the first of them.

    The work is limited, so a large history may have more violations; the result says so. Only
    levels decided by the native engine are searched; for others, the only group is the verdict's.
    """
    search = _Search(verdict, options)
    if isinstance(route, Plan) and verdict.history.columns.operations() <= _LARGEST:
        try:
            search.find(route)
        except (TimeoutError, MemoryError):
            search.not_finished = "the time or memory limit was reached, so there may be more"
        except Exception as error:  # the verdict holds whatever happens here
            search.not_finished = internal_error(error)
    return search.result()


class _Search:
    """The search for the groups of one history.

    Attributes:
        not_finished: why the search ended early; empty if it did not.
    """

    def __init__(self, verdict: Invalid, options: Options) -> None:
        self.not_finished = ""
        self._verdict, self._options = verdict, options
        self._complete = True
        self._deadline = Deadline(options.timeout)
        self._work = Work(_WORK)
        self._groups: dict[frozenset[_Pair], _Group] = {}
        pairs = _pairs_of_violation(verdict.history, verdict.violation)
        self._group(pairs).proof = verdict

    def _group(self, pairs: tuple[_Pair, ...]) -> _Group:
        return self._groups.setdefault(frozenset(pairs), _Group(pairs))

    def result(self) -> tuple[Invalid, ViolationGroups]:
        """Return the verdict with the first group's violation, and all groups."""
        proved = [group for group in self._groups.values() if group.proof is not None]
        groups = sorted(_without_mixtures(proved), key=_Group.place)
        first = groups[0].proof
        assert first is not None
        return first, ViolationGroups(
            groups=tuple(group.shown() for group in groups),
            not_finished=self.not_finished or ("" if self._complete else _LIMIT_REACHED),
        )

    def find(self, plan: Plan) -> None:
        """Find the groups of the violations of a level."""
        history, problem, cut = with_contradicting_set_reads(self._verdict.history)
        self._complete = not cut
        try:
            part, inner = without_wrong_reads(history, problem)
        except UnsupportedError:  # several transactions appended one element
            return
        graph = KnownGraph(inner, effort=_VISITED)
        cycles, complete = named_cycles(inner, graph, part.history, most=_CYCLES, effort=_VISITED)
        self._complete &= complete
        seen: dict[str, set[frozenset[Edge]]] = {}  # the cycles of each name
        capped: set[str] = set()  # the names with more cycles than are put into groups
        for name, _, cycle in cycles:
            known, edges = seen.setdefault(name, set()), frozenset(cycle.edges)
            if edges in known:  # it has several shapes
                continue
            if len(known) == _MOST_OF_NAME:
                capped.add(name)
                continue
            known.add(edges)
            if _harm(name) < _harm("phantom") and _has_superseded_read(part.history, cycle):
                continue
            group = self._group(_pairs_of_cycle(part.history, cycle))
            group.add(name, frozenset(edge.a for edge in cycle.edges))
            group.cycles.setdefault(name, []).append(cycle)
        self._complete &= not capped
        for group in sorted(self._groups.values(), key=_Group.place):
            self._refute(group, history, part, problem, inner, plan)
            group.at_least |= group.anomaly in capped
        kept = {
            edge.op
            for group in self._groups.values()
            if group.proof is not None
            for cycles in group.cycles.values()
            for cycle in cycles
            for edge in cycle.edges
            if edge.relation == "rw"
        }
        self._find_others(history, {part.ops[op] for op in kept}, plan)

    def _is_over(self) -> bool:
        """Return whether no more work is allowed."""
        self._deadline.remaining()
        shown = sum(group.proof is not None for group in self._groups.values())
        over = not self._work.left or shown >= _MOST_GROUPS
        self._complete &= not over
        return over

    def _refute(  # noqa: PLR0917 - a history in two forms
        self,
        group: _Group,
        history: History,
        part: HistoryPart,
        problem: Problem,
        inner: Problem,
        plan: Plan,
    ) -> None:
        """Find out whether the level forbids a group's cycles, and keep a certified example."""
        for name in sorted(group.cycles, key=_harm):
            if group.proof is not None and _harm(name) >= _harm(group.anomaly):
                return
            for cycle in sorted(group.cycles[name], key=_length)[:_ATTEMPTS]:
                if self._is_over():
                    return
                attempts = self._attempts(part, inner, cycle, plan)
                certified = (steps for steps in attempts if is_certified(history, plan.spec, steps))
                if (steps := next(certified, None)) is not None:
                    group.proof = self._verdict_with(history, explain(problem, steps), steps)
                    return

    def _attempts(
        self, part: HistoryPart, problem: Problem, cycle: KnownCycle, plan: Plan
    ) -> Iterator[Sequence[Step]]:
        """Yield possible refutations by a cycle, and by anything that its transactions did."""
        yield from direct_refutations(part, problem, cycle, plan)
        engine = refuter(self._options.seed, self._deadline.remaining)
        yield from refutations_of_cycle(part, problem, cycle, plan, engine, self._work)

    def _verdict_with(
        self, history: History, violation: Violation, steps: Sequence[Step]
    ) -> Invalid:
        refutation = Refutation(tuple(steps))
        return replace(self._verdict, history=history, violation=violation, refutation=refutation)

    def _find_others(self, history: History, removed: set[int], plan: Plan) -> None:
        """Add the groups that need more than known edges.

        The reads that show the groups found so far are removed, and the rest of the history is
        judged again, until it satisfies the level.
        """
        if history.columns.operations() > _LARGEST_REST:
            self._complete = False
            return
        for _ in range(_MOST_VERDICTS):
            if self._is_over():
                return
            columns = history.columns.without_reads(np.array(sorted(removed), np.int64))
            verdict = decide(
                replace(history, columns=columns, _lazy={}), plan, self._deadline, self._options,
                work=self._work,
            )  # fmt: skip
            if not isinstance(verdict, Invalid) or not isinstance(verdict.refutation, Refutation):
                self._complete &= isinstance(verdict, Valid)
                return
            refuted = verdict.history
            judged = with_set_reads_of(history, refuted)
            if judged is not history:
                places = part_with_same_transactions(judged, history).ops
                history, removed = judged, {places[op] for op in removed}
            whole = part_with_same_transactions(history, refuted)
            steps = whole.to_whole(verdict.refutation.steps)
            if not is_certified(history, plan.spec, steps):
                break
            violation = explain(build_problem(history), steps)
            pairs = _pairs_of_violation(history, violation)
            missed = _reads_of_violation(violation)
            group = self._group(pairs)
            if group.proof is None:
                group.proof = self._verdict_with(history, violation, steps)
            else:  # there are many such violations; do not judge the history again for each
                group.at_least = True
                missed |= _similar_reads(history, missed)
            group.add(violation.anomaly, frozenset(t.number for t in violation.transactions))
            if missed <= removed:
                break
            removed |= missed
        self._complete = False


def _without_mixtures(groups: Sequence[_Group]) -> Iterator[_Group]:
    """Yield the groups, except those that are a mixture of others.

    If two transactions violate the level by the statements on one table, and also by those on
    another table, then a third cycle has an edge from each table.
    """
    for group in groups:
        simpler = [other for other in groups if len(other.pairs) < len(group.pairs)]
        pairs = {pair for other in simpler for pair in other.pairs}
        alike = [other.sets() for other in simpler if not {*other.pairs}.isdisjoint(group.pairs)]
        sets = group.sets()
        covered = bool(sets) and all(any(one in other for other in alike) for one in sets)
        if len(group.pairs) < 2 or not ({*group.pairs} <= pairs or covered):
            yield group


def _has_superseded_read(history: History, cycle: KnownCycle) -> bool:
    """Return whether a read that missed a write was repeated, and then saw another version.

    ``UPDATE … SET n = n + 1`` reads the newest version, so it loses no update even if the
    transaction has read an old version before. Such cycles are left out, because the two reads are
    a violation by themselves, which tells better what happened. An UPDATE that only finds the row
    by its columns does lose the update.
    """
    columns = history.columns
    for edge in cycle.edges:
        if edge.relation != "rw" or history.statement_of(edge.op) >= 0:
            continue
        written = {
            int(columns.op_value[op])
            for op in history.operations_of(edge.a)
            if int(columns.op_kind[op]) == WRITE
        }
        for op in range(edge.op + 1, history.operations_of(edge.a).stop):
            same = columns.op_key[op] == columns.op_key[edge.op]
            if same and int(columns.op_kind[op]) == READ and columns.op_ok[op]:
                value = int(columns.op_value[op])
                other = value != int(columns.op_value[edge.op]) and value not in written
                if other and not reads_columns(history.remark(op).row):
                    return True
    return False


def _edges(violation: Violation) -> Sequence[EdgeView]:
    """Return the edges of the argument's last cycle with an anti-dependency, or of all cycles.

    The last cycle of all is the conclusion; the others belong to lemmas and cases.
    """
    cycles = [cycle.edges for _, cycle in violation.cycles()]
    missing = [edges for edges in cycles if any(edge.relation == "rw" for edge in edges)]
    return missing[-1] if missing else [edge for edges in cycles for edge in edges]


def _reads_of_violation(violation: Violation) -> set[int]:
    """Return the reads of an argument that missed a write, or else those that saw one."""
    edges = _edges(violation)
    missed = {edge.operations[0] for edge in edges if edge.relation == "rw"}
    others = {edge.operations[0] for edge in edges if edge.relation == "wr"}
    return missed or others


def _similar_reads(history: History, reads: Iterable[int]) -> set[int]:
    """Return all reads of the same tables by the same statements."""
    columns = history.columns

    def statement(op: int) -> tuple[str, str]:
        table = table_of(history, int(columns.op_key[op]))
        return table, shape_of_text(history.remark(op).caller)

    similar = set(map(statement, reads))
    every = np.flatnonzero((columns.op_kind != WRITE) & (columns.op_kind != APPEND))
    return {op for op in every.tolist() if statement(op) in similar}


def _pairs_of_cycle(history: History, cycle: KnownCycle) -> tuple[_Pair, ...]:
    columns = history.columns

    def write_of(txn: int, key: int) -> int | None:
        writes = (
            op
            for op in reversed(history.operations_of(txn))
            if int(columns.op_key[op]) == key and int(columns.op_kind[op]) in (WRITE, APPEND)
        )
        return next(writes, None)

    edges: list[tuple[str, list[int | None]]] = []
    for edge in cycle.edges:
        if edge.relation == "rw":
            key = int(columns.op_key[edge.op])
            edges.append(("rw", [edge.op, write_of(edge.b, key)]))
        elif edge.relation == "wr":
            key = int(columns.op_key[edge.op])
            edges.append(("wr", [edge.op, write_of(edge.a, key)]))
        elif edge.relation == "ww":
            edges.append(("ww", [write_of(edge.a, edge.key), write_of(edge.b, edge.key)]))
    return _pairs(history, edges)


def _pairs_of_violation(history: History, violation: Violation) -> tuple[_Pair, ...]:
    if edges := _edges(violation):
        return _pairs(history, [(edge.relation, [*edge.operations[:2]]) for edge in edges])
    conclusion = violation.argument.conclusion
    operations = conclusion.operations if isinstance(conclusion, PlainReason) else ()
    return _pairs(history, [("wr", [op]) for op in operations])


def _pairs(
    history: History, edges: Sequence[tuple[str, Sequence[int | None]]]
) -> tuple[_Pair, ...]:
    """Return the tables and statements of edges: of the anti-dependencies, if there are any."""
    for relation in ("rw", "wr", "ww"):
        chosen = [[op for op in ops if op is not None] for name, ops in edges if name == relation]
        if any(chosen):
            pairs: dict[_Pair, None] = {}
            for ops in filter(None, chosen):
                texts = [shape_of_text(history.remark(op).caller) for op in ops]
                table = table_of(history, int(history.columns.op_key[ops[0]]))
                pairs[table, texts[0], texts[1] if len(texts) > 1 else ""] = None
            return tuple(pairs)
    return ()
