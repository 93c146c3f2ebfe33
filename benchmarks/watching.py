"""Watches random streams, whose verdicts must be those of the whole files.

Each chain of a valid stream is also verified. With --kernel, the native checker, the checker by
definition and the kernel each check every chain, and forged copies of it: they must agree.

python benchmarks/watching.py --histories 500 --seed 1
python benchmarks/watching.py --histories 500 --kernel --scans 0 --crashes 1
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.chains import compare_answers
from support.watching import (
    LEVELS,
    Scans,
    named_level,
    random_history,
    split_by_client,
    watch_in_rounds,
    with_crashes,
    with_names,
    with_rows_before,
)

from isolang import api
from isolang.certify.kernel import MISSING, find_kernel
from isolang.errors import IsolangError
from isolang.history import save_history
from isolang.history.clock_error import with_clock_error
from isolang.language.load import load_spec
from isolang.watch import Stream, verify_chain


def with_order_of_log(level: str, folder: Path) -> str:
    """Save a level with one more check: reads must not be from transactions that began later.

    Return the path of the saved level.
    """
    spec = load_spec(level)
    for name, text in spec.texts.items():
        (folder / name).write_text(text)
    path = folder / next(iter(spec.texts))
    path.write_text(f"{path.read_text()}\nirreflexive wr ; rt as order-of-the-log\n")
    return str(path)


def main() -> None:
    """Compare the verdicts, and report each difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scans", type=float, default=0.3, help="share with predicate reads")
    parser.add_argument("--names", type=float, default=0.25, help="share of others with names")
    parser.add_argument("--crashes", type=float, default=0.3, help="share where clients crash")
    parser.add_argument("--by-definition", action="store_true", help="verify all chains so, too")
    parser.add_argument("--kernel", action="store_true", help="compare three checkers")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    if given.kernel and find_kernel() is None:
        parser.error(MISSING)
    counts: Counter[str] = Counter()
    for number in range(given.histories):
        rng = random.Random(f"{given.seed} {number}")
        level = rng.choice(LEVELS)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            one = path = folder / "log.edn"
            reading: dict[str, Any] = {}
            scans = None
            if rng.random() < given.scans:
                scans = Scans(rng)
                path.write_text(scans.text())
                counts["with predicates"] += 1
                counts["with predicates and names"] += scans.named
                counts["with predicates and times"] += scans.timed
            else:
                history = random_history(rng)
                if rng.random() < 0.4:
                    history, reading = with_rows_before(rng, history)
                    counts["rows before"] += 1
                if rng.random() < given.names:
                    history = with_names(rng, history)
                    level = named_level(rng, folder)
                    counts["with names"] += 1
                save_history(history, path, format="edn")
                if rng.random() < given.crashes:
                    text = with_crashes(rng, path.read_text())
                    path.write_text(text)
                    counts["with crashes"] += 1
                    if rng.random() < 0.3:
                        path = folder / "logs"
                        split_by_client(text, path)
                        counts["with crashes and a log of each client"] += 1
            read = api.load_history(one, **reading)
            clock_error = 0
            if read.real_time.startswith(":time"):
                clock_error = rng.choice((0, 5, 50, 500))
                read = with_clock_error(read, clock_error)
                counts["with a clock error"] += clock_error > 0
                if scans is not None:
                    counts["with predicates and a clock error"] += clock_error > 0
                    if rng.random() < 0.5:
                        path = folder / "logs"
                        scans.split(path)
                        counts["a log of each client"] += 1
            whole = api.check(read, level, simplest=False, timeout=3)
            if given.verbose:
                print(number, level, whole.outcome, flush=True)
            try:
                found = watch_in_rounds(
                    rng, path, level, folder / "state", counts, clock_error=clock_error, **reading
                )
            except (IsolangError, AssertionError):
                traceback.print_exc()
                print(f"ERROR {number} {level}")
                counts["error"] += 1
                continue
            counts[f"{Path(level).name} {whole.outcome} {found.outcome}"] += 1
            for kind in reading:
                counts[f"{kind} {whole.outcome} {found.outcome}"] += 1
            counts["parts"] += found.parts
            if (whole.outcome, found.outcome) == ("valid", "invalid"):
                # For a watch, a transaction that began after the reader ended is no source.
                whole = api.check(
                    read, with_order_of_log(level, folder), simplest=False, timeout=20
                )
                counts["as the log's order is believed"] += whole.outcome == "invalid"
            decided = {whole.outcome, found.outcome} <= {"valid", "invalid"}
            if decided and found.outcome != whole.outcome:
                print(f"WRONG {number} {level}: {found.outcome}, the whole is {whole.outcome}")
                counts["wrong"] += 1
            if found.outcome == "valid":
                by_definition = given.by_definition or rng.random() < 0.3
                stream = Stream([path], follow=False)
                verify_chain(folder / "state", stream, by_definition=by_definition)
                counts["verified by definition"] += by_definition
                counts["verified"] += 1
                if given.kernel:
                    try:
                        compare_answers(rng, folder / "state", path, counts)
                    except AssertionError as error:
                        print(f"WRONG {number} {level}: {error}")
                        counts["wrong"] += 1
    for kind, count in sorted(counts.items()):
        print(f"{kind:40}{count:10,}")


if __name__ == "__main__":
    main()
