"""Measures how much stated versions speed up checks in the hard region, and how this grows.

    python benchmarks/stated_versions.py [--seeds 5] [--timeout 10] [--large 1000000]

The histories are those of a serial store with 50 sessions, whose clients blindly write few values
to 20 keys. Times are CPU seconds of solving and of the whole check, which is certified. In the
histories called *wrong*, one read states another version than the version that it saw.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator

from isolang import check
from isolang.history import History, Transaction


def store(
    seed: int, transactions: int, *, keys: int, values: int, sessions: int, reads: float
) -> list[Transaction]:
    """Return the transactions of the sessions of a serial store, with versions of its registers."""
    rng = random.Random(seed)
    state: dict[int, tuple[int | None, int]] = dict.fromkeys(range(keys), (None, 0))
    made = []
    for _ in range(transactions):
        ops: list[tuple[object, ...]] = []
        versions = []
        for _ in range(4):
            key = rng.randrange(keys)
            if rng.random() < reads:
                value, version = state[key]
                ops.append(("r", key, value))
            else:
                value, version = rng.randint(1, values), state[key][1] + 1
                state[key] = (value, version)
                ops.append(("w", key, value))
            versions.append(version)
        made.append(Transaction(ops, session=rng.randrange(sessions), versions=versions))
    return made


def with_wrong_version(seed: int, made: list[Transaction]) -> list[Transaction]:
    """Return the history in which one read sees an older version with an equal value."""
    rng = random.Random(seed)
    values = {
        (op[1], version): op[2]
        for t in made
        for op, version in zip(t.ops, t.versions or (), strict=True)
    }
    while True:
        at = rng.randrange(len(made))
        t = made[at]
        place = rng.randrange(len(t.ops))
        name, key, value = t.ops[place][:3]
        assert t.versions is not None
        version = t.versions[place]
        older = [v for v in range(1, version - 3) if values.get((key, v)) == value]
        own = any(op[0] == "w" and op[1] == key for op in t.ops[:place])
        if name != "r" or own or not older:
            continue
        versions = [*t.versions[:place], rng.choice(older[-5:]), *t.versions[place + 1 :]]
        changed = Transaction(t.ops, session=t.session, versions=versions)
        return [*made[:at], changed, *made[at + 1 :]]


def timed(history: History, timeout: float) -> tuple[str, float, float]:
    """Return the outcome, and the CPU seconds of solving and of the whole check."""
    begin = time.process_time()
    verdict = check(history, "ser", timeout=timeout, simplest=False)
    spent = time.process_time() - begin
    certified = "" if verdict.certified or verdict.outcome == "unknown" else ", not certified"
    return verdict.outcome + certified, verdict.seconds.solve, spent


def rows(args: argparse.Namespace) -> Iterator[str]:
    """Yield a row of the table for each shape."""
    for reads in (0.3, 0.5, 0.7):
        for values in (2, 3):
            for kind in ("as it was", "wrong"):
                told, alone = [], []
                for seed in range(args.seeds):
                    shape = {"keys": 20, "values": values, "sessions": 50, "reads": reads}
                    made = store(seed, 1_000, **shape)
                    if kind == "wrong":
                        made = with_wrong_version(seed, made)
                    history = History.from_transactions(made, versions="ordered")
                    told.append(timed(history, args.timeout))
                    if args.timeout:
                        alone.append(timed(history.without_versions(), args.timeout))
                yield (
                    f"| {reads:.0%} reads, {values} values, {kind} | {outcomes(told)} | "
                    f"{max(s for _, _, s in told) * 1e3:.0f} ms | {outcomes(alone)} | "
                    f"{max((s for _, _, s in alone), default=0):.1f} s |"
                )


def outcomes(results: list[tuple[str, float, float]]) -> str:
    """Return how often each outcome occurred, as text."""
    names = [name for name, _, _ in results]
    return ", ".join(f"{names.count(name)} {name}" for name in sorted(set(names)))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=10)
    parser.add_argument("--large", type=int, default=1_000_000)
    args = parser.parse_args()
    print("| 1,000 transactions, 20 keys | with versions | at most | without | at most |")
    print("|---|---|---|---|---|")
    for line in rows(args):
        print(line, flush=True)
    print("\n| transactions, 3 values | prepare | solve | certify |")
    print("|---|---|---|---|")
    size = 10_000
    while size <= args.large:
        made = store(1, size, keys=max(20, size // 50), values=3, sessions=50, reads=0.5)
        history = History.from_transactions(made, versions="ordered")
        spent = check(history, "ser").seconds
        print(f"| {size:,} | {spent.prepare:.2f} | {spent.solve:.2f} | {spent.certify:.2f} |")
        size *= 10


if __name__ == "__main__":
    main()
