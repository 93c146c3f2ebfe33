"""The native engine: event graph, pruning by clocks, CDCL over a dynamic topological order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang import _native
    from isolang.language.classify.automaton import Automaton

NAME = "native"
ENCODING = "event-graph"
# Between these loads neither models nor refutations are easy to find (docs/hard-region.md).
HARD = (0.4, 1.5)


class Model(Struct, frozen=True, kw_only=True):
    """Choices under which no check is violated.

    Attributes:
        source: int32[operations]; per external read of an included transaction the transaction
            it reads from (n for T0), else -1.
        order_start: int64[keys + 1], into ``order_txn``.
        order_txn: int32; per key its writers in version order, T0 left out.
        statistics: what the engine did, by name.
    """

    source: NDArray[np.int32]
    order_start: NDArray[np.int64]
    order_txn: NDArray[np.int32]
    statistics: Mapping[str, float] = field(default_factory=dict)


class Refutation(Struct, frozen=True, kw_only=True):
    """Why there is no model: the steps that ``docs/architecture.md`` describes, as plain tuples."""

    steps: Sequence[tuple[Any, ...]]
    statistics: Mapping[str, float] = field(default_factory=dict)


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
) -> Model | Refutation:
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
        strategy: one of ``_native.strategies()``: ``cdcl``, another search first and to its end,
            or (``auto``) all in turns, and CDCL before pruning is through where that promises to
            be short.
        threads: how many may work on one history, at least one; the answer and its proof do not
            depend on it.
        progress: called now and then with what is being done.
        presolve: look for a model of stronger checks first; most histories have one.

    Raises:
        isolang._native.OutOfTime: the limit was reached (a ``TimeoutError``).
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
    )
    if "refutation" in result:
        # The core numbers the checks; everyone else knows them by name.
        steps = [
            ("cycle", automata[step[1]].check, step[2]) if step[0] == "cycle" else step
            for step in result["refutation"]
        ]
        return Refutation(steps=steps, statistics=result["statistics"])
    return Model(
        source=result["source"],
        order_start=result["order_start"],
        order_txn=result["order_txn"],
        statistics=result["statistics"],
    )


def load(problem: _native.Problem) -> float:
    """How hard a history is: what its reads demand over what its concurrency leaves open.

    The sum over the reads of -ln(share of the key's writers that the read may take its value from),
    divided by ln(number of interleavings of the sessions).
    """
    from isolang import _native

    return _native.load(problem)
