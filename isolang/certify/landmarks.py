"""What must come before what, whatever the reads take their values from: a refutation by itself.

``native/certify/landmarks.cpp`` has the rules, ``line_shape.hpp`` the argument why a model of such
a check is one line of moments. Here sets of moments, and of versions, are the bits of integers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from isolang.certify.expression import Positions
from isolang.certify.facts import Facts


def no_line(facts: Facts, checks: Iterable[tuple[str, Positions]]) -> bool:
    """Whether some check has no model, because its models are lines and there can be none.

    Args:
        facts: the history.
        checks: kind and positions of each judged check.

    Returns:
        ``True``: proved. ``False`` says nothing: the check has another form, a maybe transaction
        may be in or out, or the rules do not tell.
    """
    return any(
        kind == "acyclic" and (shape := _Shape.of(positions)) is not None and _refutes(facts, shape)
        for kind, positions in checks
    )


def _refutes(facts: Facts, shape: _Shape) -> bool:
    live = [t for t in range(facts.n) if facts.live(t)]
    if not all(facts.certain(t) for t in live):
        return False
    try:
        _Line(facts, shape, live).settle()
    except _ContradictionError:
        return True
    return False


class _ContradictionError(Exception):
    """No line meets the rules."""


@dataclass(frozen=True, slots=True)
class _Shape:
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
    def of(cls, positions: Positions) -> _Shape | None:
        def word(*letters: str) -> bool:
            return positions.reads(letters, lambda _step, _test: False)

        two = not word("rw")

        def leads(letter: str) -> bool:
            return word(letter) and (not two or word(letter, "rw"))

        if not leads("wr") or not word("ww"):
            return None
        return cls(two, not two or word("ww", "rw"), leads("so"), leads("rt"))


@dataclass(slots=True)
class _Moment:
    chain: int
    place: int
    reads: list[_Read] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)  # versions


@dataclass(slots=True, eq=False)
class _Read:
    moment: int
    key: int
    sources: int  # versions
    own: int = -1  # the version of the key that its transaction writes
    overwritten: bool = False  # by that one, with nothing between


@dataclass(frozen=True, slots=True)
class _Cut:
    """What is known right before a moment of a group of versions.

    Attributes:
        moment: it.
        come, go: the other moments at which one comes or goes.
        net: so many more have come than gone before it, those of T0 left out, or more.
        only: or no more.
    """

    moment: int
    come: int
    go: int
    net: int
    only: bool


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _bits(mask: int) -> Iterable[int]:
    while mask:
        lowest = _lowest(mask)
        yield lowest
        mask ^= 1 << lowest


class _Line:
    def __init__(self, facts: Facts, shape: _Shape, live: list[int]) -> None:
        self._facts, self._shape = facts, shape
        self._moments: list[_Moment] = []
        self._chains: list[list[int]] = []
        self._first: dict[int, int] = {}  # transaction -> its first moment
        self._set_moments(live)
        count = len(self._moments)
        self._before = [0] * count  # what precedes each moment, by rules; its chain goes without
        self._after = [0] * count
        self._upto = [0] * count  # the moment, and its chain up to there
        self._from = [0] * count
        for chain in self._chains:
            mask = 0
            for m in chain:
                mask = self._upto[m] = mask | 1 << m
            for m in chain:
                self._from[m] = mask & ~self._upto[m] | 1 << m
        self._written: list[int] = []  # per version its moment, or -1: T0's
        self._by_key: dict[int, dict[int, int]] = {}  # key -> transaction -> version
        self._replaced: dict[int, _Read] = {}  # version -> what its transaction read of the key
        self._reads: list[_Read] = []
        self._set_versions(live)
        self._initial = sum(1 << v for v, m in enumerate(self._written) if m < 0)
        self._last = (1 << len(self._written)) - 1  # versions that may be the last of their key
        self._changed = False
        if shape.rt:
            for a in live:
                for b in live:
                    if facts.rt(a, b):
                        self._precede(self._writing(a), self._first[b])

    def _writing(self, t: int) -> int:
        return self._first[t] + self._shape.two

    def _set_moments(self, live: list[int]) -> None:
        last: dict[int, int] = {}  # session -> its last transaction so far
        for t in live:
            session = self._facts.session[t]
            if session in last and self._shape.so and self._facts.so(last[session], t):
                chain = self._moments[self._first[last[session]]].chain
            else:
                chain = len(self._chains)
                self._chains.append([])
            last[session] = t
            self._first[t] = len(self._moments)
            for _ in range(1 + self._shape.two):
                self._chains[chain].append(len(self._moments))
                self._moments.append(_Moment(chain, len(self._chains[chain]) - 1))

    def _set_versions(self, live: list[int]) -> None:
        facts = self._facts
        operations = [op for t in live for op in range(facts.op_start[t], facts.op_start[t + 1])]
        for op in operations:
            versions = self._by_key.setdefault(facts.key[op], {})
            if not versions:
                versions[facts.n] = len(self._written)
                self._written.append(-1)
            t = facts.txn_of[op]
            if facts.key[op] in facts.last[t] and t not in versions:
                versions[t] = len(self._written)
                self._moments[self._writing(t)].writes.append(len(self._written))
                self._written.append(self._writing(t))
        for op in operations:
            if not facts.is_external(op):
                continue
            t, key = facts.txn_of[op], facts.key[op]
            versions = self._by_key[key]
            read = _Read(self._first[t], key, sum(1 << versions[u] for u in facts.candidates(op)))
            if t in versions:
                read.own = versions[t]
                read.overwritten = not self._shape.two or self._shape.locks
                if read.overwritten:
                    self._replaced[read.own] = read
            self._moments[read.moment].reads.append(read)
            self._reads.append(read)

    # --- order ---

    def _precedes(self, a: int, b: int) -> bool:
        return b >= 0 and (a < 0 or bool(self._before_all(b) >> a & 1))

    def _before_all(self, m: int) -> int:
        return self._before[m] | self._upto[m] & ~(1 << m)

    def _after_all(self, m: int) -> int:
        return self._after[m] | self._from[m] & ~(1 << m)

    def _precede(self, a: int, b: int) -> None:
        if self._upto[a] >> b & 1:
            raise _ContradictionError
        if self._precedes(a, b):
            return
        for m in _bits(self._from[b]):
            self._before[m] |= self._upto[a]
        for m in _bits(self._upto[a]):
            self._after[m] |= self._from[b]
        self._changed = True

    def _narrow(self, read: _Read, gone: int) -> None:
        if read.sources & gone:
            read.sources &= ~gone
            self._changed = True
        if not read.sources:
            raise _ContradictionError

    def settle(self) -> None:
        """Apply the rules until nothing changes; raises if that is a contradiction."""
        self._changed = True
        while self._changed:
            self._changed = False
            self._overwrite_once()
            cuts = self._cuts()
            self._sweep(cuts, from_end=False)
            self._sweep(cuts, from_end=True)
            for read in self._reads:
                self._compare(read)
            self._balance(cuts)

    # --- the rules ---

    def _gives(self, *, from_end: bool) -> list[int]:
        """Per moment, the versions that are there once it has happened, or is undone."""
        gives = [0] * len(self._moments)
        for v, moment in enumerate(self._written):
            if moment >= 0 and not from_end:
                gives[moment] |= 1 << v
            elif moment >= 0 and v in self._replaced:
                gives[moment] |= self._replaced[v].sources
        return gives

    def _sweep(self, cuts: list[_Cut], *, from_end: bool) -> None:
        """Rules 1 and 2: hold back each moment of each chain in turn."""
        gives = self._gives(from_end=from_end)
        thresholds = self._thresholds(cuts, from_end=from_end)
        wants = [
            [r.sources for r in m.reads if not (from_end and r.overwritten)]
            + [1 << v for v in m.writes if from_end]
            for m in self._moments
        ]
        needs = self._after if from_end else self._before
        chains = [chain[::-1] if from_end else chain for chain in self._chains]
        for held, chain in enumerate(chains):
            there, happened, done = self._last if from_end else self._initial, 0, [0] * len(chains)
            for stop in range(len(chain) + 1):
                more = True
                while more:
                    more = False
                    for c, moments in enumerate(chains):
                        end = stop if c == held else len(moments)
                        while done[c] < end:
                            m = moments[done[c]]
                            if needs[m] & ~happened or not all(w & there for w in wants[m]):
                                break
                            if any((some & happened).bit_count() < k for some, k in thresholds[m]):
                                break
                            happened |= 1 << m
                            there |= gives[m]
                            done[c] += 1
                            more = True
                if done[held] < stop:
                    raise _ContradictionError
                for c, moments in enumerate(chains):
                    if c == held or done[c] == len(moments):
                        continue
                    if stop == len(chain):
                        raise _ContradictionError
                    a, b = chain[stop], moments[done[c]]
                    self._precede(*((b, a) if from_end else (a, b)))

    def _compare(self, read: _Read) -> None:
        """Rule 3."""
        versions = [v for v in self._by_key[read.key].values() if v != read.own]
        past = [v for v in versions if self._precedes(self._written[v], read.moment)]
        gone = 1 << read.own if read.own >= 0 else 0
        for v in _bits(read.sources):
            at = self._written[v]
            if (at >= 0 and self._precedes(read.moment, at)) or any(
                self._precedes(at, self._written[other]) for other in past
            ):
                gone |= 1 << v
        self._narrow(read, gone)
        sources = list(_bits(read.sources))
        if len(sources) == 1:
            for v in past:
                if v != sources[0] and self._written[v] >= 0:
                    if self._written[sources[0]] < 0:
                        raise _ContradictionError
                    self._precede(self._written[v], self._written[sources[0]])
        for v in versions:
            at = self._written[v]
            if all(s != v and self._precedes(self._written[s], at) for s in sources):
                self._precede(read.moment, at)

    def _overwrite_once(self) -> None:
        """Rule 4."""
        for versions in self._by_key.values():
            groups: list[tuple[int, list[_Read]]] = []  # sources, and the reads that share them
            taken = 0
            for v in versions.values():
                read = self._replaced.get(v)
                if read is None:
                    continue
                if read.sources.bit_count() == 1:
                    if taken & read.sources:
                        raise _ContradictionError
                    taken |= read.sources
                joined = [g for g in groups if g[0] & read.sources]
                groups = [g for g in groups if not g[0] & read.sources]
                sources, reads = read.sources, [read]
                for other_sources, other_reads in joined:
                    sources, reads = sources | other_sources, reads + other_reads
                groups.append((sources, reads))
            for sources, reads in groups:
                if len(reads) > sources.bit_count():
                    raise _ContradictionError
                no_last = sources if len(reads) == sources.bit_count() else sources & taken
                if self._last & no_last:
                    self._last &= ~no_last
                    self._changed = True
                for read in reads:
                    if read.sources.bit_count() > 1:
                        self._narrow(read, taken)

    # --- rule 5 ---

    def _cuts(self) -> list[_Cut]:
        """Before the moments that read, and before those that overwrite what they read."""
        group: dict[int, int] = {}  # version -> its group, as a set
        reads: dict[int, list[_Read]] = {}  # by key
        for read in self._reads:
            if not read.sources:
                raise _ContradictionError
            reads.setdefault(read.key, []).append(read)
            joined = read.sources
            for v in _bits(read.sources):
                joined |= group.get(v, 0)
            for v in _bits(joined):
                group[v] = joined
        cuts = []
        for key, versions in self._by_key.items():
            written = [v for v in versions.values() if self._written[v] >= 0]
            only = all(v in self._replaced for v in written)
            groups = {group.get(v, 1 << v) for v in versions.values()}
            come = dict.fromkeys(groups, 0)
            go = dict.fromkeys(groups, 0)
            for v in written:
                moment = 1 << self._written[v]
                mine = group.get(v, 1 << v)
                replaced = self._replaced.get(v)
                of = group[_lowest(replaced.sources)] if replaced else 0
                if of != mine:
                    come[mine] |= moment
                    if of:
                        go[of] |= moment
            for read in reads.get(key, ()):
                here = group[_lowest(read.sources)]
                moments = {read.moment}
                if read.overwritten:
                    moments.add(self._written[read.own])
                for g in groups:
                    net = (g == here) - bool(g & self._initial)
                    for m in moments:
                        others = ~(1 << m)
                        cuts.append(_Cut(m, come[g] & others, go[g] & others, net, only))
        return cuts

    def _thresholds(self, cuts: list[_Cut], *, from_end: bool) -> list[list[tuple[int, int]]]:
        """Per moment: of these moments so many happen before it (from the end: after it)."""
        thresholds: list[list[tuple[int, int]]] = [[] for _ in self._moments]
        for cut in cuts:
            first = self._after_all(cut.moment) if from_end else self._before_all(cut.moment)
            come, go = (cut.come & first).bit_count(), (cut.go & first).bit_count()
            if from_end:
                rest = cut.come.bit_count() - cut.go.bit_count() - cut.net
                least_come, least_go = go + rest, come - rest
            else:
                least_come, least_go = go + cut.net, come - cut.net
            if least_come > come and (cut.only or not from_end):
                thresholds[cut.moment].append((cut.come, least_come))
            if least_go > go and (cut.only or from_end):
                thresholds[cut.moment].append((cut.go, least_go))
        return thresholds

    def _balance(self, cuts: list[_Cut]) -> None:
        for cut in cuts:
            before, after = self._before_all(cut.moment), self._after_all(cut.moment)
            open_come = cut.come & ~(before | after)
            open_go = cut.go & ~(before | after)
            known = (cut.come & before).bit_count() - (cut.go & before).bit_count()
            most, least = known + open_come.bit_count(), known - open_go.bit_count()
            if most < cut.net or (cut.only and least > cut.net):
                raise _ContradictionError
            if most == cut.net:
                first, later = open_come, open_go
            elif cut.only and least == cut.net:
                first, later = open_go, open_come
            else:
                continue
            for m in _bits(first):
                self._precede(m, cut.moment)
            for m in _bits(later):
                self._precede(cut.moment, m)
