"""From a history and a route to a verdict.

``decision`` is the whole way. A ``run`` is one history with one encoding and one solver: it solves,
proves and certifies, here and in cross-checks. ``prove`` makes the proofs that solvers do not give,
with ``unsat_core`` where a specification is decided as it is written; ``reconstruct`` makes the
relations that a specification asks for from version orders; ``shown`` evaluates what it wants to be
shown. ``other_reading`` says what follows if a transaction that looks initial is declared so.
"""

from isolang.options import Options
from isolang.pipeline.decision import decide
from isolang.pipeline.run import Progress

__all__ = ["Options", "Progress", "decide"]
