"""Decides whether a write meets a unique index that another row holds.

The database makes such a write wait or fail. So a history in which it succeeds cannot happen.
"""

from __future__ import annotations

from collections.abc import Iterable

from isolang.foresee.row_facts import PRESENT, Version
from isolang.foresee.run import Access, Arrangement, bits
from isolang.history import columns as c


class UniqueIndexes:
    """The unique indexes of the rows in an arrangement of transactions."""

    def __init__(self, order: Arrangement) -> None:
        """Find the transactions that may meet an index that another row holds."""
        self._order = order
        # Without the indexes of a table, no write is known to insert a row or to meet another.
        self._facts = order.facts if order.facts is not None and order.facts.keyed else None
        self._may_meet = 0
        if self._facts is None:
            return
        for i, program in enumerate(order.programs):
            for step in program.steps:
                earlier = order.writers.get(step.key, 0) & (1 << i) - 1
                may_exist = earlier or step.key in self._facts.initial
                if (step.inserts and may_exist) or self._clashes(step):
                    self._may_meet |= 1 << i

    def are_broken_by(self, members: int) -> bool:
        """Return whether a write of transactions that run one after another meets an index."""
        return any(
            self.refuse(i, self._order.programs[i].steps, members & (1 << i) - 1)
            for i in bits(members & self._may_meet)
        )

    def refuse(self, txn: int, steps: Iterable[Access], members: int) -> bool:
        """Return whether a write of a transaction meets an index held by rows of ``members``."""
        order = self._order
        if self._facts is None:
            return False
        for step in steps:
            if step.inserts and self._is_present(step.key, members):
                return True
            for key, value in self._clashes(step):
                if key not in order.programs[txn].writes and order.newest(key, members) == value:
                    return True
        return False

    def deleting(self, members: int, allowed: int) -> int:
        """Return what must run before members that insert rows which were there before.

        Args:
            allowed: the transactions that can run before them.
        """
        order, needed = self._order, 0
        for i in bits(members & self._may_meet):
            for step in order.programs[i].steps:
                before = order.writers.get(step.key, 0) & (1 << i) - 1 & allowed
                while step.inserts and before:
                    last = before.bit_length() - 1
                    if not self._is_present(step.key, 1 << last):
                        needed |= order.ancestors[last]
                        break
                    before ^= 1 << last
        return needed

    def make_wait(self, steps: Iterable[Access]) -> int:
        """Return the transactions that wait if other writes have not been committed yet."""
        order, waiting = self._order, 0
        if self._facts is None:
            return 0
        for step in steps:
            for key, value in self._clashes(step):
                for i in bits(order.writers.get(key, 0)):
                    if order.programs[i].values[key] == value:
                        waiting |= 1 << i
        return waiting

    def _clashes(self, step: Access) -> Iterable[Version]:
        facts = self._facts
        if facts is None or step.kind != c.WRITE:
            return ()
        return facts.clashes.get((step.key, step.value), ())

    def _is_present(self, key: int, members: int) -> bool:
        facts = self._facts
        assert facts is not None
        return self._order.newest(key, members) in facts.shown.get((PRESENT, key), ())
