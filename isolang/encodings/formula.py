"""The formulas that encodings produce and solvers take: clauses, and edges guarded by literals.

Literals are as in DIMACS: variables from 1, a minus sign negates; 0 in place of a literal means
*always*. What the edges mean is the formula's theory:

* ``acyclicity``: the edges whose literal is true form no cycle;
* ``difference``: each node has an integer, and a true literal makes its edge go up;
* ``bitvector``: the same with bit-vectors of ``width`` bits, compared as unsigned numbers;
* ``none``: the clauses suffice; the edges only serve to read a model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from isolang.problem.distinct import distinct_rows

if TYPE_CHECKING:
    from isolang.problem.polygraph import Polygraph

Ints: TypeAlias = NDArray[np.int32]
Theory: TypeAlias = Literal["none", "acyclicity", "difference", "bitvector"]

_END: Final = np.iinfo(np.int32).min  # ends a clause while it is built; no literal is this


def _no_reads() -> Ints:
    return np.zeros((0, 2), np.int32)


class Formula(Struct, frozen=True, kw_only=True):
    """A problem as solver input; a solver needs nothing else.

    Attributes:
        encoding: which one made it.
        theory: what the edges mean.
        variables: the number of variables, which are 1 … variables.
        clauses: int32; each clause is ended by 0.
        nodes: the number of nodes.
        edges: int32[m, 3]; rows (from, to, literal).
        reads: int32[r, 2]; for each read with a choice clause: the read, and the number of that
            clause, so that a core can say which reads it needs.
        width: of the bit-vectors.
        names: (first variable, how many, what the i-th of them means).
    """

    encoding: str
    theory: Theory
    variables: int
    clauses: Ints
    nodes: int
    edges: Ints
    reads: Ints = field(default_factory=_no_reads)
    width: int = 0
    names: tuple[tuple[int, int, Callable[[int], str]], ...] = ()

    @property
    def clause_count(self) -> int:
        """The number of clauses."""
        return int(np.count_nonzero(self.clauses == 0))

    def clause_list(self) -> list[list[int]]:
        """The clauses as lists of literals."""
        return split_clauses(self.clauses)

    def present(self, values: NDArray[np.int8]) -> NDArray[np.bool_]:
        """A mask of the edges present under an assignment (0 or 1 by variable, entry 0 unused)."""
        literal = self.edges[:, 2]
        there: NDArray[np.bool_] = (literal == 0) | (values[np.abs(literal)] == (literal > 0))
        return there


class PolygraphFormula(Formula, frozen=True, kw_only=True):
    """A formula made of a polygraph.

    Attributes:
        choice: int32[k]; the literal of each of the polygraph's source choices.
        polygraph: what it was made of.
    """

    choice: Ints
    polygraph: Polygraph


def split_clauses(clauses: Ints) -> list[list[int]]:
    """Clauses that are each ended by 0, as lists of literals."""
    ends = np.flatnonzero(clauses == 0).tolist()
    flat = clauses.tolist()
    return [flat[a:b] for a, b in zip([0, *(end + 1 for end in ends)], ends, strict=False)]


class Builder(Struct):
    """A formula under construction."""

    variables: int = 0
    _clauses: list[Ints] = field(default_factory=list)
    _edges: list[Ints] = field(default_factory=list)
    names: list[tuple[int, int, Callable[[int], str]]] = field(default_factory=list)

    def new(self, count: int, name: Callable[[int], str]) -> Ints:
        """Make variables; ``name(i)`` describes the i-th of them."""
        first = self.variables + 1
        self.variables += count
        if count:
            self.names.append((first, count, name))
        return np.arange(first, first + count, dtype=np.int32)

    def clauses(self, *literals: Ints | int) -> None:
        """Add one clause per row; a 0 in a row is left out."""
        columns = np.broadcast_arrays(*literals, np.int32(_END))
        flat = np.stack(columns, axis=-1).astype(np.int32).ravel()
        flat = flat[flat != 0]
        flat[flat == _END] = 0
        self._clauses.append(flat)

    def raw_clauses(self, flat: list[int] | Ints) -> None:
        """Add clauses that are each ended by 0 already."""
        self._clauses.append(np.asarray(flat, np.int32))

    def edges(self, u: Ints, v: Ints, literal: Ints | int) -> None:
        """Add edges that are there iff their literal is true; 0: always."""
        columns = np.broadcast_arrays(u, v, np.asarray(literal, np.int32))
        self._edges.append(np.stack(columns, axis=-1).astype(np.int32).reshape(-1, 3))

    def all_clauses(self) -> Ints:
        """The clauses so far."""
        return np.concatenate([np.zeros(0, np.int32), *self._clauses])

    def all_edges(self) -> Ints:
        """The edges so far, those that are always there first, each only once."""
        edges = np.concatenate([np.zeros((0, 3), np.int32), *self._edges])
        edges = distinct_rows(edges)
        return edges[np.argsort(edges[:, 2] != 0, kind="stable")]
