"""Compares `isocheck spec compare` with an evaluation of all histories of a few transactions.

Every history, up to the names of sessions, transactions, keys and values, is judged by every level
of the library. The judgement tries all choices and uses the axioms as they are written. The search
must separate exactly the pairs of levels that some history separates, with the same number of
transactions, and no history may contradict a proof. The engine also judges a sample of the
histories, with certificates.

    python benchmarks/compare_exhaustively.py 3 2           registers, sessions
    python benchmarks/compare_exhaustively.py 3 1 --lists   lists, whose reads show their order
    python benchmarks/compare_exhaustively.py 3 1 --times   real time
    python benchmarks/compare_exhaustively.py 2 2 --predicates   predicate reads and reads by key

A relation on four elements, T0 and three transactions, is an integer of 16 bits, and each
expression is evaluated on all histories at once. The code shares only the parsed axioms with the
tested code. Levels that mention single operations are judged on every order of the operations
inside each transaction, one history at a time, as far as this takes only minutes.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from functools import cache
from itertools import permutations, product
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from isolang.api import check
from isolang.comparison.effort import Effort
from isolang.comparison.lattice import implication_order, library_levels
from isolang.comparison.separate import Bounds, Separator, scope_of
from isolang.comparison.small import Miss, Small, SmallRead, SmallWrite
from isolang.language.meaning import core, mentions
from isolang.language.vocabulary import COMPARING_TIMES, SPLIT

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from oracle.concrete import EVENT_NAMES, given, satisfiable
from oracle.concrete_histories import NO_READ, SmallHistory, all_histories

M = 4
ROW = np.uint16((1 << M) - 1)
IDENTITY = np.uint16(sum(1 << (M * i + i) for i in range(M)))
INIT = sum(1 << t for t in range(1, M))
BY_PREDICATE = ("pl-2-99", "locking-repeatable-read")


# --- relations of all histories at once ---


def pairs(some):
    """Return a relation, given as pairs, as an integer."""
    return np.uint16(sum(1 << (M * i + j) for i, j in set(some)))


@cache
def table(name):
    """Return a table of the values of a function for all 65,536 relations."""
    every = np.arange(1 << 16, dtype=np.uint16)
    if name == "inverse":
        out = np.zeros_like(every)
        for i, j in product(range(M), repeat=2):
            out |= ((every >> (M * i + j)) & 1) << np.uint16(M * j + i)
        return out
    if name == "domain":
        return sum(
            ((((every >> (M * i)) & ROW) > 0).astype(np.uint16) << np.uint16(i)) for i in range(M)
        ).astype(np.uint16)
    for _ in range(2):  # paths of up to four steps
        every = every | compose(every, every)
    return every


def compose(a, b):
    """Return the composition `a ; b`."""
    out = np.zeros(np.broadcast(a, b).shape, np.uint16)
    for k in range(M):
        out |= ((a >> np.uint16(k)) & np.uint16(0x1111)) * ((b >> np.uint16(M * k)) & ROW)
    return out


def times(rows, columns):
    """Return the product `A * B` of two sets."""
    out = np.zeros(np.broadcast(rows, columns).shape, np.uint16)
    for i in range(M):
        out |= ((rows >> np.uint16(i)) & np.uint16(1)) * (columns << np.uint16(M * i))
    return out


def value(e, w, key):
    """Return the value of an expression in a world.

    A world maps names to arrays, and the names of relations with keys to lists of arrays.
    """
    match e:
        case core.Rel(name="id"):
            return IDENTITY
        case core.Rel(name=name, key=None):
            if name in w:
                return w[name] if not isinstance(w[name], list) else np.bitwise_or.reduce(w[name])
            raise KeyError(name)
        case core.Rel(name=name, key=variable):
            return w[name][key[variable]]
        case core.Union(parts=parts):
            return np.bitwise_or.reduce(np.broadcast_arrays(*(value(p, w, key) for p in parts)))
        case core.Inter(parts=parts):
            return np.bitwise_and.reduce(np.broadcast_arrays(*(value(p, w, key) for p in parts)))
        case core.Seq(parts=parts):
            first, *rest = (value(p, w, key) for p in parts)
            for one in rest:
                first = compose(first, one)
            return first
        case core.Diff(left=left, right=right):
            return value(left, w, key) & ~value(right, w, key)
        case core.Product(left=left, right=right):
            return times(value(left, w, key), value(right, w, key))
        case core.ForKey(key=variable, body=body):
            each = [value(body, w, {**key, variable: k}) for k in range(len(w["W"]))]
            return np.bitwise_or.reduce(np.broadcast_arrays(*each))
        case core.Inverse(arg=arg):
            return table("inverse")[value(arg, w, key)]
        case core.Plus(arg=arg):
            return table("closure")[value(arg, w, key)]
        case core.Star(arg=arg):
            return table("closure")[value(arg, w, key)] | IDENTITY
        case core.Opt(arg=arg):
            return value(arg, w, key) | IDENTITY
        case core.Lift(arg=arg):
            return times(value(arg, w, key), ROW) & IDENTITY
        case core.Domain(arg=arg):
            return table("domain")[value(arg, w, key)]
        case core.Range(arg=arg):
            return table("domain")[table("inverse")[value(arg, w, key)]]
    raise TypeError(e)


def met(one, w):
    """Return, for each history, whether its world meets a check."""
    found = value(one.expr, w, {})
    if one.kind == "acyclic":
        fine = table("closure")[found] & IDENTITY == 0
    elif one.kind == "irreflexive":
        fine = found & IDENTITY == 0
    elif one.bound is None:
        fine = found == 0
    else:
        fine = found & ~value(one.bound, w, {}) == 0
    return fine != one.negated


def worlds(spec, base):
    """Yield all worlds, each with an array that says which histories have it."""
    places = [
        (e, k)
        for e in spec.exists
        if e.name != "rf"
        for k in (range(len(base["W"])) if e.key else (None,))
    ]

    def search(at, w, there):
        if at == len(places):
            yield w, there
            return
        e, k = places[at]
        key = {} if k is None else {e.key: k}
        over = value(e.over, w, key)
        least = np.uint16(0) if e.containing is None else value(e.containing, w, key)
        carrier = times(over, over)
        for some in ORDERS if e.kind == "order" else RELATIONS:
            chosen = carrier & (some | np.uint16(INIT))
            fine = there & (least & ~chosen == 0)
            if e.within is not None:
                fine = fine & (chosen & ~value(e.within, w, key) == 0)
            if not fine.any():
                continue
            more = dict(w)
            if k is None:
                more[e.name] = chosen
            else:
                more[e.name] = [*w.get(e.name, []), chosen][: k + 1]
            if e.name == "ww" and k == len(base["W"]) - 1:
                for name, wr in (("rw", "wr"), ("irw", "iwr"), ("prw", "pwr")):
                    more[name] = [
                        compose(table("inverse")[r], o) & ~IDENTITY
                        for r, o in zip(w[wr], more["ww"], strict=True)
                    ]
            yield from search(at + 1, more, fine)

    yield from search(0, base, np.ones(base["W"][0].shape, bool))


ORDERS = [
    pairs((a, b) for i, a in enumerate(one) for b in one[i + 1 :])
    for one in permutations(range(1, M))
]
RELATIONS = [
    pairs(pair for pair, there in zip(permutations(range(1, M), 2), bits, strict=True) if there)
    for bits in product((0, 1), repeat=6)
]


def allowed(spec, checks, base):
    """Return, for each history, whether some world meets all checks."""
    found = np.zeros(base["W"][0].shape, bool)
    for w, there in worlds(spec, base):
        fine = there & ~found
        for one in checks:
            if not fine.any():
                break
            fine = fine & met(one, w)
        found |= fine
    return found


# --- histories ---


def base_of(histories, keys, missed):
    """Return the relations that each history determines.

    For each history and key, ``missed`` is the set of the transactions whose predicate reads miss
    it.
    """
    w = {name: [] for name in ("W", "R", "vo", "wr", "iwr", "pwr")}
    for k in range(keys):
        own = [h.keys[k] for h in histories]
        absent = np.array([m[k] for m in missed], np.uint16)
        readers = [[(s, t) for t, s in enumerate(key.sources, 1) if s != NO_READ] for key in own]
        w["W"].append(np.array([1 | key.writers << 1 for key in own], np.uint16))
        w["iwr"].append(np.array([pairs(some) for some in readers], np.uint16))
        w["pwr"].append(absent)  # pairs from T0 are in the first row of the matrix
        w["wr"].append(w["iwr"][k] | w["pwr"][k])
        items = np.array([sum(1 << t for _, t in some) for some in readers], np.uint16)
        w["R"].append(items | absent)
        w["vo"].append(np.array([pairs(key.vo()) for key in own], np.uint16))
    everyone = [(1 << (h.size + 1)) - 1 for h in histories]
    init = np.array([one & INIT for one in everyone], np.uint16)
    so = [[(a, b) for s in h.sessions() for a in s for b in s if a < b] for h in histories]
    rt = np.array([pairs(h.before) for h in histories], np.uint16)
    writers = [times(one & ~np.uint16(1), one & ~np.uint16(1)) for one in w["W"]]
    return w | {
        "T": np.array(everyone, np.uint16),
        "init": init,
        "so": init | np.array([pairs(some) for some in so], np.uint16),
        "rt": init | rt,
        "done": rt,
        "late": rt,
        "locked": rt & np.bitwise_or.reduce(writers),
    }


def contradictory(history):
    """Return whether times contradict a session, or a list shows a later append of its reader.

    A recorded history never has the first contradiction, and the second one is an intrinsic
    anomaly.
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


