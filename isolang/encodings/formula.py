"""Formulas, produced by encodings and passed to solvers: clauses, and edges with literals.

Literals follow DIMACS: variables are numbered from 1, and a minus sign negates a variable. If an
edge's literal is 0, the edge is always present. The formula's theory determines the meaning of the
edges:

* ``acyclicity``: the edges whose literal is true form no cycle;
* ``difference``: each node has an integer, and each edge whose literal is true leads to a larger
  one;
* ``bitvector``: each node has an unsigned bit-vector of ``width`` bits, and each edge whose literal
  is true leads to a larger one;
* ``none``: the clauses are the whole condition, and the edges are used only to decode a model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct, field
from numpy.typing import NDArray

from isolang.arrays import np
from isolang.problem.distinct import distinct_rows

if TYPE_CHECKING:
    from isolang.problem.polygraph import Polygraph

Ints: TypeAlias = NDArray[np.int32]
Theory: TypeAlias = Literal["none", "acyclicity", "difference", "bitvector"]

_END: Final = np.iinfo(np.int32).min  # ends a clause in `Builder`; never a literal


def _no_reads() -> Ints:
    return np.zeros((0, 2), np.int32)


class Formula(Struct, frozen=True, kw_only=True):
    """A solver's complete input.

    Attributes:
        encoding: the name of the encoding that produced the formula.
        theory: the theory, which determines the meaning of the edges.
        variables: the number of variables, numbered 1 … variables.
        clauses: int32; the literals of all clauses, with a 0 after each clause.
        nodes: the number of nodes.
        edges: int32[m, 3]; rows (from, to, literal).
        reads: int32[r, 2]; for each read with an open source, its number and the number of the
            clause that requires a source. Solvers that return cores refer to these rows.
        width: the number of bits per bit-vector, for the theory ``bitvector``.
        names: rows (first variable, count, function) for groups of variables; the function returns
            the meaning of the i-th variable in the group.
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
        """The number of clauses in the formula."""
        return int(np.count_nonzero(self.clauses == 0))

    def clause_list(self) -> list[list[int]]:
        """Return the clauses, each as a list of literals."""
        return split_clauses(self.clauses)

    def present(self, values: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Return, for each edge, whether it is present under an assignment.

        Args:
            values: the value of each variable, 0 or 1. Entry 0 is unused.
        """
        literal = self.edges[:, 2]
        there: NDArray[np.bool_] = (literal == 0) | (values[np.abs(literal)] == (literal > 0))
        return there


class PolygraphFormula(Formula, frozen=True, kw_only=True):
    """The formula of a polygraph.

    Attributes:
        choice: int32[k]; the literals of the polygraph's source choices.
        polygraph: the encoded polygraph.
    """

    choice: Ints
    polygraph: Polygraph


def split_clauses(clauses: Ints) -> list[list[int]]:
    """Split an array of 0-terminated clauses into lists of literals."""
    ends = np.flatnonzero(clauses == 0).tolist()
    flat = clauses.tolist()
    return [flat[a:b] for a, b in zip([0, *(end + 1 for end in ends)], ends, strict=False)]


class Builder(Struct):
    """Collects the variables, clauses and edges of a formula."""

    variables: int = 0
    _clauses: list[Ints] = field(default_factory=list)
    _edges: list[Ints] = field(default_factory=list)
    names: list[tuple[int, int, Callable[[int], str]]] = field(default_factory=list)

    def new(self, count: int, name: Callable[[int], str]) -> Ints:
        """Create and return ``count`` variables; ``name(i)`` describes the i-th new variable."""
        first = self.variables + 1
        self.variables += count
        if count:
            self.names.append((first, count, name))
        return np.arange(first, first + count, dtype=np.int32)

    def clauses(self, *literals: Ints | int) -> None:
        """Add one clause for each row of literals, ignoring zeros.

        Args:
            literals: the columns of the rows. A single literal is repeated in each row.
        """
        columns = np.broadcast_arrays(*literals, np.int32(_END))
        flat = np.stack(columns, axis=-1).astype(np.int32).ravel()
        flat = flat[flat != 0]
        flat[flat == _END] = 0
        self._clauses.append(flat)

    def raw_clauses(self, flat: list[int] | Ints) -> None:
        """Add clauses from an array or list in which each clause ends with a 0."""
        self._clauses.append(np.asarray(flat, np.int32))

    def edges(self, u: Ints, v: Ints, literal: Ints | int) -> None:
        """Add edges that are present iff their literal is true; if it is 0, they always are."""
        columns = np.broadcast_arrays(u, v, np.asarray(literal, np.int32))
        self._edges.append(np.stack(columns, axis=-1).astype(np.int32).reshape(-1, 3))

    def all_clauses(self) -> Ints:
        """Return all added clauses, with a 0 after each clause."""
        return np.concatenate([np.zeros(0, np.int32), *self._clauses])

    def all_edges(self) -> Ints:
        """Return all added edges without duplicates.

        Edges that are always present come first.
        """
        edges = np.concatenate([np.zeros((0, 3), np.int32), *self._edges])
        edges = distinct_rows(edges)
        return edges[np.argsort(edges[:, 2] != 0, kind="stable")]
