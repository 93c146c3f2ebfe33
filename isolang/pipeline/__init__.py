"""From a history and a route to a verdict.

``decision`` goes the whole way. A ``pair_run`` is one history with one encoding and one solver,
which solves and certifies. ``prove`` makes the proofs that solvers do not give, with ``unsat_core``
where a specification is decided as it is written; ``reconstruct`` makes the relations that a
specification requires from version orders; ``shown`` evaluates its ``show`` statements.
``other_reading`` reports what follows if a transaction that looks initial is declared so.

The other modules decide many times: ``levels`` judges all levels of the library, ``findings`` looks
for every kind of anomaly, ``minimal`` for the smallest invalid part, and ``crosscheck`` compares
pairs.
"""

from isolang.options import Options
from isolang.pipeline.decision import decide
from isolang.pipeline.pair_run import Progress

__all__ = ["Options", "Progress", "decide"]