def histories_of(size, keys, args):
    """Return all histories of this size, and for each the transactions that miss each key."""
    found, missed = [], []
    every = all_histories(size, keys, lists=args.lists, real_time=args.times, orders=args.orders)
    for history in every:
        if contradictory(history):
            continue
        # Each value is a row of T0 in the relation `pwr`, which is a set of readers.
        subsets = [range(0, 2 << size, 2)] * keys if args.predicates else [(0,)] * keys
        for some in product(*subsets):
            found.append(history)
            missed.append(some)
    return found, missed


def columns(levels, histories, missed, keys):
    """Return, for each level, which of the histories it allows."""
    base = base_of(histories, keys, missed)
    found = {}
    for name, level in levels.items():
        spec = level.spec
        checks = tuple(one for one in spec.checks if not one.flag)
        if mentions.mentioned(spec) & EVENT_NAMES - {"rf", "cand"}:
            found[name] = np.array([by_events(spec, checks, h) for h in histories], bool)
        else:
            found[name] = allowed(spec, checks, base)
    return found


def by_events(spec, checks, history):
    """Return whether a level that mentions single operations allows a history."""
    return satisfiable(given(history, events=True), spec, checks, lambda: None)


def disagreements_with_the_engine(levels, histories, missed, found, args):
    """Let the engine judge a sample of the histories, and return its disagreements."""
    rng = random.Random(1)
    wrong = []
    for i in rng.sample(range(len(histories)), min(args.sample, len(histories))):
        small = small_of(histories[i], missed[i], timed=args.times)
        for name, level in levels.items():
            verdict = check(small.history(), level.spec)
            if verdict.outcome != ("valid" if found[name][i] else "invalid"):
                wrong.append(f"{name}: {small}: {verdict.outcome}, not as by trying all choices")
            elif not verdict.certified:
                wrong.append(f"{name}: {small}: {verdict.outcome}, not certified")
    return wrong


