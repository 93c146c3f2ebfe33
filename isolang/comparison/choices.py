"""Encodes, for a symbolic history, whether choices satisfy a specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from isolang.comparison.normal import Normal
from isolang.comparison.symbolic import SymbolicInterpretation
from isolang.comparison.variables import total_order
from isolang.encodings.relational.circuit import FALSE
from isolang.encodings.relational.evaluate import CoreEvaluator, Side
from isolang.encodings.relational.interpretation import T0
from isolang.encodings.relational.relation import EMPTY, Algebra, Relation, relation_of
from isolang.language.classify.expression import simplify
from isolang.language.meaning.core import Check, Exists, Plus
from isolang.language.vocabulary import BEGIN_WITH_T0

Pairs: TypeAlias = frozenset[tuple[int, int]]
Instance: TypeAlias = tuple[str, int | None]
"""The name of a chosen relation, and its key; ``None`` if the relation is not keyed."""
Chosen: TypeAlias = Mapping[Instance, Pairs]
"""The pairs of each chosen relation. An order has pairs for all elements it may order."""


class Choices:
    """A value for each chosen relation of a specification, and literals that check these values.

    Attributes:
        met: literals that are all true iff the values of the chosen relations fit their
            declarations and meet the checks. If the values are variables, the literals can all be
            true iff some values do so.
    """

    def __init__(
        self, level: Normal, on: SymbolicInterpretation, chosen: Chosen | None = None
    ) -> None:
        """Evaluate the checks of a specification on a symbolic history.

        Args:
            chosen: the values of the chosen relations. If ``None``, they are new variables, and
                ``read`` returns their values in a model.

        Raises:
            SpecError: if the specification uses a relation that small histories lack.
        """
        self.met: list[int] = []
        self._on = on
        self._chosen = chosen
        self._circuit = on.circuit
        self._algebra = Algebra(on.circuit, on.everything, lambda: None)
        self._side = Side.ABOVE if chosen is None else Side.EXACT
        self._free: dict[Instance, dict[tuple[int, int], int]] = {}
        self._evaluator: CoreEvaluator[Relation] = CoreEvaluator(
            self._algebra, on.of_history, on.keys, level.exists, on
        )
        self._one_order = bool(level.ranked)
        for exists in level.exists:
            if exists.name != "rf":
                self._evaluator.choose(exists, self._value, Side.EXACT)
        for check in level.checks:
            self.met += self._check(check)

    def read(self, model: Sequence[int]) -> Chosen:
        """Return the values of the chosen relations in a model of the circuit."""
        return {
            place: frozenset(pair for pair, x in free.items() if self._circuit.value(x, model))
            for place, free in self._free.items()
        }

    def value(self, name: str) -> Relation:
        """Return the value of the named relation or set, for all keys together."""
        return self._evaluator.named(name, None)

    # --- chosen relations ---

    def _value(
        self,
        exists: Exists,
        key: int | None,
        over: Relation,
        least: Relation | None,
        most: Relation | None,
    ) -> Relation:
        place: Instance = (exists.name, key)
        least = least or EMPTY
        if exists.kind == "choice":
            chosen = self._choice(place, over)
        else:
            carrier = self._algebra.product(over, over)
            if exists.name in BEGIN_WITH_T0:
                least = self._algebra.union([least, self._on.initial(over)])
            if exists.kind == "order":
                chosen = self._order(place, over, carrier)
            else:
                chosen = self._relation(place, carrier, least)
        self._require(least, chosen)
        if most is not None:
            self._require(chosen, most)
        return chosen

    def _order(self, place: Instance, over: Relation, carrier: Relation) -> Relation:
        shared: Instance = (place[0], None) if self._one_order and place[0] == "ww" else place
        if self._chosen is not None:
            pairs = self._chosen[shared]
            return relation_of((i, j, x) for i, j, x in carrier.pairs() if (i, j) in pairs)
        if shared not in self._free:
            elements = sorted(j for _, j, _ in over.pairs())
            if place[0] == "ww":
                elements = list(range(self._on.variables.scope.transactions + 1))
            before = total_order(self._on.circuit, elements, self._circuit.new)
            if T0 in elements and place[0] in BEGIN_WITH_T0:
                for e in elements[1:]:
                    self._circuit.state((before[T0, e],))
            self._free[shared] = before
        before, both = self._free[shared], self._circuit.both
        return relation_of((i, j, both(x, before[i, j])) for i, j, x in carrier.pairs() if i != j)

    def _relation(self, place: Instance, carrier: Relation, least: Relation) -> Relation:
        if self._chosen is not None:
            # The value must also include the pairs after `containing`, which depend on the history.
            pairs = self._chosen[place]
            some = relation_of((i, j, x) for i, j, x in carrier.pairs() if (i, j) in pairs)
            return self._algebra.union([some, least])
        free = self._free[place] = {(i, j): self._circuit.new() for i, j, _ in carrier.pairs()}
        both = self._circuit.both
        return relation_of((i, j, both(x, free[i, j])) for i, j, x in carrier.pairs())

    def _choice(self, place: Instance, over: Relation) -> Relation:
        both, some = self._circuit.both, self._circuit.any_of
        pairs = {(i, j): x for i, j, x in over.pairs()}
        if self._chosen is not None:
            picked = {pair: x for pair, x in pairs.items() if pair in self._chosen[place]}
        else:
            free = self._free[place] = {pair: self._circuit.new() for pair in pairs}
            picked = {pair: both(x, free[pair]) for pair, x in pairs.items()}
        for j in {j for _, j in pairs}:
            to_j = [x for (_, end), x in picked.items() if end == j]
            self.met.append(some([-some(x for (_, end), x in pairs.items() if end == j), *to_j]))
            self.met += [-both(a, b) for n, a in enumerate(to_j) for b in to_j[n + 1 :]]
        return relation_of((i, j, x) for (i, j), x in picked.items())

    def _require(self, part: Relation, whole: Relation) -> None:
        self.met += [-x for _, _, x in self._algebra.diff(part, whole).pairs()]

    # --- checks ---

    def _check(self, check: Check) -> Iterator[int]:
        """Yield literals that are all true iff the history and the choices meet the check."""
        side = Side.EXACT if check.negated else self._side
        expr = simplify(check.expr)
        found = self._evaluator.value(Plus(expr) if check.kind == "acyclic" else expr, side)
        if check.kind in ("acyclic", "irreflexive"):
            bad = [found.get(i, i) for i in found.rows()]
        else:
            within = EMPTY
            if check.bound is not None:
                within = self._evaluator.value(simplify(check.bound), Side(-side))
            bad = [x for _, _, x in self._algebra.diff(found, within).pairs()]
        if check.negated:
            yield self._circuit.any_of(bad)
        else:
            yield from (-x for x in bad if x != FALSE)


def numbered_choices(level: Normal, on: SymbolicInterpretation) -> Choices | None:
    """Return choices whose version orders follow the transaction numbers.

    If a history may need other version orders, return ``None``.

    SOUND BECAUSE the names of transactions have no meaning: if some relations are contained in one
    order, the transactions can be numbered along it, so that the relations lead from lower to
    higher numbers.
    """
    if not level.ranked:
        return None
    numbers = range(on.variables.scope.transactions + 1)
    choices = Choices(
        level, on, {("ww", None): frozenset((i, j) for i in numbers for j in numbers if i < j)}
    )
    for name in level.ranked - {"ww"}:
        choices.met += [-x for i, j, x in choices.value(name).pairs() if i > j]
    return choices
