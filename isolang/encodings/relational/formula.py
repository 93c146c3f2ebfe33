"""Encodes any specification as a formula for any solver.

Unlike the other encodings, the relational encoding starts from the problem and the text of the
specification rather than from a polygraph. Therefore it does not depend on automata, theorems or
pruning. Its edges are those of the total orders (both directions of each open pair) and those of
the ``acyclic`` checks.

Size: an order of n elements has n² variables and edges. A check that requires ``a ; b`` in ``c``
    has a clause for each pair (i, k) of ``a`` and pair (k, j) of ``b``, so at most n³ clauses.
    Known pairs need no variables or clauses.

The bounds are those of E. Torlak, D. Jackson, *Kodkod: a relational model finder*, TACAS 2007.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from isolang.arrays import np
from isolang.encodings.binary_labeling import add_labels, label_width
from isolang.encodings.decode import order_of
from isolang.encodings.formula import Builder, Formula
from isolang.encodings.registry import RELATIONAL
from isolang.encodings.relational.cost import Cost, require_affordable
from isolang.encodings.relational.encoding import RelationalEncoding
from isolang.history.columns import INDETERMINATE
from isolang.language.classify.relational import depends_on_unread
from isolang.problem import Problem, build_problem
from isolang.problem.until import remaining_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from isolang.certify.proofs import Relations
    from isolang.encodings.formula import Theory
    from isolang.language.meaning.core import Spec


class RelationalInput(Struct, frozen=True, kw_only=True):
    """The input to the relational encoding.

    Attributes:
        problem: the problem, as returned by :func:`relational_input`. It must have no intrinsic
            anomalies if the specification uses ``wr``.
        cost: the cost of the encoding, if it has been estimated and is not too high.
    """

    problem: Problem
    spec: Spec
    cost: Cost | None = None


def relational_input(problem: Problem, spec: Spec) -> RelationalInput:
    """Return the input for deciding whether the problem's history satisfies a specification.

    Other routes exclude indeterminate transactions that no transaction reads from. If the verdict
    may depend on them, the problem is rebuilt with these transactions as optional.
    """
    history = problem.history
    if depends_on_unread(spec) and INDETERMINATE in history.columns.txn_status:
        problem = build_problem(history, unread=True)
    return RelationalInput(problem=problem, spec=spec)


class RelationalFormula(Formula, frozen=True, kw_only=True):
    """The formula of a specification."""

    relations: RelationalEncoding


def encode(question: RelationalInput, *, until: float | None = None) -> RelationalFormula:
    """Encode a specification as clauses and a graph that must be acyclic.

    Raises:
        UnsupportedError: if the formula would be too large.
        TimeoutError: if ``time.perf_counter()`` has passed ``until``.
    """
    return formula_of(_encoded(question, until))


def encode_difference(
    question: RelationalInput, *, until: float | None = None
) -> RelationalFormula:
    """Encode a specification like :func:`encode`, but in difference logic."""
    return formula_of(_encoded(question, until), theory="difference")


def encode_bitvector(question: RelationalInput, *, until: float | None = None) -> RelationalFormula:
    """Encode a specification like :func:`encode`, but with a bit-vector for each node."""
    return formula_of(_encoded(question, until), theory="bitvector")


def encode_plain(question: RelationalInput, *, until: float | None = None) -> RelationalFormula:
    """Encode a specification like :func:`encode`, but in CNF with a binary label for each node."""
    return formula_of(_encoded(question, until), theory="none", until=until)


def formula_of(
    encoding: RelationalEncoding, *, theory: Theory = "acyclicity", until: float | None = None
) -> RelationalFormula:
    """Return the formula of an encoding in a theory."""
    builder = Builder()
    meanings = cache(encoding.meanings)  # computed only if the formula is written to a file
    builder.new(encoding.circuit.variables, lambda i: meanings().get(i + 1, "a gate"))
    builder.raw_clauses(np.frombuffer(encoding.circuit.clauses, dtype=np.int32))
    edges = np.frombuffer(encoding.graph.edges, dtype=np.int32).reshape(-1, 3)
    builder.edges(edges[:, 0], edges[:, 1], edges[:, 2])
    nodes = encoding.graph.nodes
    if theory == "none" and len(edges):
        add_labels(builder, nodes, until=until)
    return RelationalFormula(
        encoding=RELATIONAL,
        theory=theory,
        variables=builder.variables,
        clauses=builder.all_clauses(),
        nodes=nodes,
        edges=builder.all_edges(),
        width=label_width(nodes),
        names=tuple(builder.names),
        relations=encoding,
    )


def with_units(formula: RelationalFormula, literals: Sequence[int]) -> RelationalFormula:
    """Return a formula with additional clauses that require each literal to be true."""
    units = np.array([[literal, 0] for literal in literals], np.int32).ravel()
    return replace(formula, clauses=np.concatenate([formula.clauses, units]))


def decode_relations(formula: RelationalFormula, values: NDArray[np.int8]) -> Relations:
    """Return the relations chosen by an assignment.

    Raises:
        NoOrderError: if the present edges form a cycle.
    """
    order_of(formula, values)
    model = values.tolist()
    circuit = formula.relations.circuit
    return formula.relations.chosen(lambda literal: circuit.value(literal, model))


def _encoded(question: RelationalInput, until: float | None) -> RelationalEncoding:
    def tick() -> None:
        remaining_seconds(until)

    if question.cost is None:
        require_affordable(question.problem, question.spec, tick)
    return RelationalEncoding(question.problem, question.spec, tick=tick)