def small_of(history: SmallHistory, missed, *, timed):
    """Return a history in the form in which the search returns it."""
    txns = []
    for t in range(1, history.size + 1):
        ops = [Miss(k) for k, some in enumerate(missed) if some >> t & 1]
        ops += [
            SmallWrite(k) if writes else SmallRead(k, history.keys[k].sources[t - 1])
            for k, writes in history.operations(t)
        ]
        txns.append(tuple(ops))
    return Small(
        transactions=tuple(txns),
        sessions=tuple(map(tuple, history.sessions())),
        lists=tuple(key.shown or None for key in history.keys),
        before=history.before,
        timed=timed,
    )


# --- comparison with the search ---


class Searches:
    """Searches for histories of one size that have only registers or only lists."""

    def __init__(self, levels, keys, *, lists, predicates):
        self.levels = levels
        self.keys = keys
        self.lists = lists
        self.predicates = predicates
        self._separators = {}

    def asks(self, pair):
        """Return whether two levels can differ on histories of this kind."""
        mentioned = [self.levels[name].mentioned() for name in pair]
        return not self.predicates or any(some & SPLIT for some in mentioned)

    def least(self, allows, forbids, size):
        """Return the size of the smallest separating history; ``None`` if there is none."""
        return next((n for n in range(1, size + 1) if self._found(allows, forbids, n)), None)

    def _found(self, allows, forbids, size):
        pair = self.levels[allows], self.levels[forbids]
        for some in range(1, self.keys + 1) if self.lists else (self.keys,):
            bounds = Bounds(transactions=size, keys=some, reads=1, overlap=True)
            scope = scope_of(pair, bounds, size)
            scope = replace(scope, lists=self.lists, predicates=self.predicates)
            if (forbids, scope) not in self._separators:
                self._separators[forbids, scope] = Separator(pair[1], scope)
            separator = self._separators[forbids, scope]
            all_lists = separator.histories.are_lists if self.lists else ()
            if separator.find(pair[0], Effort(seconds=600), all_lists) is not None:
                return True
        return False


