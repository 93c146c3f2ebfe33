"""The native engine, which takes a history as it is: pruning by clocks, then CDCL over a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from isolang.certify.proofs import Refutation, Witness
from isolang.solvers.answer import Answer

if TYPE_CHECKING:
    from isolang import _native
    from isolang.language.classify.automaton import Automaton

# Between these loads neither models nor refutations are easy to find (docs/hard-region.md).
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
    """Decide a problem whose intrinsic anomalies the caller has dealt with.

    Args:
        columns: the history's columns.
        problem: the neutral problem made of them.
        automata: one per check.
        seconds: wall-clock limit; ``None`` for none.
        seed: breaks ties between variables; equal seeds give equal runs.
        clock_bytes: memory for the reachability clocks; with less the pruning is weaker and the
            search longer.
        search_bytes: memory for what the searches keep (clauses with their proofs, states).
        strategy: one of ``_native.strategies()``. ``cdcl`` is that search alone; another name runs
            that search first, to its end; ``auto`` runs all in turns, and CDCL before pruning ends
            where a short search is likely.
        threads: how many may work on one history, at least one; the answer and its proof do not
            depend on it.
        work: how often the search may poll its budget, which is some millions of times in a second;
            0 for no limit. With one thread, equal runs end after equal work.
        progress: called now and then with the phase that the search is in.
        presolve: look for a model of stronger checks first; most histories have one.

    Returns:
        A witness or a refutation, with statistics.

    Raises:
        isolang._native.OutOfTime: a limit of time or work was reached (a ``TimeoutError``).
        isolang._native.OutOfMemory: the searches hold ``search_bytes`` and know no answer (a
            ``MemoryError``).
        MemoryError: the process may not have more memory.
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
        # The core numbers the checks; the rest of the package names them.
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
    """Return whether checks evaluate the reads of a transaction one by one.

    Then the engine builds the problem again, unless it holds each of these reads.
    """
    return any(
        one.sites in ("statements", "operations") or "earlier wr" in one.direct for one in automata
    )


def load(problem: _native.Problem) -> float:
    """Return how hard a history is: the constraint of its reads over the freedom of its sessions.

    The sum over the reads of -ln(share of the key's writers that the read may take its value from),
    divided by ln(number of interleavings of the sessions).
    """
    from isolang import _native

    return _native.load(problem)
