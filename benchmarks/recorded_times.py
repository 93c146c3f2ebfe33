"""Measures how much recorded times speed up checks, with each history checked twice.

    python benchmarks/recorded_times.py [--recorded pg15-rr-298.edn] [--seconds N] [--quick]

For levels without real time, recorded times are only a hint. The program prints the engine's CPU
seconds with and without this hint. Some histories are hard without it, some are easy, and some have
misleading times (skewed clocks, stale reads), for which the hint must cost little. The last table
shows the cost of profiles of databases on a large history with times of operations.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from hard_region import solve_within

from isolang import check
from isolang.api import load_history
from isolang.history import History, Transaction
from isolang.language.classify.event_graph import Plan, classify
from isolang.language.library import list_profiles
from isolang.language.load import load_spec
from isolang.simulator import Workload, generate


def cases(recorded: Path | None, *, quick: bool) -> Iterator[tuple[str, History, str]]:
    """Yield the name, the history and the level of each case."""
    if recorded is not None:
        yield f"{recorded.name}", load_history(recorded), "si"
    hard = {"sessions": 50, "operations": 4, "keys": 20}
    for seed in range(2 if quick else 10):
        given = generate(
            Workload(transactions=1000, values=2, read_modify_write=1.0, seed=seed, **hard)
        )
        yield f"1,000 read-modify-writes, 20 keys, 2 values, seed {seed}", given, "ser"
    wide = {"transactions": 10_000, "sessions": 200, "keys": 1000, "values": 50, "seed": 1}
    yield (
        "10,000 write-heavy, 200 sessions, 50 values",
        generate(Workload(rule="snapshot", read_share=0.1, **wide)),
        "si",
    )
    large = {
        "transactions": 10_000 if quick else 100_000,
        "sessions": 24,
        "keys": 10_000,
        "seed": 1,
    }
    yield "100,000 of unique values, 24 sessions", generate(Workload(**large)), "ser"
    for values, keys in ((3, 20), (5, 60)):
        shape = {"sessions": 20, "operations": 4, "keys": keys, "values": values, "seed": 1}
        stale = Workload(transactions=1000, read_share=0.9, lag=300, **shape)
        yield f"stale read-only transactions, {keys} keys, {values} values", generate(stale), "ser"
        plain = generate(Workload(transactions=1000, read_share=0.6, **shape))
        yield f"skewed clocks, {keys} keys, {values} values", with_skewed_clocks(plain, 40), "ser"


def with_operations(history: History) -> History:
    """Return the history with times for operations: each may run at any time of its transaction."""
    return History.from_transactions(
        Transaction(
            t.ops, session=t.session, begin=t.begin, end=t.end,
            times=[(t.begin, t.end)] * len(t.ops), commit=t.begin,
        )
        for t in history.transactions()
        if t.begin is not None and t.end is not None
    )  # fmt: skip


def profiles(*, quick: bool) -> None:
    """Print how long each profile takes, with times for every operation and a certificate."""
    size = 10_000 if quick else 100_000
    given = generate(
        Workload(
            rule="strict-serializable", transactions=size, sessions=24, keys=size // 10, seed=1
        )
    )
    history = with_operations(given)
    for name in ("strong-si", *(profile.name for profile in list_profiles())):
        start = time.process_time()
        verdict = check(history, name)
        took = time.process_time() - start
        certified = "certified" if verdict.certified else verdict.certified_reason
        print(f"{size:,} transactions  {name:28} {took:6.2f}s  {verdict.outcome}, {certified}")


def with_skewed_clocks(history: History, by: int) -> History:
    """Return the history in which the clock of each session is ahead by a different time.

    The greatest skew is less than ``by``.
    """
    columns = history.columns
    ahead = {s: s * 7919 % by for s in range(columns.sessions)}
    moved = [
        Transaction(
            t.ops, session=t.session, status=t.status,
            begin=int(columns.txn_begin[i]) + ahead[int(columns.txn_session[i])],
            end=int(columns.txn_end[i]) + ahead[int(columns.txn_session[i])],
        )
        for i, t in enumerate(history.transactions())
    ]  # fmt: skip
    return History.from_transactions(moved)


def measure(history: History, level: str, *, presolve: bool, seconds: float) -> tuple[str, float]:
    """Return the outcome and the CPU seconds."""
    plan = classify(load_spec(level))
    assert isinstance(plan, Plan)
    answer, spent = solve_within(seconds, history, plan, presolve=presolve)
    return type(answer.result).__name__.lower() if answer else "unknown", spent


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--recorded", type=Path, help="a history recorded from a database, for si")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    print(f"{'history':58} {'level':6} {'with':>8} {'without':>8} {'ratio':>7}")
    for name, history, level in cases(args.recorded, quick=args.quick):
        said, took = measure(history, level, presolve=True, seconds=args.seconds)
        other, longer = measure(history, level, presolve=False, seconds=args.seconds)
        if "unknown" not in (said, other) and said != other:
            raise SystemExit(f"{name}: {said} with times, {other} without")
        more = ">" if other == "unknown" else " "
        print(
            f"{name:58} {level:6} {took:7.2f}s {more}{longer:6.2f}s {took / longer:6.2f}  {said}",
            flush=True,
        )
    profiles(quick=args.quick)


if __name__ == "__main__":
    main()
