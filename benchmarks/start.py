"""Measures the CPU seconds of small commands, and their ratio to those of another checkout.

    python benchmarks/start.py                 # this checkout
    python benchmarks/start.py ../before .     # folders with a built core; the first one is 1.00

Runs of the checkouts alternate, and byte code is written once and kept. The measure is the shortest
run, because only other processes can make a start longer. The bars apply to a machine on which the
interpreter alone takes 0.01 s.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from pathlib import Path

from measuring import KEEP_BYTE_CODE
from report import table

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = "import sys; from isolang.cli.entry import main; sys.exit(main())"  # as installed
VALID = "examples/on-call.edn"
CASES = {
    "--help": (("--help",), 0.10),
    "a small check": (("--spec", "si", VALID), 0.12),
    "an explanation": (("--spec", "ser", VALID), None),
    "in JSON": (("--spec", "si", "-o", "json", VALID), None),
    "check --help": (("check", "--help"), 0.15),
}


def seconds(tree: Path, arguments: tuple[str, ...]) -> float:
    """Return the CPU seconds of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, *arguments],
        cwd=ROOT,
        env={**os.environ, **KEEP_BYTE_CODE, "PYTHONPATH": str(tree)},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description="Time the start of small commands.")
    parser.add_argument("trees", nargs="*", type=Path, default=[ROOT])
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    trees = [tree.resolve() for tree in options.trees]
    rows = []
    for name, (arguments, bar) in CASES.items():
        found: list[list[float]] = [[] for _ in trees]
        for _ in range(options.runs + 1):  # the first run compiles byte code
            for tree, of_tree in zip(trees, found, strict=True):
                of_tree.append(seconds(tree, arguments))
        least = [min(of_tree[1:]) for of_tree in found]
        ratios = [f"{one / least[0]:.2f}" for one in least[1:]]
        rows.append([name, *(f"{one:.3f}" for one in least), *ratios, bar or ""])
    names = [tree.name for tree in trees]
    print(table(["command", *names, *(f"{name}: ratio" for name in names[1:]), "bar"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
