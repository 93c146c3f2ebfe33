"""A line of moments, as far as it is known: models of some checks are nothing else.

``native/certify/total_order_shape.hpp`` has the argument. Sets of moments, and of versions, are the
bits of integers.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from isolang.certify.expression import Positions
from isolang.certify.facts import Facts


class ContradictionError(Exception):
    """No line meets the rules."""


class LineShape(Struct, frozen=True):
    """What a check makes of the relations.

    Attributes:
        two: reading and writing are moments of their own.
        locks: between them nobody writes a key that the transaction writes.
        so, rt: which of these lead to the reading of a transaction.
    """

    two: bool
    locks: bool
    so: bool
    rt: bool

    @classmethod
    def of(cls, positions: Positions) -> LineShape | None:
        """The shape of an ``acyclic`` check; ``None`` if its models are no lines."""

        def word(*letters: str) -> bool:
            return positions.reads(letters, lambda _step, _test: False)

        two = not word("rw")

        def leads(letter: str) -> bool:
            return word(letter) and (not two or word(letter, "rw"))

        if not leads("wr") or not word("ww"):
            return None
        return cls(two, not two or word("ww", "rw"), leads("so"), leads("rt"))


class Moment(Struct):
    """A moment of a transaction: all of it, its reading, or its writing.

    Attributes:
        chain: moments of one chain follow each other.
        place: in its chain.
        reads: what is read then.
        writes: the versions written then.
    """

    chain: int
    place: int
    reads: list[Read] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)


class Read(Struct, eq=False):
    """An external read.

    Attributes:
        moment: when.
        key: of what.
        sources: the versions that it may have read.
        own: the version of the key that its transaction writes, or -1.
        overwritten: whether that one overwrites what was read, with nothing between.
    """

    moment: int
    key: int
    sources: int
    own: int = -1
    overwritten: bool = False


def lowest(mask: int) -> int:
    """The least member of a set that is not empty."""
    return (mask & -mask).bit_length() - 1


def bits(mask: int) -> Iterable[int]:
    """The members of a set, ascending."""
    while mask:
        low = lowest(mask)
        yield low
        mask ^= 1 << low


class Line:
    """The moments of some transactions, the versions they write, and what is known of both.

    Attributes:
        moments: all of them.
        chains: the moments that are in order from the start: of a session, or of a transaction.
        before: what precedes each moment, by rules; its chain goes without.
        after: what follows it, likewise.
        written: per version its moment, or -1: T0's.
        by_key: key to transaction to version.
        replaced: version to what its transaction read of the key.
        reads: all external reads.
        initial: the versions of T0.
        last: the versions that may be the last of their key.
        changed: whether something was found since this was last reset.
    """

    def __init__(self, facts: Facts, shape: LineShape, live: list[int]) -> None:
        """Lay the transactions ``live`` out, which are included whatever is chosen."""
        self._facts, self._shape = facts, shape
        self.moments: list[Moment] = []
        self.chains: list[list[int]] = []
        self._first: dict[int, int] = {}  # transaction -> its first moment
        self._set_moments(live)
        count = len(self.moments)
        self.before = [0] * count
        self.after = [0] * count
        self._upto = [0] * count  # the moment, and its chain up to there
        self._from = [0] * count
        for chain in self.chains:
            mask = 0
            for m in chain:
                mask = self._upto[m] = mask | 1 << m
            for m in chain:
                self._from[m] = mask & ~self._upto[m] | 1 << m
        self.written: list[int] = []
        self.by_key: dict[int, dict[int, int]] = {}
        self.replaced: dict[int, Read] = {}
        self.reads: list[Read] = []
        self._set_versions(live)
        self.initial = sum(1 << v for v, m in enumerate(self.written) if m < 0)
        self.last = (1 << len(self.written)) - 1
        self.changed = False
        if shape.rt:
            for a in live:
                for b in live:
                    if facts.rt(a, b):
                        self.precede(self._writing(a), self._first[b])

    def _writing(self, t: int) -> int:
        return self._first[t] + self._shape.two

    def _set_moments(self, live: list[int]) -> None:
        last: dict[int, int] = {}  # session -> its last transaction so far
        for t in live:
            session = self._facts.session[t]
            if session in last and self._shape.so and self._facts.so(last[session], t):
                chain = self.moments[self._first[last[session]]].chain
            else:
                chain = len(self.chains)
                self.chains.append([])
            last[session] = t
            self._first[t] = len(self.moments)
            for _ in range(1 + self._shape.two):
                self.chains[chain].append(len(self.moments))
                self.moments.append(Moment(chain, len(self.chains[chain]) - 1))

    def _set_versions(self, live: list[int]) -> None:
        facts = self._facts
        operations = [op for t in live for op in range(facts.op_start[t], facts.op_start[t + 1])]
        for op in operations:
            versions = self.by_key.setdefault(facts.key[op], {})
            if not versions:
                versions[facts.n] = len(self.written)
                self.written.append(-1)
            t = facts.txn_of[op]
            if facts.key[op] in facts.last[t] and t not in versions:
                versions[t] = len(self.written)
                self.moments[self._writing(t)].writes.append(len(self.written))
                self.written.append(self._writing(t))
        for op in operations:
            if not facts.is_external(op):
                continue
            t, key = facts.txn_of[op], facts.key[op]
            versions = self.by_key[key]
            read = Read(self._first[t], key, sum(1 << versions[u] for u in facts.candidates(op)))
            if t in versions:
                read.own = versions[t]
                read.overwritten = not self._shape.two or self._shape.locks
                if read.overwritten:
                    self.replaced[read.own] = read
            self.moments[read.moment].reads.append(read)
            self.reads.append(read)

    # --- order ---

    def precedes(self, a: int, b: int) -> bool:
        """Whether ``a`` certainly precedes ``b``; -1 is T0's moment."""
        return b >= 0 and (a < 0 or bool(self.before_all(b) >> a & 1))

    def before_all(self, m: int) -> int:
        """All that precedes a moment."""
        return self.before[m] | self._upto[m] & ~(1 << m)

    def after_all(self, m: int) -> int:
        """All that follows a moment."""
        return self.after[m] | self._from[m] & ~(1 << m)

    def precede(self, a: int, b: int) -> None:
        """Let ``a`` precede ``b``.

        Raises:
            ContradictionError: it follows.
        """
        if self._upto[a] >> b & 1:
            raise ContradictionError
        if self.precedes(a, b):
            return
        for m in bits(self._from[b]):
            self.before[m] |= self._upto[a]
        for m in bits(self._upto[a]):
            self.after[m] |= self._from[b]
        self.changed = True

    def narrow(self, read: Read, gone: int) -> None:
        """Take sources away from a read.

        Raises:
            ContradictionError: none is left.
        """
        if read.sources & gone:
            read.sources &= ~gone
            self.changed = True
        if not read.sources:
            raise ContradictionError
