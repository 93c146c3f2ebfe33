"""Measures how many histories of the hard region are decided, and how fast.

    python benchmarks/hard_region.py                # every shape; takes hours, mostly timeouts
    python benchmarks/hard_region.py --keys 100 --transactions 1000 --strategy cdcl
    python benchmarks/hard_region.py --transactions 500 --kinds rmw --seeds 3 --write

The last command takes minutes, and also writes the page docs/hard-region-results.md.

Histories of the hard region have few values, few keys, and much concurrency. Each shape (sessions x
keys x values x transactions x read share x kind) is generated with the seeds 1 … N. A history is a
serial run whose transactions are assigned to random sessions, so it is valid. With --changes N, N
of its reads get another value, and only the checker knows whether the result is still valid. If
pruning alone refutes a history, the next seed is used instead. Times are CPU seconds of the engine.
Every verdict is certified, or counted as not certified.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import platform
import random
import shlex
import statistics
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isolang.history import History, Transaction
from isolang.language.classify.event_graph import Plan, classify
from isolang.language.load import load_spec
from isolang.problem import Problem, build_problem
from isolang.solvers import engine
from isolang.solvers.answer import Answer

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "hard-region-results.md"
COLUMNS = (
    "sessions", "keys", "values", "transactions", "reads", "writes", "changed",
    "valid", "invalid", "not certified", "unknown", "median s", "max s", "ρ", "decided by",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The parameters of a random history.

    Attributes:
        sessions, keys, values, transactions: how many; values per key.
        reads: the share of reads among the operations.
        modify: whether each write follows a read of its key in the same transaction
            ("read-modify-write").
        operations: the number of operations in each transaction.
    """

    sessions: int
    keys: int
    values: int
    transactions: int
    reads: float
    modify: bool
    operations: int = 4

    def cells(self) -> tuple[str, ...]:
        kind = "rmw" if self.modify else "blind"
        counts = (self.sessions, self.keys, self.values, self.transactions)
        return (*map(str, counts), f"{self.reads:.0%}", kind)

    def __str__(self) -> str:
        return " ".join(self.cells())


