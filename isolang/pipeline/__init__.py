"""Computes the verdict on a history along the route of a specification.

``decision`` runs all stages. A ``PairRun`` in ``pair_run`` solves one history with one encoding and
one solver, and certifies the answer; ``encoded`` runs solvers other than the native engine.
``prove`` makes proofs for solvers that give none; for relational specifications it uses
``unsat_core``. ``reconstruct`` builds the relations required by a specification from version
orders. ``shown`` evaluates the ``show`` statements of a specification. ``other_reading`` reports
what the verdict would be if a transaction that looks initial were declared initial. ``superseded``
also judges an invalid history without the reads that a read under a lock supersedes.

The other modules compute many verdicts. ``levels`` judges a history by all library levels.
``findings`` searches for every kind of anomaly, and ``minimal`` searches for the smallest invalid
part. ``crosscheck`` compares encoding-solver pairs.
"""

from isolang.options import Options
from isolang.pipeline.decision import decide
from isolang.pipeline.pair_run import Progress

__all__ = ["Options", "Progress", "decide"]
