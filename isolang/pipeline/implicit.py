"""Predicate reads over large tables: a set-read becomes an operation only if an order needs it.

A history may leave set-reads implicit (``History.set_reads``). A model of the others counts if some
order of its transactions gives each predicate read exactly the rows that it returned;
docs/predicates.md#implicit-set-reads has the proof. If the order gives it a matching row that it
did not return, that set-read becomes an operation, and the history is solved again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from isolang.history.columns import PART, READ_NONE_OF
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
from isolang.pipeline.pair_run import written_spec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang.certify.proofs import Witness
    from isolang.language.classify.automaton import Automaton
    from isolang.language.classify.route import Route
    from isolang.pipeline.pair_run import PairRun

# Names, tests, single keys and statements only select some of their pairs.
_RELATIONS = frozenset(
    (
        *(*FROM_T0, *BUILTIN_ORDERS, *MOMENTS, *DEPENDENCIES),
        *(part for both in PARTS.values() for part in both),
        *("po", "tx"),
    )
)
# A predicate read that orders contradict again gets set-reads of all its keys, at most this many
# per round; after this many rounds, all set-reads are written out.
_AT_ONCE = 200_000
_ROUNDS = 40
# All are written out, too, once more operations were solved again than there are set-reads; but
# from this many on, set-reads cost more than any number of rounds.
_COUNTED = 4_000_000
# The number of set-reads is estimated from this many predicate reads.
_SAMPLE = 100
# At most this many contradicted set-reads are refuted by themselves.
_REFUTED_ALONE = 8
# If an order contradicts one predicate read in four, the recording determines the order badly; then
# all set-reads are written out, if there are at most this many.
_WRITTEN_OUT_EARLY = 1_000_000


def may_stay_implicit(route: Route) -> bool:
    """Return whether one order of all transactions can decide the checks of a route."""
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
    """Return the anti-dependencies on the cycles of a check."""
    closing = automaton.closing if automaton.back or automaton.direct else ()
    return {*map(relation_of, automaton.relations), *closing} & {"rw", *PARTS["rw"]}


class Implicit:
    """Decides which set-reads of a run's history are operations."""

    def __init__(self, run: PairRun) -> None:
        """Begin with no set-read as an operation."""
        import numpy as np

        self._run = run
        self._whole = run.history
        self._missed: NDArray[np.int32] = np.zeros((0, 2), np.int32)
        self._contradicted = self._missed
        self._rounds = 0
        self._solved = 0
        self._all: float | None = None

    def complete(self, witness: Witness) -> Witness | None:
        """Return the witness with an order in which the implicit set-reads hold.

        Returns ``None`` if it found no such order. Then the run's history has more set-reads as
        operations, and must be solved again.
        """
        import numpy as np

        run = self._run
        if not run.history.columns.implicit:
            return witness
        with run.deadline.during("solve", to_the_end=True):
            run.progress("snapshots")
            found = self._order(witness)
            if found is None:
                self._write_out_all()
                return None
            columns = run.history.columns
            commits, seen, order_txn = found
            seen = np.where(columns.statement_known > PART, seen, -1)
            missed = columns.contradicted(commits, seen)
            if len(missed):
                self._contradicted = missed
                self._write_out(missed)
                return None
        whole = replace(witness, order_txn=order_txn, commits=commits, seen=seen)
        if run.certify(whole, needed=True).accepted:
            return whole
        # One such order does not decide the checks of every level.
        self._write_out_all()
        return None

    def contradicted(self) -> list[int]:
        """Return some set-reads that the last order contradicted, as operations."""
        import numpy as np

        columns = self._run.history.columns
        if columns.operations() == self._whole.columns.operations():
            return []
        found = []
        for statement, key in self._contradicted[:_REFUTED_ALONE].tolist():
            first, last = (
                int(columns.statement_start[statement]),
                int(columns.statement_end[statement]),
            )
            missed = columns.op_kind[first:last] == READ_NONE_OF
            found += (first + np.flatnonzero(missed & (columns.op_key[first:last] == key))).tolist()
        return found

    def _order(
        self, witness: Witness
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]] | None:
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

    def _write_out(self, missed: NDArray[np.int32]) -> None:
        import numpy as np

        self._rounds += 1
        if self._rounds > 1:
            self._solved += self._run.history.columns.operations()
        contradicted = np.unique(missed[:, 0])
        undetermined = 4 * len(contradicted) > len(self._whole.columns.statement_start)
        if (
            self._rounds > _ROUNDS
            or (self._solved and self._solved > self._number_of_all())
            or (undetermined and self._number_of_all() <= _WRITTEN_OUT_EARLY)
        ):
            self._write_out_all()
            return
        again = np.intersect1d(contradicted, self._missed[:, 0])
        made = [self._missed, missed]
        if len(again):
            # The other rows decide where in the order such a read may be.
            made.append(self._whole.columns.missed_by(again, _AT_ONCE))
        self._missed = np.unique(np.concatenate(made), axis=0)
        self._run.restart(self._whole.with_set_reads(self._missed))

    def _number_of_all(self) -> float:
        """Estimate the number of set-reads from a sample of predicate reads."""
        import numpy as np

        if self._all is None:
            columns = self._whole.columns
            reads = len(columns.statement_start)
            some = np.arange(0, reads, reads // _SAMPLE + 1, dtype=np.int32)
            found = len(columns.missed_by(some, _COUNTED)) * reads // len(some)
            self._all = found if found < _COUNTED else float("inf")
        return self._all

    def _write_out_all(self) -> None:
        self._run.restart(self._whole.written_out())
