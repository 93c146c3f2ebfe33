"""The long run of the tool against the brute-force oracle, in slices.

    python benchmarks/brute_force.py generated --histories 20000 --seed 0 --log runs.jsonl
    python benchmarks/brute_force.py small --step 10 --offset 3 --log runs.jsonl
    python benchmarks/brute_force.py generated --weak --histories 20000 --log runs.jsonl
    python benchmarks/brute_force.py expressions --specs 2000 --seed 0 --log runs.jsonl
    python benchmarks/brute_force.py report --log runs.jsonl

``generated`` compares every library level on mutated litmus histories, simulated databases, random
histories, and histories that separate neighbouring levels; ``small`` on every STEP-th history of at
most three transactions and two registers, both with ``--weak`` on RC, RA, CC and PSI in all styles
and the session guarantees; ``expressions`` compares random
specifications. Each slice appends one line to the log; ``report`` adds the slices up and says how
many histories separate each adjacent pair of levels.

A history on which tool and oracle differ is shrunk, saved under ``tests/regressions`` with the
oracle's verdict, printed, and makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from oracle import semantics
from oracle.expressions import HARD, Checks, random_checks, spec_text
from oracle.generate import any_history, every_small_history, separating, well_formed
from oracle.history import History, show
from oracle.judged import judged
from oracle.levels import ADJACENT, GUARANTEES, LEVELS, WEAK_ADJACENT, WEAK_STYLES
from oracle.pipeline import Levels, keep, shrink, tool_verdict

from isolang.api import load_spec
from isolang.language.classify import NotAnEventGraph, classify

WANTED = 200


class Slice:
    """The figures of one run."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.what = {k: v for k, v in vars(arguments).items() if k != "log"}
        self.counts: Counter[str] = Counter()
        self.verdicts: Counter[str] = Counter()
        self.separated: Counter[str] = Counter()
        self.disagreements: list[str] = []
        self.started = time.process_time()
        self.shown = time.monotonic()

    def note(self, expected: dict[str, str]) -> None:
        self.counts["histories"] += 1
        for level, verdict in expected.items():
            self.verdicts[f"{level} {verdict}"] += 1
        for weaker, stronger in (*ADJACENT, *WEAK_ADJACENT):
            if expected.get(weaker) == "valid" and expected.get(stronger) == "invalid":
                self.separated[f"{weaker} < {stronger}"] += 1
        if time.monotonic() - self.shown > 30:
            self.shown = time.monotonic()
            print(f"  {self.counts['histories']} histories", file=sys.stderr, flush=True)

    def differs(self, history: History, name: str, spec: str, expected: str, got: str) -> None:
        text = f"{spec}: expected {expected}, got {got}: {show(history)}"
        self.disagreements.append(text)
        print(f"DISAGREEMENT {text}", flush=True)
        keep(name, history, {spec: expected})

    def save(self, log: Path) -> None:
        line = {
            "run": self.what,
            "cpu_seconds": round(time.process_time() - self.started, 1),
            "counts": self.counts,
            "verdicts": self.verdicts,
            "separated": self.separated,
            "disagreements": self.disagreements,
        }
        with log.open("a", encoding="utf-8") as f:
            f.write(json.dumps(line) + "\n")


def run_histories(
    histories: Iterator[History], result: Slice, name: str, names: Sequence[str]
) -> None:
    """The levels on each history."""
    levels = Levels(names)
    for number, history in enumerate(histories):
        try:
            expected, wrong = levels.compare(history, seed=number)
        except semantics.TooLargeError:
            result.counts["too large for the oracle"] += 1
            continue
        result.note(expected)
        for difference in wrong[:1]:
            spec = difference.spec

            def still(h: History, spec: str = spec) -> bool:
                return well_formed(h) and any(d.spec == spec for d in levels.compare(h)[1])

            small = shrink(history, still) if still(history) else history
            verdict = levels.expected(small)[spec]
            got = tool_verdict(small, levels.plans[spec])
            result.differs(small, f"{name}-{number}", spec, verdict, got)


