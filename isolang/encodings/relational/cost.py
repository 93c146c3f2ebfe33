"""The cost of a relational encoding, estimated from the bounds of its relations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from isolang.encodings.relational.chosen import initial
from isolang.encodings.relational.circuit import Circuit
from isolang.encodings.relational.evaluate import Evaluator, Side
from isolang.encodings.relational.relation import Relation, closure, may
from isolang.encodings.relational.universe import Universe
from isolang.errors import UnsupportedError
from isolang.language.meaning.core import SPLIT, TRANSITIVE, Exists, ForKey, Spec
from isolang.language.meaning.facts import speaks_of_events
from isolang.problem import Problem
from isolang.rows import bits

LARGEST = 20_000_000
"""Steps beyond which an encoding is not attempted: minutes, and gigabytes."""

STEPS_PER_SECOND = 600_000
"""What the encoder makes of them on an ordinary machine, the solver's part included."""


class Cost(Struct, frozen=True, kw_only=True):
    """The size of an encoding.

    Attributes:
        transactions: how many may be included, T0 left out.
        pairs: pairs of chosen relations that are open.
        steps: how often a pair will be looked at, about.
    """

    transactions: int
    pairs: int
    steps: int

    @property
    def seconds(self) -> float:
        """The estimated time, in seconds."""
        return self.steps / STEPS_PER_SECOND

    def __str__(self) -> str:
        """One line for people."""
        took = "seconds at most" if self.seconds < 5 else f"about {self.seconds:.0f} s"
        return (
            f"this level runs relationally: {self.transactions} transactions, about "
            f"{self.pairs} open pairs and {self.steps} steps; expect {took}"
        )


def cost_of(problem: Problem, spec: Spec, tick: Callable[[], object] = lambda: None) -> Cost:
    """Estimate the cost.

    Args:
        problem: the problem.
        spec: the specification.
        tick: called now and then; may raise ``TimeoutError``.
    """
    universe = Universe(problem, Circuit(), events=speaks_of_events(spec))
    return _Estimate(universe, spec, tick).cost()


def affordable(problem: Problem, spec: Spec, tick: Callable[[], object] = lambda: None) -> Cost:
    """Estimate the cost, and refuse an encoding that is too large.

    Args:
        problem: the problem.
        spec: the specification.
        tick: called now and then; may raise ``TimeoutError``.

    Raises:
        UnsupportedError: the encoding is too large.
    """
    cost = cost_of(problem, spec, tick)
    if cost.steps > LARGEST:
        raise UnsupportedError(
            f"{problem.history.name}: {spec.name} would run relationally, and that is too much "
            f"({cost.transactions} transactions make about {cost.steps} steps, expected at most "
            f"{LARGEST}); check a part of the history, or a level with a faster form "
            "(`isocheck spec list`)"
        )
    return cost


class _Bounds(Struct, frozen=True):
    """What a relation has at least and at most."""

    least: Mapping[int, int]
    most: Mapping[int, int]


_NOTHING = _Bounds({}, {})


class _Sizes:
    """The operators on bounds; counts what they would cost with gates."""

    def __init__(self, everything: Relation, tick: Callable[[], object]) -> None:
        self.identity = self.lift(_of(everything))
        self.steps = 0
        self._tick = tick

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

    def seq(self, a: _Bounds, b: _Bounds) -> _Bounds:
        # Each pair on the left with each on the right of the element in the middle, but for those
        # that are certain on both sides, which are bits of whole rows.
        sizes = {k: row.bit_count() for k, row in b.most.items()}
        certain = {k: row.bit_count() for k, row in b.least.items()}
        live = _mask(b.most)
        for i, row in a.most.items():
            self._tick()
            sure = a.least.get(i, 0)
            if row == sure and row.bit_count() == 1:
                continue  # a row of `[S] ; b` is shared
            for k in bits(row & live):
                self.steps += sizes[k] - (certain.get(k, 0) if sure >> k & 1 else 0)
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
        return _Bounds({0: _mask(a.least)}, {0: _mask(a.most)})

    def plus(self, a: _Bounds) -> _Bounds:
        least, most = closure(a.least), closure(a.most)
        if a.least != a.most:
            sizes = {k: row.bit_count() for k, row in most.items()}
            rounds = max(1, len(most)).bit_length()
            through = sum(sizes.get(k, 0) for row in most.values() for k in bits(row))
            self.steps += rounds * through
        return _Bounds(least, most)

    def plus_from_above(self, a: _Bounds) -> _Bounds:
        least, most = closure(a.least), closure(a.most)
        if a.least != a.most:
            sizes = {k: row.bit_count() for k, row in most.items()}
            self.steps += sum(sizes.get(k, 0) for row in a.most.values() for k in bits(row))
        return _Bounds(least, most)

    def with_identity(self, a: _Bounds) -> _Bounds:
        return self.union([a, self.identity])


