"""The long run of the conformance suite: every triple against brute force.

    python benchmarks/conformance.py --histories 2000 [--only NAME ...] [--seed S]
    python benchmarks/conformance.py --expressions 500 [--only NAME ...]
    python benchmarks/conformance.py --corpora FOLDER [--timeout 10] [--only NAME ...]

The first takes histories that separate adjacent levels, the second specifications nobody wrote, the
third the small labelled histories of ``FOLDER/anomalies``, where a pair may take too long, but not
be wrong. Prints what was compared, the conflicts of each solver, and every disagreement.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from encodings_support import PAIRS, Conformance, separating
from oracle import semantics
from oracle.expressions import random_checks, spec_text
from oracle.generate import any_history
from oracle.history import show, timed
from oracle.pipeline import Levels, to_tool

from isolang import load_history, load_spec
from isolang.crosscheck import claim
from isolang.language.classify import NotAnEventGraph, classify
from isolang.solvers.registry import Pair


def separated(runs: Conformance, count: int, seed: int) -> list[str]:
    levels, wrong, done = Levels(), [], 0
    for number, (history, level, expected) in enumerate(separating(random.Random(seed), levels)):
        done += runs.run(to_tool(history), levels.plans[level], expected, seed=number)
        wrong += [f"{text} for {level}: {show(history)}" for text in runs.wrong]
        runs.wrong.clear()
        if done == count:
            return wrong
    return wrong


def unwritten(runs: Conformance, specs: int, seed: int) -> list[str]:
    rng, wrong = random.Random(seed), []
    for _ in range(specs):
        checks = random_checks(rng)
        try:
            plan = classify(load_spec(spec_text(checks)))
        except NotAnEventGraph:
            continue
        for _ in range(6):
            history = any_history(rng)
            if semantics.needs_time(checks) and not timed(history):
                continue
            try:
                (valid,) = semantics.satisfied(history, [checks], limit=3_000)
            except semantics.TooLargeError:
                continue
            runs.run(to_tool(history), plan, "valid" if valid else "invalid")
            wrong += [f"{text} for {spec_text(checks)}: {show(history)}" for text in runs.wrong]
            runs.wrong.clear()
    return wrong


def labelled(
    pairs: list[tuple[str, str]], folder: Path, timeout: float, step: int
) -> tuple[Counter[str], list[str]]:
    counts: Counter[str] = Counter()
    wrong = []
    plans = {level: classify(load_spec(level)) for level in ("ser", "si")}
    with (folder / "LABELS.tsv").open(newline="", encoding="utf-8") as f:
        rows = [r for r in csv.DictReader(f, delimiter="\t") if r["path"].startswith("anomalies/")]
    for row in rows[::step]:
        if row["level"] not in plans:
            continue
        history = load_history(folder / row["path"])
        for encoding, solver in pairs:
            pair = Pair(encoding, solver, "fixpoint")
            said = claim(history, plans[row["level"]], pair, seconds=timeout, proof=False)
            counts[f"{encoding}/{solver} {said.outcome}"] += 1
            if said.outcome not in ("unknown", row["verdict"]):
                wrong.append(f"{row['path']}: {pair} says {said.outcome}, not {row['verdict']}")
    return counts, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=0)
    parser.add_argument("--expressions", type=int, default=0)
    parser.add_argument("--corpora", type=Path)
    parser.add_argument("--step", type=int, default=1, help="every STEP-th of the corpora")
    parser.add_argument("--timeout", type=float, default=10.0)
    parser.add_argument("--only", nargs="+", default=[], help="encodings and solvers")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    only = set(arguments.only)
    pairs = [p for p in PAIRS if not only or only & {*p, "/".join(p)}]
    runs, start = Conformance(pairs=pairs), time.process_time()
    wrong = []
    if arguments.histories:
        wrong += separated(runs, arguments.histories, arguments.seed)
    if arguments.expressions:
        wrong += unwritten(runs, arguments.expressions, arguments.seed)
    if runs.compared:
        print(f"{len(runs.compared)} triples, {min(runs.compared.values())} histories each")
        print("verdicts", dict(runs.verdicts))
        print("conflicts", dict(runs.conflicts))
    if arguments.corpora:
        counts, found = labelled(pairs, arguments.corpora, arguments.timeout, arguments.step)
        wrong += found
        for name, count in sorted(counts.items()):
            print(f"{name:<50} {count:>6}")
    print(f"{len(wrong)} disagreements, {time.process_time() - start:,.0f} CPU seconds")
    for text in wrong[:20]:
        print(f"  {text}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
