"""Creates the relations declared by ``exists``: orders, choices and arbitrary relations."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from isolang.encodings.decode import NoOrderError
from isolang.encodings.relational.circuit import FALSE, TRUE, Circuit
from isolang.encodings.relational.relation import Relation, relation_of, transitive_closure
from isolang.rows import bits


class GuardedGraph(Struct):
    """A graph that must be acyclic, with edges that are present if their literals are true.

    Attributes:
        edges: three numbers ``from, to, literal`` for each edge. The literal of an edge that is
            always present is 0.
        layers: for each layer of nodes, the first node, each node's element, and the name of the
            order or check to which the layer belongs.
    """

    nodes: int = 0
    edges: array[int] = field(default_factory=lambda: array("i"))
    layers: list[tuple[int, Sequence[int], str]] = field(default_factory=list)

    def layer(self, elements: Sequence[int], of: str) -> int:
        """Add a node for each element, and return the number of the first node."""
        first = self.nodes
        self.nodes += len(elements)
        self.layers.append((first, elements, of))
        return first

    def edge(self, a: int, b: int, literal: int) -> None:
        """Add an edge that is present if ``literal`` is true."""
        if literal != FALSE:
            self.edges.extend((a, b, 0 if literal == TRUE else literal))


class OrderVariables(Struct, frozen=True):
    """The variables that decide a total order.

    Attributes:
        elements: the elements that may be in the order, sorted consistently with ``certain``.
        certain: for each element, a bit mask of elements that certainly come later.
        pairs: ``(a, b, v)`` for each open pair of elements. Variable v means that a is before b,
            and variable v + 1 means that b is before a.
    """

    elements: list[int]
    certain: Mapping[int, int]
    pairs: list[tuple[int, int, int]]

    def extended(self, true: Callable[[int], bool]) -> list[int]:
        """Return the elements in a total order that agrees with all decided pairs.

        Raises:
            NoOrderError: if the decided pairs form a cycle.
        """
        after: dict[int, list[int]] = defaultdict(list)
        missing = dict.fromkeys(self.elements, 0)
        for a, row in self.certain.items():
            for b in bits(row):
                if a in missing and b in missing:
                    after[a].append(b)
                    missing[b] += 1
        for a, b, v in self.pairs:
            for first, second, decided in ((a, b, v), (b, a, v + 1)):
                if true(decided):
                    after[first].append(second)
                    missing[second] += 1
        ready = [a for a in self.elements if not missing[a]]
        for a in ready:
            for b in after[a]:
                missing[b] -= 1
                if not missing[b]:
                    ready.append(b)
        if len(ready) != len(self.elements):
            raise NoOrderError("relational: what is decided of an order forms a cycle")
        return ready


class Chooser:
    """Creates variables for chosen relations, and adds clauses for their bounds.

    Attributes:
        orders: the variables that decide each order, by the identity of its relation.
    """

    def __init__(self, circuit: Circuit, graph: GuardedGraph, tick: Callable[[], object]) -> None:
        """Prepare to add variables and clauses to a circuit, and edges to a graph."""
        self._circuit = circuit
        self._graph = graph
        self._tick = tick
        self.orders: dict[int, OrderVariables] = {}

    def order(
        self, over: Relation, least: Relation, most: Relation | None, *, name: str
    ) -> Relation:
        """Create a strict total order on a set; it is transitive because the graph is acyclic."""
        circuit, graph = self._circuit, self._graph
        member = {j: literal for _, j, literal in over.pairs()}
        certain = transitive_closure(least.must)
        if any(row >> i & 1 for i, row in certain.items()):
            circuit.state(())
            result = Relation()
            self.orders[id(result)] = OrderVariables([], {}, [])
            return result
        depth: dict[int, int] = defaultdict(int)
        for row in certain.values():
            for j in bits(row):
                depth[j] += 1
        # Elements with fewer certain predecessors come first, so the list is consistent with all
        # certain pairs.
        elements = sorted(member, key=lambda i: (depth[i], i))
        first_node = graph.layer(elements, name)
        node = {i: first_node + at for at, i in enumerate(elements)}
        for i, row in certain.items():
            skipped = 0
            for j in bits(row):
                skipped |= certain.get(j, 0)
            for j in bits(row & ~skipped):
                if i in node and j in node:
                    graph.edge(node[i], node[j], TRUE)
        must: dict[int, int] = {}
        maybe: dict[int, dict[int, int]] = defaultdict(dict)
        open_pairs: list[tuple[int, int, int]] = []
        for at, a in enumerate(elements):
            self._tick()
            row = certain.get(a, 0)
            for b in elements[at + 1 :]:
                both = circuit.both(member[a], member[b])
                if row >> b & 1:
                    if both == TRUE:
                        must[a] = must.get(a, 0) | 1 << b
                    else:
                        maybe[a][b] = both
                    continue
                first = circuit.pair()
                graph.edge(node[a], node[b], first)
                graph.edge(node[b], node[a], first + 1)
                open_pairs.append((a, b, first))
                maybe[a][b] = first if both == TRUE else circuit.both(first, both)
                maybe[b][a] = -first if both == TRUE else circuit.both(-first, both)
        result = Relation(must, maybe)
        self.orders[id(result)] = OrderVariables(elements, certain, open_pairs)
        self._bound(result, least, most)
        return result

    def relation(self, over: Relation, least: Relation, most: Relation | None) -> Relation:
        """Create an arbitrary relation on a set, with the same arguments as :meth:`order`."""
        circuit = self._circuit
        members = list(over.pairs())
        found: list[tuple[int, int, int]] = []
        for _, i, a in members:
            self._tick()
            for _, j, b in members:
                if least.must.get(i, 0) >> j & 1:
                    found.append((i, j, TRUE))
                    continue
                if most is not None and most.get(i, j) == FALSE:
                    continue
                literal = circuit.new()
                circuit.state((-literal, a))
                circuit.state((-literal, b))
                found.append((i, j, literal))
        result = relation_of(found)
        self._bound(result, least, most)
        return result

    def choice(self, of: Relation, least: Relation, most: Relation | None) -> Relation:
        """Create a subset of a relation with exactly one pair for each element of its range."""
        circuit = self._circuit
        columns: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for i, j, literal in of.pairs():
            columns[j].append((i, literal))
        found: list[tuple[int, int, int]] = []
        for j, candidates in columns.items():
            options = []
            for i, literal in candidates:
                chosen = literal if len(candidates) == 1 else circuit.new()
                circuit.state((-chosen, literal))
                options.append(chosen)
                found.append((i, j, chosen))
            for _, literal in candidates:
                circuit.state((-literal, *options))
            circuit.at_most_one(options)
        result = relation_of(found)
        self._bound(result, least, most)
        return result

    def _bound(self, value: Relation, least: Relation, most: Relation | None) -> None:
        state = self._circuit.state
        for i, j, literal in least.pairs():
            self._tick()
            state((-literal, value.get(i, j)))
        if most is not None:
            for i, j, literal in value.pairs():
                self._tick()
                state((-literal, most.get(i, j)))
