"""Evaluates the claim of a single cycle step in a refutation: that its edges violate a check.

A step's edges exist under every choice in which the step's literals hold. This module evaluates a
part of such a choice: the transactions on the edges, their reads and writes, and no pairs in
relations other than the edges. If an expression never loses a pair when its relations gain pairs,
each pair in its value for the part is also in its value for the whole choice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final, assert_never

from isolang.certify.evaluator import Evaluator
from isolang.certify.facts import Facts
from isolang.certify.steps import Edge
from isolang.language.meaning.core import Core, Diff, Named, Rel
from isolang.language.meaning.mentions import children, names
from isolang.language.syntax.ast import KeyClass
from isolang.language.vocabulary import (
    BUILTIN_UNKEYED,
    BUILTIN_WORDS,
    NAMED,
    OF_EVENTS,
    ROWS,
    TESTS,
    word_of,
)
from isolang.rows import Rows, bits, bits_of, inverse_of, transitive_closure, union

NOTHING = -1
_ANY_KEY: Final = -1
OF_TRANSACTIONS = tuple(
    w.name
    for w in BUILTIN_WORDS
    if w.letter and w.sort.kind == "relation" and w.name not in OF_EVENTS
)
"""The relations between transactions determined by the history alone."""
_BY_KIND = {"iwr": False, "pwr": True}
_Pairs = Iterable[tuple[int, int]]


def is_monotonic(e: Core) -> bool:
    r"""Return whether an expression never loses a pair when its relations gain pairs.

    The right side of a difference may contain only ``id``, the sets of transactions with a given
    label or level, and the set of a key's writers, because an element's membership in these is the
    same in every part of a history.
    """
    # mutant: definition-only-grows
    if isinstance(e, Diff) and not (names(e.right) <= {"id", *NAMED} or _is_writers(e.right)):
        return False
    return all(is_monotonic(part) for part in children(e))


def _is_writers(e: Core) -> bool:
    return isinstance(e, Rel) and e.name == "W" and e.key is not None


class Claim(Evaluator):
    """Evaluates expressions on the edges of a single step, which form a part of a choice.

    Only elements mentioned by the edges are numbered, so the cost does not depend on the size of
    the history.
    """

    def __init__(self, facts: Facts, edges: Sequence[Edge], order: str | None = None) -> None:
        keys = {edge.key for edge in edges if edge.key != NOTHING}
        for edge in edges:
            if "[" in edge.relation:
                keys |= facts.shared_keys(edge.relation, edge.a, edge.b)
        super().__init__(sorted(keys))
        self._facts = facts
        self._edges = edges
        self._order = order
        found = {t for edge in edges for t in (edge.a, edge.b)} | {facts.n}
        found |= {edge.writer for edge in edges if edge.relation == "rw"}
        self._transactions = sorted(found)
        self.of_transaction = {t: i for i, t in enumerate(self._transactions)}

    @property
    def everyone(self) -> int:
        """All transactions in the claim, as the bits of an integer."""
        return (1 << len(self._transactions)) - 1

    @property
    def t0(self) -> int:
        """The element that represents T0."""
        return self.of_transaction[self._facts.n]

    def before(self, key: int | None = None) -> _Pairs:
        """Yield the pairs of writers ordered by the step's literals, by default for all keys."""
        for edge in self._edges:
            if key in (None, edge.key):
                if edge.relation == "ww":
                    yield self.of_transaction[edge.a], self.of_transaction[edge.b]
                elif edge.relation == "rw":
                    yield self.of_transaction[edge.writer], self.of_transaction[edge.b]

    # --- elements ---

    @cached_property
    def _of_operation(self) -> dict[int, int]:
        """The element number of each operation mentioned by the edges.

        T0's write of key k counts as operation -1 - k.
        """
        facts = self._facts
        found: set[int] = set()
        for edge, following in zip(self._edges, (*self._edges[1:], *self._edges[:1]), strict=True):
            if edge.op != NOTHING:
                found.add(edge.op)
            if edge.key != NOTHING:
                ends = (edge.a, edge.b, edge.writer)
                found |= {
                    self._write(t, edge.key)
                    for t in ends
                    if t != NOTHING and facts.writes_key(t, edge.key)
                }
            # An edge between two statements names only the second statement. If the preceding edge
            # names no statement either, the first statement may be any operation of the
            # transaction.
            if following.relation in ("answered-before", "po") and edge.op == NOTHING:
                found.update(facts.operations_of(following.a))
        kept = (op for op in sorted(found) if op < 0 or facts.ok[op])
        return {op: len(self._transactions) + i for i, op in enumerate(kept)}

    def _write(self, t: int, key: int) -> int:
        """Return the number of a transaction's last write of a key."""
        return -1 - key if t == self._facts.n else self._facts.last[t][key]

    def _owner(self, op: int) -> int:
        return self._facts.n if op < 0 else self._facts.txn_of[op]

    @cached_property
    def _reads(self) -> list[int]:
        """The external reads in the claim, also those of values that no transaction wrote."""
        return [op for op in self._of_operation if op >= 0 and self._facts.is_external(op)]

    def _named_set(self, of: Named) -> Rows:
        place = self.of_transaction
        return {0: bits_of(i for t, i in place.items() if self._facts.bears(t, of))}

    def _key_in(self, within: KeyClass, key: int) -> bool:
        return self._facts.key_in(key, within)

    def _keys_in(self, within: KeyClass) -> Sequence[int]:
        """Return the keys in a class that an edge names or a transaction of the step accesses.

        If there are none, return an arbitrary key of the class, because T0 wrote every key.
        """
        facts = self._facts
        ends = (t for t in self._transactions if t != facts.n)
        accessed = {facts.key[op] for t in ends for op in facts.operations_of(t)}
        inside = [k for k in sorted(accessed.union(self.keys)) if self._key_in(within, k)]
        return inside or [k for k in range(facts.keys) if self._key_in(within, k)][:1]

    def _identity(self) -> Rows:
        return {i: 1 << i for i in range(len(self._transactions) + len(self._of_operation))}

    # --- names ---

    def _of_history(self, name: str, key: int | None) -> Rows:
        facts, place = self._facts, self.of_transaction
        if key is None:
            if name not in BUILTIN_UNKEYED and name not in TESTS:
                return union(self.relation(name, k) for k in self.keys)
            key = _ANY_KEY
        if name not in ROWS:
            return {}  # a chosen relation, which no edge belongs to
        word = word_of(name)
        match word:
            case "T":
                return {0: self.everyone}
            case "id":
                return self._identity()
            case "tx":
                return {i: 1 << place[self._owner(op)] for op, i in self._of_operation.items()}
            case "po":
                return self._among(
                    [op for op in self._of_operation if op >= 0], facts.program_order
                )
            case "statement":
                return self._among(self._reads, facts.one_statement)
            case "pred":
                return {0: bits_of(self._of_operation[o] for o in self._reads
                                   if facts.of_predicate(o))}  # fmt: skip
            case "answered-before":
                return self._answered_before()
            case "committed-before":
                return _rows((place[e.a], self._of_operation[e.op]) for e in self._named(word))
            case "committed-after":
                return _rows((self._of_operation[e.op], place[e.b]) for e in self._named(word))
            case "init" | "so" | "rt" | "group-rt" | "done" | "late" | "locked":
                return _rows((place[e.a], place[e.b]) for e in self._named(word))
            case "W" if key == _ANY_KEY:
                return {0: bits_of(i for t, i in place.items() if facts.writes_any(t))}
            case "R" if key == _ANY_KEY:
                return {0: bits_of(i for t, i in place.items() if facts.reads_any(t))}
            case "W":
                return {0: bits_of(i for t, i in place.items() if facts.writes_key(t, key))}
            case "R":
                return {0: bits_of(i for t, i in place.items() if facts.reads_key(t, key))}
            case "last-write":
                return {0: bits_of(i for op, i in self._of_operation.items()
                                   if op == self._last_of(op, key))}  # fmt: skip
            case "rf":
                return _rows(
                    (self._of_operation[self._write(u, key)], self._of_operation[op])
                    for u, op in self._sources(key)
                )
            case "wr" | "iwr" | "pwr":
                return _rows(
                    (place[u], place[facts.txn_of[op]])
                    for u, op in self._sources(key)
                    if facts.of_predicate(op) == _BY_KIND.get(word, facts.of_predicate(op))
                )
            case "ww":
                return transitive_closure(_rows(self.before(key))) if self._order is None else {}
            case "rw" | "irw" | "prw":
                read = inverse_of(self.relation(f"{word[:-2]}wr", key))
                back = self._composed(read, self.relation("ww", key))
                # mutant: definition-itself
                return {i: row & ~(1 << i) for i, row in back.items()}
            case "same-group" | "same-label" | "label" | "level":
                return {}  # no edge has this relation
            case "vo" | "cand" | "co" | "ar" | "vis" | "conflict":
                return {}  # a relation not determined by the edges alone
            case _:
                assert_never(word)

    def _named(self, name: str) -> Iterator[Edge]:
        return (e for e in self._edges if e.relation.partition("[")[0] == name)

    def _sources(self, key: int) -> Iterator[tuple[int, int]]:
        for edge in self._edges:
            if edge.key == key and edge.relation in ("wr", "rw"):
                yield (edge.a if edge.relation == "wr" else edge.writer), edge.op

    def _last_of(self, op: int, key: int) -> int | None:
        """Return the last write of a key by the transaction of ``op``, or ``None``."""
        t = self._owner(op)
        return self._write(t, key) if self._facts.writes_key(t, key) else None

    def _among(self, operations: Sequence[int], holds: object) -> Rows:
        assert callable(holds)
        place = self._of_operation
        return _rows((place[a], place[b]) for a in operations for b in operations if holds(a, b))

    def _answered_before(self) -> Rows:
        facts, place = self._facts, self._of_operation
        return _rows(
            (place[op], place[edge.op])
            for edge in self._named("answered-before")
            for op in self._reads
            if facts.txn_of[op] == edge.a and facts.answered_before(op, edge.op)
        )


def _rows(pairs: _Pairs) -> Rows:
    found: defaultdict[int, int] = defaultdict(int)
    for a, b in pairs:
        found[a] |= 1 << b
    return dict(found)


def pairs_of(rows: Rows) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a relation, given its rows."""
    return ((i, j) for i, row in rows.items() for j in bits(row))
