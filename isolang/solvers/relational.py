"""The native solver of clauses with an acyclic graph, for relational encodings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isolang.encodings.relational import Encoding

NAME = "native"
ENCODING = "relational"


class Solver:
    """An encoding in a solver."""

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
