"""Measures checks of one hot key: compare-and-sets, and the cost of blind writes and reads.

    python benchmarks/hot_key.py --sizes 10000 60000 --blind 0 1 10 50

Sessions interleave at random, and each operation takes effect at one moment between its call and
its answer, so every history is linearizable. Each row is the time to solve and certify a history;
it says so if this takes longer than --timeout. The histories are those of lightweight transactions,
whose parameters are the sessions, the operations in each session, and the share of concurrent
sessions: H. Wei and others, *Boosting End-to-End Database Isolation Checking via
Mini-Transactions*, ICDE 2025, section IV-E.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

from report import table

from isolang._native import Columns
from isolang.certify.errors import NotCertifiedError
from isolang.certify.native import check_natively
from isolang.history.history import History
from isolang.language.classify.event_graph import classify
from isolang.language.load import load_spec
from isolang.problem import build_problem
from isolang.solvers.engine import solve

READ, WRITE, COMMITTED = 0, 1, 0


def history(
    operations: int, *, keys: int, sessions: int, concurrent: float, blind: float, reads: float
) -> History:
    """Play operations on an ideal store, and return the history.

    Args:
        operations: the number of operations.
        keys: the number of keys, all equally hot.
        sessions: the number of clients.
        concurrent: the share of the clients that may have an operation open at the same time.
        blind: the share of operations that write without a comparison.
        reads: the share of operations that only read.
    """
    rng = random.Random(operations)
    columns = Columns()
    key = [columns.intern_key(1, k) for k in range(keys)]
    value = [0] * keys
    nil, clock, done = 0, 0, 0
    idle, open_ = list(range(sessions)), []
    width = max(1, round(sessions * concurrent))
    rows: list[tuple[int, int, int, list[tuple[int, int, int]]]] = []
    while done < operations:
        clock += 1
        if len(open_) < width and (not open_ or rng.random() < 0.5):
            session = idle.pop(rng.randrange(len(idle)))
            open_.append((session, clock))
            continue
        session, begin = open_.pop(rng.randrange(len(open_)))
        idle.append(session)
        k, kind, done = rng.randrange(keys), rng.random(), done + 1
        ops = [] if kind < blind else [(READ, key[k], value[k] or nil)]
        if kind < blind or kind >= blind + reads:
            value[k] = columns.intern_value(1, done)
            ops.append((WRITE, key[k], value[k]))
        rows.append((session, begin, clock, ops))
    renumbered: dict[int, int] = {}
    for number, (session, begin, end, ops) in enumerate(rows, 1):
        dense = renumbered.setdefault(session, len(renumbered))
        columns.begin_transaction(dense, COMMITTED, number, number, 0, begin, end)
        for kind, on, what in ops:
            columns.add_op(kind, on, what, number)
    columns.has_time = True
    columns.validate()
    return History(columns=columns, name="hot key", format="columns")


def measure(given: History, level: str, seconds: float) -> str:
    """Return the seconds to solve and certify a history, as text."""
    plan = classify(load_spec(level))
    begin = time.perf_counter()
    try:
        problem = build_problem(given)
        answer = solve(given.columns, problem.native, plan.automata, seconds=seconds)
        check_natively(given, plan.spec, answer.result, seconds=seconds)
    except (TimeoutError, NotCertifiedError):
        return f"> {seconds:g}"
    return f"{time.perf_counter() - begin:.2f}"


def forget_peak() -> None:
    """Reset the peak memory, so that the next measurement excludes earlier work (Linux only)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak() -> str:
    """Return the peak of resident memory since the last reset, as text."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return f"{int(status.partition('VmHWM:')[2].split()[0]) // 1024} MB"


def main() -> None:
    """Measure all shapes, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 60_000])
    parser.add_argument("--keys", type=int, default=1)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--concurrent", type=float, default=1.0, help="share of the sessions")
    parser.add_argument("--blind", type=float, nargs="+", default=[0, 1, 10, 50], help="per cent")
    parser.add_argument("--reads", type=float, default=0, help="per cent")
    parser.add_argument("--levels", nargs="+", default=["linearizable", "ser", "si"])
    parser.add_argument("--timeout", type=float, default=60)
    chosen = parser.parse_args()
    rows = []
    for size in chosen.sizes:
        for blind in chosen.blind:
            given = history(
                size, keys=chosen.keys, sessions=chosen.sessions, concurrent=chosen.concurrent,
                blind=blind / 100, reads=chosen.reads / 100,
            )  # fmt: skip
            forget_peak()
            found = [measure(given, level, chosen.timeout) for level in chosen.levels]
            rows.append([f"{size:,}", f"{blind:g} %", *found, peak()])
    print(table(["operations", "blind", *(f"{one}, s" for one in chosen.levels), "peak"], rows))


if __name__ == "__main__":
    main()
