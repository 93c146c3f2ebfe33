"""Numbers the literals of a refutation, and adds the steps required by each new literal."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from isolang.certify import steps as s
from isolang.certify.history_index import INDETERMINATE
from isolang.certify.kernel_clauses import Clauses, format_numbers
from isolang.certify.kernel_text import HistoryText, LevelText, unsupported

ROUNDS: Final = 3
"""The number of times the kernel applies the axioms of an order to a cycle's edges."""


class Literals:
    """The literals of a refutation, with steps that tell the kernel what the literals imply.

    Attributes:
        clauses: the steps added so far.
    """

    def __init__(self, text: HistoryText, level: LevelText, clauses: Clauses) -> None:
        self.atoms: dict[tuple[object, ...], int] = {}
        self.is_inclusion: set[int] = set()
        self.clauses = clauses
        self._text = text
        self._facts = text.facts
        self._level = level
        self._sources_of: defaultdict[int, list[int]] = defaultdict(list)
        # (key, writer, writer) for each pair with a literal
        self._compared: set[tuple[int, int, int]] = set()
        self._telling_of: dict[int, list[int]] = {}  # list reads per key

    def number(self, t: int) -> int:
        """Return a transaction's number in the kernel's input."""
        return self._text.number(t)

    def atom(self, *atom: object) -> tuple[int, bool]:
        """Return the number of the literal with this content, and whether it is new."""
        new = atom not in self.atoms
        if new:
            self.atoms[atom] = len(self.atoms) + 1
            if atom[0] == "in":
                self.is_inclusion.add(self.atoms[atom])
        return self.atoms[atom], new

    def is_open(self, t: int) -> bool:
        """Return whether a transaction is indeterminate."""
        return t != self._facts.n and self._facts.status[t] == INDETERMINATE

    def included(self, t: int) -> int:
        """Return the literal for the inclusion of an indeterminate transaction."""
        return self.atom("in", self.number(t))[0]

    def inclusions(self, *txns: int) -> list[int]:
        """Return the literals for the inclusion of the given transactions.

        Only indeterminate transactions have such a literal.
        """
        return sorted({self.included(t) for t in txns if self.is_open(t)})

    def condition(self, *txns: int) -> str:
        """Return the literals returned by :meth:`inclusions`, in the kernel's input format."""
        return format_numbers(self.inclusions(*txns))

    def unless(self, *txns: int) -> list[int]:
        """Return the negations of the literals returned by :meth:`inclusions`."""
        return [-literal for literal in self.inclusions(*txns)]

    def literal(self, positive: bool, of: s.Literal) -> int:
        """Return the number of a literal in the refutation, negative for a negated literal."""
        match of:
            case s.Source(op=op, txn=txn):
                literal = self.source(op, txn)
            case s.Before(key=key, a=a, b=b):
                literal = self.before(key, a, b)
            case s.In(txn=txn):
                literal = self.included(txn)
        return literal if positive else -literal

    def source(self, op: int, u: int) -> int:
        """Return the literal for a given transaction being the source of a read.

        For a new literal, add steps that state that the read has only one source, and that the
        reader and the source are included. If the read has only one candidate, also add the step
        that chooses it.
        """
        if op not in self._text.place:
            raise unsupported(f"a source of operation {op}")
        txn, number = self._text.place[op]
        literal, new = self.atom("source", txn, number, self.number(u))
        if new:
            for other in self._sources_of[op]:
                self.clauses.add(f"unlike {literal} {other}", [-literal, -other])
            self._sources_of[op].append(literal)
            for inclusion in self.inclusions(u, self._facts.txn_of[op]):
                self.clauses.add(f"inside {literal} {inclusion}", [-literal, inclusion])
            if len(self._facts.candidates(op)) == 1:
                self.choose(op)
        return literal

    def choose(self, op: int, *, nothing: bool = False) -> None:
        """Add the step that gives an included read one of its candidates as its source.

        If ``nothing`` is set, the step states that the read has no candidates.
        """
        txn, number = self._text.place[op]
        sources = () if nothing else self._facts.candidates(op)
        literals = [self.source(op, u) for u in sources]
        reader = self._facts.txn_of[op]
        self.clauses.add(
            f"choice {txn} {number} {format_numbers(literals)} {self.condition(reader)}",
            literals + self.unless(reader),
        )

    def before(self, key: int, a: int, b: int) -> int:
        """Return the literal for one writer of a key preceding another.

        For a new literal, add the steps that relate it to other literals.
        """
        ordered = self._level.order is not None

        def atom(first: int, second: int) -> tuple[object, ...]:
            pair = (self.number(first), self.number(second))
            return ("in-order", *pair) if ordered else ("before", key + 1, *pair)

        initial = self._facts.n
        literal, new = self.atom(*atom(a, b))
        if new:
            for inclusion in self.inclusions(a, b):
                self.clauses.add(f"inside {literal} {inclusion}", [-literal, inclusion])
            if a == initial != b:
                self._step_first(literal, atom(b, a), b)
            elif b == initial != a:
                self.before(key, b, a)
            elif atom(b, a) in self.atoms and a != b:
                other = self.atoms[atom(b, a)]
                either = [literal, other, *self.unless(a, b)]
                self.clauses.add(f"either {literal} {other} {self.condition(a, b)}", either)
                self.clauses.add(f"order {format_numbers([literal, other])}", [-literal, -other])
        if initial not in (a, b) and (key, a, b) not in self._compared:
            self._compared.add((key, a, b))
            for op in self._telling(key):
                if self._facts.shows(op, a, b):
                    self._step_shown(literal, op, key, a, b)
                elif self._facts.shows(op, b, a):
                    self.before(key, b, a)
        return literal

    def _step_first(self, literal: int, opposite: tuple[object, ...], b: int) -> None:
        """Add the steps that put T0 before the writer ``b``."""
        if self._level.order is None:
            self.clauses.add(f"first {literal} {self.condition(b)}", [literal, *self.unless(b)])
            return
        back = self.atom(*opposite)[0]
        edges = f"2 ww {back} init 1 {self.number(b)} {self.condition(b)}"
        self.clauses.add(f"cycle 0 {ROUNDS} {edges}", [-back, *self.unless(b)])
        self.clauses.add(
            f"either {literal} {back} {self.condition(b)}", [literal, back, *self.unless(b)]
        )

    def _telling(self, key: int) -> list[int]:
        """Return the list reads of a key that may show the order of its writers.

        They are all reads by indeterminate transactions and, of the reads by included transactions,
        the one that shows the most transactions.
        """
        facts = self._facts
        if key not in self._telling_of:
            certain = facts.most_telling_list(key)
            others = [op for op in facts.list_reads(key) if not facts.certain(facts.txn_of[op])]
            found = [op for op in (certain, *others) if op in self._text.place]
            self._telling_of[key] = found
        return self._telling_of[key]

    def _step_shown(self, literal: int, op: int, key: int, a: int, b: int) -> None:
        """Add steps that derive ``literal`` from a list read that shows ``a`` before ``b``."""
        if self._level.order is None:
            self.add_listed(literal, op, a, b)
            return
        shown, new = self.atom("before", key + 1, self.number(a), self.number(b))
        if new:
            for inclusion in self.inclusions(a, b):
                self.clauses.add(f"inside {shown} {inclusion}", [-shown, inclusion])
        self.add_listed(shown, op, a, b)
        back = self.before(key, b, a)
        self.clauses.add(f"cycle 0 {ROUNDS} 2 ww {shown} ww {back}", [-shown, -back])

    def add_listed(self, literal: int, op: int, a: int, b: int) -> None:
        """Add a step that proves ``literal``, because a list read shows ``a`` before ``b``."""
        facts = self._facts
        txn, number = self._text.place[op]
        reader = facts.txn_of[op]
        writers = [
            facts.element_writer(facts.key[op], value) for value in self.elements_of_others(op)
        ]
        both = a in writers and b in writers[writers.index(a) :]
        conditions = (reader,) if both else (reader, b)
        self.clauses.add(
            f"listed {txn} {number} {literal} {self.condition(*conditions)}",
            [literal, *self.unless(*conditions)],
        )

    def elements_of_others(self, op: int) -> list[int]:
        """Return the elements of a list read, excluding initial elements and the reader's own."""
        facts = self._facts
        values = facts.list_of(op)
        first = len(self._text.beginning(facts.key[op]))
        return values[first : len(values) - len(facts.own_before(op))]
