"""Estimates the cost of a relational encoding from the bounds of its relations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from isolang.encodings.relational.bounded import Bounded
from isolang.encodings.relational.circuit import TRUE, Circuit
from isolang.encodings.relational.evaluate import CoreEvaluator, Side
from isolang.encodings.relational.reads import ExternalRead
from isolang.encodings.relational.relation import Relation, transitive_closure, upper_bound
from isolang.errors import UnsupportedError
from isolang.language.meaning.core import Exists, ForKey, Named, Spec
from isolang.language.meaning.mentions import uses_events
from isolang.language.syntax.ast import KeyClass
from isolang.language.vocabulary import BEGIN_WITH_T0
from isolang.problem import Problem
from isolang.rows import bits

LARGEST_COST = 20_000_000
"""The maximum number of steps in an encoding.

An encoding of that size takes minutes and gigabytes of memory.
"""

STEPS_PER_SECOND = 600_000
"""The number of steps per second on an ordinary machine, including the solver's time."""


class Cost(Struct, frozen=True, kw_only=True):
    """The estimated size of an encoding.

    Attributes:
        pairs: the number of pairs in chosen relations that the solver has to decide.
        steps: the estimated number of times the encoder processes a pair.
    """

    transactions: int
    pairs: int
    steps: int

    @property
    def seconds(self) -> float:
        """The estimated time for encoding and solving, in seconds."""
        return self.steps / STEPS_PER_SECOND

    def __str__(self) -> str:
        """Return a line for users about the size of the encoding and the time it takes."""
        took = "seconds at most" if self.seconds < 5 else f"about {self.seconds:.0f} s"
        return (
            f"this level is decided relationally: {self.transactions} "
            f"transactions, about {self.pairs} open pairs and {self.steps} "
            f"steps; expect {took}"
        )


def estimate_cost(
    problem: Problem,
    spec: Spec,
    tick: Callable[[], object] = lambda: None,
    *,
    most: int | None = None,
) -> Cost:
    """Estimate the cost of encoding a specification for a problem."""
    bounded = _AnySource(problem, Circuit(), events=uses_events(spec))
    return _Estimate(bounded, spec, tick, most).cost()


def require_affordable(
    problem: Problem, spec: Spec, tick: Callable[[], object] = lambda: None
) -> Cost:
    """Estimate the cost of an encoding, and raise an error if it exceeds ``LARGEST_COST``.

    Raises:
        UnsupportedError: if the encoding would be too large.
    """
    try:
        return estimate_cost(problem, spec, tick, most=LARGEST_COST)
    except _TooManyStepsError:
        transactions = problem.history.columns.transactions()
        raise UnsupportedError(
            f"{problem.history.name}: {spec.name} would be decided "
            f"relationally, which is too much work ({transactions} transactions "
            f"make more than {LARGEST_COST} steps); check a part of the history, or "
            "a level with a faster form (`isocheck spec list`)"
        ) from None


class _TooManyStepsError(Exception):
    """Raised when an estimate exceeds its maximum number of steps."""


class _Bounds(Struct, frozen=True):
    """The pairs that a relation certainly contains, and those that it may contain."""

    least: Mapping[int, int]
    most: Mapping[int, int]


_NOTHING = _Bounds({}, {})


