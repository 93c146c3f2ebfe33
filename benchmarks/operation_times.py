"""Measures profiles of databases on histories with a time for each operation.

    python benchmarks/operation_times.py [--transactions N] [--quick]

The workloads are those of Leopard (K. Li et al., ICDE 2023). Half of the operations of BlindW-RW+
are blind writes and half are reads, and every second read is of ten rows. SmallBank reads and
writes the accounts of one or two customers. Both are played on an in-memory store with versions and
row locks. The store has a snapshot for each statement, or a snapshot for each transaction, with the
rule that the first updater wins. The seconds are the time to solve and certify a history.
"""

from __future__ import annotations

import argparse
import heapq
import random
from bisect import bisect_right
from collections.abc import Callable
from typing import Literal

from msgspec import Struct, field

from isolang import check
from isolang.history import History, Transaction

Fault = Literal["", "stale", "dirty", "unlocked", "unchecked"]
Program = list[tuple[str, list[int]]]
PROFILES = {
    "statement": ("consistent-read-by-statement", "mutual-exclusion", "postgresql-read-committed"),
    "transaction": (
        "consistent-read",
        "first-updater-wins",
        "mutual-exclusion",
        "postgresql-repeatable-read",
    ),
}
"""By what has a snapshot, whose times the store satisfies."""
_STEP = (1_000, 5_000)
"""How long an operation takes, in nanoseconds."""


def blindw_rw_plus(rng: random.Random, keys: int) -> Program:
    """Return eight operations on uniformly distributed keys."""
    program: Program = []
    for _ in range(8):
        first = rng.randrange(keys - 10)
        kind = rng.choice("wwrs")
        program.append((kind, list(range(first, first + 10)) if kind == "s" else [first]))
    return program


def smallbank(rng: random.Random, keys: int) -> Program:
    """Return a balance, a deposit, or a payment; each customer has two accounts."""
    a, b = (2 * rng.randrange(keys // 2) for _ in range(2))
    balance: Program = [("r", [a]), ("r", [a + 1])]
    payment: Program = [("r", [a]), ("r", [b]), ("w", [a]), *([("w", [b])] if a != b else [])]
    return rng.choice((balance, [("r", [a]), ("w", [a])], payment))


class _Running(Struct):
    """A transaction in progress.

    Attributes:
        begin: the time at which the transaction began.
        program: the remaining operations in reverse order.
        snapshot: the time of the transaction's snapshot; negative if it has no snapshot.
    """

    begin: int
    program: Program
    snapshot: int = -1
    ops: list[tuple[str, int, int | None]] = field(default_factory=list)
    times: list[tuple[int, int]] = field(default_factory=list)
    writes: dict[int, int] = field(default_factory=dict)


class Store:
    """An in-memory store with versions of rows and row locks, perhaps with a fault.

    A ``stale`` read sees an old version, and a ``dirty`` read sees an uncommitted version. With
    ``unlocked``, writers take no locks; with ``unchecked``, a later updater need not abort.
    """

    def __init__(self, snapshots: str, fault: Fault, rng: random.Random) -> None:
        self._of_transactions = snapshots == "transaction"
        self._fault = fault
        self._rng = rng
        self._times: dict[int, list[int]] = {}
        self._values: dict[int, list[int]] = {}
        self._locks: dict[int, _Running] = {}
        self._pending: dict[int, int] = {}
        self._value = 0

    def read(self, t: _Running, key: int, now: int) -> int | None:
        """Return the value of a row that a statement sent at time ``now`` sees."""
        if key in t.writes:
            return t.writes[key]
        if self._of_transactions and t.snapshot < 0:
            t.snapshot = now
        odd = self._rng.random() < 0.05
        if self._fault == "dirty" and odd and key in self._pending:
            return self._pending[key]
        at = t.snapshot if self._of_transactions else now
        if self._fault == "stale" and odd:
            at -= 500_000
        place = bisect_right(self._times.get(key, []), at)
        return self._values[key][place - 1] if place else None

    def write(self, t: _Running, key: int, now: int) -> bool:
        """Write a row, unless another transaction has its lock or has updated it first."""
        if self._of_transactions and t.snapshot < 0:
            t.snapshot = now
        newest = self._times.get(key, [-1])[-1]
        first = not self._of_transactions or newest <= t.snapshot or self._fault == "unchecked"
        free = self._locks.setdefault(key, t) is t or self._fault == "unlocked"
        if not (first and free):
            return False
        self._value += 1
        t.writes[key] = self._pending[key] = self._value
        return True

    def commit(self, t: _Running, now: int) -> None:
        """Commit a transaction, which makes its versions visible."""
        for key, value in t.writes.items():
            self._times.setdefault(key, []).append(now)
            self._values.setdefault(key, []).append(value)
        self.release(t)

    def release(self, t: _Running) -> None:
        """Release the locks of a transaction."""
        for key in [key for key, holder in self._locks.items() if holder is t]:
            del self._locks[key]
        for key in t.writes:
            self._pending.pop(key, None)


def play(
    shape: Callable[[random.Random, int], Program],
    snapshots: str,
    *,
    transactions: int,
    sessions: int = 24,
    keys: int = 2_000,
    seed: int = 0,
    fault: Fault = "",
) -> History:
    """Return the history of clients that run one operation after the other.

    A transaction that cannot write aborts.
    """
    rng = random.Random(seed)
    store = Store(snapshots, fault, rng)
    clients = [(rng.randrange(1_000), s) for s in range(sessions)]
    running: dict[int, _Running] = {}
    done: list[Transaction] = []
    while len(done) < transactions:
        now, s = heapq.heappop(clients)
        then = now + rng.randint(*_STEP)
        heapq.heappush(clients, (then + 1, s))
        t = running.setdefault(s, _Running(now - 1, shape(rng, keys)[::-1]))
        if not t.program:
            # COMMIT takes effect between its request and its answer, before any other event.
            store.commit(t, now + 1)
            done.append(
                Transaction(t.ops, session=s, begin=t.begin, end=then, times=t.times, commit=now)
            )
            del running[s]
            continue
        kind, rows = t.program.pop()
        for key in rows:
            if kind != "w":
                t.ops.append(("r", key, store.read(t, key, now)))
            elif store.write(t, key, now + 1):
                t.ops.append(("w", key, t.writes[key]))
            else:
                store.release(t)
                del running[s]
                break
            t.times.append((now, then))
    return History.from_transactions(done)


def main() -> None:
    """Measure all workloads, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--transactions", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    count = 10_000 if options.quick else options.transactions
    print(
        f"| {count:,} transactions | profile | verdict | solve | certify |\n|---|---|---|--:|--:|"
    )
    for shape in (blindw_rw_plus, smallbank):
        for snapshots, profiles in PROFILES.items():
            history = play(shape, snapshots, transactions=count)
            for profile in profiles:
                verdict = check(history, profile)
                assert verdict.certified, (profile, verdict.certified_reason)
                spent = verdict.seconds
                print(
                    f"| {shape.__name__}, snapshots of each {snapshots} | {profile} "
                    f"| {verdict.outcome} | {spent.solve:.2f} | {spent.certify:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
