"""Runs of a few transactions, and whether the search and the definitions predict the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

from foresee.by_definition import INITIAL, Tiny, exists, one_stranger, same_statements

from isolang import History, Transaction, load_spec
from isolang.foresee.predict import WORK, _Levels
from isolang.limits import Work

SHAPES = [(r, w) for r in ("", "x", "y", "xy") for w in ("", "x", "y", "xy") if r or w]


def serial_run(shapes: list[tuple[str, str]], sessions: tuple[int, ...]) -> Tiny:
    """The run of some transactions, one after the other."""
    last: dict[str, int] = {}
    reads = []
    for i, (read, written) in enumerate(shapes):
        reads.append({key: last.get(key, INITIAL) for key in read})
        last |= dict.fromkeys(written, i)
    return Tiny(sessions, [frozenset(written) for _, written in shapes], tuple(reads))


def partitions(n: int) -> Iterator[tuple[int, ...]]:
    """All ways to share out n transactions to sessions."""
    if n == 0:
        yield ()
    else:
        for some in partitions(n - 1):
            for session in range(max(some, default=-1) + 2):
                yield (*some, session)


def random_runs(seed: int, n: int, count: int) -> Iterator[Tiny]:
    draw = random.Random(seed)
    sessions = list(partitions(n))
    for _ in range(count):
        shapes = [draw.choice(SHAPES) for _ in range(n)]
        yield serial_run(shapes, draw.choice(sessions))


def history_of(run: Tiny) -> History:
    return History.from_transactions([
        Transaction(
            [
                *(("r", key, None if s == INITIAL else s + 1) for key, s in run.reads[i].items()),
                *(("w", key, i + 1) for key in sorted(run.writes[i])),
            ],
            session=run.sessions[i],
        )
        for i in range(run.n)
    ])  # fmt: skip


@cache
def levels_of(at: str, against: str = "ser") -> _Levels:
    return _Levels(load_spec(at), load_spec(against))


def run_and_search(run: Tiny, at: str, against: str = "ser") -> tuple[bool, bool]:
    """Whether the search predicts something by the first rule, and by either."""
    return searched_history(history_of(run), at, against)


def searched_history(history: History, at: str, against: str = "ser") -> tuple[bool, bool]:
    """Whether the search predicts something by the first rule, and by either."""
    levels = levels_of(at, against)
    search = levels.search(levels.run(history), Work(WORK), {})
    search.one_stranger()
    first = bool(search.found)
    if not first:
        search.same_statements()
    assert search.found or not search.gave_up, search.gave_up
    return first, bool(search.found)


def searched(run: Tiny, at: str, *, b2: bool, against: str = "ser") -> bool:
    """Whether the search predicts something by the first rule, or by either."""
    return run_and_search(run, at, against)[b2]


def defined(run: Tiny, at: str, *, b2: bool, against: str = "ser") -> bool:
    """Whether the definitions have a prediction."""
    return exists(same_statements(run) if b2 else one_stranger(run), at, against)
