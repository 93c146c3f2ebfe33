"""Decides which implicit set-reads must become operations, for predicate reads of large tables.

A history may leave set-reads implicit (``History.set_reads``). A model without the implicit
set-reads is accepted if, in some order of its transactions, each predicate read sees exactly the
rows it returned; docs/predicates.md#implicit-set-reads has the proof. If, in this order, a
predicate read sees a matching row that it did not return, the row's set-read becomes an operation,
and the history is solved again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from isolang.arrays import np
from isolang.history.columns import PARTLY_KNOWN, READ_NONE_OF
from isolang.language.classify.event_graph import Plan
from isolang.language.vocabulary import (
    BUILTIN_ORDERS,
    DEPENDENCIES,
    FROM_T0,
    MOMENTS,
    PARTS,
    is_test,
    relation_of,
)
from isolang.limits import Work
from isolang.pipeline.pair_run import written_spec
from isolang.pipeline.views import LARGEST, MOST_SET_READS, replay_views
from isolang.problem import build_problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolang._native import Problem as NativeProblem
    from isolang.certify.proofs import Proof, Witness
    from isolang.language.classify.automaton import Automaton
    from isolang.language.classify.route import Route
    from isolang.pipeline.pair_run import PairRun
    from isolang.problem import Problem
    from isolang.solvers.answer import Undecided, Unproved

# The relations that a check may use. Quoted names, tests, keys and statements only select some of
# the pairs of these relations.
_RELATIONS = frozenset(
    (
        *(*FROM_T0, *BUILTIN_ORDERS, *MOMENTS, *DEPENDENCIES),
        *(part for both in PARTS.values() for part in both),
        *("po", "tx"),
    )
)
# If orders contradict a predicate read more than _TIMES times, all its rows become part of the
# problem, and the set-reads of all its keys become operations, at most _AT_ONCE per round.
_TIMES = 3
_AT_ONCE = 200_000
# After this many rounds, all set-reads are written out.
_ROUNDS = 40
# All set-reads are also written out once the rounds have solved more operations in total than there
# are set-reads. With this many set-reads or more, writing all of them out costs more than many
# rounds.
_COUNTED = 4_000_000
# In place of a key, -1 means every row returned by the predicate read.
_EVERY_KEY = -1
# The work for a search with all set-reads where no order fits, before each predicate read gets a
# view of its own.
_SHORT = 3_000_000
# The number of predicate reads in the sample for estimating the number of set-reads.
_SAMPLE = 100
# The maximum number of contradicted set-reads to refute separately.
FEW_SET_READS = 8
# If no order fits, and at most this many predicate reads have been contradicted, only their
# set-reads are written out at first.
_FEW = 16
# If the first order contradicts at most _FEW predicate reads, and at most one in this many, their
# set-reads become operations before the search for a serial order. That search costs more, and it
# fails if a predicate read missed a row.
_PART = 100
# If an order contradicts more than a quarter of the predicate reads, the recording determines
# little of the order. Then all set-reads are written out if there are at most this many per
# operation.
_WRITTEN_OUT_EARLY = 3


def may_stay_implicit(route: Route) -> bool:
    """Return whether a single order of all transactions can show that the checks are satisfied.

    If not, all set-reads must become operations before the history is decided.
    """
    return (
        isinstance(route, Plan)
        and not written_spec(route).shows
        and all(
            is_test(letter) or relation_of(letter) in _RELATIONS
            for a in route.automata
            for letter in a.relations
        )
    )


def _anti_dependencies(automaton: Automaton) -> set[str]:
    """Return the anti-dependency relations, such as ``rw``, used by the cycles of a check."""
    closing = automaton.closing if automaton.back or automaton.direct else ()
    return {*map(relation_of, automaton.relations), *closing} & {"rw", *PARTS["rw"]}


class Implicit:
    """Decides which set-reads of a run's history become operations."""

    def __init__(self, run: PairRun) -> None:
        """Start with the run's history as it was read."""
        self._run = run
        self._whole = run.history
        self._missed: NDArray[np.int32] = np.zeros((0, 2), np.int32)
        self._returned = self._missed
        # Orders of other levels may have contradicted a few predicate reads before.
        before = run.history.set_reads if len(run.history.set_reads) <= FEW_SET_READS else ()
        self._contradicted = np.array(before, np.int32).reshape(-1, 2)
        self._times = np.zeros(len(self._whole.columns.statement_start), np.int32)
        self._rounds = 0
        self._searched = False  # whether a serial order has been sought
        self._solved = 0
        self._all: float | None = None
        self._whole_problem: NativeProblem | None = None  # with all set-reads as operations
        if run.pair.is_engine:
            run.restart(run.history, self._returned)

    def complete(self, witness: Witness) -> Witness | None:
        """Complete a witness with an order of COMMITs in which all implicit set-reads hold.

        Returns:
            The completed witness, or ``None`` if no such order was found. In that case, more
            set-reads of the run's history have become operations, and it must be solved again.
        """
        run = self._run
        if not run.history.columns.implicit:
            return witness
        with run.deadline.during("solve", to_the_end=True):
            run.progress("snapshots")
            found = self._order(witness)
            if found is None:
                return self._complete_without_order(witness)
            columns = run.history.columns
            commits, seen, order_txn, source = found
            seen = np.where(columns.statement_known > PARTLY_KNOWN, seen, -1)
            omitted = run.problem.native.omitted
            missed, returned, sources = columns.replay(commits, seen, omitted)
            if len(missed) or len(returned):
                contradicted = len(np.unique(np.concatenate((missed, returned))[:, 0]))
                if not self._searched and (self._rounds or contradicted > self._few()):
                    self._searched = True
                    if (serial := self._serial(witness, commits)) is not None:
                        return serial
                self._contradicted = missed
                run.likely_order = commits.tolist()
                self._write_out(missed, returned)
                return None
            source[omitted] = sources
        whole = replace(witness, source=source, order_txn=order_txn, commits=commits, seen=seen)
        if run.certify(whole, needed=True).accepted:
            return whole
        # The checker does not accept the order for this level.
        run.likely_order = commits.tolist()
        if not self._write_out_contradicted():
            self._write_out_all()
        return None

    def _complete_without_order(self, witness: Witness) -> Witness | None:
        """Complete a witness although no order of COMMITs fits; see ``complete``."""
        from isolang.certify.proofs import Witness

        if self._write_out_contradicted():
            return None
        run = self._run
        self._rounds += 1
        if not self._may_have_views() or self._rounds > _ROUNDS:
            self._write_out_all()
            return None
        whole = self._whole.written_out()
        if self._whole_problem is None:
            problem = build_problem(whole, each_read=run.looks_at_each_read)
            self._whole_problem = problem.native
            if (decided := self._decide_shortly(problem)) is not None:
                self._write_out_all()
                return decided if isinstance(decided, Witness) else None
        replayed = replay_views(run.history, witness, whole, self._whole_problem, run.likely_order)
        if replayed is None:
            self._write_out_all()
            return None
        missed, complete = replayed
        if len(missed):
            self._missed = np.unique(np.concatenate((self._missed, missed)), axis=0)
            run.restart(self._whole.with_set_reads(self._missed), self._returned)
            return None
        self._write_out_all()
        return complete if run.certify(complete, needed=True).accepted else None

    def _decide_shortly(self, problem: Problem) -> Proof | Unproved | Undecided | None:
        """Return the result for the history with all set-reads if little work finds one."""
        run = self._run
        work = run.work
        run.work = short = Work(_SHORT if work is None else min(_SHORT, work.left))
        allowed = short.left
        try:
            result = run.solve_natively(problem).result
        except TimeoutError:
            run.deadline.remaining()
            return None
        finally:
            run.work = work
            if work is not None:
                work.spend(allowed - short.left)
        return result

    def _may_have_views(self) -> bool:
        """Return whether each predicate read may have a view of its own.

        The level then allows reads of different transactions to see different orders, but requires
        that the statements of each transaction see more and more.
        """
        run = self._run
        problem = run.problem.native
        return (
            isinstance(run.route, Plan)
            and any(a.back and a.sites == "operations" for a in run.route.automata)
            and 0 < len(run.likely_order) <= LARGEST
            and not len(problem.omitted)
            and self._number_of_all() <= MOST_SET_READS
        )

    def _few(self) -> int:
        """Return the number of predicate reads that a nearly right first order may contradict."""
        return min(_FEW, len(self._whole.columns.statement_start) // _PART)

    def _serial(self, witness: Witness, near: NDArray[np.int32]) -> Witness | None:
        """Return a serial order near the given one, as a witness; ``None`` if none is found.

        SOUND BECAUSE the checker judges the witness. Where clients record their own transactions,
        lines are only swapped with their neighbours.
        """
        run = self._run
        columns = run.history.columns
        for one in (np.sort(near), near):  # the order of the lines is tried first
            found = columns.serial_order_near(one, run.deadline.remaining() or 0.0)
            if found is not None:
                break
        else:
            return None
        commits, sources = found
        place = np.full(columns.transactions(), -1, np.int64)
        place[commits] = np.arange(len(commits))
        explained = witness.source >= 0
        explained[run.problem.native.omitted] = True
        keys = np.repeat(np.arange(len(witness.order_start) - 1), np.diff(witness.order_start))
        whole = replace(
            witness,
            source=np.where(explained, sources, np.int32(-1)),
            order_txn=witness.order_txn[np.lexsort((place[witness.order_txn], keys))],
            commits=commits,
            seen=np.where(columns.statement_known > PARTLY_KNOWN, place[columns.statement_txn], -1),
        )
        return whole if run.certify(whole, needed=True).accepted else None

    def contradicted(self) -> list[int]:
        """Return the operations of the first few set-reads contradicted by the last order."""
        columns = self._run.history.columns
        found = []
        for statement, key in self._contradicted[:FEW_SET_READS].tolist():
            first, last = (
                int(columns.statement_start[statement]),
                int(columns.statement_end[statement]),
            )
            missed = columns.op_kind[first:last] == READ_NONE_OF
            found += (first + np.flatnonzero(missed & (columns.op_key[first:last] == key))).tolist()
        return found

    def _order(
        self, witness: Witness
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]] | None:
        from isolang._native import commit_order

        run = self._run
        assert isinstance(run.route, Plan)
        automata = run.route.automata
        letters = frozenset(
            relation_of(letter) for a in automata for letter in (*a.relations, *a.direct)
        )
        earlier = [a for a in automata if a.direct == {"earlier wr"}]
        overwriting = {rw for a in automata if a not in earlier for rw in _anti_dependencies(a)}
        common = {"serial": False, "item_rw": overwriting <= {"irw"}}
        kinds = [common, {**common, "versions_only": True}]
        if all(a.states == 1 and not a.direct for a in automata):
            kinds.insert(0, {**common, "serial": True})
        if not overwriting:
            kinds.append({**common, "by_statement": True, "as_modelled": bool(earlier)})
        for kind in kinds:
            found = commit_order(
                run.history.columns,
                run.problem.native,
                witness.source,
                witness.order_start,
                witness.order_txn,
                relations=letters,
                **kind,
                seconds=run.deadline.remaining() or 0.0,
            )
            if found is not None:
                return found
        return None

    def _write_out(self, missed: NDArray[np.int32], returned: NDArray[np.int32]) -> None:
        self._rounds += 1
        if self._rounds > 1:
            self._solved += self._run.history.columns.operations()
        contradicted = np.unique(np.concatenate((missed, returned))[:, 0])
        columns = self._whole.columns
        undetermined = 4 * len(contradicted) > len(columns.statement_start)
        if undetermined:
            self._run.likely_order = ()
        early = _WRITTEN_OUT_EARLY * columns.operations()
        if (
            self._rounds > _ROUNDS
            or (self._solved and self._solved > self._number_of_all())
            or (undetermined and self._number_of_all() <= early)
        ):
            self._write_out_all()
            return
        self._times[contradicted] += 1
        # Everything that a predicate read returned or missed restricts its position in the order.
        again = contradicted[self._times[contradicted] > _TIMES]
        all_rows = np.stack((again, np.full_like(again, _EVERY_KEY)), axis=1)
        self._returned = np.unique(np.concatenate((self._returned, returned, all_rows)), axis=0)
        history = self._run.history
        if len(missed):
            made = [self._missed, missed]
            if len(again):
                made.append(columns.missed_by(again, _AT_ONCE))
            self._missed = np.unique(np.concatenate(made), axis=0)
            history = self._whole.with_set_reads(self._missed)
        self._run.restart(history, self._returned)

    def _write_out_contradicted(self) -> bool:
        """Write out the predicate reads contradicted by some order, if that makes set-reads.

        If no order fits, the history often violates the level. The other set-reads of a
        contradicted predicate read then show this, with far fewer operations than all set-reads.
        """
        columns = self._whole.columns
        reads = np.flatnonzero(self._times).astype(np.int32)
        if len(reads) > _FEW:
            return False
        made = np.concatenate((self._missed, columns.missed_by(reads, _AT_ONCE)))
        made = np.unique(made, axis=0)
        if len(made) == len(self._missed):
            return False
        self._missed = made
        self._run.restart(self._whole.with_set_reads(made), self._returned)
        return True

    def _number_of_all(self) -> float:
        """Estimate the number of set-reads from a sample of predicate reads."""
        if self._all is None:
            columns = self._whole.columns
            reads = len(columns.statement_start)
            some = np.arange(0, reads, reads // _SAMPLE + 1, dtype=np.int32)
            found = len(columns.missed_by(some, _COUNTED)) * reads // len(some)
            self._all = found if found < _COUNTED else float("inf")
        return self._all

    def _write_out_all(self) -> None:
        self._run.restart(self._whole.written_out(), None)
