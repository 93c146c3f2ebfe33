"""Writes formulas in DIMACS CNF and MonoSAT's GNF, with comments that explain the variables."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import TYPE_CHECKING

from isolang.arrays import np
from isolang.encodings.formula import PolygraphFormula
from isolang.encodings.relational.formula import RelationalFormula

if TYPE_CHECKING:
    from isolang.encodings.formula import Formula


def to_dimacs(formula: Formula) -> str:
    """Return a formula in DIMACS CNF.

    Raises:
        ValueError: if the formula has a theory, which clauses alone cannot express.
    """
    if formula.theory != "none":
        raise ValueError(f"{formula.encoding} is not a plain CNF encoding")
    lines = [*_comments(formula, "c "), f"p cnf {formula.variables} {formula.clause_count}"]
    lines += [" ".join(map(str, [*clause, 0])) for clause in formula.clause_list()]
    return "\n".join(lines) + "\n"


def to_gnf(formula: Formula) -> str:
    """Return a formula in MonoSAT's GNF, with a variable for each edge of its acyclic graph.

    Raises:
        ValueError: if the formula's theory is not acyclicity.
    """
    if formula.theory != "acyclicity":
        raise ValueError(f"{formula.encoding} does not describe a graph")
    # The format requires a separate variable for each edge, implied by the edge's literal.
    count, first = len(formula.edges), formula.variables + 1
    acyclic = first + count
    clauses = formula.clause_list()
    for number, literal in enumerate(formula.edges[:, 2].tolist()):
        clauses.append([*([-literal] if literal else []), first + number])
    clauses.append([acyclic])
    lines = [*_comments(formula, "c ")]
    if count:
        lines.append(f"c {first}-{first + count - 1}: the edges below, in order")
    lines += [f"c {acyclic}: the graph has no cycle", f"p cnf {acyclic} {len(clauses)}"]
    lines += [" ".join(map(str, [*clause, 0])) for clause in clauses]
    lines.append(f"digraph int {formula.nodes} {count} 0")
    for number, (u, v, _) in enumerate(formula.edges.tolist()):
        lines.append(f"edge 0 {u} {v} {first + number}")
    lines.append(f"acyclic 0 {acyclic}")
    return "\n".join(lines) + "\n"


def node_names(formula: Formula) -> Iterator[tuple[int, str]]:
    """Yield the number and the name of each node that represents a transaction or another element.

    Auxiliary nodes have no name and are left out.
    """
    if isinstance(formula, RelationalFormula):
        bounded = formula.relations.interpretation
        for first, elements, of in formula.relations.graph.layers:
            for i, element in enumerate(elements):
                yield first + i, f"{bounded.label(element)}, {of}"
    if not isinstance(formula, PolygraphFormula):
        return
    graph = formula.polygraph.graph
    native, history = formula.polygraph.problem.native, formula.polygraph.problem.history
    for base, automaton in zip(graph.base, graph.automata, strict=True):
        for txn in [*np.flatnonzero(native.inclusion[:-1]).tolist(), native.n]:
            name = "T0" if txn == native.n else history.name_of(txn)
            for state in range(automaton.states):
                where = f", state {state}" if automaton.states > 1 else ""
                yield base + txn * automaton.states + state, f"{name}{where}, {automaton.check}"


def _pruning_and_history(formula: Formula) -> tuple[str, str]:
    """Return the pruning stage and the name of the encoded history, for the comments."""
    match formula:
        case PolygraphFormula():
            return formula.polygraph.prune, formula.polygraph.problem.history.name
        case RelationalFormula():
            return "none", formula.relations.interpretation.history.name
    return "none", ""


def _comments(formula: Formula, mark: str) -> Iterator[str]:
    pruned, history = _pruning_and_history(formula)
    yield f"{mark}{formula.encoding}, pruned: {pruned}"
    yield f"{mark}history: {history}"
    for first, count, name in formula.names:
        for i in range(count):
            yield f"{mark}{first + i}: {name(i)}"
    for node, what in node_names(formula):
        yield f"{mark}node {node}: {what}"


def comments(formula: Formula, mark: str) -> str:
    """Return comments that explain each variable and node; each line begins with ``mark``."""
    out = StringIO()
    for line in _comments(formula, mark):
        out.write(line + "\n")
    return out.getvalue()
