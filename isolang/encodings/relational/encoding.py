"""Encodes any specification as clauses and an acyclic graph, with Kodkod-style relation bounds.

A relation consists of the pairs it certainly contains and a literal for each other pair it may
contain. Expressions are evaluated on such relations, with gates for uncertain pairs. A total order
has a literal for each pair, and an edge for each direction of the pair. The order is transitive
because the graph is acyclic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from isolang.certify.proofs import Relations
from isolang.encodings.relational.bounded import Bounded
from isolang.encodings.relational.checks import Checks
from isolang.encodings.relational.chosen import Chooser, GuardedGraph, OrderVariables
from isolang.encodings.relational.circuit import TRUE, Circuit
from isolang.encodings.relational.evaluate import CoreEvaluator
from isolang.encodings.relational.relation import EMPTY, Algebra, Relation
from isolang.language.meaning.core import Check, Exists, Spec
from isolang.language.meaning.mentions import uses_events, uses_reads_from
from isolang.language.vocabulary import BEGIN_WITH_T0
from isolang.problem import Problem

Pairs = tuple[tuple[int, int], ...]


class RelationalEncoding:
    """The encoding of a specification for a problem, or for a subset of its transactions.

    Attributes:
        interpretation: the elements and the relations determined by the history.
        flags: for each flagged check, by name, a variable that is true iff the check is met.
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
        """Encode the condition that a history satisfies a specification.

        Args:
            checks: the checks to encode instead of the specification's own; flagged checks among
                them are ignored. ``None`` to encode the specification's checks.
            only: the transactions to encode. A read that may have a source outside this set may
                have any source, or none. ``None`` to encode all transactions.
        """
        self.spec = spec
        self.circuit = circuit = Circuit()
        self.graph = GuardedGraph()
        requested = tuple(spec.checks if checks is None else checks)
        events = uses_events(spec)
        self.interpretation = bounded = Bounded(problem, circuit, events=events, only=only)
        self._algebra = Algebra(circuit, bounded.everything, tick)
        self._evaluator: CoreEvaluator[Relation] = CoreEvaluator(
            self._algebra, bounded.of_history, bounded.keys, spec.exists, bounded
        )
        self._chooser = Chooser(circuit, self.graph, tick)
        self._members: dict[int, Relation] = {}
        self._include()
        for exists in spec.exists:
            if exists.name != "rf":
                self._evaluator.choose(exists, self._chosen)
        checker = Checks(
            interpretation=bounded,
            circuit=circuit,
            graph=self.graph,
            algebra=self._algebra,
            evaluator=self._evaluator,
            tick=tick,
        )
        for check in requested:
            if not check.flag:
                checker.state(check)
        self.flags = {
            check.name: circuit.alias_of(checker.met(check))
            for check in requested
            if check.flag and checks is None
        }

    @property
    def clauses(self) -> int:
        """The number of clauses in the encoding."""
        return self.circuit.clauses.count(0)

    def orders(self) -> Iterable[OrderVariables]:
        """Return the variables of each total order chosen by the solver."""
        return self._chooser.orders.values()

    # --- choice variables ---

    def _include(self) -> None:
        """Add clauses that restrict which indeterminate transactions can be included together."""
        bounded, state = self.interpretation, self.circuit.state
        included = bounded.included
        for reader, writer in bounded.lists.shown():
            state((-included[reader], included[writer]))
        if uses_reads_from(self.spec):
            for element in bounded.impossible():
                state((-included[element],))
            for one, other in bounded.lists.clashing():
                state((-included[one], -included[other]))

    def _chosen(
        self,
        exists: Exists,
        key: int | None,
        over: Relation,
        least: Relation | None,
        most: Relation | None,
    ) -> Relation:
        least = least or EMPTY
        if exists.kind == "choice":
            return self._chooser.choice(over, least, most)
        if exists.name in BEGIN_WITH_T0:
            least = self._algebra.union([least, self.interpretation.initial(over)])
        if exists.kind == "order":
            on = "" if key is None else f" on {self.interpretation.history.key(key)}"
            result = self._chooser.order(over, least, most, name=exists.name + on)
            self._members[id(result)] = over
            return result
        return self._chooser.relation(over, least, most)

    # --- the meaning of variables and of a model ---

    def meanings(self) -> dict[int, str]:
        """Return a description of each variable that represents a choice.

        All other variables are gates.

        If a variable is described as ``a -co-> b``, it is true if a is decided to precede b. The
        order of a and b is undecided if the variables of both directions are false.
        """
        bounded = self.interpretation
        label, history = bounded.label, bounded.history
        meanings: dict[int, str] = {}
        for i, literal in enumerate(bounded.included):
            meanings.setdefault(literal, f"{label(i)} is in")
        for read in bounded.reads:
            where = f"{history.key(read.key)} (operation {read.op})"
            for source, literal in bounded.sources(read):
                meanings.setdefault(
                    literal, f"{label(source)} -wr-> {label(read.reader)} on {where}"
                )
        for (name, key), value in self._evaluator.values.items():
            on = "" if key is None else f" on {history.key(key)}"
            order = self._chooser.orders.get(id(value))
            if order is None:
                pairs = [(i, j, literal) for i, j, literal in value.pairs()]
            else:
                pairs = [(a, b, v) for a, b, v in order.pairs]
                pairs += [(b, a, v + 1) for a, b, v in order.pairs]
            for i, j, literal in pairs:
                if literal > TRUE and not self.circuit.is_gate(literal):
                    meanings.setdefault(literal, f"{label(i)} -{name}-> {label(j)}{on}")
        meanings[TRUE] = "true"
        return meanings

    def chosen(self, model: Callable[[int], bool]) -> Relations:
        """Return the relations chosen by a model, with elements numbered as in proofs."""
        bounded = self.interpretation
        number = bounded.number
        relations: dict[str, dict[int, Pairs]] = {}
        for exists in self.spec.exists:
            keys: list[int | None] = [None] if exists.key is None else [*bounded.keys]
            values: dict[int, Pairs] = {}
            for key in keys:
                if exists.name == "rf":
                    pairs = self._read_pairs(key, model)
                else:
                    value = self._evaluator.values[exists.name, key]
                    if exists.kind == "order":
                        row = self._in_order(value, model)
                        true = list(pairwise(row))
                    else:
                        true = [(i, j) for i, j, literal in value.pairs() if model(literal)]
                    pairs = tuple((number(i), number(j)) for i, j in true)
                values[-1 if key is None else key] = pairs
            relations[exists.name] = values
        included = tuple(
            number(i) for i, literal in enumerate(bounded.included) if i and model(literal)
        )
        return Relations(included, relations)

    def _in_order(self, value: Relation, model: Callable[[int], bool]) -> list[int]:
        """Return the elements that a model includes in a total order, in that order."""
        row = self._chooser.orders[id(value)].extended(model)
        there = self._members[id(value)]
        return [i for i in row if model(there.get(0, i))]

    def _read_pairs(self, key: int | None, model: Callable[[int], bool]) -> Pairs:
        assert key is not None
        bounded = self.interpretation
        return tuple(
            (bounded.number(source), read.op)
            for read in bounded.reads_of(key)
            for source, literal in bounded.sources(read)
            if model(literal)
        )
