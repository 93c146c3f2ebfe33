"""Predicate reads and writes: Vbox's BlindW-Pred, by size.

    python benchmarks/predicates.py --sizes 10000 30000 100000 [--rows N]

A table of rows with two columns; half of the transactions read by a random range of one of them,
half write the rows that they find so, and each range matches ten rows. They are played one after
another, in 24 sessions. Without ``--rows`` there is a row for each transaction. With a fixed number
of rows a range matches ever more rows that once were there: what a predicate read did not return
grows with the history.

Each check is a process of its own, which reads a file: the seconds are those of solving and
certifying, of the clock and of the processor; the peak is that of the whole process.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from bisect import bisect_left, bisect_right, insort
from pathlib import Path

from report import table

COLUMNS = ("v1", "v2")
MATCHING = 10
SESSIONS = 24
_DOMAIN = 10**9

_CHECK = """
import resource, sys, time
import isolang
history = isolang.load_history(sys.argv[1], initial=1)
cpu = time.process_time()
verdict = isolang.check(history, sys.argv[2])
cpu = time.process_time() - cpu
assert verdict.certified, verdict
spent = verdict.seconds
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(verdict.outcome, f"{spent.prepare:.2f}", f"{spent.solve:.2f}", f"{spent.certify:.2f}",
      f"{cpu:.2f}", f"{peak} MB", sep="\\t")
"""


def write(target: Path, transactions: int, rows: int, *, seed: int = 1) -> None:
    """Play the transactions, and write what their clients saw as EDN."""
    rng = random.Random(seed)
    held = [tuple(rng.randrange(_DOMAIN) for _ in COLUMNS) for _ in range(rows)]
    index = [sorted((row[c], k) for k, row in enumerate(held)) for c in range(len(COLUMNS))]
    width = _DOMAIN * MATCHING // rows

    def text(key: int) -> str:
        columns = " ".join(f":{c} {x}" for c, x in zip(COLUMNS, held[key], strict=True))
        return f"{{{columns}}}"

    with target.open("w", encoding="utf-8") as out:
        loaded = " ".join(f"[:w {k} {text(k)}]" for k in range(rows))
        out.write(f"{{:type :ok, :process {SESSIONS}, :value [{loaded}]}}\n")
        for number in range(transactions):
            c = rng.randrange(len(COLUMNS))
            low = rng.randrange(_DOMAIN - width)
            high = low + width - 1
            first, last = bisect_left(index[c], (low, -1)), bisect_right(index[c], (high, rows))
            found = [key for _, key in index[c][first:last]]
            returned = ", ".join(f"{k} {text(k)}" for k in found)
            ops = [f"[:rp [:between :{COLUMNS[c]} {low} {high}] {{{returned}}}]"]
            for key in found if rng.random() < 0.5 else ():
                row = tuple(rng.randrange(_DOMAIN) for _ in COLUMNS)
                for i, value in enumerate(row):
                    index[i].pop(bisect_left(index[i], (held[key][i], key)))
                    insort(index[i], (value, key))
                held[key] = row
                ops.append(f"[:w {key} {text(key)}]")
            out.write(f"{{:type :ok, :process {number % SESSIONS}, :value [{' '.join(ops)}]}}\n")


def measure(history: Path, level: str) -> list[str]:
    """Seconds, and the peak, of a check."""
    found = subprocess.run(
        [sys.executable, "-c", _CHECK, history, level], check=True, capture_output=True, text=True
    )
    return found.stdout.strip().split("\t")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 30_000, 100_000])
    parser.add_argument("--rows", type=int, help="of the table (default: one a transaction)")
    parser.add_argument("--levels", nargs="+", default=["ser", "si"])
    chosen = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in chosen.sizes:
            history = Path(folder) / f"blindw-pred-{size}.edn"
            write(history, size, chosen.rows or size)
            rows += [[f"{size:,}", level, *measure(history, level)] for level in chosen.levels]
    columns = "transactions", "level", "verdict", "prepare, s", "solve, s", "certify, s", "CPU, s"
    print(table([*columns, "peak"], rows))


if __name__ == "__main__":
    main()