class _Estimate:
    def __init__(self, universe: Universe, spec: Spec, tick: Callable[[], object]) -> None:
        self._universe = universe
        self._spec = spec
        self._sizes = _Sizes(universe.everything, tick)
        orders = {e.name for e in spec.exists if e.kind == "order" and e.key is None}
        self._evaluator: Evaluator[_Bounds] = Evaluator(
            self._sizes, self._leaf, universe.keys, TRANSITIVE | orders
        )
        self._values: dict[tuple[str, int | None], _Bounds] = {}
        self._open = sum(len(r.sources) for r in universe.reads if len(r.sources) > 1)

    def cost(self) -> Cost:
        for exists in self._spec.exists:
            if exists.name != "rf":
                keys: list[int | None] = [None] if exists.key is None else [*self._universe.keys]
                for key in keys:
                    self._values[exists.name, key] = self._chosen(exists, key)
        for check in self._spec.checks:
            value = self._evaluator.value(check.expr, Side.ABOVE)
            within = _NOTHING
            if check.bound is not None:
                within = self._evaluator.value(check.bound, Side.BELOW)
            if check.flag or check.negated:
                value = self._sizes.plus(value) if check.kind == "acyclic" else value
            self._sizes.steps += _size(value.most) - _size(
                self._sizes.inter(value, within).least if not isinstance(check.expr, ForKey) else {}
            )
        return Cost(
            transactions=len(self._universe.txns) - 1,
            pairs=self._open,
            steps=self._sizes.steps + 3 * self._open,
        )

    def _chosen(self, exists: Exists, key: int | None) -> _Bounds:
        value = self._evaluator.value
        binding = {} if key is None or exists.key is None else {exists.key: key}
        over = value(exists.over, Side.EXACT, binding)
        least: Mapping[int, int] = {}
        if exists.containing is not None:
            least = value(exists.containing, Side.ABOVE, binding).least
        if exists.kind == "choice":
            most = over.most
        else:
            members = over.most.get(0, 0)
            most = {i: members & ~(1 << i) for i in bits(members)}
            if exists.name in ("ww", "co", "ar", "vis"):
                t0 = initial(self._universe, Relation({0: members}, {}))
                least = _union([least, t0.must])
        if exists.kind == "order":
            least = closure(least)
            back = _transposed(least)
            most = {i: row & ~back.get(i, 0) for i, row in most.items()}
        if exists.within is not None:
            bound = value(exists.within, Side.BELOW, binding).most
            most = {i: row & bound.get(i, 0) for i, row in most.items()}
        most = {i: row | least.get(i, 0) for i, row in most.items()}
        found = _size(most) - _size(least)
        self._open += found // 2 if exists.kind == "order" else found
        return _Bounds(least, {i: row for i, row in most.items() if row})

    def _leaf(self, name: str, key: int | None) -> _Bounds:
        if (name, key) not in self._values:
            self._values[name, key] = self._given(name, key)
        return self._values[name, key]

    def _given(self, name: str, key: int | None) -> _Bounds:
        universe = self._universe
        match name:
            case "T":
                return _of(universe.transactions)
            case "id":
                return self._sizes.identity
            case "init":
                return _of(universe.init)
            case "so":
                return _of(universe.so)
            case "rt":
                return _of(universe.rt)
            case "group-rt":
                return _of(universe.group_rt)
            case "done" | "late" | "locked":
                return _of(universe.before_commit(name))
            case "committed-before" | "answered-before" | "committed-after" | "statement":
                return _of(universe.of_statements(name))
            case "po":
                return _of(universe.po)
            case "tx":
                return _of(universe.tx)
            case "pred":
                return _of(universe.pred)
        if key is None:
            return self._sizes.union([self._leaf(name, k) for k in universe.keys])
        match name:
            case "W":
                return _of(universe.written(key))
            case "R":
                return _of(universe.read(key))
            case "last-write":
                return _of(universe.last_writes(key))
            case "vo":
                return _of(universe.vo(key))
            case "cand":
                return _of(universe.cand(key))
            case "rf" | "wr" | "iwr" | "pwr":
                return self._reads(name, key)
            case _:
                sizes = self._sizes
                read = self._leaf(f"{name[:-2]}wr", key)
                back = sizes.seq(sizes.inverse(read), self._leaf("ww", key))
                return sizes.diff(back, sizes.identity)

    def _reads(self, name: str, key: int) -> _Bounds:
        universe = self._universe
        least: dict[int, int] = {}
        most: dict[int, int] = {}
        for read in universe.reads_of(key):
            if name in SPLIT and read.of_predicate != (name == "pwr"):
                continue
            for source in read.sources:
                pair = (source, read.reader)
                if name == "rf":
                    pair = (universe.write_event(key, source), universe.read_event(read.op))
                i, j = pair
                most[i] = most.get(i, 0) | 1 << j
                if len(read.sources) == 1:
                    least[i] = least.get(i, 0) | 1 << j
        return _Bounds(least, most)


def _of(value: Relation) -> _Bounds:
    return _Bounds(value.must, may(value))


def _size(rows: Mapping[int, int]) -> int:
    return sum(row.bit_count() for row in rows.values())


def _mask(rows: Mapping[int, int]) -> int:
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
    live = _mask(b)
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
