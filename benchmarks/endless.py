"""Writes an endless log of a strictly serializable database to the standard output.

python benchmarks/endless.py --transactions 10000000 | isocheck watch - --spec ser --until-idle 30
"""

from __future__ import annotations

import argparse
import os
import random
import sys


def main() -> None:
    """Write the log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transactions", type=int, default=1_000_000)
    parser.add_argument("--operations", type=int, default=8)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--sessions", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lists", action="store_true", help="appends to lists of 32 elements")
    parser.add_argument("--values", type=int, help="different values of registers, which repeat")
    parser.add_argument(
        "--snapshot", action="store_true", help="snapshots, the first committer wins"
    )
    parser.add_argument(
        "--crashes", type=int, default=0, help="a client of one in so many transactions never ends"
    )
    given = parser.parse_args()

    def written(number: int) -> int:
        """Return the value of the write with a number."""
        return (number * 2_654_435_761 >> 7) % given.values if given.values else number

    rng = random.Random(given.seed)
    uniform, keys, size = rng.random, given.keys, given.operations
    store: list[object] = [None] * keys if not given.lists else [[] for _ in range(keys)]
    changed = [0] * keys  # the commit that last changed each key, for snapshots
    base = list(range(keys)) if given.lists else []  # the number of the current list of each slot
    fresh, value, done = keys, 0, 0
    flying: list[tuple[int, int, list[tuple[bool, int]], list[object]]] = []
    idle = list(range(given.sessions))
    out: list[str] = []
    while done < given.transactions:
        while idle:
            session = idle.pop()
            ops = [(uniform() < 0.5, int(uniform() * keys)) for _ in range(size)]
            seen = [store[key] for _, key in ops] if given.snapshot else []
            flying.append((session, done, ops, seen))
            verb = ":append" if given.lists else ":w"
            said = []
            for i, (reads, key) in enumerate(ops):
                name = base[key] if given.lists else key
                said.append(
                    f"[:r {name} nil]" if reads else f"[{verb} {name} {written(value + i + 1)}]"
                )
            flying[-1] = (session, done, ops, [value, *seen])
            value += size
            out.append(
                f"{{:type :invoke, :process {session}, :f :txn, :value [{' '.join(said)}]}}\n"
            )
        at = int(uniform() * len(flying))
        flying[at], flying[-1] = flying[-1], flying[at]
        session, began, ops, (first, *seen) = flying.pop()
        assert isinstance(first, int)
        done += 1
        if given.crashes and uniform() * given.crashes < 1:
            idle.append(session + given.sessions)  # as Jepsen numbers the next process
            if uniform() < 0.5 and not given.snapshot and not given.lists:
                for i, (reads, key) in enumerate(ops):
                    if not reads:
                        store[key] = written(first + i + 1)
            continue
        idle.append(session)
        said = []
        if given.snapshot and any(not reads and changed[key] > began for reads, key in ops):
            out.append(f"{{:type :fail, :process {session}, :f :txn, :value []}}\n")
            continue
        own: dict[int, object] = {}
        for i, (reads, key) in enumerate(ops):
            if given.lists:
                name, held = base[key], store[key]
                assert isinstance(held, list)
                if reads:
                    said.append(f"[:r {name} [{' '.join(map(str, held))}]]")
                else:
                    held.append(written(first + i + 1))
                    said.append(f"[:append {name} {held[-1]}]")
            elif reads:
                was = own.get(key, seen[i] if given.snapshot else store[key])
                said.append(f"[:r {key} {'nil' if was is None else was}]")
            else:
                own[key] = written(first + i + 1)
                said.append(f"[:w {key} {own[key]}]")
                if not given.snapshot:
                    store[key] = own[key]
        if given.snapshot:
            for key, held in own.items():
                store[key], changed[key] = held, done
        out.append(f"{{:type :ok, :process {session}, :f :txn, :value [{' '.join(said)}]}}\n")
        if given.lists:
            # A full list is replaced only when no transaction in flight uses it.
            used = {key for _, _, others, _ in flying for _, key in others}
            for _, key in ops:
                held = store[key]
                if isinstance(held, list) and len(held) >= 32 and key not in used:
                    store[key], base[key], fresh = [], fresh, fresh + 1
        if len(out) >= 4000:
            sys.stdout.write("".join(out))
            out.clear()
    sys.stdout.write("".join(out))
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        os._exit(1)
