"""Any specification as clauses and an acyclic graph, by must/may bounds (Kodkod's way).

Every relation is known as the pairs that it must have and a literal for each other pair that it
may have; expressions are evaluated on those, with gates for what is not certain. Total orders are
one literal for each pair, with both directions as guarded edges: that there is no cycle is what
makes them transitive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

from isolang.certify.proofs import Relations
from isolang.encodings.relational.checks import Checks
from isolang.encodings.relational.chosen import Chooser, Graph, Order, initial
from isolang.encodings.relational.circuit import TRUE, Circuit
from isolang.encodings.relational.evaluate import Evaluator, Side
from isolang.encodings.relational.relation import EMPTY, Algebra, Relation, relation_of
from isolang.encodings.relational.universe import Universe
from isolang.language.meaning.core import TRANSITIVE, Check, Exists, Spec
from isolang.language.meaning.facts import speaks_of_events, uses_reads_from
from isolang.problem import Problem

CONTAIN_INIT = frozenset(("ww", "co", "ar", "vis"))

Pairs = tuple[tuple[int, int], ...]


class RelationalEncoding:
    """A specification on a problem, or on some of its transactions, for a solver.

    Attributes:
        circuit: the variables and clauses.
        graph: the edges that must stay without a cycle.
        flags: per flagged check a variable that is true iff it is met.
    """

    def __init__(
        self,
        problem: Problem,
        spec: Spec,
        *,
        checks: Iterable[Check] | None = None,
        only: Iterable[int] | None = None,
        tick: Callable[[], object] = lambda: None,
    ) -> None:
        """Encode.

        Args:
            problem: of a history without intrinsic anomalies, if the spec judges them.
            spec: the specification.
            checks: other checks in place of its own; flagged ones are left out.
            only: the transactions to keep; reads from others then have any source or none. ``None``
                for all.
            tick: called now and then; may raise ``TimeoutError``.
        """
        self.spec = spec
        self.circuit = circuit = Circuit()
        self.graph = Graph()
        wanted = tuple(spec.checks if checks is None else checks)
        self.universe = Universe(problem, circuit, events=speaks_of_events(spec), only=only)
        self._algebra = Algebra(circuit, self.universe.everything, tick)
        orders = {e.name for e in spec.exists if e.kind == "order" and e.key is None}
        self._evaluator: Evaluator[Relation] = Evaluator(
            self._algebra, self._leaf, self.universe.keys, TRANSITIVE | orders
        )
        self._chooser = Chooser(self.universe, circuit, self.graph, tick)
        self._values: dict[tuple[str, int | None], Relation] = {}
        self._members: dict[int, Relation] = {}
        self._include()
        self._sources = self._chooser.sources()
        self._by_key: dict[int, list[tuple[tuple[int, int], int]]] = {}
        for (number, source), literal in self._sources.items():
            of = self.universe.reads[number].key
            self._by_key.setdefault(of, []).append(((number, source), literal))
        for exists in spec.exists:
            if exists.name != "rf":
                self._choose(exists)
        checker = Checks(
            universe=self.universe,
            circuit=circuit,
            graph=self.graph,
            algebra=self._algebra,
            evaluator=self._evaluator,
            tick=tick,
        )
        for check in wanted:
            if not check.flag:
                checker.state(check)
        self.flags = {
            check.name: circuit.named(checker.met(check))
            for check in wanted
            if check.flag and checks is None
        }

    @property
    def clauses(self) -> int:
        """How many clauses there are."""
        return self.circuit.clauses.count(0)

    def orders(self) -> Iterable[Order]:
        """The total orders that are searched for."""
        return self._chooser.orders.values()

    # --- what is chosen ---

    def _include(self) -> None:
        """State when an indeterminate transaction is included."""
        universe, state = self.universe, self.circuit.state
        included = universe.included
        for reader, writer in universe.lists.shown():
            state((-included[reader], included[writer]))
        if uses_reads_from(self.spec):
            for element in universe.impossible():
                state((-included[element],))
            for one, other in universe.lists.clashing():
                state((-included[one], -included[other]))

    def _choose(self, exists: Exists) -> None:
        keys: list[int | None] = [None] if exists.key is None else [*self.universe.keys]
        for key in keys:
            binding = {} if key is None or exists.key is None else {exists.key: key}
            self._values[exists.name, key] = self._chosen(exists, binding)

    def _chosen(self, exists: Exists, binding: Mapping[str, int]) -> Relation:
        value = self._evaluator.value
        over = value(exists.over, Side.EXACT, binding)
        least = EMPTY
        if exists.containing is not None:
            least = value(exists.containing, Side.ABOVE, binding)
        most = None
        if exists.within is not None:
            most = value(exists.within, Side.BELOW, binding)
        if exists.kind == "choice":
            return self._chooser.choice(over, least, most)
        if exists.name in CONTAIN_INIT:
            least = self._algebra.union([least, initial(self.universe, over)])
        if exists.kind == "order":
            on = "".join(f" on {self.universe.history.key(key)}" for key in binding.values())
            result = self._chooser.order(over, least, most, name=exists.name + on)
            self._members[id(result)] = over
            return result
        return self._chooser.relation(over, least, most)

    def _leaf(self, name: str, key: int | None) -> Relation:
        if (name, key) not in self._values:
            self._values[name, key] = self._given(name, key)
        return self._values[name, key]

    def _given(self, name: str, key: int | None) -> Relation:
        universe, algebra = self.universe, self._algebra
        match name:
            case "T":
                return universe.transactions
            case "id":
                return algebra.identity
            case "init":
                return universe.init
            case "so":
                return universe.so
            case "rt":
                return universe.rt
            case "group-rt":
                return universe.group_rt
            case "done" | "late" | "locked":
                return universe.before_commit(name)
            case "committed-before" | "answered-before" | "committed-after" | "statement":
                return universe.of_statements(name)
            case "po":
                return universe.po
            case "tx":
                return universe.tx
            case "pred":
                return universe.pred
        if key is None:
            return algebra.union([self._leaf(name, k) for k in universe.keys])
        match name:
            case "W":
                return universe.written(key)
            case "R":
                return universe.read(key)
            case "last-write":
                return universe.last_writes(key)
            case "vo":
                return universe.vo(key)
            case "cand":
                return universe.cand(key)
            case "wr" | "iwr" | "pwr":
                return self._reads_from(name, key)
            case "rf":
                return relation_of(
                    (universe.write_event(key, s), universe.read_event(read.op), literal)
                    for (number, s), literal in self._sources_of(key)
                    for read in (universe.reads[number],)
                )
            case "rw" | "irw" | "prw":
                read = self._leaf(f"{name[:-2]}wr", key)
                back = algebra.seq(algebra.inverse(read), self._leaf("ww", key))
                return algebra.diff(back, algebra.identity)
        raise AssertionError(f"no relation {name}")

    def _sources_of(self, key: int) -> list[tuple[tuple[int, int], int]]:
        return self._by_key.get(key, [])

    def _reads_from(self, name: str, key: int) -> Relation:
        found: dict[tuple[int, int], list[int]] = {}
        for (number, source), literal in self._sources_of(key):
            of_predicate = self.universe.reads[number].of_predicate
            if name != "wr" and of_predicate != (name == "pwr"):
                continue
            found.setdefault((source, self.universe.reads[number].reader), []).append(literal)
        any_of = self.circuit.any_of
        return relation_of((s, r, any_of(literals)) for (s, r), literals in found.items())

    # --- what variables mean, and what a model says ---

    def meanings(self) -> dict[int, str]:
        """What the variables mean that are choices, in the words of the history; others are gates.

        ``a -co-> b`` is that a is decided to precede b; neither direction need be.
        """
        label, history = self.universe.label, self.universe.history
        said: dict[int, str] = {}
        for i, literal in enumerate(self.universe.included):
            said.setdefault(literal, f"{label(i)} is in")
        for (number, source), literal in self._sources.items():
            read = self.universe.reads[number]
            where = f"{history.key(read.key)} (operation {read.op})"
            said.setdefault(literal, f"{label(source)} -wr-> {label(read.reader)} on {where}")
        for (name, key), value in self._values.items():
            on = "" if key is None else f" on {history.key(key)}"
            order = self._chooser.orders.get(id(value))
            if order is None:
                pairs = [(i, j, literal) for i, j, literal in value.pairs()]
            else:
                pairs = [(a, b, v) for a, b, v in order.pairs]
                pairs += [(b, a, v + 1) for a, b, v in order.pairs]
            for i, j, literal in pairs:
                if literal > TRUE and not self.circuit.is_gate(literal):
                    said.setdefault(literal, f"{label(i)} -{name}-> {label(j)}{on}")
        said[TRUE] = "true"
        return said

    def chosen(self, model: Callable[[int], bool]) -> Relations:
        """The relations that a model chooses, in the numbers of :meth:`Universe.number`.

        Args:
            model: whether a literal is true.
        """
        universe = self.universe
        number = universe.number
        relations: dict[str, dict[int, Pairs]] = {}
        for exists in self.spec.exists:
            keys: list[int | None] = [None] if exists.key is None else [*universe.keys]
            values: dict[int, Pairs] = {}
            for key in keys:
                if exists.name == "rf":
                    pairs = self._read_pairs(key, model)
                else:
                    value = self._values[exists.name, key]
                    if exists.kind == "order":
                        row = self._in_order(value, model)
                        true = list(pairwise(row))
                    else:
                        true = [(i, j) for i, j, literal in value.pairs() if model(literal)]
                    pairs = tuple((number(i), number(j)) for i, j in true)
                values[-1 if key is None else key] = pairs
            relations[exists.name] = values
        included = tuple(
            universe.number(i)
            for i, literal in enumerate(universe.included)
            if i and model(literal)
        )
        return Relations(included, relations)

    def _in_order(self, value: Relation, model: Callable[[int], bool]) -> list[int]:
        """The elements of an order that are there, in a total order."""
        row = self._chooser.orders[id(value)].extended(model)
        there = self._members[id(value)]
        return [i for i in row if model(there.get(0, i))]

    def _read_pairs(self, key: int | None, model: Callable[[int], bool]) -> Pairs:
        assert key is not None
        return tuple(
            (self.universe.number(source), self.universe.reads[number].op)
            for (number, source), literal in self._sources_of(key)
            if model(literal)
        )
