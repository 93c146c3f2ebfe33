"""Encodes checks as clauses and edges over relations with lower and upper bounds.

``acyclic e`` becomes a graph whose edges have literals, with a layer of nodes between each two
consecutive steps of ``e``. All other checks become clauses. A required check needs no gates,
because its expressions may have too many or too few pairs, as long as the clauses remain sound.
Only a flagged check needs an exact literal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from isolang.encodings.relational.bounded import Bounded
from isolang.encodings.relational.chosen import GuardedGraph
from isolang.encodings.relational.circuit import FALSE, TRUE, Circuit
from isolang.encodings.relational.evaluate import CoreEvaluator, Side
from isolang.encodings.relational.relation import (
    EMPTY,
    Algebra,
    Relation,
    transitive_closure,
    upper_bound,
)
from isolang.language.meaning.core import Check, Core, Diff, ForKey, Opt, Plus, Rel, Seq, Union
from isolang.language.vocabulary import TRANSITIVE
from isolang.rows import bits


class Checks:
    """Encodes checks on the history's relations and on those chosen by the solver."""

    def __init__(
        self,
        *,
        interpretation: Bounded,
        circuit: Circuit,
        graph: GuardedGraph,
        algebra: Algebra,
        evaluator: CoreEvaluator[Relation],
        tick: Callable[[], object],
    ) -> None:
        """Prepare to add checks to an encoding."""
        self._interpretation = interpretation
        self._circuit = circuit
        self._graph = graph
        self._algebra = algebra
        self._evaluator = evaluator
        self._tick = tick
        self._unions: dict[tuple[int, int], tuple[Relation, Relation, Relation]] = {}
        self._beginnings: dict[int, tuple[Core, Seq]] = {}

    def state(self, check: Check) -> None:
        """Add clauses and edges that require a check to hold."""
        if check.negated:
            self._circuit.state((-self._test(check, Side.BELOW),))
        elif check.kind == "acyclic":
            layer = self._graph.layer(range(self._interpretation.size), check.name)
            self._walk(check.expr, layer, layer, check.name)
        elif check.kind == "irreflexive":
            self._no_loop(check.expr)
        else:
            within = EMPTY
            if check.bound is not None:
                within = self._evaluator.value(check.bound, Side.BELOW)
            self._require(check.expr, within, {})

    def _walk(self, e: Core, start: int, end: int, check: str) -> None:
        """Add edges between two layers of nodes for the pairs of an expression.

        SOUND BECAUSE every layer except the first lies inside one sequence, and its edges lead
        forward in this sequence. Therefore every cycle visits the first layer, and spells a step of
        the check between two visits.
        """
        edge = self._graph.edge
        match e:
            case Union():
                for part in e.parts:
                    self._walk(part, start, end, check)
            case Seq():
                at = start
                for part in e.parts[:-1]:
                    following = self._graph.layer(
                        range(self._interpretation.size), f"{check}, inside a step"
                    )
                    self._walk(part, at, following, check)
                    at = following
                self._walk(e.parts[-1], at, end, check)
            case Opt():
                for _, i, literal in self._interpretation.everything.pairs():
                    edge(start + i, end + i, literal)
                self._walk(e.arg, start, end, check)
            case Plus() if start == end:
                self._walk(e.arg, start, end, check)
            case _:
                value = self._evaluator.value(e, Side.ABOVE)
                if start == end and isinstance(e, Rel) and e.name in TRANSITIVE:
                    value = _reduced(value)
                for i, j, literal in value.pairs():
                    edge(start + i, end + j, self._circuit.guard(literal))

    def _no_loop(self, e: Core) -> None:
        match e:
            case Union():
                for part in e.parts:
                    self._no_loop(part)
            case Seq() if isinstance(e.parts[-1], Opt):
                rest = e.parts[:-1]
                self._no_loop(rest[0] if len(rest) == 1 else Seq(rest))
                self._no_loop(Seq((*rest, e.parts[-1].arg)))
            case Seq():
                first = self._evaluator.value(self._beginning(e), Side.ABOVE)
                last = self._evaluator.value(e.parts[-1], Side.ABOVE)
                for k, i, literal in last.pairs():
                    self._tick()
                    back = first.get(i, k)
                    if back != FALSE:
                        self._circuit.state((-back, -literal))
            case _:
                value = self._evaluator.value(e, Side.ABOVE)
                for i in value.rows():
                    self._circuit.state((-value.get(i, i),))

    def _require(self, e: Core, within: Relation, binding: Mapping[str, int]) -> None:
        r"""Require that ``e`` is within a relation or set, without creating gates for ``e``.

        SOUND BECAUSE ``a \ b in c`` is equivalent to ``a in b | c``, and each pair of ``a ; b``
        comes from a pair of ``a`` and a pair of ``b``.
        """
        value = self._evaluator.value
        state = self._circuit.state
        match e:
            case Union():
                for part in e.parts:
                    self._require(part, within, binding)
            case ForKey(within=None):
                for key in self._interpretation.keys:
                    self._require(e.body, within, {**binding, e.key: key})
            case Diff():
                less = value(e.right, Side.BELOW, binding)
                self._require(e.left, self._joined(within, less), binding)
            case Seq():
                last = value(e.parts[-1], Side.ABOVE, binding)
                first = value(self._beginning(e), Side.ABOVE, binding)
                self._require_sequence(first, last, within)
            case _:
                for i, j, literal in value(e, Side.ABOVE, binding).pairs():
                    self._tick()
                    state((-literal, within.get(i, j)))

    def _joined(self, within: Relation, less: Relation) -> Relation:
        """Return the union of two relations; the same operands give the same object."""
        place = (id(within), id(less))
        if place not in self._unions:
            # The table is keyed by identity, so the operands must live as long as the table.
            self._unions[place] = (self._algebra.union([within, less]), within, less)
        return self._unions[place][0]

    def _beginning(self, e: Seq) -> Core:
        """Return a sequence without its last part; the same sequence gives the same object."""
        if id(e) not in self._beginnings:
            rest = e.parts[:-1]
            self._beginnings[id(e)] = (rest[0] if len(rest) == 1 else Seq(rest), e)
        return self._beginnings[id(e)][0]

    def _require_sequence(self, first: Relation, last: Relation, within: Relation) -> None:
        state = self._circuit.state
        possible = upper_bound(last)
        live = _mask(possible)
        for i in first.rows():
            self._tick()
            done = within.must.get(i, 0)
            known = within.maybe.get(i, {})
            unsure = first.maybe.get(i, {})
            certain = first.must.get(i, 0)
            for k in [*bits(certain & live), *(unsure.keys() & possible.keys())]:
                a = TRUE if certain >> k & 1 else unsure[k]
                sure, rest = last.must.get(k, 0), last.maybe.get(k, {})
                for j in bits(possible[k] & ~done):
                    b = TRUE if sure >> j & 1 else rest[j]
                    state((-a, -b, known.get(j, FALSE)))

    def met(self, check: Check) -> int:
        """Return a literal that is true iff the relations satisfy a check."""
        return self._test(check, Side.EXACT)

    def _test(self, check: Check, side: Side) -> int:
        """Return a literal for the relations satisfying a check.

        With ``EXACT``, the literal is true iff the check is met. With ``BELOW``, ``not`` is
        ignored, and the literal may be true even if the check is not met, because the expression
        may have too few pairs and its bound too many.
        """
        value = self._evaluator.value
        expr = Plus(check.expr) if check.kind == "acyclic" else check.expr
        found = value(expr, side)
        if check.kind in ("acyclic", "irreflexive"):
            bad = [found.get(i, i) for i in found.rows()]
        elif check.bound is None:
            bad = [literal for _, _, literal in found.pairs()]
        else:
            within = value(check.bound, Side(-side))
            rest = self._algebra.diff(found, within)
            bad = [literal for _, _, literal in rest.pairs()]
        met = -self._circuit.any_of(bad)
        return -met if check.negated and side is Side.EXACT else met


def _mask(rows: Mapping[int, int]) -> int:
    mask = 0
    for i in rows:
        mask |= 1 << i
    return mask


def _reduced(value: Relation) -> Relation:
    """Return the transitive reduction of a transitive relation if all its pairs are certain.

    Otherwise return the relation unchanged.
    """
    if value.maybe:
        return value
    reach = transitive_closure(value.must)
    must = {}
    for i, row in reach.items():
        skipped = 0
        for j in bits(row):
            skipped |= reach.get(j, 0)
        if row & ~skipped:
            must[i] = row & ~skipped
    return Relation(must, {})
