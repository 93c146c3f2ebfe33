"""``irreflexive e``, words of e ending in their only ``rw``: does a return path close some pair?

For each transaction, the set of all from which a return path leads to it is an integer with one bit
each. That is quadratic in space, unlike the native checker's clocks, and simple.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from isolang.certify.expression import Positions
from isolang.certify.facts import Facts
from isolang.certify.product import Product, Read, machine


class ReturnPaths:
    """The ``rw`` pairs of a witness.

    Args:
        facts: the history.
        included: the included transactions, ascending, T0 left out.
        reads: the external reads of included transactions.
        orders: per key, its included writers in version order, T0 left out.
        statements: as for :class:`Product`.
    """

    def __init__(
        self,
        facts: Facts,
        included: Sequence[int],
        reads: Sequence[Read],
        orders: Sequence[Sequence[int]],
        statements: Sequence[int] = (),
    ) -> None:
        self._facts = facts
        self._included = included
        self._reads = reads
        self._orders = orders
        self._statements = statements

    def closes(self, relation: str, before: Positions) -> bool:
        """Whether, for some ``rw`` pair s → b, a walk from b to s spells a word of ``before``.

        Args:
            relation: ``rw``, or ``irw`` or ``prw`` for such pairs only.
            before: the words.

        Raises:
            NotCertifiedError: the walks run in cycles, or the history is too large.
        """
        walks = machine(before, looped=False)
        product = Product(
            self._facts, self._included, self._reads, self._orders, self._statements, walks
        )
        origins = product.origins()
        later = self._later_writers()
        for number, (reader, _, _, op) in enumerate(self._reads):
            # mutant: python-closing-reads
            if relation != "rw" and self._facts.of_predicate(op) != (relation == "prw"):
                continue
            reaching = 0
            for state in walks.accepting:
                reaching |= origins[product.node(reader, state)]
            if reaching & later(number):
                return True
        return False

    def closes_source(self, before: Positions) -> bool:
        """Whether, for some ``wr`` pair a → t, a walk from t to a spells a word of ``before``.

        Raises:
            NotCertifiedError: the walks run in cycles, or the history is too large.
        """
        walks = machine(before, looped=False)
        product = Product(self._facts, self._included, self._reads, self._orders, (), walks)
        origins = product.origins()
        for reader, _, source, _ in self._reads:
            if source != self._facts.n and any(
                origins[product.node(source, state)] >> reader & 1 for state in walks.accepting
            ):
                return True
        return False

    def closes_earlier_read(self) -> bool:
        """Whether some reader first read from a transaction that overwrote what it read later."""
        later = self._later_writers()
        seen: dict[int, int] = {}
        waiting: list[Read] = []  # those of one predicate read, which have no order
        for number, (reader, _, _, op) in enumerate(self._reads):  # by operation
            # mutant: python-rows-in-order
            if waiting and self._facts.reads_first(waiting[0][3], op):
                for other, _, source, _ in waiting:
                    if source != self._facts.n:
                        seen[other] = seen.get(other, 0) | 1 << source
                waiting = []
            if seen.get(reader, 0) & later(number):
                return True
            waiting.append(self._reads[number])
        return False

    def _later_writers(self) -> Callable[[int], int]:
        """From the number of a read to the set of those that its ``rw`` leads to."""
        behind: list[dict[int, int]] = []
        for order in self._orders:
            sets, rest = {}, 0
            for t in reversed(order):
                sets[t] = rest
                rest |= 1 << t
            sets[self._facts.n] = rest
            behind.append(sets)

        def later(number: int) -> int:
            reader, key, source, _ = self._reads[number]
            return behind[key][source] & ~(1 << reader)

        return later
