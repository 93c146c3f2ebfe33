"""Relations whose pairs are certain, possible (with a literal) or impossible.

A relation consists of rows, one for each first element of its pairs. For each row, ``must`` has the
second elements of the certain pairs, as the bits of an integer. ``maybe`` has the second elements
of the other possible pairs, each with the literal for the relation containing the pair. Absent rows
are empty. No literal in ``maybe`` is a constant, and no pair is in both ``must`` and ``maybe``.
Relations share rows, so rows never change.

``must``, and ``must`` together with ``maybe``, are the two bounds of E. Torlak and D. Jackson,
*Kodkod: a relational model finder*, TACAS 2007.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct, field

from isolang.encodings.relational.circuit import FALSE, TRUE, Circuit
from isolang.rows import bits

Must = dict[int, int]
Maybe = dict[int, dict[int, int]]


class Relation(Struct, frozen=True):
    """A relation or a set; a set is a relation with row 0 only."""

    must: Mapping[int, int] = field(default_factory=dict)
    maybe: Mapping[int, Mapping[int, int]] = field(default_factory=dict)

    def rows(self) -> set[int]:
        """Return the numbers of the rows in which at least one pair is possible."""
        return {*self.must, *self.maybe}

    def pairs(self) -> Iterator[tuple[int, int, int]]:
        """Yield all possible pairs, each with its literal."""
        for i, row in self.must.items():
            for j in bits(row):
                yield i, j, TRUE
        for i, literals in self.maybe.items():
            for j, literal in literals.items():
                yield i, j, literal

    def get(self, i: int, j: int) -> int:
        """Return the literal for the relation containing the pair (i, j)."""
        if self.must.get(i, 0) >> j & 1:
            return TRUE
        return self.maybe.get(i, _NO_ROW).get(j, FALSE)


_NO_ROW: dict[int, int] = {}
EMPTY = Relation()


def relation_of(pairs: Iterable[tuple[int, int, int]]) -> Relation:
    """Return the relation with the given pairs and literals; pairs must not repeat."""
    must: Must = {}
    maybe: Maybe = {}
    for i, j, literal in pairs:
        if literal == TRUE:
            must[i] = must.get(i, 0) | 1 << j
        elif literal != FALSE:
            maybe.setdefault(i, {})[j] = literal
    return Relation(must, maybe)


class Algebra:
    """The operators of the language on relations; uncertain pairs become gates."""

    def __init__(self, circuit: Circuit, everything: Relation, tick: Callable[[], object]) -> None:
        """Prepare to add gates to a circuit."""
        self.circuit = circuit
        self.tick = tick
        self.identity = self.lift(everything)

    def constant(self, a: Relation) -> bool:
        """Return whether every pair of ``a`` is certain or impossible."""
        return not a.maybe

    def union(self, parts: list[Relation]) -> Relation:
        """Return ``a | b | …``."""
        parts = [part for part in parts if part.must or part.maybe]
        if len(parts) < 2:
            return parts[0] if parts else EMPTY
        must: Must = {}
        for part in parts:
            for i, row in part.must.items():
                must[i] = must.get(i, 0) | row
        unsure: dict[int, list[Mapping[int, int]]] = {}
        for part in parts:
            for i, literals in part.maybe.items():
                unsure.setdefault(i, []).append(literals)
        maybe: Maybe = {}
        for i, rows in unsure.items():
            self.tick()
            certain = must.get(i, 0)
            if len(rows) == 1:
                found = {j: x for j, x in rows[0].items() if not certain >> j & 1}
            else:
                gathered: dict[int, list[int]] = {}
                for literals in rows:
                    for j, literal in literals.items():
                        if not certain >> j & 1:
                            gathered.setdefault(j, []).append(literal)
                found = self._any(i, gathered, must)
            if found:
                maybe[i] = found
        return Relation(must, maybe)

    def _any(self, i: int, row: dict[int, list[int]], must: Must) -> dict[int, int]:
        """Return the disjunction of the literals of each pair (i, j).

        If the disjunction is constantly true, j is added to ``must`` instead.
        """
        found: dict[int, int] = {}
        for j, literals in row.items():
            literal = literals[0] if len(literals) == 1 else self.circuit.any_of(literals)
            if literal == TRUE:
                must[i] = must.get(i, 0) | 1 << j
            elif literal != FALSE:
                found[j] = literal
        return found

    def inter(self, a: Relation, b: Relation) -> Relation:
        """Return ``a & b``."""
        must: Must = {}
        maybe: Maybe = {}
        for i in a.rows() & b.rows():
            if row := a.must.get(i, 0) & b.must.get(i, 0):
                must[i] = row
            of_a, of_b = a.maybe.get(i, _NO_ROW), b.maybe.get(i, _NO_ROW)
            found = {j: x for j, x in of_a.items() if b.must.get(i, 0) >> j & 1}
            found |= {j: x for j, x in of_b.items() if a.must.get(i, 0) >> j & 1}
            for j in of_a.keys() & of_b.keys():
                literal = self.circuit.both(of_a[j], of_b[j])
                if literal != FALSE:
                    found[j] = literal
            if found:
                maybe[i] = found
        return Relation(must, maybe)

    def diff(self, a: Relation, b: Relation) -> Relation:
        r"""Return ``a \ b``."""
        must: Must = {}
        maybe: Maybe = {}
        for i in a.rows():
            out, unsure = b.must.get(i, 0), b.maybe.get(i, _NO_ROW)
            row = a.must.get(i, 0) & ~out
            found: dict[int, int] = {}
            for j, literal in unsure.items():
                if row >> j & 1:
                    row ^= 1 << j
                    found[j] = -literal
            for j, literal in a.maybe.get(i, _NO_ROW).items():
                if not out >> j & 1:
                    rest = self.circuit.both(literal, -unsure.get(j, FALSE))
                    if rest != FALSE:
                        found[j] = rest
            if row:
                must[i] = row
            if found:
                maybe[i] = found
        return Relation(must, maybe)

    def seq(self, a: Relation, b: Relation) -> Relation:
        """Return ``a ; b``."""
        must: Must = {}
        maybe: Maybe = {}
        live = b.rows()
        both = self.circuit.both
        for i in a.rows():
            self.tick()
            through = [k for k in bits(a.must.get(i, 0)) if k in live]
            unsure = a.maybe.get(i, _NO_ROW)
            if len(through) == 1 and not unsure:  # as in `[S] ; b`: share the row of b
                k = through[0]
                if k in b.must:
                    must[i] = b.must[k]
                if k in b.maybe:
                    maybe[i] = b.maybe[k]  # type: ignore[assignment]
                continue
            certain = 0
            for k in through:
                certain |= b.must.get(k, 0)
            if certain:
                must[i] = certain
            gathered: dict[int, list[int]] = {}
            for k in through:
                for j, literal in b.maybe.get(k, _NO_ROW).items():
                    if not certain >> j & 1:
                        gathered.setdefault(j, []).append(literal)
            for k in unsure.keys() & live:
                first = unsure[k]
                for j in bits(b.must.get(k, 0) & ~certain):
                    gathered.setdefault(j, []).append(first)
                for j, second in b.maybe.get(k, _NO_ROW).items():
                    if not certain >> j & 1:
                        gathered.setdefault(j, []).append(both(first, second))
            if row := self._any(i, gathered, must):
                maybe[i] = row
        return Relation(must, maybe)

    def inverse(self, a: Relation) -> Relation:
        """Return ``a^-1``."""
        return relation_of((j, i, literal) for i, j, literal in a.pairs())

    def lift(self, s: Relation) -> Relation:
        """Return ``[S]``."""
        return relation_of((j, j, literal) for _, j, literal in s.pairs())

    def only_if(self, literal: int, a: Relation) -> Relation:
        """Return the pairs of ``a`` if ``literal`` is true, otherwise no pairs."""
        both = self.circuit.both
        return relation_of((i, j, both(literal, x)) for i, j, x in a.pairs())

    def product(self, s: Relation, t: Relation) -> Relation:
        """Return ``S * T``, the product of two sets."""
        of_b = list(t.pairs())
        return relation_of(
            (i, j, self.circuit.both(x, y)) for _, i, x in s.pairs() for _, j, y in of_b
        )

    def domain(self, a: Relation) -> Relation:
        """Return ``domain(a)``."""
        found = []
        for i in a.rows():
            certain = a.must.get(i, 0) != 0
            some = TRUE if certain else self.circuit.any_of(a.maybe[i].values())
            found.append((0, i, some))
        return relation_of(found)

    def plus(self, a: Relation) -> Relation:
        """Return the exact value of ``a^+``, computed by repeated squaring."""
        if not a.maybe:
            return Relation(transitive_closure(a.must), {})
        reach, steps = a, 1
        longest = len(a.rows())
        while steps < longest:
            reach = self.union([reach, self.seq(reach, reach)])
            steps *= 2
        return reach

    def plus_from_above(self, a: Relation) -> Relation:
        """Return a transitive relation that contains ``a``, with pairs chosen by the solver.

        SOUND BECAUSE the caller uses the relation only where fewer pairs cannot violate a check.
        Therefore, if any choice satisfies the formula, the choice ``a^+`` satisfies it.
        """
        if not a.maybe:
            return Relation(transitive_closure(a.must), {})
        certain = transitive_closure(a.must)
        possible = transitive_closure(upper_bound(a))
        new, state = self.circuit.new, self.circuit.state
        maybe: Maybe = {}
        for i, row in possible.items():
            if found := {j: new() for j in bits(row & ~certain.get(i, 0))}:
                maybe[i] = found
        result = Relation(certain, maybe)
        for i, j, literal in a.pairs():
            self.tick()
            row = certain.get(j, 0)
            if not certain.get(i, 0) >> j & 1:
                state((-literal, maybe[i][j]))
            for k in bits(row & ~certain.get(i, 0)):
                state((-literal, maybe[i][k]))
            for k, further in maybe.get(j, _NO_ROW).items():
                if not certain.get(i, 0) >> k & 1:
                    state((-literal, -further, maybe[i][k]))
        return result

    def with_identity(self, a: Relation) -> Relation:
        """Return ``a?``."""
        return self.union([a, self.identity])


def upper_bound(a: Relation) -> Must:
    """Return the upper bound of a relation: all possible pairs."""
    rows = dict(a.must)
    for i, literals in a.maybe.items():
        row = 0
        for j in literals:
            row |= 1 << j
        rows[i] = rows.get(i, 0) | row
    return rows


def transitive_closure(rows: Mapping[int, int]) -> Must:
    """Return the transitive closure of rows of bits (S. Warshall, JACM 1962)."""
    reach = dict(rows)
    for k in rows:
        through = reach[k]
        bit = 1 << k
        for i, row in reach.items():
            if row & bit:
                reach[i] = row | through
        # In this loop, the row of k changes only if k reaches itself, and then only by `through`,
        # which it already contains.
    return {i: row for i, row in reach.items() if row}
