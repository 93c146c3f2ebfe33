"""Checks that the tests would notice if a level of the library had a different text.

    nice python benchmarks/spec_mutants.py            # every level: minutes
    nice python benchmarks/spec_mutants.py si psi-vis # only these levels

A mutant is a level without one of its checks, or with a part of an expression exchanged. The litmus
histories *catch* it if the brute-force oracle gives one of them another verdict than by the level
itself. Otherwise the evaluator of ``isocheck spec lint`` tries all histories of up to two
transactions and two keys, or three transactions and one key, and some thousands of histories of
three or four transactions. A mutant that survives is equivalent to its level; ``EQUIVALENT`` says
why.

The exit code is 1 if a mutant survives that is not in ``EQUIVALENT``.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from oracle.spec_mutants import Judge, equivalent, mutants  # noqa: E402

from isolang.language.library import list_library  # noqa: E402


def main() -> int:
    """Judge the mutants of the named levels, or of all levels."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("levels", nargs="*", help="by default all")
    parser.add_argument("--samples", type=int, default=4000, help="random histories per level")
    options = parser.parse_args()
    names = options.levels or [e.name for e in list_library() if not e.alias_of]
    totals = [0, 0, 0, 0, 0]
    for name in names:
        started = time.process_time()
        judge = Judge(name, samples=options.samples)
        counts = [0, 0, 0, 0, 0]
        for mutant in mutants(judge.spec):
            how = judge.caught(mutant)
            if how == "" and equivalent(name, mutant):
                how = "equivalent"
            place = ("litmus", "small", "equivalent", "").index(how)
            counts[0] += 1
            counts[place + 1] += 1
            if not how:
                print(f"  NOT CAUGHT {name}: {mutant.what}", flush=True)
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
        print(f"{name}: {_said(counts)} ({time.process_time() - started:.1f} s)", flush=True)
    print(f"all: {_said(totals)}")
    return 1 if totals[-1] else 0


def _said(counts: list[int]) -> str:
    words = ("mutants", "by the litmus histories", "more by small ones", "equivalent", "not caught")
    return ", ".join(f"{n} {word}" for n, word in zip(counts, words, strict=True))


if __name__ == "__main__":
    sys.exit(main())
