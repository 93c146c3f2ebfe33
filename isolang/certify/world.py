"""Evaluates expressions on a single assignment of all relations, as sets of pairs.

Elements are numbered as follows. Transactions have numbers 0 … n, where n is T0. The event of
operation i has the number n + 1 + i. The event of T0's write of key k has the number n + 1 +
operations + k.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Final, assert_never

from isolang.certify.evaluator import Evaluator
from isolang.certify.facts import Facts
from isolang.certify.history_index import APPEND, NIL, WRITE
from isolang.certify.timing import Timing
from isolang.certify.versions import sort_by_version
from isolang.language.meaning.core import Named
from isolang.language.syntax.ast import KeyClass
from isolang.language.vocabulary import BUILTIN_UNKEYED, word_of
from isolang.rows import Rows, bits, bits_of, inverse_of, union

_NO_KEY: Final = -1


class ConcreteInterpretation(Evaluator):
    """An assignment of all relations over a subset of a history's transactions.

    Attributes:
        transactions: the transactions and T0, as the bits of an integer.
    """

    def __init__(
        self,
        facts: Facts,
        members: Collection[int],
        sources: Mapping[int, int],
        *,
        events: bool = False,
        keys: Sequence[int] | None = None,
    ) -> None:
        """Create an assignment in which no relation has been chosen yet."""
        self.facts = facts
        super().__init__(range(facts.keys) if keys is None else keys)
        self._has_events = events
        self.t0 = facts.n
        self._members = sorted(members)
        self._timing = Timing(facts, self._members)
        self._sources = sources
        self.transactions = bits_of([*members, self.t0])

    # --- names ---

    def _of_history(self, name: str, key: int | None) -> Rows:
        facts, members = self.facts, self._members
        if key is None:
            if name not in BUILTIN_UNKEYED:  # a specification may choose any relation by key
                return union(self.relation(name, k) for k in self.keys)
            key = _NO_KEY
        word = word_of(name)
        match word:
            case "T":
                return {0: self.transactions}
            case "id":
                return self._identity()
            case "init":
                return {self.t0: bits_of(members)}
            case "so":
                return self._timing.session_order()
            case "rt":
                return self._timing.real_time()
            case "same-group" | "same-label":
                return self._alike(word)
            case "group-rt":
                return self._group_real_time()
            case "done" | "late" | "locked":
                return self._timing.before_commit(word, self._writers)
            case "committed-before" | "answered-before" | "committed-after":
                reads = sorted(op for ops in self._reads.values() for op in ops)
                return self._timing.of_statements(word, {op: self._event(op) for op in reads})
            case "statement":
                return self._same_statement()
            case "po":
                return self._program_order()
            case "tx":
                return {event: 1 << t for event, t in self._events().items()}
            case "pred":
                scans = (op for ops in self._reads.values() for op in ops if facts.of_predicate(op))
                return {0: bits_of(map(self._event, scans))}
            case "W":
                return {0: bits_of([*self._writers.get(key, ()), self.t0])}
            case "R":
                return {0: bits_of(facts.txn_of[op] for op in self._reads.get(key, ()))}
            case "last-write":
                writers = [*self._writers.get(key, ()), self.t0]
                return {0: bits_of(self._write_event(t, key) for t in writers)}
            case "vo":
                return union((self._shown_order(key), self._stated_order(key)))
            case "cand":
                return self._candidates(key)
            case "rf":
                return union(
                    {self._write_event(self._sources[op], key): 1 << self._event(op)}
                    for op in self._reads.get(key, ())
                    if op in self._sources
                )
            case "wr" | "iwr" | "pwr":
                return union(
                    {self._sources[op]: 1 << facts.txn_of[op]}
                    for op in self._reads.get(key, ())
                    if op in self._sources
                    and (word == "wr" or facts.of_predicate(op) == (word == "pwr"))
                )
            case "rw" | "irw" | "prw":
                back = self._composed(
                    inverse_of(self.relation(f"{word[:-2]}wr", key)), self.relation("ww", key)
                )
                return {i: row & ~(1 << i) for i, row in back.items()}
            case "label" | "level":
                raise AssertionError(f"{word} of no name")
            case "ww" | "co" | "ar" | "vis" | "conflict":
                raise AssertionError(f"{word} must be chosen, but was not")
            case _:
                assert_never(word)

    def _named_set(self, of: Named) -> Rows:
        return {0: bits_of(t for t in self._members if self.facts.bears(t, of))}

    def _key_in(self, within: KeyClass, key: int) -> bool:
        return self.facts.key_in(key, within)

    def _alike(self, name: str) -> Rows:
        """Return ``same-group`` or ``same-label``, without the pairs (t, t)."""
        facts = self.facts

        def alike(a: int, b: int) -> bool:
            if name == "same-label":
                return facts.share_label(a, b)
            return bool(facts.group) and facts.group[a] == facts.group[b] != NIL

        members = self._members
        return {a: bits_of(b for b in members if a != b and alike(a, b)) for a in members}

    def _identity(self) -> Rows:
        rows = {i: 1 << i for i in bits(self.transactions)}
        if self._has_events:
            rows |= {event: 1 << event for event in self._events()}
        return rows

    def _group_real_time(self) -> Rows:
        """Return ``group-rt``, which is ``rt`` within each group."""
        facts, members = self.facts, self._members
        groups: dict[int, int] = defaultdict(int)
        for t in members if facts.group else ():
            groups[facts.group[t]] |= 1 << t
        later = self.relation("rt")
        return {
            t: later.get(t, 0) & groups[facts.group[t]]
            for t in members
            if facts.group and facts.group[t] != NIL
        }

    def _same_statement(self) -> Rows:
        """Return ``statement``, which relates two reads if they belong to the same statement."""
        place = self.facts.place
        same: dict[tuple[int, int], int] = defaultdict(int)
        reads = [op for ops in self._reads.values() for op in ops]
        for op in reads:
            same[place(op)] |= 1 << self._event(op)
        return {self._event(op): same[place(op)] for op in reads}

    @cached_property
    def _writers(self) -> dict[int, list[int]]:
        """The members that write to each key, by key."""
        found: dict[int, list[int]] = defaultdict(list)
        for t in self._members:
            for key in self.facts.last[t]:
                found[key].append(t)
        return found

    def _certain(self, t: int) -> bool:
        return self.facts.certain(t) or t in self.facts.forced

    def _event(self, op: int) -> int:
        return self.t0 + 1 + op

    def _write_event(self, t: int, key: int) -> int:
        if t == self.t0:
            return self.t0 + 1 + self.facts.operations + key
        return self._event(self.facts.last[t][key])

    def _operations(self, t: int) -> list[int]:
        facts = self.facts
        return [op for op in facts.operations_of(t) if facts.ok[op]]

    def _events(self) -> dict[int, int]:
        """Return the transaction of each event of members and of T0."""
        found = {self._write_event(self.t0, key): self.t0 for key in self.keys}
        for t in self._members:
            found |= {self._event(op): t for op in self._operations(t)}
        return found

    def _program_order(self) -> Rows:
        rows: Rows = {}
        place = self.facts.place
        for t in self._members:
            later = 0
            for _, same in groupby(sorted(self._operations(t), key=place, reverse=True), place):
                events = [self._event(op) for op in same]
                rows |= dict.fromkeys(events, later)
                later |= bits_of(events)
        return rows

    @cached_property
    def _reads(self) -> dict[int, list[int]]:
        """The members' external reads that have a source or a candidate, by key."""
        found: dict[int, list[int]] = defaultdict(list)
        for t in self._members:
            for op in self._operations(t):
                if op in self._sources or (
                    self.facts.is_external(op) and self.facts.has_candidate(op)
                ):
                    found[self.facts.key[op]].append(op)
        return found

    def _candidates(self, key: int) -> Rows:
        rows: Rows = {}
        for op in self._reads.get(key, ()):
            for t in self.facts.candidates(op):
                if self.transactions >> t & 1:
                    event = self._write_event(t, key)
                    rows[event] = rows.get(event, 0) | 1 << self._event(op)
        return rows

    def _stated_order(self, key: int) -> Rows:
        """Return the order of a key's writers given by their stated versions."""
        stated = sort_by_version(self.facts, key, self._writers.get(key, ()))
        rows: Rows = {}
        later = 0
        for t in reversed(stated):
            rows[t] = later
            later |= 1 << t
        return rows

    def _shown_order(self, key: int) -> Rows:
        """Return the order of a key's writers shown by list reads.

        A writer with no element in a list comes after all writers shown by the list.
        """
        facts = self.facts
        if not facts.list_reads(key):
            return {}
        writers = bits_of(self._writers.get(key, ()))
        appends = {
            t: [op for op in self._operations(t) if facts.kind[op] in (WRITE, APPEND)
                and facts.key[op] == key]
            for t in bits(writers)
        }  # fmt: skip
        rows: Rows = {}
        for op in facts.list_reads(key):
            # A list read shows an order if its transaction is included in every choice, even if
            # that transaction is not a member.
            reader = facts.txn_of[op]
            if not (self.transactions >> reader & 1 or self._certain(reader)):
                continue
            shown = [t for t in facts.shown(op) if t != self.t0]
            elements = set(facts.list_of(op))
            # A writer in the list that also appended an element missing from it comes after all
            # others.
            later = writers & ~bits_of(shown)
            later |= bits_of(
                t for t in shown if any(facts.value[a] not in elements for a in appends.get(t, ()))
            )
            for t in reversed(shown):
                if writers >> t & 1:
                    rows[t] = rows.get(t, 0) | later & ~(1 << t)
                    later |= 1 << t
        return rows
