"""Compares predictions with brute force over their definitions, and measures their cost.

    python benchmarks/predictions.py agree                      every run of at most 3 transactions
    python benchmarks/predictions.py agree --transactions 4 --count 2000 --seed 1
    python benchmarks/predictions.py agree --at psi --against si --transactions 4 --count 500
    python benchmarks/predictions.py agree --predicates --count 1000 --at postgresql-read-committed
    python benchmarks/predictions.py time                       seconds of CPU, with certificates

`agree` uses runs over two keys with every division into sessions: all of these runs, or `--count`
random ones. The definitions are those of `tests/foresee/by_definition.py`. `--one-stranger` leaves
out the second rule, because its definition takes a second for a run of four transactions. A run on
which the results differ is printed, and the exit code is 1. `time` simulates the runs, some of them
in IsoPredict's shapes (3 sessions of 4 or of 8 transactions).
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from foresee import rows_by_schedule, with_predicates
from foresee.agreement import SHAPES, levels_of, partitions, random_runs, run_and_search, serial_run
from foresee.by_definition import Tiny, exists, one_stranger, same_statements

from isolang import History, Transaction, load_history, predict

DIRECT = ("si", "ra", "cc", "rc")
ISOPREDICT = {"smallbank": 4, "twitter": 4, "tpcc": 20, "rubis": 20, "rmw": 4}


def all_runs(most: int) -> Iterator[Tiny]:
    """Yield every run of at most ``most`` transactions over two keys, up to renaming of keys."""
    other = str.maketrans("xy", "yx")
    place = {(r, w): n for n, (r, w) in enumerate(SHAPES)}
    swap = [
        place["".join(sorted(r.translate(other))), "".join(sorted(w.translate(other)))]
        for r, w in SHAPES
    ]
    for n in range(1, most + 1):
        for shapes in product(range(len(SHAPES)), repeat=n):
            if tuple(swap[s] for s in shapes) < shapes:
                continue
            for sessions in partitions(n):
                yield serial_run([SHAPES[s] for s in shapes], sessions)


def agree(options: argparse.Namespace) -> int:
    """Compare every run, and return on how many runs the results differ."""
    if options.predicates:
        return agree_with_predicates(options)
    if options.count:
        runs = list(random_runs(options.seed, options.transactions, options.count))
    else:
        runs = list(all_runs(options.transactions))
    wrong = 0
    for at in options.at.split(","):
        levels_of(at, options.against)
        missed = extra = 0
        predicted = [0, 0]
        begun = time.process_time()
        for run in runs:
            first = exists(one_stranger(run), at, options.against)
            got = run_and_search(run, at, options.against)
            if options.one_stranger:
                expected, got = (first, first), (got[0], got[0])
            else:
                expected = (first, first or exists(same_statements(run), at, options.against))
            predicted = [n + yes for n, yes in zip(predicted, expected, strict=True)]
            missed += sum(a and not b for a, b in zip(expected, got, strict=True))
            extra += sum(b and not a for a, b in zip(expected, got, strict=True))
            if got != expected:
                print(
                    f"  {at}: {got}, by definition {expected}", run.sessions, run.writes, run.reads
                )
        wrong += missed + extra
        print(
            f"{at} against {options.against}: {len(runs):,} runs, {predicted[0]:,} predicted with "
            f"one stranger, {predicted[1]:,} in all; missed {missed}, extra {extra} "
            f"({time.process_time() - begun:.0f} s)",
            flush=True,
        )
    return wrong


def agree_with_predicates(options: argparse.Namespace) -> int:
    """Compare random runs with predicate reads, and return on how many the results differ.

    At the profiles, the definition is a database with locks and unique indexes.
    """
    different = 0
    for at in options.at.split(","):
        begun = time.process_time()
        module = rows_by_schedule if at.startswith("postgresql-") else with_predicates
        count, predicted = options.count or 1_000, 0
        for run in module.random_runs(options.seed, options.transactions, count):
            expected, searched = module.compared(run, at)
            predicted += expected[1]
            if searched != expected:
                different += 1
                print(f"  {at}: {searched}, by definition {expected}", run.sessions, run.initial)
                print(*run.programs, sep="\n    ")
        print(
            f"{at}, with predicate reads: {count:,} runs, {predicted:,} predicted, {different} "
            f"different ({time.process_time() - begun:.0f} s)",
            flush=True,
        )
    return different


def dense(seed: int) -> History:
    """Return a history of 60 transactions, which read two or three of ten keys and write some."""
    draw = random.Random(seed)
    last: dict[int, int] = {}
    found = []
    for i in range(1, 61):
        read = draw.sample(range(10), draw.randint(1, 3))
        written = draw.sample(read, min(len(read), draw.randint(0, 2)))
        found.append(
            Transaction(
                [*(("r", key, last.get(key)) for key in read), *(("w", key, i) for key in written)],
                session=draw.randrange(8),
            )
        )
        last |= dict.fromkeys(written, i)
    return History.from_transactions(found)


def simulated(folder: Path, workload: str, many: int, *more: object) -> History:
    """Return a simulated run."""
    path = folder / f"{workload}-{many}-{'-'.join(map(str, more))}.edn"
    isocheck = Path(sys.executable).with_name("isocheck")
    command = [isocheck, "generate", path, "--workload", workload, "--transactions", many, *more]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    return load_history(path)


def measure(_: argparse.Namespace) -> int:
    """Print the mean and the greatest cost of predictions for several kinds of runs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows: list[tuple[str, list[History]]] = [
            (
                f"{many} of {workload}",
                [
                    simulated(
                        folder, workload, many, "--sessions", 3, "--keys", keys, "--seed", seed
                    )
                    for seed in range(6)
                ],
            )
            for workload, keys in ISOPREDICT.items()
            for many in (12, 24)
        ]
        rows.append(("60, dense", [dense(seed) for seed in range(3)]))
        rows += [
            (
                f"{many:,} of smallbank",
                [simulated(folder, "smallbank", many, "--sessions", 8, "--seed", 1)],
            )
            for many in (1_000, 10_000)
        ]
        predict(rows[0][1][0], "si")  # warm up the imports
        for title, runs in rows:
            cells = []
            for at, against in (*((at, "ser") for at in ("si", "cc", "rc")), ("psi", "si")):
                spent, kinds = [], 0
                for run in runs:
                    begun = time.process_time()
                    found = predict(run, at, against)
                    spent.append(time.process_time() - begun)
                    kinds += len(found.found) + found.more
                cells.append(
                    f"{at}/{against} {sum(spent) / len(spent):.3f}, at most {max(spent):.3f} "
                    f"({kinds} kinds)"
                )
            print(f"{title:20}", "; ".join(cells), flush=True)
    return 0


def main() -> int:
    """Run the command that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    comparing = commands.add_parser("agree")
    comparing.add_argument("--at", default=",".join(DIRECT))
    comparing.add_argument("--against", default="ser")
    comparing.add_argument("--transactions", type=int, default=3)
    comparing.add_argument("--count", type=int, default=0, help="random runs; 0 for every run")
    comparing.add_argument("--seed", type=int, default=1)
    comparing.add_argument("--one-stranger", action="store_true", help="only the first rule")
    comparing.add_argument("--predicates", action="store_true", help="random runs that read rows")
    comparing.set_defaults(run=agree)
    commands.add_parser("time").set_defaults(run=measure)
    options = parser.parse_args()
    return 1 if options.run(options) else 0


if __name__ == "__main__":
    sys.exit(main())
