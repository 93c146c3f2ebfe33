"""Predictions at the profiles of PostgreSQL by brute force: schedules of a database with locks.

A stranger executes its first statements; then some others run, each alone; then the stranger ends.
The database keeps locks until the commit, and versions; written from docs/foresee.md.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from foresee.agreement import partitions
from foresee.by_definition import INITIAL, Tiny, ser, so_wr
from foresee.enumeration import Schedule, all_schedules, schedules_of_strangers


class Statement(NamedTuple):
    """The keys that it reads, those that it writes, and how it locks what it reads."""

    reads: str
    writes: str
    lock: str


Executed = Sequence[Sequence[Statement]]


def random_executed(draw: random.Random, n: int) -> Executed:
    """Transactions that read each key at most once, and before they write it."""
    found = []
    for _ in range(n):
        unread, unwritten, statements = list("xy"), set("xy"), []
        draw.shuffle(unread)
        while not statements or draw.random() < 0.6:
            kind = draw.choice(["select", "select", "update", "write"])
            if kind == "write":
                choice = sorted(unwritten)
                reads, writes = "", draw.choice(choice) if choice else ""
            else:
                many = draw.choice([1, 1, 2]) if kind == "select" else 1
                reads, unread = "".join(unread[:many]), unread[many:]
                writes = reads if kind == "update" else ""
            lock = draw.choice(["", "", "update", "share"]) if kind == "select" else ""
            for key in writes:
                unwritten.discard(key)
                unread = [one for one in unread if one != key]
            if reads or writes:
                statements.append(Statement(reads, writes, lock))
            elif statements:
                break
        found.append(statements)
    return found


def recorded(executed: Executed, sessions: Sequence[int]) -> Tiny:
    """The run in which each transaction runs alone."""
    last: dict[str, int] = {}
    reads: list[dict[str, int]] = []
    for i, statements in enumerate(executed):
        reads.append({})
        for one in statements:
            reads[-1] |= {key: last.get(key, INITIAL) for key in one.reads}
        last |= {key: i for one in statements for key in one.writes}
    writes = [frozenset(k for one in statements for k in one.writes) for statements in executed]
    return Tiny(sessions, writes, tuple(reads))


def runs(seed: int, n: int, count: int) -> Iterator[tuple[Executed, Tiny]]:
    draw = random.Random(seed)
    sessions = list(partitions(n))
    for _ in range(count):
        executed = random_executed(draw, n)
        yield executed, recorded(executed, draw.choice(sessions))


class _Refused(Exception):  # noqa: N818 - an outcome
    """Somebody waits, or fails."""


def _locks(statements: Sequence[Statement]) -> tuple[set[str], set[str]]:
    alone = {k for one in statements for k in one.writes}
    alone |= {k for one in statements if one.lock == "update" for k in one.reads}
    shared = {k for one in statements if one.lock == "share" for k in one.reads}
    return alone, shared


def played(
    executed: Executed, schedule: Schedule, *, whole_snapshot: bool
) -> dict[int, dict[str, int]]:
    """What everybody reads in a schedule.

    Args:
        executed: the transactions.
        schedule: who runs when.
        whole_snapshot: whether a transaction keeps the snapshot of its first statement.
    """
    before, stranger, first, between = schedule
    last: dict[str, int] = {}
    reads: dict[int, dict[str, int]] = {}

    def run_alone(i: int, alone: set[str], shared: set[str]) -> None:
        own_alone, own_shared = _locks(executed[i])
        if own_alone & (alone | shared) or own_shared & alone:
            raise _Refused
        reads[i] = {}
        for one in executed[i]:
            reads[i] |= {key: last.get(key, INITIAL) for key in one.reads}
        last.update({key: i for one in executed[i] for key in one.writes})

    for i in before:
        run_alone(i, set(), set())
    snapshot = dict(last)
    mine = executed[stranger]
    reads[stranger] = {k: snapshot.get(k, INITIAL) for one in mine[:first] for k in one.reads}
    for i in between:
        run_alone(i, *_locks(mine[:first]))
    for one in mine[first:]:
        alone, shared = _locks([one])
        if whole_snapshot and any(last.get(k) != snapshot.get(k) for k in alone | shared):
            raise _Refused
        seen = snapshot if whole_snapshot else last
        reads[stranger] |= {k: seen.get(k, INITIAL) for k in one.reads}
    return reads


def predicted(executed: Executed, run: Tiny, *, whole_snapshot: bool) -> bool:
    """Whether some schedule of one stranger is not serializable; all others read the same."""
    return any(
        _is_prediction(
            executed,
            run,
            schedule,
            (*schedule.before, *schedule.between),
            whole_snapshot=whole_snapshot,
        )
        for schedule in schedules_of_strangers(
            run, so_wr(run), [*map(len, executed)], whole_snapshot=whole_snapshot
        )
    )


def possible(executed: Executed, run: Tiny, *, whole_snapshot: bool) -> bool:
    """Whether some schedule of the same statements is not serializable, whatever they read."""
    return any(
        _is_prediction(executed, run, schedule, (), whole_snapshot=whole_snapshot)
        for schedule in all_schedules(run, [*map(len, executed)], whole_snapshot=whole_snapshot)
    )


def _is_prediction(
    executed: Executed,
    run: Tiny,
    schedule: Schedule,
    same: Sequence[int],
    *,
    whole_snapshot: bool,
) -> bool:
    """Whether a schedule is possible and not serializable, and some read what was recorded."""
    try:
        reads = played(executed, schedule, whole_snapshot=whole_snapshot)
    except _Refused:
        return False
    if any(reads[i] != run.reads[i] for i in same):
        return False
    return not ser(run.part(schedule.kept(), reads))


def edn(executed: Executed, run: Tiny) -> str:
    """The run as a recorder writes it."""
    lines = []
    for i, statements in enumerate(executed):
        ops, noted = [], []
        for number, one in enumerate(statements, 1):
            lock = f" for {one.lock}" if one.lock else ""
            for key in one.reads:
                source = run.reads[i][key]
                ops.append(f'[:r "{key}" {"nil" if source == INITIAL else source + 1}]')
                noted.append(f'"{number}{lock}"')
            for key in one.writes:
                ops.append(f'[:w "{key}" {i + 1}]')
                noted.append(f'"{number}"')
        lines.append(
            f"{{:type :ok, :process {run.sessions[i]}, :value [{' '.join(ops)}], "
            f":statements [{' '.join(noted)}]}}\n"
        )
    return "".join(lines)
