"""Collects the premises of arguments: clauses, and literals decided by the history alone.

Some clauses come from the steps of a refutation. Others follow from the meaning of their literals.
"""

from __future__ import annotations

from collections.abc import Sequence

from isolang.certify.facts import Facts
from isolang.certify.steps import Before, Edge, In, Literal, Source, Step
from isolang.certify.versions import stated_before
from isolang.explain.argument import Clause, canonical_literal, clause_of
from isolang.explain.words import Phrases


class Premises:
    """Finds the premises of arguments about a history."""

    def __init__(self, facts: Facts, words: Phrases) -> None:
        self._facts = facts
        self._words = words
        self._longest: dict[int, int] = {}

    def clauses(self, steps: Sequence[Step], *, one_source: bool = True) -> list[Clause]:
        """Return the clauses of steps, and those implied by the meaning of their literals."""
        facts = self._facts
        clauses: list[Clause] = []
        for step in steps:
            clause = clause_of(
                step, facts.candidates, lambda op: facts.txn_of[op], lambda t: not facts.certain(t)
            )
            if clause is not None:
                clauses.append(clause)
        return clauses + self._implied(clauses, one_source)

    def fact(self, literal: Literal) -> bool | None:
        """Return the value of a literal if the history alone decides it, otherwise ``None``."""
        facts = self._facts
        match literal:
            case Before(key, a, b):
                if facts.n in (a, b):
                    return a == facts.n
                if key not in self._longest:
                    self._longest[key] = facts.most_telling_list(key)
                longest = self._longest[key]
                if longest >= 0 and facts.shows(longest, a, b):
                    return True
                if stated_before(facts, key, a, b) or stated_before(facts, key, b, a):
                    return stated_before(facts, key, a, b)
                return False if longest >= 0 and facts.shows(longest, b, a) else None
            case In(txn):
                return True if facts.certain(txn) else None
        return None

    def shown_by(self, edge: Edge) -> int | None:
        """Return a list read that shows the order of a ``ww`` edge, or ``None`` if none does."""
        if edge.relation != "ww" or self._facts.n in (edge.a, edge.b):
            return None
        fact = self.fact(Before(edge.key, edge.a, edge.b))
        longest = self._longest[edge.key]
        return longest if fact and longest >= 0 else None

    def stated_by(self, edge: Edge) -> tuple[int, int] | None:
        """Return the two writes whose stated versions show the order of a ``ww`` or ``rw`` edge.

        Return ``None`` if stated versions do not show the order.
        """
        facts, key = self._facts, edge.key
        before = {"ww": edge.a, "rw": edge.writer}.get(edge.relation, facts.n)
        if facts.n in (before, edge.b) or not stated_before(facts, key, before, edge.b):
            return None
        return facts.last[before][key], facts.last[edge.b][key]

    def _implied(self, clauses: Sequence[Clause], one_source: bool) -> list[Clause]:
        """Return the clauses that follow from the meaning of the literals in ``clauses``."""
        facts, words = self._facts, self._words
        literals = {literal for clause in clauses for _, literal in clause.literals}
        found = []
        by_read: dict[int, list[Source]] = {}
        for literal in sorted(literals, key=str):
            if isinstance(literal, Source):
                by_read.setdefault(literal.op, []).append(literal)
                for txn in (literal.txn, facts.txn_of[literal.op]):
                    if not facts.certain(txn):
                        both = (canonical_literal(False, literal), canonical_literal(True, In(txn)))
                        found.append(Clause(both, None, 0.5, words.only_if(literal, txn)))
            if isinstance(literal, Before):
                for first, second in ((literal.a, literal.b), (literal.b, literal.a)):
                    if not facts.certain(first):
                        last = canonical_literal(False, Before(literal.key, first, second))
                        ins = (
                            canonical_literal(True, In(first)),
                            canonical_literal(False, In(second)),
                        )
                        note = f"{words.txn(first)} comes last unless it took effect"
                        found.append(Clause((last, *ins), None, 0.5, note))
        for sources in by_read.values() if one_source else ():
            for i, one in enumerate(sources):
                for other in sources[i + 1 :]:
                    both = (canonical_literal(False, one), canonical_literal(False, other))
                    found.append(Clause(both, None, 1.0, "a read has only one source"))
        return found
