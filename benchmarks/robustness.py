"""Compares ``isocheck robust`` with all interleavings of up to three random instances.

    nice python benchmarks/robustness.py [--sets 0-3000] [--most 120] [--locks] [--innodb]
    nice python benchmarks/robustness.py --service 60

Each random set of templates is decided at READ COMMITTED, at REPEATABLE READ, and at a mixture of
the three levels, with and without sessions. If the answer is *robust*, no interleaving of two or
three instances may violate serializability. At most ``--most`` choices of instances are tried, each
in all interleavings. If the answer is *not robust*, the counterexample must be certified, and the
simulator of interleavings must reproduce it. The simulator follows PostgreSQL's manual and uses no
theorem (``tests/support/interleavings.py``). The exit code is 1 if two of them disagree.

With ``--service N``, it measures how long the table of a recorded service with N random programs
takes: their lowest levels, and mends for those that are not safe at READ COMMITTED.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.interleavings import is_replayed, some_violation
from support.random_templates import random_templates, template_lines

from isolang import History, Transaction
from isolang.foresee.extract import extract
from isolang.foresee.mending import MendSearch
from isolang.foresee.robust import candidates
from isolang.foresee.schedules import MOST_STEPS, Level
from isolang.foresee.service import decide_run
from isolang.foresee.split import counterexample
from isolang.foresee.templates import Templates

MODES: dict[str, list[Level]] = {
    "mvrc": ["mvrc"],
    "si": ["si"],
    "mixed": ["mvrc", "si", "ssi", "ssi"],
}
INNODB_MODES: dict[str, list[Level]] = {
    "read committed": ["innodb-read-committed"],
    "repeatable read": ["innodb-repeatable-read"],
    "snapshot": ["innodb-snapshot"],
    "mixed": ["innodb-read-committed", "innodb-repeatable-read", "innodb-serializable"],
    "mixed snapshot": ["innodb-read-committed", "innodb-snapshot", "innodb-serializable"],
}
CANDIDATES = 50


def judged(found: Templates, levels: dict[str, Level], *, sessions: bool, most: int) -> str:
    """Return the result for one set of templates, in a few words."""
    tried, refused = 0, ""
    for candidate in islice(candidates(found, levels, sessions=sessions), CANDIDATES):
        tried += 1
        failed = counterexample(found, levels, candidate, against="ser" if sessions else "pl-3")
        if failed is None:
            continue
        if not (failed.allowed.certified and failed.forbidden.certified):
            return "COUNTEREXAMPLE NOT CERTIFIED"
        if not is_replayed(found, levels, candidate, sessions):
            if failed.refused_by_rows or failed.refused_by_gaps:
                refused = "not robust: certified, but row or gap locks may prevent it"
                continue
            return "COUNTEREXAMPLE NOT REPLAYED"
        return "not robust: certified and replayed"
    if refused:
        return refused
    violated = some_violation(found, levels, sessions=sessions, most=most)
    if tried:
        return f"unknown: an interleaving {'fails' if violated else 'fails nowhere'}"
    return "robust: ROBUST BUT VIOLATED" if violated else "robust: no interleaving fails"


def random_service(programs: int, rng: random.Random) -> History:
    """Return a run of random programs on half as many tables, each with a parent table.

    Most programs use two or three tables: they read and write rows, count children and insert some.
    """
    tables = [f"t{number}" for number in range(max(2, programs // 2))]
    rows = {(table, "1"): {"id": 1, "parent": 1, "n": 0} for table in tables}
    transactions = [Transaction([("w", key, row) for key, row in rows.items()], status="initial")]
    clock = 0
    for number in range(programs):
        steps = [
            (rng.choice(("r", "r", "rw", "w", "count", "add")), rng.choice(tables))
            for _ in range(rng.randint(2, 7))
        ]
        for _ in range(2):
            ops: list[tuple] = []
            for kind, table in steps:
                key, clock = (table, "1"), clock + 1
                if kind in ("r", "rw"):
                    ops.append(("r", key, rows[key]))
                if kind in ("w", "rw"):
                    rows[key] = {**rows[key], "n": clock}
                    ops.append(("w", key, rows[key]))
                if kind in ("count", "add"):
                    children = {
                        child: row for child, row in rows.items() if child[0] == f"{table}_child"
                    }
                    where = {"table": f"{table}_child", "where": ("=", "parent", 1)}
                    ops.append(("scan", where, children))
                if kind == "add":
                    child = (f"{table}_child", str(clock))
                    rows[child] = {"id": clock, "parent": 1, "n": 0}
                    ops.append(("insert", child, rows[child]))
            transactions.append(Transaction(ops, label=f"program{number}"))
    return History.from_transactions(transactions)


def measure_service(programs: int) -> int:
    """Print how long the table of a random service takes, and return the exit code."""
    history = random_service(programs, random.Random(programs))
    start = time.process_time()
    decision = decide_run(history, "mvrc")
    levels = time.process_time()
    search = MendSearch(
        decision.run, decision.levels, lambda unique: extract(history, unique=unique),
        sessions=True, work=MOST_STEPS,
    )  # fmt: skip
    unsafe = [item.program for item in decision.programs if item.standing("mvrc") == "not robust"]
    mends = {program: search.of(program) for program in unsafe}
    left = search.all_together([some[0] for some in mends.values() if some])
    end = time.process_time()
    statements = sum(len(item.statements) for item in decision.run.templates.branches)
    number_of_mends = sum(map(len, mends.values()))
    print(f"{programs} programs with {statements:,} statements, {len(unsafe)} of them not safe")
    print(f"levels {levels - start:.1f} s, {number_of_mends} mends {end - levels:.1f} s of CPU")
    print(f"{len(left)} programs are not safe with the first mend of each")
    return 0


def main() -> int:
    """Run the campaign, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default="0-3000", help="the seeds, first and behind the last")
    parser.add_argument("--locks", action="store_true", help="some reads lock their rows")
    parser.add_argument("--innodb", action="store_true", help="the levels of InnoDB")
    parser.add_argument("--most", type=int, default=120, help="choices of instances of a set")
    parser.add_argument("--service", type=int, default=0, help="the number of programs to time")
    options = parser.parse_args()
    if options.service:
        return measure_service(options.service)
    first, last = map(int, options.sets.split("-"))
    counts: Counter[tuple[str, str]] = Counter()
    wrong = 0
    for seed in range(first, last):
        rng = random.Random(seed)
        found = random_templates(
            rng, longest=2 if seed % 3 else 3, locks=options.locks,
            scans_lock=options.locks and options.innodb,
        )  # fmt: skip
        for mode, how in (INNODB_MODES if options.innodb else MODES).items():
            levels = {program: rng.choice(how) for program in found.programs}
            for sessions in (False, True):
                outcome = judged(found, levels, sessions=sessions, most=options.most)
                where = f"{mode}, {'with' if sessions else 'without'} sessions"
                counts[where, outcome] += 1
                if outcome.isupper() or "ROBUST" in outcome or "COUNTER" in outcome:
                    wrong += 1
                    print(
                        seed, where, outcome, levels, *template_lines(found), sep="\n  ", flush=True
                    )
    for (where, outcome), count in sorted(counts.items()):
        print(f"{where:26} {outcome:45} {count:6,}")
    print(f"{last - first:,} sets, {wrong} wrong, {time.process_time():.0f} s of CPU")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
