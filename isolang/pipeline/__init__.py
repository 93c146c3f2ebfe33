"""Computes the verdict on a history by the route of a specification.

``decision`` runs all stages. A ``PairRun`` in ``pair_run`` solves one history with one encoding and
one solver, and certifies the answer; ``encoded`` runs solvers other than the native engine.
``prove`` makes proofs for solvers that give no proofs; for relational specifications it uses
``unsat_core``. ``reconstruct`` makes the relations that a specification requires from version
orders. ``shown`` evaluates the ``show`` statements of a specification. ``other_reading`` reports
what the verdict would be if a transaction that looks initial were declared initial.

The other modules compute many verdicts. ``levels`` judges a history by all levels of the library.
``findings`` searches for every kind of anomaly, and ``minimal`` searches for the smallest invalid
part. ``crosscheck`` compares pairs of an encoding and a solver.
"""

from isolang.options import Options
from isolang.pipeline.decision import decide
from isolang.pipeline.pair_run import Progress

__all__ = ["Options", "Progress", "decide"]
