"""Writes histories that pruning does not decide: many blind writes on few keys, and few reads.

    python benchmarks/hard_histories.py FOLDER [--transactions N ...] [--seed S]

For each size, the program writes ``sat-N.plume`` and ``unsat-N.plume``. ``sat`` is the history of a
small serial store, so it is serializable. For ``unsat``, single reads are changed to other written
values until the history is not serializable and the native engine needs conflicts to refute it.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

Row = tuple[str, int, int]  # (r or w, key, value)


def store(
    rng: random.Random, transactions: int, sessions: int, keys: int, values: int
) -> list[tuple[int, list[Row]]]:
    """Return the operations of each session of a serial store, most of which are blind writes."""
    state: dict[int, int] = {}
    history = []
    for _ in range(transactions):
        ops: list[Row] = []
        for _ in range(3):
            key = rng.randrange(keys)
            if rng.random() < 0.2 and key in state:
                ops.append(("r", key, state[key]))
            else:
                state[key] = rng.randint(1, values)
                ops.append(("w", key, state[key]))
        history.append((rng.randrange(sessions), ops))
    return history


def with_changed_read(
    rng: random.Random, history: list[tuple[int, list[Row]]]
) -> list[tuple[int, list[Row]]]:
    """Return the history in which one read returns another value that was written."""
    written: dict[int, list[int]] = {}
    reads = []
    for t, (_, ops) in enumerate(history):
        own = set()
        for i, (kind, key, value) in enumerate(ops):
            if kind == "w":
                written.setdefault(key, []).append(value)
                own.add(key)
            elif key not in own:
                reads.append((t, i))
    t, i = rng.choice(reads)
    session, ops = history[t]
    key = ops[i][1]
    new: Row = ("r", key, rng.choice(written[key]))
    return [*history[:t], (session, [*ops[:i], new, *ops[i + 1 :]]), *history[t + 1 :]]


def unsatisfiable(rng: random.Random, transactions: int, **shape: int) -> str:
    """Return a history that is not serializable and that pruning does not refute."""
    import io

    from hard_region import refuted_by_pruning

    from isolang import check, load_history, load_spec
    from isolang.problem import build_problem

    spec = load_spec("ser")
    while True:
        history = store(rng, transactions, **shape)
        for _ in range(transactions):
            history = with_changed_read(rng, history)
            loaded = load_history(io.BytesIO(plume_text(history).encode()), "plume")
            verdict = check(loaded, spec, timeout=5)
            if verdict.outcome == "invalid":
                if not refuted_by_pruning(build_problem(loaded), "ser"):
                    return plume_text(history)
                break


def plume_text(history: list[tuple[int, list[Row]]]) -> str:
    """Return a history in Plume's format, with one operation in each line."""
    lines = [
        f"{kind}({key},{value},{session},{txn})"
        for txn, (session, ops) in enumerate(history, 1)
        for kind, key, value in ops
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--transactions", type=int, nargs="+", default=[20, 40, 60])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for n in arguments.transactions:
        rng = random.Random(arguments.seed * 1_000_003 + n)
        shape = {"sessions": max(4, n // 5), "keys": 3, "values": max(3, n // 10)}
        (arguments.folder / f"sat-{n}.plume").write_text(plume_text(store(rng, n, **shape)))
        (arguments.folder / f"unsat-{n}.plume").write_text(unsatisfiable(rng, n, **shape))


if __name__ == "__main__":
    main()
