"""Any specification as a formula for any solver, made by ``encoding``.

Unlike the other encodings, this one starts from the problem and the specification as it is written,
not from a polygraph. So it depends on no automaton, no theorem and no pruning. Its edges are those
of the total orders, in both directions of each open pair, and of the ``acyclic`` checks.

Size: an order of n elements has n² variables and edges. A check that requires ``a ; b`` in ``c``
has a clause for each pair of ``a`` and pair of ``b`` that meet, at most n³. Known pairs cost
nothing.

The bounds are those of E. Torlak, D. Jackson, *Kodkod: a relational model finder*, TACAS 2007.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from isolang.encodings.binary_labeling import label, width_of
from isolang.encodings.decode import order_of
from isolang.encodings.formula import Builder, Formula
from isolang.encodings.registry import RELATIONAL
from isolang.encodings.relational.cost import Cost, affordable
from isolang.encodings.relational.encoding import RelationalEncoding
from isolang.history.columns import INDETERMINATE
from isolang.language.classify.relational import unread_matter
from isolang.problem import Problem, build_problem
from isolang.problem.until import remaining_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from isolang.certify.proofs import Relations
    from isolang.encodings.formula import Theory
    from isolang.language.meaning.core import Spec


class RelationalInput(Struct, frozen=True, kw_only=True):
    """The input of the encoding.

    Attributes:
        problem: a problem, without intrinsic anomalies if the specification judges reads; see
            :func:`question_of`.
        spec: the specification, as the user wrote it.
        cost: the cost of the encoding, if it was estimated before and is not too large.
    """

    problem: Problem
    spec: Spec
    cost: Cost | None = None


def question_of(problem: Problem, spec: Spec) -> RelationalInput:
    """Return the input for the question whether a problem's history meets a specification.

    If it may matter to the specification, an indeterminate transaction that no transaction reads
    from is optional. A problem that was built for other routes excludes such transactions.
    """
    history = problem.history
    if unread_matter(spec) and INDETERMINATE in history.columns.txn_status:
        problem = build_problem(history, unread=True)
    return RelationalInput(problem=problem, spec=spec)


class RelationalFormula(Formula, frozen=True, kw_only=True):
    """The formula of a specification.

    Attributes:
        relations: the encoding that the formula was made from.
    """

    relations: RelationalEncoding


def encode(question: RelationalInput, *, until: float | None = None) -> RelationalFormula:
    """Encode a specification modulo acyclicity.

    Raises:
        UnsupportedError: the formula would be too large.
        TimeoutError: the time is past ``until`` (of ``time.perf_counter``).
    """
    return formula_of(_encoded(question, until))


def encode_difference(
    question: RelationalInput, *, until: float | None = None
) -> RelationalFormula:
    """Encode with an integer for each node, as :func:`encode` does."""
    return formula_of(_encoded(question, until), theory="difference")


def encode_bitvector(question: RelationalInput, *, until: float | None = None) -> RelationalFormula:
    """Encode with a bit-vector for each node, as :func:`encode` does."""
    return formula_of(_encoded(question, until), theory="bitvector")


def encode_plain(question: RelationalInput, *, until: float | None = None) -> RelationalFormula:
    """Encode in plain CNF, with binary labels, as :func:`encode` does."""
    return formula_of(_encoded(question, until), theory="none", until=until)


def formula_of(
    encoding: RelationalEncoding, *, theory: Theory = "acyclicity", until: float | None = None
) -> RelationalFormula:
    """Return the formula of an encoding, for solvers of a theory."""
    builder = Builder()
    meanings = cache(encoding.meanings)  # needed only if the formula is written to a file
    builder.new(encoding.circuit.variables, lambda i: meanings().get(i + 1, "a gate"))
    builder.raw_clauses(np.frombuffer(encoding.circuit.clauses, dtype=np.int32))
    edges = np.frombuffer(encoding.graph.edges, dtype=np.int32).reshape(-1, 3)
    builder.edges(edges[:, 0], edges[:, 1], edges[:, 2])
    nodes = encoding.graph.nodes
    if theory == "none" and len(edges):
        label(builder, nodes, until=until)
    return RelationalFormula(
        encoding=RELATIONAL,
        theory=theory,
        variables=builder.variables,
        clauses=builder.all_clauses(),
        nodes=nodes,
        edges=builder.all_edges(),
        width=width_of(nodes),
        names=tuple(builder.names),
        relations=encoding,
    )


def with_units(formula: RelationalFormula, literals: Sequence[int]) -> RelationalFormula:
    """Return a formula with some literals added as facts."""
    units = np.array([[literal, 0] for literal in literals], np.int32).ravel()
    return replace(formula, clauses=np.concatenate([formula.clauses, units]))


def decode_relations(formula: RelationalFormula, values: NDArray[np.int8]) -> Relations:
    """Return the relations that an assignment chooses.

    Args:
        formula: the formula that was solved.
        values: the value of each variable, 0 or 1; entry 0 is unused.

    Raises:
        NoOrderError: the edges that are present form a cycle.
    """
    order_of(formula, values)
    model = values.tolist()
    circuit = formula.relations.circuit
    return formula.relations.chosen(lambda literal: circuit.value(literal, model))


def _encoded(question: RelationalInput, until: float | None) -> RelationalEncoding:
    def tick() -> None:
        remaining_seconds(until)

    if question.cost is None:
        affordable(question.problem, question.spec, tick)
    return RelationalEncoding(question.problem, question.spec, tick=tick)
