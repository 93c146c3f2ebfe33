"""Compare `isocheck spec compare` with all histories of a few transactions, level by level.

Every history is judged under every level of the library by trying all choices, on the axioms as
they are written (`isolang.smallscope`). A pair that is told apart there must be by the search, and
with as few transactions; a pair that is not must not be; no proof may be contradicted.

    python benchmarks/compare_exhaustively.py 3 2           all registers; --lists: all lists
"""

from __future__ import annotations

import argparse
import sys
import time

from msgspec.structs import replace

from isolang.comparison.lattice import library_levels, order
from isolang.comparison.separate import Bounds, Separator, scope_of
from isolang.language.meaning import facts
from isolang.smallscope.evaluate import EVENT_NAMES, given, satisfiable
from isolang.smallscope.histories import all_histories


def told_apart(specs, size, keys, *, lists, real_time, seconds=1e9):
    """The pairs (allows, forbids) with a history of at most this size, the least size of each."""
    found = {}
    until = time.monotonic() + seconds
    looked = 0
    for n in range(1, size + 1):
        for k in range(1, keys + 1):
            every = all_histories(n, k, lists=lists, real_time=real_time, both_ways=True)
            for history in every:
                if contradictory(history):
                    continue
                looked += 1
                base = {e: given(history, events=e) for e in (False, True)}
                allowed, forbidden = [], []
                for name, (spec, checks, events) in specs.items():
                    fine = satisfiable(base[events], spec, checks, lambda: None)
                    (allowed if fine else forbidden).append(name)
                for a in allowed:
                    for b in forbidden:
                        found.setdefault((a, b), (n, history))
                if time.monotonic() > until:
                    return found, looked
    return found, looked


def contradictory(history):
    """Whether times go against a session, or a list shows what its reader appends later.

    No recorded history is the first; the second is an anomaly by itself.
    """
    if any(
        source > 0 and reader in key.shown[: key.shown.index(source) + 1]
        for key in history.keys
        if key.shown
        for reader, source in enumerate(key.sources, 1)
    ):
        return True
    return any(
        (b, a) in history.before
        for session in history.sessions()
        for a in session
        for b in session
        if a < b
    )


def judged(levels):
    """Per level its specification, its checks, and whether they speak of operations."""
    return {
        name: (
            level.spec,
            tuple(check for check in level.spec.checks if not check.flag),
            bool(facts.mentioned(level.spec) & EVENT_NAMES),
        )
        for name, level in levels.items()
    }


def disagreements(levels, size, keys, *, lists, real_time):
    """Pairs on which the exhaustive search and the comparison differ, in words; and the counts."""
    specs = judged(levels)
    expected, looked = told_apart(specs, size, keys, lists=lists, real_time=real_time)
    bounds = Bounds(transactions=size, keys=keys, reads=1)
    known = order(levels, bounds=bounds)
    wrong = []
    for a in levels:
        for b in levels:
            if a == b:
                continue
            if (a, b) in known.proofs:
                if (a, b) in expected:
                    wrong.append(f"proved: {a} implies {b}; but {expected[a, b][1]}")
                continue
            least = next(
                (
                    n
                    for n in range(1, size + 1)
                    if found(levels[a], levels[b], keys, n, lists=lists)
                ),
                None,
            )
            there = expected.get((a, b), (None, ""))
            if least != there[0]:
                wrong.append(f"{a}, not {b}: {least} transactions; exhaustively {there}")
    return wrong, looked, len(expected)


def found(allows, forbids, keys, size, *, lists):
    """Whether the search finds a history of one size, of registers alone or of lists alone."""
    for some in range(1, keys + 1):
        bounds = Bounds(transactions=size, keys=some, reads=1)
        scope = replace(scope_of((allows, forbids), bounds, size), lists=lists)
        separator = Separator(forbids, scope)
        all_lists = separator.histories.are_lists if lists else ()
        if separator.find(allows, time.perf_counter() + 600, all_lists) is not None:
            return True
    return False


def main():
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size", type=int)
    parser.add_argument("keys", type=int)
    parser.add_argument("--lists", action="store_true")
    parser.add_argument("--times", action="store_true")
    args = parser.parse_args()
    levels = library_levels()
    known = order(levels, bounds=Bounds(transactions=1))
    first = {
        same[0]: levels[same[0]]
        for same in known.classes
        if args.times or not facts.uses_real_time(levels[same[0]].spec)
    }
    start = time.monotonic()
    wrong, looked, apart = disagreements(
        first, args.size, args.keys, lists=args.lists, real_time=args.times
    )
    print(*wrong, sep="\n")
    print(
        f"{len(first)} levels, {looked:,} histories, {apart} ordered pairs told apart, "
        f"{len(wrong)} disagreements, {time.monotonic() - start:.0f} s"
    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
