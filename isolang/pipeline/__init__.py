"""Computes the verdict on a history from the history and a route.

``decision`` runs all stages. A ``PairRun`` of ``pair_run`` solves one history with one encoding and
one solver, and has the answer certified; ``encoded`` runs solvers other than the native engine.
``prove`` makes the proofs that solvers do not give; for relational specifications it uses
``unsat_core``. ``reconstruct`` makes the relations that a
specification requires from version orders. ``shown`` evaluates the ``show`` statements of a
specification. ``other_reading`` reports the verdict if a transaction that looks initial is declared
to be the initial transaction.

The other modules decide many times. ``levels`` judges all levels of the library. ``findings``
searches for every kind of anomaly, and ``minimal`` searches for the smallest invalid part.
``crosscheck`` compares pairs of an encoding and a solver.
"""

from isolang.options import Options
from isolang.pipeline.decision import decide
from isolang.pipeline.pair_run import Progress

__all__ = ["Options", "Progress", "decide"]
