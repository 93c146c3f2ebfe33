"""Compares ``isocheck robust`` with all interleavings of up to three random instances.

    nice python benchmarks/robustness.py [--sets 0-3000] [--most 120] [--locks]

Each random set of templates is decided at READ COMMITTED, at REPEATABLE READ, and at a mixture of
the three levels, with and without sessions. If the answer is *robust*, no interleaving of two or
three instances may violate serializability. At most ``--most`` choices of instances are tried, each
in all interleavings. If the answer is *not robust*, the counterexample must be certified, and the
simulator of interleavings must reproduce it. The simulator follows PostgreSQL's manual and uses no
theorem (``tests/support/interleavings.py``). The exit code is 1 if two of them disagree.
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

from isolang.foresee.robust import candidates
from isolang.foresee.schedules import Level
from isolang.foresee.split import counterexample
from isolang.foresee.templates import Templates

MODES: dict[str, list[Level]] = {
    "mvrc": ["mvrc"],
    "si": ["si"],
    "mixed": ["mvrc", "si", "ssi", "ssi"],
}
CANDIDATES = 50


def judged(found: Templates, levels: dict[str, Level], *, sessions: bool, most: int) -> str:
    """Return the result for one set of templates, in a few words."""
    tried = 0
    for candidate in islice(candidates(found, levels, sessions=sessions), CANDIDATES):
        tried += 1
        failed = counterexample(found, levels, candidate, against="ser" if sessions else "pl-3")
        if failed is None:
            continue
        if not (failed.allowed.certified and failed.forbidden.certified):
            return "COUNTEREXAMPLE NOT CERTIFIED"
        if not is_replayed(found, levels, candidate, sessions):
            return "COUNTEREXAMPLE NOT REPLAYED"
        return "not robust: certified and replayed"
    violated = some_violation(found, levels, sessions=sessions, most=most)
    if tried:
        return f"unknown: an interleaving {'fails' if violated else 'fails nowhere'}"
    return "robust: ROBUST BUT VIOLATED" if violated else "robust: no interleaving fails"


def main() -> int:
    """Run the campaign, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default="0-3000", help="the seeds, first and behind the last")
    parser.add_argument("--locks", action="store_true", help="some reads lock their rows")
    parser.add_argument("--most", type=int, default=120, help="choices of instances of a set")
    options = parser.parse_args()
    first, last = map(int, options.sets.split("-"))
    counts: Counter[tuple[str, str]] = Counter()
    wrong = 0
    for seed in range(first, last):
        rng = random.Random(seed)
        found = random_templates(rng, longest=2 if seed % 3 else 3, locks=options.locks)
        for mode, how in MODES.items():
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
