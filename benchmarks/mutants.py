"""Checks that the tests notice if a rule of the engine, the pre-pass or a checker is broken.

    nice python benchmarks/mutants.py                # all mutants: an hour on two cores
    nice python benchmarks/mutants.py --only prune,presolve

A mutant is a rule that a comment ``// mutant: NAME`` (``# mutant: NAME``) marks. ``mutants.toml``
says how the mutant changes it. A scratch copy of the repository is built with this change, and a
fast part of the tests is run in it. A mutant is *caught* if a test fails, or if a run hangs or
crashes. A mutant with the mark ``speed`` drops an inference that the search can repeat by itself.
No verdict depends on it, so only tests of the statistics catch it.

``--only`` selects the mutants whose file, name or reason contains one of the words. If all of them
are in Python, the native module in the working tree is used.

The exit code is 1 if a mutant is not caught, and 2 if the table no longer fits the sources.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from scratch import ROOT, Change, Scratch, Sources, misfits

TIMEOUT = 600

_ENGINE = [
    "tests/native/engine/test_prune.py",
    "tests/native/engine/test_solve.py",
    "tests/end_to_end/test_threads.py",
    "tests/certify/test_engine.py",
    "tests/end_to_end/test_litmus.py",
    "tests/end_to_end/test_predicate_litmus.py",
    "tests/end_to_end/test_random_expressions.py",
    "tests/end_to_end/test_names.py",
    "tests/end_to_end/test_brute_force.py",
]

_PREDICATES = [
    "tests/certify/test_statements.py",
    "tests/history/test_predicates.py",
    "tests/history/test_set_reads.py",
    "tests/end_to_end/test_predicate_litmus.py",
    "tests/end_to_end/test_brute_force_rows.py",
]

_TIMES = [
    "tests/history/test_partly_timed.py",
    "tests/certify/test_moments.py",
    "tests/end_to_end/test_mechanisms.py",
    "tests/end_to_end/test_times.py",
    "tests/end_to_end/test_partly_timed.py",
]

_SESSIONS = [
    "tests/end_to_end/test_groups.py",
    "tests/end_to_end/test_sessions_by_themselves.py",
]

_CHECKERS = [
    "tests/pipeline/test_implicit.py",
    *_SESSIONS,
    "tests/certify/test_moments.py",
    "tests/certify/test_statements.py",
    "tests/certify/test_one_key.py",
    "tests/certify/test_given_order.py",
    "tests/history/test_predicates.py",
    "tests/end_to_end/test_predicate_litmus.py",
    *_TIMES[1:],
    "tests/certify/test_twins.py",
    "tests/certify/test_refutation.py",
    "tests/certify/test_witness.py",
    "tests/end_to_end/test_steps_between_accesses.py",
    "tests/end_to_end/test_names.py",
    "tests/end_to_end/test_literature.py",
    "tests/end_to_end/test_brute_force_rows.py",
]

TESTS = {
    "isolang/certify/versions": ["tests/end_to_end/test_stated_versions.py"],
    "isolang/certify": [
        "tests/certify/test_facts.py",
        "tests/certify/test_cycles.py",
        "tests/certify/test_world.py",
        *_CHECKERS,
    ],
    "isolang/history": ["tests/history", "tests/end_to_end/test_times.py"],
    "native/readers": _PREDICATES,
    "native/problem/set_reads": _PREDICATES,
    "native/certify/set_read": [*_PREDICATES, "tests/certify/test_twins.py"],
    "native/certify/statements": [*_PREDICATES, "tests/certify/test_twins.py"],
    "native/certify/moments": _CHECKERS,
    "native/certify/by_statement": _CHECKERS,
    "native/certify/one_key": _CHECKERS,
    "native/core/parallel": [
        "tests/end_to_end/test_threads.py",
        "tests/native/engine/test_portfolio.py",
    ],
    "native/problem/versions": ["tests/end_to_end/test_stated_versions.py"],
    "native/problem/scan": [
        "tests/problem/test_anomalies.py",
        "tests/native/problem/test_model.py",
        "tests/end_to_end/test_stated_versions.py",
    ],
    "native/certify/stated_versions": ["tests/end_to_end/test_stated_versions.py"],
    "native/problem/one_total_order": ["tests/native/problem/test_one_total_order.py"],
    "native/problem/build": [
        "tests/problem/test_anomalies.py",
        "tests/native/problem/test_model.py",
        *_TIMES,
        *_PREDICATES,
    ],
    "native/problem": ["tests/problem/test_anomalies.py", "tests/native/problem/test_model.py"],
    "native/core": [*_PREDICATES, *_ENGINE],
    "native/engine/hard": [
        "tests/native/engine/test_portfolio.py",
        "tests/end_to_end/test_threads.py",
    ],
    "native/certify/return_paths": ["tests/end_to_end/test_many_sessions.py", *_CHECKERS],
    "native/certify": [*_CHECKERS, "tests/native/engine/test_portfolio.py"],
    "native/engine/presolve": [
        "tests/native/engine/test_presolve.py",
        "tests/end_to_end/test_brute_force.py",
    ],
    "native/engine/cdcl/acyclic": ["tests/solvers/test_native.py"],
    "native/engine/cdcl": ["tests/solvers/test_native.py", "tests/native/engine/test_solve.py"],
    "native/engine/graph/event_graph": [
        *_SESSIONS,
        *_TIMES,
        "tests/end_to_end/test_steps_between_accesses.py",
        "tests/certify/test_one_key.py",
        *_ENGINE,
    ],
    "native/engine/search/return_paths": [
        "tests/pipeline/test_implicit.py",
        "tests/native/engine/test_return_paths.py",
        *_ENGINE,
    ],
    "native/engine/graph/clocks": ["tests/end_to_end/test_many_sessions.py", *_ENGINE],
    "native/engine": [*_SESSIONS, *_ENGINE, "tests/end_to_end/test_literature.py"],
}


class Mutant(Change, frozen=True, kw_only=True):
    """One broken rule; ``file`` is the file that contains its mark."""

    why: str
    file: str = ""
    speed: bool = False


def load() -> list[Mutant]:
    """Return the mutants in the table; a mutant without a mark has no file."""
    marks = Sources(ROOT).marks
    with (ROOT / "benchmarks" / "mutants.toml").open("rb") as file:
        entries = tomllib.load(file)["mutant"]
    return [
        Mutant(
            **entry,
            file=str(marks[entry["mark"]][0].relative_to(ROOT)) if entry["mark"] in marks else "",
        )
        for entry in entries
    ]


class Tested(Scratch):
    """A scratch copy in which tests can be run."""

    def test(self, files: list[str]) -> str:
        """Run tests until one fails, and return the failure; empty if all pass."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *files]
        try:
            done = subprocess.run(
                command,
                check=False,
                cwd=self.folder,
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            return "timeout"
        if done.returncode == 0:
            return ""
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return failed[0] if failed else f"exit code {done.returncode}"


def tests_for(mutant: Mutant) -> list[str]:
    return next(files for folder, files in TESTS.items() if mutant.file.startswith(folder))


def try_mutant(scratch: Tested, mutant: Mutant) -> str:
    """Return the test that catches a mutant, or an empty string."""
    with scratch.changed([mutant]) as error:
        return f"DOES NOT BUILD\n{error[-1500:]}" if error else scratch.test(tests_for(mutant))


def main() -> int:
    parser = argparse.ArgumentParser(description="Break one rule at a time; do the tests notice?")
    parser.add_argument("--only", default="", help="some words, with commas between them")
    parser.add_argument("--list", action="store_true", help="list them, and check the table")
    options = parser.parse_args()
    words = options.only.split(",")
    mutants = [m for m in load() if any(w in f"{m.file} {m.mark}: {m.why}" for w in words)]
    if wrong := misfits(mutants):
        print("\n".join(wrong))
        return 2
    if options.list:
        print("\n".join(f"{m.file} {m.mark}: {m.why}" for m in mutants))
        return 0
    uncaught = []
    with tempfile.TemporaryDirectory(prefix="isolang-mutants-") as folder:
        scratch = Tested(Path(folder), "-O1 -w")  # these flags halve the time to compile
        in_python = all(m.file.endswith(".py") for m in mutants)
        if not (in_python and scratch.take_built()) and (error := scratch.build()):
            print(error)
            return 2
        for files in {tuple(tests_for(m)) for m in mutants}:
            if failed := scratch.test(list(files)):
                print(f"without any mutant: {failed}")
                return 2
        for m in mutants:
            start = time.monotonic()
            caught = try_mutant(scratch, m)
            seconds = time.monotonic() - start
            verdict = "caught" if caught else "NOT CAUGHT"
            note = " (speed only)" if m.speed else ""
            print(
                f"{verdict:10} {seconds:5.0f} s  {m.file} {m.mark}: {m.why}{note}  {caught}",
                flush=True,
            )
            if not caught:
                uncaught.append(m)
    print(f"{len(mutants) - len(uncaught)} of {len(mutants)} mutants caught")
    return 1 if uncaught else 0


if __name__ == "__main__":
    sys.exit(main())
