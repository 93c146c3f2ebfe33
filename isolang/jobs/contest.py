"""Runs one pair of ``isocheck solvers`` on a history in a child process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from isolang.jobs.child import NO_LIMIT, Children, Limit, Send
from isolang.options import Options, ReadOptions
from isolang.output.contest import ContestRow

if TYPE_CHECKING:
    from isolang.language.classify.route import Route
    from isolang.solvers.registry import Pair

_MOST_WAITING = 20  # how many times its limit of processor time a run may take on the clock


class ContestEntry(Struct, frozen=True, kw_only=True):
    """One entry of a contest: a pair, the history that it must decide, and the limits.

    Attributes:
        pair: the encoding, solver and pruning stage.
        options: the options of the check. The timeout limits the processor time from the pre-pass
            to the answer, and the memory limits the whole process.
        share: the seconds on the clock that this run may take; ``None`` for no limit.
    """

    history: str
    spec: str
    route: Route
    pair: Pair
    options: Options
    reading: ReadOptions
    share: float | None = None


def run(children: Children, entry: ContestEntry) -> ContestRow:
    """Run an entry in a child process, and return the row with its result."""
    found: list[ContestRow] = []
    phase = "start"

    timeout = entry.options.timeout
    clock = NO_LIMIT if timeout is None else _MOST_WAITING * timeout
    limit = Limit(
        cpu=NO_LIMIT if timeout is None else timeout,
        clock=clock if entry.share is None else min(clock, entry.share),
    )

    def receive(kind: str, content: Any) -> Limit | None:
        nonlocal phase
        if kind == "result":
            found.append(convert(content, ContestRow))
            return Limit()
        phase = content
        return {"prepare": limit, "certify": Limit()}.get(phase)

    ended = children.run(f"{__name__}:work", entry, receive, measured=True)
    if found:
        row = found[0]
        return row if row.peak_mb is not None else replace(row, peak_mb=ended.peak_megabytes)
    last = ended.last_line or f"status {ended.status}"
    if ended.timed_out:
        detail = f"timeout in {phase}"
    elif ended.lacked_memory:
        detail = f"memory in {phase}"
    else:
        capped = ", under a memory cap" if entry.options.memory is not None else ""
        detail = f"crash in {phase}{capped}: {last}"
    return replace(_row(entry, "unknown", detail), peak_mb=ended.peak_megabytes)


def _row(entry: ContestEntry, verdict: Any, detail: str) -> ContestRow:
    return ContestRow(
        history=entry.history,
        spec=entry.spec,
        encoding=entry.pair.encoding,
        solver=entry.pair.solver,
        prune_stage=entry.pair.prune,
        verdict=verdict,
        detail=detail,
    )


# --- in the child ---


def work(entry: ContestEntry, send: Send) -> None:
    """Run an entry in this child process, and send the row with its result to the parent."""
    from isolang.errors import IsolangError, UnsupportedError
    from isolang.jobs.child import peak_megabytes
    from isolang.limits import memory_cap

    try:
        with memory_cap(entry.options.memory, of_process=True):
            row = _run_pair(entry, lambda name: send("phase", name))
    except TimeoutError:
        row = _row(entry, "unknown", "timeout")
    except MemoryError:
        row = _row(entry, "unknown", "memory")
    except UnsupportedError as error:
        row = _row(entry, "unknown", f"unsupported: {error}")
    except IsolangError as error:
        row = _row(entry, "error", str(error))
    send("result", to_builtins(replace(row, peak_mb=peak_megabytes(os.getpid()))))


def _run_pair(entry: ContestEntry, phase: Callable[[str], object]) -> ContestRow:
    """Run an entry, and return the row with its outcome and the cost of each stage."""
    from isolang.history import read_history
    from isolang.limits import Deadline
    from isolang.pipeline.pair_run import PairRun
    from isolang.solvers.answer import Undecided, Unproved
    from isolang.solvers.plugins import load_plugins
    from isolang.solvers.registry import solver_of

    phase("read")
    load_plugins()
    solver_of(entry.pair.solver)  # import the solver's modules before timing starts
    history = read_history(entry.history, entry.reading)
    phase("prepare")
    options = Options(seed=entry.options.seed, threads=1)
    # The parent limits the time: what others do on this machine does not count.
    run = PairRun(history, entry.route, entry.pair, Deadline(), options, progress=phase)
    transactions = history.counts()["transactions"]
    if run.contradiction() is not None:
        return replace(_row(entry, "invalid", "by the pre-pass"), transactions=transactions)
    start, cpu_before = time.perf_counter(), _cpu()
    answer = run.solve()
    total, cpu = time.perf_counter() - start, _cpu() - cpu_before
    if isinstance(answer.result, Undecided):
        return replace(_row(entry, "wrong", answer.result.reason), transactions=transactions)
    verdict, detail = "invalid", "no model found"
    if not isinstance(answer.result, Unproved):
        # The measured time does not include the certification.
        phase("certify")
        checker = PairRun(history, entry.route, entry.pair, Deadline(), options, progress=phase)
        certification = checker.certify(answer.result)
        verdict = answer.outcome
        detail = "certified" if certification.accepted else certification.reason
        if certification.rejected:
            verdict, detail = "wrong", f"the checker rejected its proof: {certification.reason}"
    if verdict == "valid" and (lacking := history.lacking()):
        detail = f"{detail}, of the operations alone: {lacking}"
    costs = _costs(dict(answer.statistics))
    row = _row(entry, verdict, detail)
    return replace(row, transactions=transactions, total=total, cpu=cpu, **costs)


def _cpu() -> float:
    """Return the processor time of this process, and of children that have ended."""
    return time.process_time() + sum(os.times()[2:4])


def _costs(statistics: dict[str, float]) -> dict[str, float]:
    """Return the cost for each table column, summed from the engine's statistics."""
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
