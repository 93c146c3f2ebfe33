"""Runs the conformance suite for long: every triple is compared with brute force.

    python benchmarks/conformance.py --histories 2000 [--only NAME ...] [--seed S]
    python benchmarks/conformance.py --expressions 500 [--only NAME ...]
    python benchmarks/conformance.py --corpora FOLDER [--timeout 2] [--step 1] [--only NAME ...]

The first command uses histories that separate adjacent levels, including levels that only the
relational encoding supports. The second command uses random specifications. The third command uses
the small labelled histories of ``FOLDER/anomalies``. It runs each pair in a separate process, which
is killed after the timeout: a pair may take too long, but its verdict must not be wrong. The
program prints what was compared, the conflicts of each solver, and every disagreement.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
import random
import sys
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from oracle.expressions import random_checks, spec_text
from oracle.history import show
from oracle.judged import judged
from oracle.levels import ADJACENT
from oracle.pipeline import Levels, to_tool
from support.encodings import (
    PAIRS,
    WRITTEN_OTHERWISE,
    WRITTEN_OTHERWISE_ADJACENT,
    Conformance,
    Pairs,
    separating_histories,
)

from isolang import History, load_history, load_spec
from isolang.language.classify.event_graph import NotAnEventGraph, Plan, classify
from isolang.pipeline.crosscheck import claim_of
from isolang.solvers.registry import Pair, stages_of


def separating_histories_check(
    runs: Conformance, levels: Levels, adjacent: Pairs, count: int, seed: int
) -> list[str]:
    wrong, done = [], 0
    histories = separating_histories(random.Random(seed), levels, adjacent)
    for number, (history, level, expected) in enumerate(histories):
        done += runs.run(to_tool(history), levels.plans[level], expected, seed=number)
        wrong += [f"{text} for {level}: {show(history)}" for text in runs.wrong]
        runs.wrong.clear()
        if done == count:
            return wrong
    return wrong


def random_specifications(runs: Conformance, specs: int, seed: int) -> list[str]:
    rng, wrong = random.Random(seed), []
    for _ in range(specs):
        checks = random_checks(rng)
        try:
            plan = classify(load_spec(spec_text(checks)))
        except NotAnEventGraph:
            continue
        for history, expected in judged(rng, checks, 6):
            runs.run(to_tool(history), plan, expected)
            wrong += [f"{text} for {spec_text(checks)}: {show(history)}" for text in runs.wrong]
            runs.wrong.clear()
    return wrong


def labelled(
    pairs: list[tuple[str, str]], folder: Path, timeout: float, step: int
) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Return how often each pair was right, wrong or too slow, and the wrong verdicts."""
    counts: Counter[tuple[str, str]] = Counter()
    wrong = []
    plans = {level: classify(load_spec(level)) for level in ("ser", "si")}
    with (folder / "LABELS.tsv").open(newline="", encoding="utf-8") as f:
        rows = [r for r in csv.DictReader(f, delimiter="\t") if r["path"].startswith("anomalies/")]
    for row in [r for r in rows if r["level"] in plans][::step]:
        history = load_history(folder / row["path"])
        for encoding, solver in pairs:
            pair = Pair(encoding, solver, stages_of(encoding)[-1])
            said = verdict_of_pair(history, plans[row["level"]], pair, timeout)
            what = (
                "unknown" if said == "unknown" else "right" if said == row["verdict"] else "wrong"
            )
            counts[str(pair), what] += 1
            if what == "wrong":
                wrong.append(f"{row['path']}: {pair} says {said}, not {row['verdict']}")
    return counts, wrong


def verdict_of_pair(history: History, plan: Plan, pair: Pair, timeout: float) -> str:
    """Return a pair's verdict, from a separate process; ``unknown`` after the timeout."""

    def ask(out: Connection) -> None:
        out.send(claim_of(history, plan, pair, seconds=timeout, proof=False).outcome)

    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=ask, args=(theirs,))
    child.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(2 * timeout + 1) else "unknown"
    except EOFError:
        return f"crashed ({pair})"
    finally:
        child.kill()
        child.join()
        ours.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=0)
    parser.add_argument("--expressions", type=int, default=0)
    parser.add_argument("--corpora", type=Path)
    parser.add_argument("--step", type=int, default=1, help="every STEP-th of the corpora")
    parser.add_argument("--timeout", type=float, default=2.0, help="seconds a run")
    parser.add_argument("--only", nargs="+", default=[], help="encodings and solvers")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    only = set(arguments.only)
    pairs = [p for p in PAIRS if not only or only & {*p, "/".join(p)}]
    runs = Conformance(pairs=pairs)
    wrong = []
    if arguments.histories:
        count, seed = arguments.histories, arguments.seed
        wrong += separating_histories_check(runs, Levels(), ADJACENT, count, seed)
        others = Conformance(pairs=[p for p in pairs if p[0] == "relational"])
        if others.pairs:
            levels = Levels(WRITTEN_OTHERWISE)
            wrong += separating_histories_check(
                others, levels, WRITTEN_OTHERWISE_ADJACENT, count, seed
            )
            least = min(others.compared.values())
            print(f"levels that are no event graphs: {len(others.pairs)} triples, {least} each")
    if arguments.expressions:
        wrong += random_specifications(runs, arguments.expressions, arguments.seed)
    if runs.compared:
        print(f"{len(runs.compared)} triples, {min(runs.compared.values())} histories each")
        print("verdicts", dict(runs.verdicts))
        print("conflicts", dict(runs.conflicts))
    if arguments.corpora:
        counts, found = labelled(pairs, arguments.corpora, arguments.timeout, arguments.step)
        wrong += found
        outcomes = ("right", "unknown", "wrong")
        print(f"{'pair':<40}" + "".join(f"{what:>9}" for what in outcomes))
        for name in sorted({name for name, _ in counts}):
            print(f"{name:<40}" + "".join(f"{counts[name, what]:>9}" for what in outcomes))
    spent = sum(os.times()[:4])
    print(f"{len(wrong)} disagreements, {spent:,.0f} CPU seconds")
    for text in wrong[:20]:
        print(f"  {text}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