def names_of(arguments: argparse.Namespace) -> Sequence[str]:
    """The library's event graphs; or the weak levels in all styles, and their neighbours."""
    neighbours = ("pl-2", "pl-3", "pc", "si", "pc-nosession", "si-nosession")
    return (*WEAK_STYLES, *GUARANTEES, *neighbours) if arguments.weak else tuple(LEVELS)


def generated(arguments: argparse.Namespace, result: Slice) -> None:
    rng = random.Random(arguments.seed)
    histories = (rng.choice((any_history, separating))(rng) for _ in range(arguments.histories))
    run_histories(histories, result, f"generated-{arguments.seed}", names_of(arguments))


def small(arguments: argparse.Namespace, result: Slice) -> None:
    histories = every_small_history(arguments.offset, arguments.step)
    run_histories(
        histories, result, f"small-{arguments.step}-{arguments.offset}", names_of(arguments)
    )


def expressions(arguments: argparse.Namespace, result: Slice) -> None:
    rng = random.Random(arguments.seed)
    for number in range(arguments.specs):
        checks: Checks = HARD[number] if number < len(HARD) else random_checks(rng)
        try:
            plan = classify(load_spec(spec_text(checks)))
        except NotAnEventGraph as refusal:
            if not refusal.reason.strip():
                result.disagreements.append(f"no reason: {spec_text(checks)}")
            result.counts["specifications refused"] += 1
            continue
        result.counts["specifications accepted"] += 1
        for history, expected in judged(rng, checks, arguments.per_spec, result.counts):
            got = tool_verdict(history, plan, seed=number)
            result.note({"random": expected})
            if got != expected:
                text = spec_text(checks)
                result.differs(
                    history, f"expression-{arguments.seed}-{number}", text, expected, got
                )


def report(log: Path) -> int:
    totals: dict[str, Counter[str]] = {}
    disagreements: list[str] = []
    seconds = 0.0
    with log.open(encoding="utf-8") as f:
        for line in f:
            run: dict[str, Any] = json.loads(line)
            seconds += run["cpu_seconds"]
            disagreements += run["disagreements"]
            total = totals.setdefault(run["run"]["command"], Counter())
            for part in ("counts", "verdicts", "separated"):
                total.update({f"{part} {k}": v for k, v in run[part].items()})
    for command, total in totals.items():
        print(command)
        for key, value in sorted(total.items()):
            if not key.startswith("separated"):
                print(f"  {key.split(' ', 1)[1]:<40} {value:>9,}")
    print("histories that separate (weaker valid, stronger invalid)")
    separated: Counter[str] = Counter()
    for total in totals.values():
        separated.update({k: v for k, v in total.items() if k.startswith("separated")})
    for weaker, stronger in (*ADJACENT, *WEAK_ADJACENT):
        count = separated[f"separated {weaker} < {stronger}"]
        few = "" if count >= WANTED else f"  fewer than {WANTED}"
        print(f"  {weaker + ' < ' + stronger:<46} {count:>9,}{few}")
    print(f"{len(disagreements)} disagreements, {seconds:,.0f} CPU seconds")
    for text in disagreements:
        print(f"  {text}")
    return 1 if disagreements else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("generated")
    run.add_argument("--histories", type=int, default=20_000)
    run.add_argument("--seed", type=int, default=0)
    run = commands.add_parser("small")
    run.add_argument("--step", type=int, default=10)
    run.add_argument("--offset", type=int, default=0)
    run = commands.add_parser("expressions")
    run.add_argument("--specs", type=int, default=2_000)
    run.add_argument("--per-spec", type=int, default=15)
    run.add_argument("--seed", type=int, default=0)
    run = commands.add_parser("report")
    for name in ("generated", "small"):
        commands.choices[name].add_argument("--weak", action="store_true")
    for each in commands.choices.values():
        each.add_argument("--log", type=Path, default=Path("brute_force.jsonl"))
    arguments = parser.parse_args()
    if arguments.command == "report":
        return report(arguments.log)
    result = Slice(arguments)
    {"generated": generated, "small": small, "expressions": expressions}[arguments.command](
        arguments, result
    )
    result.save(arguments.log)
    print(json.dumps({"cpu": round(time.process_time() - result.started), **result.counts}))
    return 1 if result.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
