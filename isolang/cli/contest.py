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
    from isolang.crosscheck import has_intrinsic_violation
    from isolang.history import load_history
    from isolang.language.classify.event_graph import Plan
    from isolang.problem import build_problem
    from isolang.solvers import native
    from isolang.solvers.answer import ChosenRelations, NoModel, WrongModelError
    from isolang.solvers.pair import solve_pair
    from isolang.solvers.registry import solver_of

    phase("read")
    solver_of(entry.pair.solver)  # imports what it needs
    history = load_history(
        entry.history, format=entry.format, timestamps=entry.timestamps, initial=entry.initial
    )
    phase("prepare")
    problem = build_problem(history)
    row: dict[str, Any] = {"transactions": history.counts()["transactions"]}
    if has_intrinsic_violation(problem, entry.route):
        return row | {"verdict": "invalid", "detail": "by the pre-pass"}
    start = time.perf_counter()
    try:
        if entry.pair.is_engine:
            phase("solve")
            assert isinstance(entry.route, Plan)
            answer: native.Model | native.Refutation | ChosenRelations | NoModel = native.solve(
                history.columns,
                problem.native,
                entry.route.automata,
                seconds=entry.timeout,
                seed=entry.seed,
            )
        else:
            answer = solve_pair(
                problem,
                entry.route,
                entry.pair,
                seconds=entry.timeout,
                seed=entry.seed,
                progress=phase,
            )
    except WrongModelError as error:
        return row | {"verdict": "wrong", "detail": str(error)}
    row["total"] = time.perf_counter() - start
    row |= _costs(dict(answer.statistics))
    phase("certify")
    return row | _judged(entry, history, answer)


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


def _judged(entry: Entry, history: Any, answer: Any) -> dict[str, Any]:
    """The verdict, its witness or its refutation checked."""
    from isolang.certify.errors import CertificateRejected, NotCertifiedError
    from isolang.certify.native import check_natively
    from isolang.certify.proofs import Refutation, Relations, Witness, check_proof
    from isolang.solvers import native
    from isolang.solvers.answer import ChosenRelations, NoModel
    from isolang.solvers.pair import written_spec

    if isinstance(answer, NoModel):
        return {"verdict": "invalid", "detail": "no model found"}
    valid = not isinstance(answer, native.Refutation)
    try:
        if isinstance(answer, ChosenRelations):
            relations = Relations(answer.chosen.included, answer.chosen.relations)
            check_proof(history, written_spec(entry.route), relations)
        elif isinstance(answer, native.Model):
            witness = Witness(answer.source, answer.order_start, answer.order_txn)
            check_natively(history, entry.route.spec, witness)
        else:
            check_natively(history, entry.route.spec, Refutation.of(answer.steps))
    except CertificateRejected as error:
        return {"verdict": "wrong", "detail": f"the checker refused its proof: {error}"}
    except NotCertifiedError as error:
        return {"verdict": "valid" if valid else "invalid", "detail": str(error)}
    return {"verdict": "valid" if valid else "invalid", "detail": "certified"}


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