class _Sizes:
    """Operators on bounds that count the steps of the corresponding operators with gates."""

    def __init__(self, everything: Relation, tick: Callable[[], object], most: int | None) -> None:
        self.identity = self.lift(_bounds_of(everything))
        self.steps = 0
        self._tick = tick
        self._most = most

    def count(self, steps: int) -> None:
        """Add steps to the estimate."""
        self.steps += steps
        if self._most is not None and self.steps > self._most:
            raise _TooManyStepsError

    def constant(self, a: _Bounds) -> bool:
        return a.least == a.most

    def union(self, parts: list[_Bounds]) -> _Bounds:
        return _Bounds(_union([p.least for p in parts]), _union([p.most for p in parts]))

    def inter(self, a: _Bounds, b: _Bounds) -> _Bounds:
        def both(x: Mapping[int, int], y: Mapping[int, int]) -> Mapping[int, int]:
            return {i: row & y[i] for i, row in x.items() if i in y and row & y[i]}

        return _Bounds(both(a.least, b.least), both(a.most, b.most))

    def diff(self, a: _Bounds, b: _Bounds) -> _Bounds:
        def less(x: Mapping[int, int], y: Mapping[int, int]) -> Mapping[int, int]:
            rows = {i: row & ~y.get(i, 0) for i, row in x.items()}
            return {i: row for i, row in rows.items() if row}

        return _Bounds(less(a.least, b.most), less(a.most, b.least))

    def only_if(self, literal: int, a: _Bounds) -> _Bounds:
        """Return the bounds unchanged, because for a history, every ``literal`` is a constant."""
        del literal
        return a

    def seq(self, a: _Bounds, b: _Bounds) -> _Bounds:
        # Each pair (i, k) of a is combined with each pair (k, j) of b. If both pairs are certain,
        # this costs nothing, because the algebra combines whole rows of bits.
        sizes = {k: row.bit_count() for k, row in b.most.items()}
        certain = {k: row.bit_count() for k, row in b.least.items()}
        live = _row_mask(b.most)
        for i, row in a.most.items():
            self._tick()
            sure = a.least.get(i, 0)
            if row == sure and row.bit_count() == 1:
                continue  # a row of `[S] ; b` is the same object as the row of b
            for k in bits(row & live):
                self.count(sizes[k] - (certain.get(k, 0) if sure >> k & 1 else 0))
        return _Bounds(_composed(a.least, b.least), _composed(a.most, b.most))

    def inverse(self, a: _Bounds) -> _Bounds:
        return _Bounds(_transposed(a.least), _transposed(a.most))

    def lift(self, s: _Bounds) -> _Bounds:
        def diagonal(x: Mapping[int, int]) -> Mapping[int, int]:
            return {i: 1 << i for i in bits(x.get(0, 0))}

        return _Bounds(diagonal(s.least), diagonal(s.most))

    def product(self, s: _Bounds, t: _Bounds) -> _Bounds:
        def times(x: Mapping[int, int], y: Mapping[int, int]) -> Mapping[int, int]:
            return dict.fromkeys(bits(x.get(0, 0)), y.get(0, 0)) if y.get(0, 0) else {}

        return _Bounds(times(s.least, t.least), times(s.most, t.most))

    def domain(self, a: _Bounds) -> _Bounds:
        return _Bounds({0: _row_mask(a.least)}, {0: _row_mask(a.most)})

    def plus(self, a: _Bounds) -> _Bounds:
        least, most = transitive_closure(a.least), transitive_closure(a.most)
        if a.least != a.most:
            sizes = {k: row.bit_count() for k, row in most.items()}
            rounds = max(1, len(most)).bit_length()
            through = sum(sizes.get(k, 0) for row in most.values() for k in bits(row))
            self.count(rounds * through)
        return _Bounds(least, most)

    def plus_from_above(self, a: _Bounds) -> _Bounds:
        least, most = transitive_closure(a.least), transitive_closure(a.most)
        if a.least != a.most:
            sizes = {k: row.bit_count() for k, row in most.items()}
            for row in a.most.values():
                self.count(sum(sizes.get(k, 0) for k in bits(row)))
        return _Bounds(least, most)

    def with_identity(self, a: _Bounds) -> _Bounds:
        return self.union([a, self.identity])


class _AnySource(Bounded):
    """An interpretation for estimates, which adds no clauses for sources."""

    def _choose_source(self, read: ExternalRead) -> list[tuple[int, int]]:
        alone = len(read.sources) == 1
        return [(source, TRUE if alone else self.circuit.new()) for source in read.sources]


