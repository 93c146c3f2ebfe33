"""The checks of a specification as clauses and edges, over relations known by must/may bounds.

``acyclic e`` becomes a guarded graph, with a layer of nodes for each place between two steps of
``e``; the other checks become clauses. A stated check needs no gates, because expressions may err
to the side on which the clauses stay true. Only a flag needs the exact literal of its check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from isolang.encodings.relational.bounded import Bounded
from isolang.encodings.relational.chosen import GuardedGraph
from isolang.encodings.relational.circuit import FALSE, TRUE, Circuit
from isolang.encodings.relational.evaluate import CoreEvaluator, Side
from isolang.encodings.relational.relation import EMPTY, Algebra, Relation, closure, may
from isolang.language.meaning.core import Check, Core, Diff, ForKey, Opt, Plus, Rel, Seq, Union
from isolang.language.vocabulary import TRANSITIVE
from isolang.rows import bits


class Checks:
    """Encodes checks on the relations of the history and on those that the solver chooses."""

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
        """Prepare to encode checks.

        Args:
            interpretation: the elements.
            circuit: the circuit in which clauses and gates are made.
            graph: the edges that must form no cycle.
            algebra: the operators on relations.
            evaluator: the values of expressions.
            tick: called now and then; may raise ``TimeoutError``.
        """
        self._interpretation = interpretation
        self._circuit = circuit
        self._graph = graph
        self._algebra = algebra
        self._evaluator = evaluator
        self._tick = tick
        self._unions: dict[tuple[int, int], tuple[Relation, Relation, Relation]] = {}
        self._beginnings: dict[int, tuple[Core, Seq]] = {}

    def state(self, check: Check) -> None:
        """Add clauses and edges by which a check is met."""
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

        SOUND BECAUSE every layer but the first lies inside one sequence, and the edges go forward
        in it. So a cycle passes the first layer, and spells a step of the check between two visits.
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
        r"""State that ``e`` lies within a relation, or set, without making gates for it.

        SOUND BECAUSE ``a \ b in c`` says ``a in b | c``, and an image of ``a ; b`` is one of some
        pair of the one and some pair of the other.
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
        """Return the union of two bounds; the same object for all keys if it depends on no key."""
        place = (id(within), id(less))
        if place not in self._unions:
            # The table is keyed by identity, so the operands must live as long as the table.
            self._unions[place] = (self._algebra.union([within, less]), within, less)
        return self._unions[place][0]

    def _beginning(self, e: Seq) -> Core:
        """Return a sequence without its last part, each time as the same object."""
        if id(e) not in self._beginnings:
            rest = e.parts[:-1]
            self._beginnings[id(e)] = (rest[0] if len(rest) == 1 else Seq(rest), e)
        return self._beginnings[id(e)][0]

    def _require_sequence(self, first: Relation, last: Relation, within: Relation) -> None:
        state = self._circuit.state
        possible = may(last)
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
        """Return the exact literal of a check being met."""
        return self._test(check, Side.EXACT)

    def _test(self, check: Check, side: Side) -> int:
        """Return the literal of the test of a check; for ``BELOW`` it ignores ``not``.

        For ``BELOW`` the literal may be true too often: the value of the expression errs to that
        side, and the bound that must contain the value errs to the other side.
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
    """Return the transitive reduction of a transitive relation if all of its pairs are certain.

    Otherwise return the relation itself.
    """
    if value.maybe:
        return value
    reach = closure(value.must)
    must = {}
    for i, row in reach.items():
        skipped = 0
        for j in bits(row):
            skipped |= reach.get(j, 0)
        if row & ~skipped:
            must[i] = row & ~skipped
    return Relation(must, {})
