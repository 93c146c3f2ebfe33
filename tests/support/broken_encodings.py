"""Provides encodings that are wrong on purpose, each in one way, to test the cross-check."""

from __future__ import annotations

from typing import Literal

import numpy as np
from msgspec.structs import replace

from isolang.encodings import one_variable
from isolang.encodings.formula import Formula, Theory
from isolang.encodings.registry import Encoding
from isolang.encodings.relational import formula as relational_formula
from isolang.encodings.relational.formula import RelationalInput
from isolang.problem.polygraph import Polygraph


def forgets(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Return an encoding without the edges that follow from reads of the initial state.

    This encoding accepts histories that violate the level.
    """
    formula = one_variable.encode(polygraph, until=until)
    native = polygraph.problem.native
    initial = formula.choice[native.writer_txn[polygraph.choice_writer] == native.n]
    kept = (formula.edges[:, 2] == 0) | ~np.isin(formula.edges[:, 2], initial)
    return replace(formula, encoding="forgets", edges=formula.edges[kept])


def invents(polygraph: Polygraph, *, until: float | None = None) -> Formula:
    """Return an encoding with ``wr`` edges in both directions if the reader also writes.

    This encoding rejects histories that satisfy the level.
    """
    formula = one_variable.encode(polygraph, until=until)
    native = polygraph.problem.native
    writes = set(native.writer_txn.tolist())
    wrong = formula.edges[:0]
    for choice, read in zip(formula.choice.tolist(), polygraph.choice_read.tolist(), strict=True):
        if int(native.read_txn[read]) in writes:
            there = formula.edges[formula.edges[:, 2] == choice]
            wrong = np.concatenate([wrong, there[:1][:, [1, 0, 2]]])
    return replace(
        formula, encoding="invents", edges=np.concatenate([formula.edges, wrong]).astype(np.int32)
    )


def forgets_edges(question: RelationalInput, *, until: float | None = None) -> Formula:
    """Return an encoding without edges, in which no ``acyclic`` check can fail."""
    formula = relational_formula.encode(question, until=until)
    return replace(formula, encoding="forgets_edges", edges=formula.edges[:0])


def invents_an_order(question: RelationalInput, *, until: float | None = None) -> Formula:
    """Return an encoding that orders each undecided pair by the numbers of its elements.

    This encoding rejects histories that satisfy the level.
    """
    formula = relational_formula.encode(question, until=until)
    first = [v for o in formula.relations.orders() for _, _, v in o.pairs]
    units = np.array([[v, 0] for v in first], np.int32).ravel()
    clauses = np.concatenate([formula.clauses, units]).astype(np.int32)
    return replace(formula, encoding="invents_an_order", clauses=clauses)


def _row(name: str, **more: Literal["specification"]) -> Encoding:
    makers: dict[Theory, str] = {"acyclicity": f"support.broken_encodings:{name}"}
    return Encoding(name=name, makers=makers, source="nobody", **more)


BROKEN = {
    "forgets": _row("forgets"),
    "invents": _row("invents"),
    "forgets_edges": _row("forgets_edges", of="specification"),
    "invents_an_order": _row("invents_an_order", of="specification"),
}
