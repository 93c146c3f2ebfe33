"""Measures how long each level of the library takes to decide and certify a history.

    python benchmarks/levels.py --transactions 10000 100000
    python benchmarks/levels.py --transactions 10000 --levels pl-3u pl-cs --shape blindw
    python benchmarks/levels.py --levels examples/levels/*.iso --relational

The histories are those of a simulated serializable database with real time, so that every level
allows them. Their shapes are BlindW (each transaction only reads or only writes), mini-transactions
(each write follows a read), and append-only lists. The table has one row for each level: the
processor seconds for each shape and size, without reading the file. `!` marks a verdict that is not
certified, `?` an unknown verdict, and `-` a relational level, which is run only with
`--relational`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from isolang.api import check, load_history, load_spec
from isolang.history import History
from isolang.history.values import INTEGER
from isolang.language.classify.route import route
from isolang.language.library import list_library

GROUPS = 4
SHAPES = {
    "blindw": ("--operations", "8", "--sessions", "24"),
    "mini": ("--mini-transactions", "--sessions", "24"),
    "append": ("--lists", "--operations", "4", "--sessions", "24"),
}


def generated(shape: str, transactions: int, folder: Path) -> History:
    """Return a simulated history of a serializable database."""
    path = folder / f"{shape}-{transactions}.edn"
    command = [sys.executable, "-m", "isolang.cli.main", "generate", *SHAPES[shape]]
    size = ["--transactions", str(transactions), "--keys", str(max(10, transactions // 10))]
    rule = ["--rule", "strict-serializable", str(path)]
    subprocess.run([*command, *size, *rule], check=True, capture_output=True)
    history = load_history(path)
    for t, session in enumerate(history.columns.txn_session.tolist()):
        history.columns.set_group(t, INTEGER, session % GROUPS)
    return history


def rows(
    levels: list[str], histories: list[History], seconds: float, *, relational: bool
) -> Iterator[list[str]]:
    """Yield the cells of the row of each level."""
    for name in levels:
        plan = route(load_spec(name))
        cells = []
        for history in histories:
            if plan.kind == "relational" and not relational:
                cells.append("-")
                continue
            began = time.process_time()
            verdict = check(history, plan, timeout=seconds)
            took = time.process_time() - began
            mark = "" if verdict.certified else "!" if verdict.outcome != "unknown" else "?"
            cells.append(f"{took:.2f}{mark}")
        yield [Path(name).stem, plan.kind, *cells]


def main() -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("--transactions", type=int, nargs="+", default=[10_000])
    parser.add_argument("--levels", nargs="+", help="default: all of the library but its aliases")
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for each")
    parser.add_argument("--relational", action="store_true", help="run what is no engine's, too")
    given = parser.parse_args()
    levels = given.levels or [entry.name for entry in list_library() if not entry.alias_of]
    with tempfile.TemporaryDirectory() as folder:
        sizes = [(shape, size) for size in given.transactions for shape in given.shape]
        histories = [generated(shape, size, Path(folder)) for shape, size in sizes]
        head = ["level", "class", *(f"{shape} {size}" for shape, size in sizes)]
        print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|", flush=True)
        for cells in rows(levels, histories, given.timeout, relational=given.relational):
            print("| " + " | ".join(cells) + " |", flush=True)


class _Raw(argparse.RawDescriptionHelpFormatter):
    pass


if __name__ == "__main__":
    main()