def generate(shape: Shape, seed: int, changes: int = 0) -> History:
    """Return a serial run whose transactions are assigned to sessions, with some changed reads."""
    rng = random.Random(f"{shape} {seed}")
    state: dict[int, int] = {}
    given: list[tuple[int, list[tuple[str, int, int | None]]]] = []
    reads: list[tuple[int, int]] = []
    for number in range(shape.transactions):
        ops: list[tuple[str, int, int | None]] = []
        keys = rng.sample(range(shape.keys), shape.operations)
        for key in keys:
            write = rng.random() >= shape.reads
            if shape.modify or not write:
                reads.append((number, len(ops)))
                ops.append(("r", key, state.get(key)))
            if write:
                state[key] = rng.randint(1, shape.values)
                ops.append(("w", key, state[key]))
        given.append((rng.randrange(shape.sessions), ops))
    for number, place in rng.sample(reads, min(changes, len(reads))):
        _, key, value = given[number][1][place]
        others = [v for v in range(1, shape.values + 1) if v != value]
        given[number][1][place] = ("r", key, rng.choice(others))
    return History.from_transactions(
        [Transaction(ops=ops, session=session) for session, ops in given]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result for one history: the outcome, CPU seconds, the deciding stage, and statistics."""

    outcome: str
    seconds: float
    by: str
    statistics: dict[str, float]


def refuted_by_pruning(problem: Problem, spec: str) -> bool:
    """Return whether pruning alone refutes the problem."""
    from isolang import _native

    automata = list(classify(load_spec(spec)).automata)
    return (
        bool(problem.anomalies(limit=1))
        or not (_native.prune(problem.native, automata, 60.0)["consistent"])
    )


def solve_within(
    seconds: float, history: History, plan: Plan, **options: Any
) -> tuple[Answer | None, float]:
    """Return the native engine's answer and its CPU seconds; no answer after the time limit."""
    problem = build_problem(history)
    start = time.process_time()

    def in_time(phase: str) -> None:
        if time.process_time() - start > seconds:
            raise TimeoutError(phase)

    answer = None
    with contextlib.suppress(TimeoutError):
        answer = engine.solve(
            history.columns, problem.native, plan.automata, progress=in_time, **options
        )
    return answer, time.process_time() - start


def decide(history: History, spec: str, *, seconds: float, seed: int, strategy: str) -> Result:
    """Solve a history and certify the answer."""
    from isolang import _native
    from isolang.certify.errors import NotCertifiedError
    from isolang.certify.native import check_natively

    loaded = load_spec(spec)
    plan = classify(loaded)
    assert isinstance(plan, Plan)
    answer, spent = solve_within(seconds, history, plan, seed=seed, strategy=strategy)
    if answer is None:
        return Result(outcome="unknown", seconds=spent, by="", statistics={})
    by = _native.strategies()[1:][int(answer.statistics.get("decided_by", 0))]
    outcome = str(answer.outcome)
    try:
        check_natively(history, loaded, answer.result, seconds=60)
    except NotCertifiedError:
        outcome += ", not certified"
    return Result(outcome=outcome, seconds=spent, by=by, statistics=dict(answer.statistics))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spec", default="ser")
    parser.add_argument("--sessions", type=int, nargs="+", default=[20, 50])
    parser.add_argument("--keys", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--values", type=int, nargs="+", default=[2, 3, 5])
    parser.add_argument("--transactions", type=int, nargs="+", default=[500, 1000, 2000])
    parser.add_argument("--reads", type=float, nargs="+", default=[0.5, 0.7])
    parser.add_argument("--kinds", choices=("blind", "rmw"), nargs="+", default=["blind", "rmw"])
    parser.add_argument("--changes", type=int, nargs="+", default=[0], help="reads changed")
    parser.add_argument("--seeds", type=int, default=10, help="seeds 1 to this one")
    parser.add_argument("--seconds", type=float, default=10.0, help="limit per history (CPU)")
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--write", action="store_true", help=f"write docs/{RESULTS.name}, too")
    args = parser.parse_args()
    print(f"{args.spec}, {args.strategy}, limit {args.seconds:g} s, seeds 1 to {args.seeds}")
    lines = [table_row(COLUMNS), table_row(["---"] * len(COLUMNS))]
    print("\n".join(lines))
    for values in itertools.product(
        args.sessions, args.keys, args.values, args.transactions, args.reads, args.kinds
    ):
        sessions, keys, domain, transactions, reads, kind = values
        shape = Shape(
            sessions=sessions,
            keys=keys,
            values=domain,
            transactions=transactions,
            reads=reads,
            modify=kind == "rmw",
        )
        for changes in args.changes:
            lines.append(table_row(row(shape, changes, args)))
            print(lines[-1], flush=True)
    if args.write:
        RESULTS.write_text(page(lines, args), encoding="utf-8")
    return 0


def table_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def page(lines: list[str], args: argparse.Namespace) -> str:
    """Return the page of results, whose first lines say how it was made."""
    command = shlex.join(["python", "benchmarks/hard_region.py", *sys.argv[1:]])
    return "\n".join(
        (
            "# Results in the hard region",
            "",
            "Made by `benchmarks/hard_region.py --write`; do not edit. "
            "[The hard region](hard-region.md) says",
            "what the columns mean.",
            "",
            f"```sh\n{command}\n```",
            "",
            f"Level {args.spec}; seeds 1 to {args.seeds}; {args.seconds:g} CPU seconds for each "
            "history;",
            f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}.",
            "",
            *lines,
            "",
        )
    )


def row(shape: Shape, changes: int, args: argparse.Namespace) -> tuple[str, ...]:
    """Measure one shape, and return the cells of its row."""
    from isolang import _native

    results: list[Result] = []
    loads: list[float] = []
    seed = 0
    while len(results) < args.seeds and seed < 20 * args.seeds:
        seed += 1
        history = generate(shape, seed, changes)
        problem = build_problem(history)
        if refuted_by_pruning(problem, args.spec):
            continue
        results.append(
            decide(history, args.spec, seconds=args.seconds, seed=seed, strategy=args.strategy)
        )
        loads.append(_native.load(problem.native))
        if args.verbose:
            r = results[-1]
            print(f"   seed {seed}: {r.outcome} {r.by} {r.seconds:.2f} s {r.statistics}")
    outcomes = [r.outcome for r in results]
    count = {o: sum(x.startswith(o) for x in outcomes) for o in ("valid", "invalid")}
    bare = sum(x.endswith("not certified") for x in outcomes)
    times = [r.seconds for r in results]
    by = {b: sum(r.by == b for r in results) for b in _native.strategies()[1:]}
    unknown = len(results) - count["valid"] - count["invalid"]
    measured = ("–", "–", "–")
    if results:
        numbers = (statistics.median(times), max(times), statistics.mean(loads))
        measured = tuple(f"{number:.2f}" for number in numbers)
    return (
        *shape.cells(),
        str(changes),
        *map(str, (count["valid"], count["invalid"], bare, unknown)),
        *measured,
        ", ".join(f"{b} {n}" for b, n in by.items() if n) or "–",
    )


if __name__ == "__main__":
    sys.exit(main())
