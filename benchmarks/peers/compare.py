"""Times isocheck and other checkers in turn, on the same files, as whole commands.

    python benchmarks/peers/compare.py --awdit DIR --porcupine DIR
    python benchmarks/peers/compare.py --porcupine DIR --runs 15 --write

DIR is a checkout of the other program in which it was built, as README.md in this folder says. Runs
alternate, so that both meet the same load; a figure is the median of the CPU times. ``--write``
keeps the rows in ``measured.json``, from which `benchmarks/run.py --write` draws the table of
``docs/results.md``.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from measuring import KEEP_BYTE_CODE, run  # noqa: E402 - the folder above is none of a package
from report import peers_table  # noqa: E402

MEASURED = HERE / "measured.json"
ISOCHECK = [sys.executable, "-P", "-m", "isolang.cli.main"]
AWDIT_LEVELS = {"rc": "read-committed", "ra": "read-atomic", "cc": "causal"}
TITLES = {"rc": "read committed", "ra": "read atomic", "cc": "causal consistency"}

Task = tuple[str, list[str], list[str]]  # the name, isocheck's command, and the other's


def awdit_tasks(checkout: Path, transactions: int, folder: Path) -> Iterator[Task]:
    """Yield a task for each level that AWDIT decides, certified and not."""
    program = checkout / "target" / "release" / "awdit"
    history = folder / "history.txt"
    subprocess.run(
        [*ISOCHECK, "generate", str(history), "--to", "plume", "--transactions", str(transactions),
         "--operations", "8", "--keys", str(max(10, transactions // 10)), "--sessions", "24",
         "--seed", "1"],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    for level, name in AWDIT_LEVELS.items():
        for options in ([], ["--no-certify"]):
            about = f"{transactions:,} transactions of 8 operations"
            task = f"AWDIT: {TITLES[level]}, {about}{', not certified' if options else ''}"
            mine = [*ISOCHECK, "check", "--spec", level, *options, str(history)]
            yield task, mine, [str(program), "check", "-i", name, str(history)]


def porcupine_tasks(checkout: Path) -> Iterator[Task]:
    """Yield the check of the logs that Porcupine's tests check, in one command of each."""
    files = [*checkout.glob("test_data/jepsen/*.log"), *checkout.glob("test_data/kv/*.txt")]
    logs = sorted(str(file) for file in files if file.name != "etcd_095.log")
    tests = [str(checkout / "porcupine.test"), "-test.run", "^(TestEtcdJepsen|TestKv)"]
    mine = [*ISOCHECK, "check", "--spec", "linearizable", *logs]
    yield f"Porcupine: linearizability, {len(logs)} logs in one command", mine, tests


def measured(task: Task, runs: int, folder: Path) -> dict[str, Any]:
    """Return a row: the medians of the CPU seconds, and the peaks of memory."""
    name, *commands = task
    of_both: list[list[tuple[float, float]]] = [[], []]
    for _ in range(runs + 1):  # the first run reads the files, and compiles byte code
        for command, results in zip(commands, of_both, strict=True):
            result = run(command, timeout=600, megabytes=8000, environment=KEEP_BYTE_CODE,
                         folder=folder)  # fmt: skip
            if result.ended != "ok" or result.code not in (0, 1):
                raise SystemExit(f"{name}: {command[0]} ended with exit code {result.code}")
            results.append((result.cpu, result.megabytes))
    sides = [
        {"cpu": statistics.median(cpu for cpu, _ in results[1:]),
         "megabytes": max(megabytes for _, megabytes in results[1:])}
        for results in of_both
    ]  # fmt: skip
    return {"task": name, "isocheck": sides[0], "peer": sides[1]}


def main(argv: list[str] | None = None) -> int:
    """Measure what was asked for, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--awdit", type=Path, metavar="DIR", help="a built checkout of AWDIT")
    parser.add_argument("--porcupine", type=Path, metavar="DIR", help="one of Porcupine")
    parser.add_argument("--transactions", type=int, default=100_000, metavar="N", help="for AWDIT")
    parser.add_argument("--runs", type=int, default=7, help="of each command (default 7)")
    parser.add_argument("--write", action="store_true", help="keep the rows in measured.json")
    options = parser.parse_args(argv)
    if options.awdit is None and options.porcupine is None:
        parser.error("give --awdit DIR, --porcupine DIR or both; README.md says how to build them")
    with tempfile.TemporaryDirectory(prefix="isolang-peers-") as temporary:
        tasks: list[tuple[Task, Path]] = []
        if options.awdit:
            made = awdit_tasks(options.awdit.resolve(), options.transactions, Path(temporary))
            tasks += [(task, Path(temporary)) for task in made]
        if options.porcupine:
            checkout = options.porcupine.resolve()
            tasks += [(task, checkout) for task in porcupine_tasks(checkout)]
        rows = [measured(task, options.runs, folder) for task, folder in tasks]
    print(peers_table(rows))
    if options.write:
        revision = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True,
            check=False,
        ).stdout.strip()  # fmt: skip
        machine = f"{platform.platform()}, Python {platform.python_version()}"
        kept = {"machine": machine, "isocheck": revision, "rows": rows}
        MEASURED.write_text(json.dumps(kept, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
