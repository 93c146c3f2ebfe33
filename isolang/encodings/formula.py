"""The formulas that encodings produce and solvers take: clauses, and edges guarded by literals.

Literals are as in DIMACS: variables are numbered from 1, and a minus sign negates a variable. 0 in
place of a literal means *always*. The theory of a formula says what the edges mean:

* ``acyclicity``: the edges whose literal is true form no cycle;
* ``difference``: each node has an integer, and each edge whose literal is true leads to a larger
  one;
* ``bitvector``: the same with bit-vectors of ``width`` bits, compared as unsigned numbers;
* ``none``: the clauses suffice, and the edges are used only to decode a model.
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

_END: Final = np.iinfo(np.int32).min  # ends a clause under construction; no literal has this value


def _no_reads() -> Ints:
    return np.zeros((0, 2), np.int32)


class Formula(Struct, frozen=True, kw_only=True):
    """The complete input of a solver.

    Attributes:
        encoding: the name of the encoding that made the formula.
        theory: the meaning of the edges.
        variables: the number of variables, which are numbered 1 … variables.
        clauses: int32; the literals of all clauses, with a 0 after each clause.
        nodes: the number of nodes.
        edges: int32[m, 3]; rows (from, to, literal).
        reads: int32[r, 2]; for each read with a choice clause: the read, and the number of that
            clause, by which a core names the reads that it needs.
        width: the number of bits of a bit-vector.
        names: rows (first variable, count, function); the function returns the meaning of the i-th
            of these variables.
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
        """Return the clauses as lists of literals."""
        return split_clauses(self.clauses)

    def present(self, values: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Return a mask of the edges that are present under an assignment.

        Entry v of the assignment is 0 or 1, the value of variable v; entry 0 is unused.
        """
        literal = self.edges[:, 2]
        there: NDArray[np.bool_] = (literal == 0) | (values[np.abs(literal)] == (literal > 0))
        return there


class PolygraphFormula(Formula, frozen=True, kw_only=True):
    """The formula of a polygraph.

    Attributes:
        choice: int32[k]; the literal of each of the polygraph's source choices.
        polygraph: the polygraph that was encoded.
    """

    choice: Ints
    polygraph: Polygraph


def split_clauses(clauses: Ints) -> list[list[int]]:
    """Return clauses with a 0 after each one as lists of literals."""
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
        """Make and return variables; ``name(i)`` returns the meaning of the i-th one."""
        first = self.variables + 1
        self.variables += count
        if count:
            self.names.append((first, count, name))
        return np.arange(first, first + count, dtype=np.int32)

    def clauses(self, *literals: Ints | int) -> None:
        """Add one clause for each row of literals; a 0 in a row is left out."""
        columns = np.broadcast_arrays(*literals, np.int32(_END))
        flat = np.stack(columns, axis=-1).astype(np.int32).ravel()
        flat = flat[flat != 0]
        flat[flat == _END] = 0
        self._clauses.append(flat)

    def raw_clauses(self, flat: list[int] | Ints) -> None:
        """Add clauses that already have a 0 after each one."""
        self._clauses.append(np.asarray(flat, np.int32))

    def edges(self, u: Ints, v: Ints, literal: Ints | int) -> None:
        """Add edges that are present iff their literal is true; 0 means always."""
        columns = np.broadcast_arrays(u, v, np.asarray(literal, np.int32))
        self._edges.append(np.stack(columns, axis=-1).astype(np.int32).reshape(-1, 3))

    def all_clauses(self) -> Ints:
        """Return the clauses so far."""
        return np.concatenate([np.zeros(0, np.int32), *self._clauses])

    def all_edges(self) -> Ints:
        """Return the edges so far without duplicates, the ones that are always present first."""
        edges = np.concatenate([np.zeros((0, 3), np.int32), *self._edges])
        edges = distinct_rows(edges)
        return edges[np.argsort(edges[:, 2] != 0, kind="stable")]
