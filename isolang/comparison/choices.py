"""Specifications on a symbolic history: that one is met, and that one is not for given choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from isolang.comparison.normal import Normal
from isolang.comparison.symbolic import Symbolic
from isolang.encodings.relational.circuit import FALSE
from isolang.encodings.relational.evaluate import CoreEvaluator, Side
from isolang.encodings.relational.interpretation import T0
from isolang.encodings.relational.relation import EMPTY, Algebra, Relation, relation_of
from isolang.language.classify.expression import plain
from isolang.language.meaning.core import Check, Exists, Plus
from isolang.language.vocabulary import BEGIN_WITH_T0

Pairs: TypeAlias = frozenset[tuple[int, int]]
Place: TypeAlias = tuple[str, int | None]
"""An existential, and the key of a keyed one."""
Chosen: TypeAlias = Mapping[Place, Pairs]
"""What was chosen; of an order its pairs on all elements that may be in it."""


class Choices:
    """One value for each existential of a specification, and the checks on them.

    Attributes:
        met: the literals that are all true iff the values are as declared and the checks are met;
            of free values and closures, if there are some of which that is so.
    """

    def __init__(self, level: Normal, on: Symbolic, chosen: Chosen | None = None) -> None:
        """Evaluate a specification.

        Args:
            level: the specification.
            on: the history.
            chosen: the values; ``None``: variables, whose values ``read`` gives.

        Raises:
            SpecError: it speaks of something that these histories do not have.
        """
        self.met: list[int] = []
        self._on = on
        self._chosen = chosen
        self._circuit = on.circuit
        self._algebra = Algebra(on.circuit, on.everything, lambda: None)
        self._side = Side.ABOVE if chosen is None else Side.EXACT
        self._free: dict[Place, dict[tuple[int, int], int]] = {}
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
        """The values that variables have in a model of the circuit."""
        return {
            place: frozenset(pair for pair, x in free.items() if self._circuit.value(x, model))
            for place, free in self._free.items()
        }

    def value(self, name: str) -> Relation:
        """The value of a name."""
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
        place: Place = (exists.name, key)
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

    def _order(self, place: Place, over: Relation, carrier: Relation) -> Relation:
        shared: Place = (place[0], None) if self._one_order and place[0] == "ww" else place
        if self._chosen is not None:
            wanted = self._chosen[shared]
            return relation_of((i, j, x) for i, j, x in carrier.pairs() if (i, j) in wanted)
        if shared not in self._free:
            elements = sorted(j for _, j, _ in over.pairs())
            if place[0] == "ww":
                elements = list(range(self._on.scope.transactions + 1))
            before = self._on.total_order(elements, self._circuit.new)
            if T0 in elements and place[0] in BEGIN_WITH_T0:
                for e in elements[1:]:
                    self._circuit.state((before[T0, e],))
            self._free[shared] = before
        before, both = self._free[shared], self._circuit.both
        return relation_of((i, j, both(x, before[i, j])) for i, j, x in carrier.pairs() if i != j)

    def _relation(self, place: Place, carrier: Relation, least: Relation) -> Relation:
        if self._chosen is not None:
            # What it must contain may change with the history: it is always added.
            wanted = self._chosen[place]
            some = relation_of((i, j, x) for i, j, x in carrier.pairs() if (i, j) in wanted)
            return self._algebra.union([some, least])
        free = self._free[place] = {(i, j): self._circuit.new() for i, j, _ in carrier.pairs()}
        both = self._circuit.both
        return relation_of((i, j, both(x, free[i, j])) for i, j, x in carrier.pairs())

    def _choice(self, place: Place, over: Relation) -> Relation:
        both, some = self._circuit.both, self._circuit.any_of
        pairs = {(i, j): x for i, j, x in over.pairs()}
        if self._chosen is not None:
            picked = {pair: x for pair, x in pairs.items() if pair in self._chosen[place]}
        else:
            free = self._free[place] = {pair: self._circuit.new() for pair in pairs}
            picked = {pair: both(x, free[pair]) for pair, x in pairs.items()}
        for j in {j for _, j in pairs}:
            ours = [x for (_, end), x in picked.items() if end == j]
            self.met.append(some([-some(x for (_, end), x in pairs.items() if end == j), *ours]))
            self.met += [-both(a, b) for n, a in enumerate(ours) for b in ours[n + 1 :]]
        return relation_of((i, j, x) for (i, j), x in picked.items())

    def _require(self, part: Relation, whole: Relation) -> None:
        self.met += [-x for _, _, x in self._algebra.diff(part, whole).pairs()]

    # --- checks ---

    def _check(self, check: Check) -> Iterator[int]:
        """The literals that say that a check is met."""
        side = Side.EXACT if check.negated else self._side
        expr = plain(check.expr)
        found = self._evaluator.value(Plus(expr) if check.kind == "acyclic" else expr, side)
        if check.kind in ("acyclic", "irreflexive"):
            bad = [found.get(i, i) for i in found.rows()]
        else:
            within = EMPTY
            if check.bound is not None:
                within = self._evaluator.value(plain(check.bound), Side(-side))
            bad = [x for _, _, x in self._algebra.diff(found, within).pairs()]
        if check.negated:
            yield self._circuit.any_of(bad)
        else:
            yield from (-x for x in bad if x != FALSE)


def numbered(level: Normal, on: Symbolic) -> Choices | None:
    """The choices whose version orders are those of the numbers; ``None`` if that may be too few.

    SOUND BECAUSE the names of transactions mean nothing: if some relations are within one order,
    the transactions can be numbered along it, and the relations go from lower to higher numbers.
    """
    if not level.ranked:
        return None
    everyone = range(on.scope.transactions + 1)
    choices = Choices(
        level, on, {("ww", None): frozenset((i, j) for i in everyone for j in everyone if i < j)}
    )
    for name in level.ranked - {"ww"}:
        choices.met += [-x for i, j, x in choices.value(name).pairs() if i > j]
    return choices
