"""Knows which statements a program executed after its conditions found some number of rows.

Predictions assume that a transaction executes the same statements whatever it reads. If the run
itself shows that the program executes other statements after it has found so many rows, the
assumption is known to be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from isolang.foresee.run import PassedRun, bits
from isolang.foresee.stranger import Candidate
from isolang.history import columns as c


class Branches:
    """The statements of a run's programs, by the numbers of rows that their conditions found."""

    def __init__(self, run: PassedRun, programs: Sequence[str]) -> None:
        """Count what each predicate read found.

        Args:
            programs: the name of each transaction's program.
        """
        self._run, self._programs = run, programs
        self._shapes = [run.shape(i) for i in range(len(run.order))]
        self._counts = [self._rows_found(i) for i in range(len(run.order))]
        # For a program, and the numbers of rows found so far: the transactions' operations.
        self._seen: dict[tuple[str, int, int], set[str]] = {}
        self._seen_none: dict[tuple[str, int, bool], set[str]] = {}
        for i, counts in enumerate(self._counts):
            for n, count in enumerate(counts):
                self._seen.setdefault((programs[i], n, count), set()).add(self._shapes[i])
                key = (programs[i], n, count == 0)
                self._seen_none.setdefault(key, set()).add(self._shapes[i])

    def support(self, candidate: Candidate, who: Sequence[int]) -> bool | None:
        """Return whether the run shows that transactions execute the same statements.

        ``None`` means that the run shows neither this nor the contrary.
        """
        t, order = candidate.stranger, candidate.order
        shown = {
            at: order.shows(order.programs[t].steps[at], source)
            for at, source in zip(order.programs[t].reads, candidate.sources, strict=True)
        }
        support = self._same_statements(who[t], shown)
        if order is self._run.order:  # all other transactions read what was recorded
            return support
        for n in bits(candidate.members & ~(1 << t)):
            steps = order.programs[n].steps
            of_member = self._same_statements(
                who[n], {at: steps[at].shown for at in order.programs[n].reads}
            )
            if of_member is False or support is False:
                return False
            support = support and of_member
        return support

    def _same_statements(self, i: int, shown: Mapping[int, bool]) -> bool | None:
        program, name, shape = self._run.order.programs[i], self._programs[i], self._shapes[i]
        support: bool | None = True
        for n, scan in enumerate(program.scans):
            before = self._counts[i][n]
            count = before + sum(
                shown.get(at, program.steps[at].shown) - program.steps[at].shown
                for at in range(scan.begin, scan.end)
            )
            if count == before:
                continue
            exactly = self._seen.get((name, n, count))
            seen = exactly
            if exactly is None and (count == 0) != (before == 0):
                seen = self._seen_none.get((name, n, count == 0))
            if seen is not None and shape not in seen:
                return False
            if exactly is None:
                support = None
        return support

    def _rows_found(self, i: int) -> list[int]:
        columns = self._run.history.columns
        return [
            sum(
                bool(columns.op_kind[op] != c.READ_NONE_OF)
                for op in range(
                    int(columns.statement_start[scan.number]),
                    int(columns.statement_end[scan.number]),
                )
            )
            for scan in self._run.order.programs[i].scans
        ]
