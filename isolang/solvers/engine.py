"""The native engine, which decides a history by pruning with clocks and then CDCL over a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from isolang.certify.proofs import Refutation, Witness
from isolang.solvers.answer import Answer

if TYPE_CHECKING:
    from isolang import _native
    from isolang.language.classify.automaton import Automaton

# Between these two loads, models and refutations are both hard to find (docs/hard-region.md).
HARD = (0.4, 1.5)


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
) -> Answer:
    """Decide a problem; the caller has already handled its intrinsic anomalies.

    Args:
        columns: the history's columns.
        problem: the neutral problem of the history.
        automata: one automaton for each check.
        seconds: the limit of wall-clock time; ``None`` for no limit.
        seed: breaks ties between variables; equal seeds give equal runs.
        clock_bytes: the memory for the reachability clocks; with less memory, the pruning is weaker
            and the search takes longer.
        search_bytes: the memory for the clauses with their proofs, and the states, that searches
            keep.
        strategy: one of ``_native.strategies()``. ``cdcl`` runs only that search. Another name runs
            that search first, to its end. ``auto`` runs all searches in turns, and runs CDCL before
            pruning ends if a short search is likely.
        threads: the number of threads that may work on the history, at least one; the answer and
            its proof do not depend on it.
        work: how many times the search may poll its budget, which it does some millions of times a
            second; 0 for no limit. With one thread, equal runs end after equal work.
        progress: called now and then with the current phase of the search.
        presolve: whether to look first for a model of stronger checks, which most histories have.

    Returns:
        A witness or a refutation, with statistics.

    Raises:
        isolang._native.OutOfTime: a limit of time or work was reached (a ``TimeoutError``).
        isolang._native.OutOfMemory: the searches use ``search_bytes`` and have found no answer (a
            ``MemoryError``).
        MemoryError: the process cannot get more memory.
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
    )
    found: Witness | Refutation
    if "refutation" in result:
        # The native core uses numbers of checks; the rest of the package uses their names.
        found = Refutation.of(
            [
                ("cycle", automata[step[1]].check, step[2]) if step[0] == "cycle" else step
                for step in result["refutation"]
            ]
        )
    else:
        found = Witness.of(result["source"], result["order_start"], result["order_txn"])
    return Answer(result=found, statistics=result["statistics"], work=result["work"])


def looks_at_each_read(automata: Sequence[Automaton]) -> bool:
    """Return whether some check looks at a transaction's reads one by one.

    If so, the engine rebuilds the problem unless it was already built with ``each_read``, which
    keeps repeated reads apart.
    """
    return any(
        one.sites in ("statements", "operations") or "earlier wr" in one.direct for one in automata
    )


def load(problem: _native.Problem) -> float:
    """Return how hard a history is: the constraint of its reads over the freedom of its sessions.

    This is the sum over all reads of -ln(share of the key's writers that the read may read from),
    divided by ln(number of interleavings of the sessions).
    """
    from isolang import _native

    return _native.load(problem)
