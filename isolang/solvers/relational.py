"""Solvers of relational encodings: the native one, which is incremental, or any other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from isolang.errors import SolverError

if TYPE_CHECKING:
    from isolang.encodings.relational import Encoding

NAME = "native"
ENCODING = "relational"


class RelationalSolver(Protocol):
    """An encoding in a solver."""

    def satisfiable(
        self,
        *,
        seconds: float | None = None,
        assumptions: Sequence[int] = (),
        progress: Callable[[str], object] | None = None,
    ) -> bool:
        """Whether there is a model; see :meth:`Solver.satisfiable`."""

    def true(self, literal: int) -> bool:
        """Whether a literal is true in the last model found."""

    def statistics(self) -> Mapping[str, float]:
        """What the solver did, by name."""


def solver_for(encoding: Encoding, name: str, *, seed: int = 0) -> RelationalSolver:
    """A solver of the registry for an encoding.

    Raises:
        SolverError: there is none of that name, or it is not installed.
    """
    return Solver(encoding, seed=seed) if name == NAME else OtherSolver(encoding, name, seed=seed)


class Solver:
    """An encoding in the native solver of clauses with an acyclic graph."""

    def __init__(self, encoding: Encoding, *, seed: int = 0) -> None:
        """Hand everything over.

        Args:
            encoding: what to solve.
            seed: breaks ties; equal seeds give equal runs.
        """
        import numpy as np

        from isolang import _native

        self._circuit = circuit = encoding.circuit
        self._encoding = encoding
        self._solver = solver = _native.AcyclicSolver(encoding.graph.nodes, seed)
        solver.new_variables(circuit.variables)
        solver.add_clauses(np.frombuffer(circuit.clauses, dtype=np.int32))
        edges = np.frombuffer(encoding.graph.edges, dtype=np.int32).reshape(-1, 3)
        solver.add_edges(edges)
        self._model: Sequence[int] = ()

    def satisfiable(
        self,
        *,
        seconds: float | None = None,
        assumptions: Sequence[int] = (),
        progress: Callable[[str], object] | None = None,
    ) -> bool:
        """Whether there is a model.

        Args:
            seconds: wall-clock limit; ``None`` for none.
            assumptions: literals that must be true.
            progress: called now and then with what is being done.

        Raises:
            isolang._native.OutOfTime: the limit was reached (a ``TimeoutError``).
        """
        found = self._solver.solve(
            seconds=seconds or 0.0, assumptions=list(assumptions), progress=progress
        )
        if found:
            self._model = self._solver.model().tolist()
        return bool(found)

    def true(self, literal: int) -> bool:
        """Whether a literal is true in the last model found."""
        return self._circuit.value(literal, self._model)

    def statistics(self) -> Mapping[str, float]:
        """What the solver did, by name."""
        return dict(self._solver.statistics())


class OtherSolver:
    """An encoding in a solver of the registry, which begins anew each time."""

    def __init__(self, encoding: Encoding, name: str, *, seed: int = 0) -> None:
        """Lay the encoding out in the theory that suits the solver best.

        Args:
            encoding: what to solve.
            name: of the solver.
            seed: breaks ties.

        Raises:
            SolverError: there is none of that name, it is not installed, or does not take it.
        """
        from isolang.encodings.relational_formula import formula_of
        from isolang.solvers.registry import solver_of, theory_of

        self._row, self._part = solver_of(name)
        theory = theory_of(ENCODING, self._row)
        if theory is None:
            raise SolverError(f"{name} does not take the relational encoding")
        self._formula = formula_of(encoding, theory=theory)
        self._seed = seed
        self._model: list[int] = []
        self._statistics: Mapping[str, float] = {}

    def satisfiable(
        self,
        *,
        seconds: float | None = None,
        assumptions: Sequence[int] = (),
        progress: Callable[[str], object] | None = None,
    ) -> bool:
        """Whether there is a model; see :meth:`Solver.satisfiable`.

        Raises:
            NoOrderError: the solver's assignment is none.
        """
        import numpy as np

        from isolang.encodings.decode import order_of

        if progress is not None:
            progress("solve")
        until = None if seconds is None else time.perf_counter() + seconds
        units = np.array([[literal, 0] for literal in assumptions], np.int32).ravel()
        formula = replace(self._formula, clauses=np.concatenate([self._formula.clauses, units]))
        answer = self._row.solve(formula, until=until, seed=self._seed, part=self._part)
        self._statistics = answer.statistics
        if answer.values is not None:
            order_of(self._formula, answer.values)
            self._model = answer.values.tolist()
        return answer.satisfiable

    def true(self, literal: int) -> bool:
        """Whether a literal is true in the last model found."""
        return self._formula.relations.circuit.value(literal, self._model)

    def statistics(self) -> Mapping[str, float]:
        """What the solver did, by name."""
        return dict(self._statistics)
