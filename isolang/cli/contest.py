"""One run of ``isocheck compare``, in a process of its own.

The run is a pickle that the parent wrote for this child alone. Each line of the output is a JSON
array: ``["phase", name]`` when a phase begins, ``["result", row]`` at the end.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from isolang.language.classify.route import Route
    from isolang.solvers.registry import Pair


class Entry(Struct, frozen=True, kw_only=True):
    """One run.

    Attributes:
        history: a path.
        route: of the spec.
        pair: who runs.
        timeout: seconds from the pre-pass to the answer.
        memory: megabytes of the process; ``None`` for no limit.
        seed: breaks ties.
        format: of ``--from``.
        timestamps: of ``--timestamps``.
        initial: of ``--initial``.
    """

    history: str
    route: Route
    pair: Pair
    timeout: float
    memory: float | None
    seed: int
    format: str
    timestamps: bool
    initial: int | None


def measure(entry: Entry, phase: Callable[[str], object]) -> dict[str, Any]:
    """Run, and give a row: the outcome, and what it cost by stage."""
    from isolang.history import load_history
    from isolang.limits import Spending
    from isolang.options import Options
    from isolang.pipeline.run import Run
    from isolang.solvers.answer import Undecided, Unproved
    from isolang.solvers.registry import solver_of

    phase("read")
    solver_of(entry.pair.solver)  # imports what it needs
    history = load_history(
        entry.history, format=entry.format, timestamps=entry.timestamps, initial=entry.initial
    )
    phase("prepare")
    options = Options(seed=entry.seed, threads=1)
    run = Run(history, entry.route, entry.pair, Spending(entry.timeout), options, progress=phase)
    row: dict[str, Any] = {"transactions": history.counts()["transactions"]}
    if run.contradiction() is not None:
        return row | {"verdict": "invalid", "detail": "by the pre-pass"}
    start = time.perf_counter()
    answer = run.solve()
    if isinstance(answer.says, Undecided):
        return row | {"verdict": "wrong", "detail": answer.says.reason}
    row["total"] = time.perf_counter() - start
    row |= _costs(dict(answer.statistics))
    if isinstance(answer.says, Unproved):
        return row | {"verdict": "invalid", "detail": "no model found"}
    # Certifying is not timed.
    checker = Run(history, entry.route, entry.pair, Spending(), options, progress=phase)
    certification = checker.certify(answer.says)
    if certification.rejected:
        detail = f"the checker refused its proof: {certification.reason}"
        return row | {"verdict": "wrong", "detail": detail}
    detail = "certified" if certification.accepted else certification.reason
    return row | {"verdict": answer.outcome, "detail": detail}


def _costs(statistics: dict[str, float]) -> dict[str, float]:
    """What the columns need; the engine has stages of its own."""
    row: dict[str, float] = {
        name: statistics[name]
        for name in ("variables", "clauses", "edges", "conflicts")
        if name in statistics
    }
    if "edges_after_pruning" in statistics:
        row["edges"] = statistics["edges_after_pruning"]
    parts = {
        "prune": ("seconds_graph", "seconds_prune"),
        "encode": ("seconds_encode",),
        "solve": ("seconds_solve", "seconds_search", "seconds_refute"),
    }
    for stage, names in parts.items():
        row[stage] = sum(statistics.get(name, 0.0) for name in names)
    return row


def main() -> int:
    """Run the entry named on the command line."""
    from isolang.errors import IsolangError, UnsupportedError
    from isolang.limits import memory_cap

    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii", buffering=1)

    def say(kind: str, what: Any) -> None:
        out.write(json.dumps([kind, what]) + "\n")
        out.flush()

    entry: Entry = pickle.loads(Path(sys.argv[1]).read_bytes())
    try:
        with memory_cap(entry.memory, of_process=True):
            row = measure(entry, lambda name: say("phase", name))
    except TimeoutError:
        row = {"verdict": "unknown", "detail": "timeout"}
    except MemoryError:
        row = {"verdict": "unknown", "detail": "memory"}
    except UnsupportedError as error:
        row = {"verdict": "unknown", "detail": f"unsupported: {error}"}
    except IsolangError as error:
        row = {"verdict": "error", "detail": str(error)}
    say("result", {**row, "peak_mb": peak_megabytes(os.getpid())})
    return 0


def peak_megabytes(process: int) -> float | None:
    """The most memory that a process has had at a time; ``None`` where it cannot be known.

    Not ``ru_maxrss``: on Linux a child begins with what its parent had.
    """
    try:
        with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return round(int(line.split()[1]) / 1e3, 1)
    except OSError:
        pass
    return None


def run() -> None:
    """Run the entry and end the process."""
    status = main()
    sys.stderr.flush()
    os._exit(status)
