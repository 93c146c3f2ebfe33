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
        conditional = [i for i, program in enumerate(run.order.programs) if program.scans]
        self._shapes = {i: run.shape(i) for i in conditional}
        self._counts = {i: self._rows_found(i) for i in conditional}
        # For a program, the place of its condition, and the number of rows found: the operations.
        self._seen: dict[tuple[str, int, int], set[str]] = {}
        self._numbers: dict[tuple[str, int], set[int]] = {}
        self._various: dict[tuple[str, int], set[str]] = {}  # the operations, whatever was found
        for i, counts in self._counts.items():
            for n, count in enumerate(counts):
                self._seen.setdefault((programs[i], n, count), set()).add(self._shapes[i])
                self._numbers.setdefault((programs[i], n), set()).add(count)
                self._various.setdefault((programs[i], n), set()).add(self._shapes[i])

    def support(self, candidate: Candidate, who: Sequence[int]) -> bool | None:
        """Return whether the run shows that transactions execute the same statements.

        It does not if a program executed various statements after a condition, and never after
        the condition had found so many rows. ``None`` means that the run shows neither this nor
        the contrary.
        """
        if not self._shapes:
            return True
        t, order = candidate.stranger, candidate.order
        support = self._same_statements(who[t], order.answers(t, candidate.sources))
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
        program, name = self._run.order.programs[i], self._programs[i]
        support: bool | None = True
        for n, scan in enumerate(program.scans):
            before = self._counts[i][n]
            count = before + sum(
                shown.get(at, program.steps[at].shown) - program.steps[at].shown
                for at in range(scan.begin, scan.end)
            )
            if count == before:
                continue
            seen = self._seen_at(name, n, before, count)
            if seen is not None and self._shapes[i] not in seen:
                return False
            if (name, n, count) not in self._seen:
                if len(self._various[name, n]) > 1:
                    return False
                support = None
        return support

    def _seen_at(self, name: str, n: int, before: int, count: int) -> set[str] | None:
        """Return the operations of a program's transactions that found as many rows, or nearly.

        If none found exactly as many, these are the transactions that found the next number of
        rows away from the recorded one.
        """
        numbers = self._numbers[name, n]
        beyond = [
            number for number in numbers if (number >= count if count > before else number <= count)
        ]
        nearest = min(beyond, key=lambda number: abs(number - count), default=None)
        return None if nearest is None else self._seen[name, n, nearest]

    def takes_others(self, i: int, n: int, more: int) -> bool:
        """Return whether a transaction executes other statements if a condition finds more rows.

        Args:
            n: the place of the condition among those of the transaction.
            more: how many more rows it finds; negative for fewer.
        """
        before = self._counts[i][n]
        seen = self._seen_at(self._programs[i], n, before, before + more)
        return seen is not None and self._shapes[i] not in seen

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
