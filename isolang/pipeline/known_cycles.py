"""Finds the short cycles of known edges in a history, and refutes a level by one of them.

The search for every kind of anomaly and the search for the violations of one level share these
steps. Reads with an intrinsic anomaly would hide cycles, so they are removed first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from isolang.arrays import np
from isolang.certify.proofs import Refutation
from isolang.certify.steps import ChoiceStep, CycleStep, Edge, RupStep
from isolang.errors import IsolangError
from isolang.explain import names
from isolang.explain.known import KnownCycle, KnownGraph
from isolang.explain.part import HistoryPart, Sources, part_with_same_transactions
from isolang.explain.smaller import Finder
from isolang.problem import Problem, build_problem

if TYPE_CHECKING:
    from isolang.certify.steps import Step
    from isolang.explain.part_refuter import Engine
    from isolang.history.history import History
    from isolang.language.classify.event_graph import Plan
    from isolang.language.meaning.core import Spec
    from isolang.limits import Work

# For each shape of a cycle, most severe first: the relations allowed for the closing edge, and
# those allowed for the other edges.
_SHAPES: Final[tuple[tuple[frozenset[str], frozenset[str]], ...]] = tuple(
    (frozenset(closing), frozenset(back))
    for closing, back in (
        (("ww",), ("ww",)),
        (("wr",), ("ww", "wr")),
        (("rw",), ("ww", "wr")),
        (("rw",), ("ww", "wr", "rw")),
        (("so",), ("ww", "wr", "so")),
        (("rw",), ("ww", "wr", "so")),
        (("rw",), ("ww", "wr", "rw", "so")),
    )
)
_CYCLE_WORK: Final = 4_000_000  # the work limit for refuting one cycle
_MOST_SET_READS: Final = 200_000


def with_contradicting_set_reads(history: History) -> tuple[History, Problem, bool]:
    """Turn all set-reads that matter for anomalies into operations.

    An implicit set-read becomes an operation if it implies an edge or an intrinsic anomaly, or if
    its predicate read has an anomaly. Other set-reads are part of an anomaly only under some
    transaction orders. Such anomalies are found when the levels are judged.
    """
    if not history.columns.implicit:
        return history, build_problem(history), False
    contradicting = history.columns.nearly_decided(_MOST_SET_READS)
    cut = len(contradicting) == _MOST_SET_READS
    if len(contradicting):
        history = history.with_set_reads(contradicting)
    problem = build_problem(history)
    wrong = sorted({history.statement_of(a.op) for a in problem.anomalies()} - {-1})
    others = history.columns.missed_by(np.array(wrong, np.int32), _MOST_SET_READS)
    if len(others):
        history = history.with_set_reads(others)
        problem = build_problem(history)
    return history, problem, cut or len(others) == _MOST_SET_READS


def with_set_reads_of(history: History, other: History) -> History:
    """Return ``history`` with the set-reads as operations that are operations in ``other``."""
    if other.set_reads == "all" or not history.columns.implicit:
        return history.written_out()
    more = sorted(set(other.set_reads).difference(history.set_reads))
    return history.with_set_reads(np.array(more, np.int32)) if more else history


def without_wrong_reads(history: History, problem: Problem) -> tuple[HistoryPart, Problem]:
    """Return the part of a history without reads that have an intrinsic anomaly, and its problem.

    Raises:
        UnsupportedError: the part cannot be judged.
    """
    kept = history
    while wrong := sorted({anomaly.op for anomaly in problem.anomalies()}):
        columns = kept.columns.without_reads(np.array(wrong, np.int64))
        kept = replace(kept, columns=columns, _lazy={})
        problem = build_problem(kept)
    return part_with_same_transactions(history, kept), problem


def named_cycles(
    problem: Problem, graph: KnownGraph, history: History, *, most: int, effort: int
) -> tuple[list[tuple[str, frozenset[str], KnownCycle]], bool]:
    """Return short cycles, each with its name and the relations of its shape.

    Args:
        most: the largest number of cycles of each shape.
        effort: the largest number of edges to visit for each shape.
    """
    native = problem.native
    keys = native.key_start.searchsorted(range(len(native.writer_txn)), side="right") - 1
    writes = set(zip(native.writer_txn.tolist(), keys.tolist(), strict=True))
    named: list[tuple[str, frozenset[str], KnownCycle]] = []
    all_seen = True
    for closing, back in _SHAPES:
        cycles, complete = graph.short_cycles(back, closing=closing, most=most, effort=effort)
        all_seen &= complete
        for cycle in cycles:
            if len({edge.a for edge in cycle.edges}) < len(cycle.edges):
                continue
            name = names.name_of_cycle(cycle.edges, lambda txn, key: (txn, key) in writes, history)
            named.append((name, closing | back, cycle))
    return named, all_seen


def refutations_of_cycle(  # noqa: PLR0917 - what a search needs
    part: HistoryPart,
    problem: Problem,
    cycle: KnownCycle,
    plan: Plan,
    engine: Engine,
    work: Work,
) -> tuple[Sequence[Step], ...]:
    """Return refutations of the whole history by a cycle's transactions, the shortest one first.

    The result is empty if the level allows the cycle, or if the work does not suffice.
    """
    allowed = min(_CYCLE_WORK, work.left)
    finder = Finder(problem, plan, engine, work=allowed)
    steps = finder.parts.of_cycle(cycle, plan.automata)
    work.spend(allowed - finder.parts.remaining_work)
    if steps is None:
        return ()
    return part.to_whole(finder.shortened(steps)), part.to_whole(steps)


def direct_refutations(
    part: HistoryPart, problem: Problem, cycle: KnownCycle, plan: Plan
) -> Iterator[Sequence[Step]]:
    """Yield a possible refutation of the whole history for each check, by just this cycle.

    The transactions of a cycle may violate the level in a simpler way, which the engine would find
    first. A transaction that read a version and overwrote it comes after the version's writer,
    because the opposite order is a cycle too. Whether the level forbids the cycle is for the
    checker to decide.
    """
    sources, history = Sources(problem), part.history
    reads = dict.fromkeys([*cycle.shown, *(edge.op for edge in cycle.edges if edge.op >= 0)])
    lemmas: list[tuple[Edge, ...]] = []
    for op in cycle.shown:
        reader, key = history.transaction_of(op), int(history.columns.op_key[op])
        for writer in sources.candidates(op):
            if writer not in (reader, history.t0):
                wr, ww = Edge("wr", writer, reader, key, op), Edge("ww", reader, writer, key)
                lemmas.append((wr, ww))
    for check in plan.spec.checks:
        cycles = [CycleStep(check.name, edges) for edges in (*lemmas, cycle.edges)]
        yield part.to_whole([*map(ChoiceStep, reads), *cycles, RupStep(())])


def is_certified(history: History, spec: Spec, steps: Sequence[Step]) -> bool:
    """Return whether the checker accepts a refutation of a specification.

    The checker runs even if the user does not want certificates, because the refutation was found
    on a part of the history.
    """
    from isolang.certify.native import check_natively

    try:
        check_natively(history, spec, Refutation(tuple(steps)))
    except (IsolangError, TimeoutError):
        return False
    return True