def disagreements(levels, args):
    """Return the disagreements as texts, and the numbers of histories and pairs."""
    least, shown, wrong, looked = {}, {}, [], 0
    for size, keys in product(range(1, args.size + 1), range(1, args.keys + 1)):
        histories, missed = histories_of(size, keys, args)
        if not histories:
            continue
        found = columns(levels, histories, missed, keys)
        wrong += disagreements_with_the_engine(levels, histories, missed, found, args)
        looked += len(histories)
        for a, b in product(levels, repeat=2):
            (where,) = np.nonzero(found[a] & ~found[b])
            if len(where):
                least.setdefault((a, b), size)
                one = small_of(histories[where[0]], missed[where[0]], timed=args.times)
                shown.setdefault((a, b), str(one))
        print(f"{size} transactions, {keys} keys: {len(histories):,} histories", flush=True)
    known = implication_order(levels, bounds=Bounds(transactions=1, overlap=True))
    searches = Searches(levels, args.keys, lists=args.lists, predicates=args.predicates)
    asked = 0
    for a, b in permutations(levels, 2):
        if (a, b) in known.proofs:
            if (a, b) in least:
                wrong.append(f"proved: {a} implies {b}; but {shown[a, b]}")
        elif searches.asks((a, b)):
            asked += 1
            if (size := searches.least(a, b, args.size)) != least.get((a, b)):
                wrong.append(f"{a}, not {b}: {size} transactions; {shown.get((a, b), 'none')}")
    return wrong, looked, len(known.proofs), asked


def main():
    """Run the comparison, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size", type=int, choices=(1, 2, 3))
    parser.add_argument("keys", type=int, choices=(1, 2))
    parser.add_argument("--lists", action="store_true")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--predicates", action="store_true")
    parser.add_argument("--sample", type=int, default=20, help="histories for the engine")
    args = parser.parse_args()
    # Three transactions on two keys have 1.7 million orders. The orders of two kinds of reads, or
    # of operations with times, are not enumerated.
    args.orders = not args.times and not args.predicates and (args.size, args.keys) != (3, 2)
    levels = library_levels()
    known = implication_order(levels, bounds=Bounds(transactions=1, overlap=True))
    first = {}
    for name in (same[0] for same in known.classes):
        mentioned = mentions.mentioned(levels[name].spec)
        if not args.times and mentioned & COMPARING_TIMES:
            continue
        if "group-rt" in mentioned:  # these histories have no groups
            continue
        if not args.orders and mentioned & EVENT_NAMES - {"rf", "cand"}:
            continue
        if args.predicates or name not in BY_PREDICATE:
            first[name] = levels[name]
    start = time.monotonic()
    wrong, looked, proofs, asked = disagreements(first, args)
    print(*wrong, sep="\n")
    print(
        f"{len(first)} levels, {looked:,} histories, {proofs} proofs, {asked} pairs searched, "
        f"{len(wrong)} disagreements, {time.monotonic() - start:.0f} s"
    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