class _Estimate:
    def __init__(
        self, bounded: Bounded, spec: Spec, tick: Callable[[], object], most: int | None
    ) -> None:
        self._interpretation = bounded
        self._spec = spec
        self._sizes = _Sizes(bounded.everything, tick, most)
        self._evaluator: CoreEvaluator[_Bounds] = CoreEvaluator(
            self._sizes, self._of_history, bounded.keys, spec.exists, self
        )
        self._open = sum(len(r.sources) for r in bounded.reads if len(r.sources) > 1)

    def cost(self) -> Cost:
        for exists in self._spec.exists:
            if exists.name != "rf":
                self._evaluator.choose(exists, self._chosen)
        for check in self._spec.checks:
            value = self._evaluator.value(check.expr, Side.ABOVE)
            within = _NOTHING
            if check.bound is not None:
                within = self._evaluator.value(check.bound, Side.BELOW)
            if check.flag or check.negated:
                value = self._sizes.plus(value) if check.kind == "acyclic" else value
            settled: Mapping[int, int] = {}
            if not isinstance(check.expr, ForKey):
                settled = self._sizes.inter(value, within).least
            self._sizes.count(_pair_count(value.most) - _pair_count(settled))
        return Cost(
            transactions=len(self._interpretation.txns) - 1,
            pairs=self._open,
            steps=self._sizes.steps + 3 * self._open,
        )

    def named(self, of: Named) -> _Bounds:
        """Return the bounds of the set of transactions selected by a quoted name."""
        return _bounds_of(self._interpretation.named(of))

    def key_in(self, within: KeyClass, key: int) -> int:
        """Return ``TRUE`` if a class of keys contains a key, otherwise ``FALSE``."""
        return self._interpretation.key_in(within, key)

    def _of_history(self, name: str, key: int | None) -> _Bounds | None:
        value = self._interpretation.of_history(name, key)
        return None if value is None else _bounds_of(value)

    def _chosen(
        self,
        exists: Exists,
        key: int | None,
        over: _Bounds,
        containing: _Bounds | None,
        within: _Bounds | None,
    ) -> _Bounds:
        del key
        least = {} if containing is None else containing.least
        if exists.kind == "choice":
            most = over.most
        else:
            members = over.most.get(0, 0)
            most = {i: members & ~(1 << i) for i in bits(members)}
            if exists.name in BEGIN_WITH_T0:
                t0 = self._interpretation.initial(Relation({0: members}, {}))
                least = _union([least, t0.must])
        if exists.kind == "order":
            least = transitive_closure(least)
            back = _transposed(least)
            most = {i: row & ~back.get(i, 0) for i, row in most.items()}
        if within is not None:
            most = {i: row & within.most.get(i, 0) for i, row in most.items()}
        most = {i: row | least.get(i, 0) for i, row in most.items()}
        found = _pair_count(most) - _pair_count(least)
        self._open += found // 2 if exists.kind == "order" else found
        return _Bounds(least, {i: row for i, row in most.items() if row})


def _bounds_of(value: Relation) -> _Bounds:
    return _Bounds(value.must, upper_bound(value))


def _pair_count(rows: Mapping[int, int]) -> int:
    return sum(row.bit_count() for row in rows.values())


def _row_mask(rows: Mapping[int, int]) -> int:
    mask = 0
    for i, row in rows.items():
        if row:
            mask |= 1 << i
    return mask


def _union(parts: list[Mapping[int, int]]) -> Mapping[int, int]:
    found: dict[int, int] = {}
    for part in parts:
        for i, row in part.items():
            found[i] = found.get(i, 0) | row
    return found


def _composed(a: Mapping[int, int], b: Mapping[int, int]) -> Mapping[int, int]:
    live = _row_mask(b)
    found: dict[int, int] = {}
    for i, row in a.items():
        through = 0
        for k in bits(row & live):
            through |= b[k]
        if through:
            found[i] = through
    return found


def _transposed(rows: Mapping[int, int]) -> Mapping[int, int]:
    found: dict[int, int] = {}
    for i, row in rows.items():
        for j in bits(row):
            found[j] = found.get(j, 0) | 1 << i
    return found
