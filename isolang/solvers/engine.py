"""The native engine: prunes a history's choices using clocks, then runs CDCL on a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from isolang.certify.proofs import Refutation, Witness
from isolang.solvers.answer import Answer

if TYPE_CHECKING:
    from isolang import _native
    from isolang.language.classify.automaton import Automaton

# A history with a `constraint_load` between these values is hard, because both models and
# refutations are hard to find (docs/hard-region.md).
HARD_LOADS = (0.4, 1.5)


def solve(
    columns: _native.Columns,
    problem: _native.Problem,
    automata: Sequence[Automaton],
    *,
    seconds: float | None = None,
    seed: int = 0,
    clock_bytes: int = 1 << 29,
    search_bytes: int = 1 << 30,
    progress: Callable[[str], object] | None = None,
    presolve: bool = True,
    strategy: str = "auto",
    threads: int = 1,
    work: int = 0,
    likely_order: Sequence[int] = (),
) -> Answer:
    """Decide a problem whose intrinsic anomalies the caller has already handled.

    Args:
        clock_bytes: the memory limit for the reachability clocks, in bytes. With less memory, the
            engine prunes fewer choices and the search takes longer.
        search_bytes: the memory limit, in bytes, for the states kept by searches, and for the
            learned clauses with their proofs.
        strategy: one of ``_native.strategies()``. ``cdcl`` runs only that search. Any other name
            runs that search first, to its end. ``auto`` runs all searches in turns, and runs CDCL
            before pruning ends if the search is likely to be short.
        threads: the number of threads that may work on the history, at least one. The answer and
            its proof do not depend on this number.
        work: the number of times the search may poll its budget, which it does millions of times a
            second; 0 for no limit. With one thread, equal runs end after equal work.
        likely_order: transactions in the order in which they are likely to have happened. Searches
            start from this order, so it affects their running time and the answer they find.

    Raises:
        isolang._native.OutOfTime: if a time or work limit is reached (a ``TimeoutError``).
        isolang._native.OutOfMemory: if the searches have used ``search_bytes`` without an answer (a
            ``MemoryError``).
        MemoryError: if the process cannot allocate more memory.
    """
    from isolang import _native

    result = _native.solve(
        columns,
        problem,
        list(automata),
        seconds or 0.0,
        seed,
        clock_bytes,
        progress,
        presolve,
        strategy,
        search_bytes,
        threads,
        work,
        list(likely_order),
    )
    found: Witness | Refutation
    if "refutation" in result:
        # The native core refers to checks by number, the rest of the package by name.
        checks = [automaton.check for automaton in automata]
        found = Refutation.of_engine(result["refutation"], checks)
    else:
        found = Witness.of(result["source"], result["order_start"], result["order_txn"])
    return Answer(result=found, statistics=result["statistics"], work=result["work"])


def distinguishes_repeated_reads(automata: Sequence[Automaton]) -> bool:
    """Return whether any check distinguishes repeated reads of a key in one transaction.

    If so, the engine needs a problem built with ``each_read``, and rebuilds the problem if it was
    not.
    """
    return any(
        one.sites in ("statements", "operations") or "earlier wr" in one.direct for one in automata
    )


def constraint_load(problem: _native.Problem) -> float:
    """Return how much a history's reads constrain its order, relative to the order's freedom.

    The load is the sum over all reads of -ln(share of the key's writers that are candidates of the
    read), divided by ln(number of interleavings of the sessions). ``HARD_LOADS`` is the range of
    loads for which a history is hard to decide.
    """
    from isolang import _native

    return _native.load(problem)
