"""Requests of several transactions, by the text of docs/language.md: every pair, every row.

Nothing here is fast: each question of the definition is asked again for each read, each later
transaction of its unit, and each row.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from . import semantics
from .generate import any_history
from .generate_rows import row_history
from .history import (
    UNKNOWN,
    History,
    Op,
    Txn,
    as_edn_says,
    has_time,
    is_write,
    sort_by_session,
    to_edn,
    with_wide_times,
)
from .levels import LEVELS
from .predicates import lower, matches

SESSION_TABLES = (
    "active_sessions",
    "django_session",
    "http_sessions",
    "session",
    "sessions",
    "spring_session",
    "spring_session_attributes",
)

Kind = Literal["session", "checked", "computed", "other"]


@dataclass(frozen=True, slots=True)
class Told:
    """What a recording says of one transaction, besides its operations."""

    unit: str | None
    #: of each operation: the number of its statement, and whether it is ``shown``
    statements: tuple[tuple[int, bool], ...] | None


@dataclass(frozen=True, slots=True)
class Carried:
    """A read of transaction ``source`` that ``reader`` has, too; of a predicate read, its rows."""

    reader: int
    source: int
    op: int
    rows: tuple[str, ...]
    kind: Kind


class Units:
    """The definition, of one history as EDN says it."""

    def __init__(self, history: History, told: tuple[Told, ...]) -> None:
        self.history, self.told = history, told
        self.low = lower(history)
        self.claims: list[dict[int, list[Op]]] = []
        for t, low in zip(history, self.low, strict=True):
            of: dict[int, list[Op]] = {j: [] for j in range(len(t.ops))}
            for place, op in enumerate(low.ops):
                of[low.statement(place)].append(op)
            self.claims.append(of)

    # --- units ---

    def units(self) -> tuple[list[list[int]], list[str]]:
        """The transactions of each unit in order, and the units that have no order."""
        timed = self.history
        names = sorted({said.unit for said in self.told if said.unit is not None})
        units, unclear = [], []
        for name in names:
            txns = [i for i, said in enumerate(self.told) if said.unit == name]
            if len({self.history[i].session for i in txns}) > 1:
                txns.sort(key=lambda i: (timed[i].begin, i))
                ended = [self._ended_before(timed, a, b) for a, b in pairwise(txns)]
                if not all(ended):
                    unclear.append(name)
                    continue
            units.append(txns)
        return units, unclear

    def _ended_before(self, timed: History, a: int, b: int) -> bool:
        """Whether the line of a's end comes before that of b's begin."""
        if timed[a].status == "maybe":
            return False
        end, begin = timed[a].end, timed[b].begin
        assert end is not None
        assert begin is not None
        return (end, 1, a) < (begin, 0, b)

    # --- what the program saw ---

    def statement(self, i: int, j: int) -> tuple[object, bool]:
        said = self.told[i].statements
        return (("alone", j), False) if said is None else said[j]

    def shows(self, i: int, j: int) -> bool:
        """Whether an operation is a read that shows its rows to the program."""
        t = self.history[i]
        if is_write(t.ops[j]):
            return False
        number, shown = self.statement(i, j)
        return shown or not any(
            is_write(op) and self.statement(i, other)[0] == number for other, op in enumerate(t.ops)
        )

    def rows(self, i: int, j: int) -> set[str]:
        """The rows that a read returned."""
        op = self.history[i].ops[j]
        return {k for k, _ in op[2]} if op[0] == "scan" else {op[1]}

    def writes(self, i: int, k: str, until: int | None = None) -> list[int]:
        ops = self.history[i].ops[:until]
        return [j for j, op in enumerate(ops) if is_write(op) and op[1] == k]

    def sees(self, i: int, k: str, after: int = -1) -> bool:
        """Whether a transaction shows a row to the program, after one of its operations."""
        ops = range(after + 1, len(self.history[i].ops))
        return any(self.shows(i, j) and k in self.rows(i, j) for j in ops)

    def has_seen(self, i: int, k: str) -> bool:
        """Whether a transaction that writes has seen a row."""
        for j, op in enumerate(self.history[i].ops):
            if is_write(op):
                if op[1] == k and self.statement(i, j)[1]:
                    return True
            elif self.shows(i, j) and k in self.rows(i, j) and not self.writes(i, k, j):
                return True
        return False

    # --- what is carried ---

    def carried(self) -> Iterator[Carried]:
        for unit in self.units()[0]:
            for at, s in enumerate(unit):
                for later in range(at + 1, len(unit)):
                    yield from self._between(s, unit[at + 1 : later], unit[later])

    def _between(self, s: int, between: list[int], t: int) -> Iterator[Carried]:
        status = [self.history[i].status for i in (s, *between, t)]
        if status[0] != "committed" or status[-1] != "committed" or "aborted" in status:
            return
        if not any(is_write(op) for op in self.history[t].ops):
            return
        for j, op in enumerate(self.history[s].ops):
            if is_write(op) or not self.shows(s, j) or op[-1] == UNKNOWN:
                continue
            if op[0] == "scan":
                yield from self._scan(s, j, between, t)
            elif not self._excluded(s, j, between, t, op[1]):
                yield Carried(t, s, j, (op[1],), self._kind([op[1]], self._written(t, [op[1]]), t))

    def _excluded(self, s: int, j: int, between: list[int], t: int, k: str) -> bool:
        return (
            self.sees(s, k, j)
            or bool(self.writes(s, k))
            or any(self.sees(u, k) or self.writes(u, k) for u in between)
            or self.has_seen(t, k)
        )

    def _scan(self, s: int, j: int, between: list[int], t: int) -> Iterator[Carried]:
        predicate = self.history[s].ops[j][1]
        for i, after in ((s, j), *((u, -1) for u in (*between, t))):
            for place, op in enumerate(self.history[i].ops):
                again = op[0] == "scan" and op[1] == predicate
                if again and place > after and self.shows(i, place):
                    return
        told = [op for op in self.claims[s][j] if op[0] != "silent"]
        kept = [op for op in told if not self._excluded(s, j, between, t, op[1])]
        returned = {op[1] for op in kept if op[0] != "miss"}
        touched = []
        for k in {op[1] for op in kept}:
            values = [self.history[t].ops[w] for w in self.writes(t, k)]
            fits = any(op[0] != "delete" and matches(predicate, k, op[2]) for op in values)
            if values and (k in returned or fits):
                touched.append(k)
        yield Carried(t, s, j, tuple(op[1] for op in kept), self._kind([], touched, t))

    def _written(self, t: int, ks: list[str]) -> list[str]:
        return [k for k in ks if self.writes(t, k)]

    def _kind(self, rows: list[str], touched: list[str], t: int) -> Kind:
        if any(k.partition("/")[0] in SESSION_TABLES for k in rows if "/" in k):
            return "session"
        if not touched:
            return "other"
        return "computed" if all(self._computes(t, k) for k in touched) else "checked"

    def _computes(self, t: int, k: str) -> bool:
        number = self.statement(t, self.writes(t, k)[0])[0]
        return any(
            not is_write(op) and self.statement(t, j)[0] == number and k in self.rows(t, j)
            for j, op in enumerate(self.history[t].ops)
        )

    # --- the verdict ---

    def with_reads(self, kinds: tuple[Kind, ...]) -> History:
        """The history whose transactions begin with the carried reads of some kinds."""
        begins: list[list[tuple[int, Op]]] = [[] for _ in self.low]
        for number, read in enumerate(self.carried()):
            if read.kind in kinds:
                claims = [op for op in self.claims[read.source][read.op] if op[1] in read.rows]
                begins[read.reader] += [(-1 - number, op) for op in claims]
        return tuple(
            replace(
                t,
                ops=(*(op for _, op in begin), *t.ops),
                statements=(*(n for n, _ in begin), *(t.statement(j) for j in range(len(t.ops)))),
            )
            for t, begin in zip(self.low, begins, strict=True)
        )

    def verdict(self, level: str, *, everything: bool, limit: int) -> tuple[str, bool]:
        """The verdict on requests, and whether the reads of the notes would change it."""
        counted: tuple[Kind, ...] = ("checked", "other") if everything else ("checked",)
        every: tuple[Kind, ...] = ("session", "checked", "computed", "other")
        if not self._satisfied(counted, level, limit):
            return "invalid", False
        units, unclear = self.units()
        if unclear or not units:
            return "unknown", False
        return "valid", not self._satisfied(every, level, limit)

    def _satisfied(self, kinds: tuple[Kind, ...], level: str, limit: int) -> bool:
        (valid,) = semantics.satisfied(self.with_reads(kinds), [LEVELS[level]], limit=limit)
        return valid


# --- random histories ---


def told_history(rng: random.Random) -> tuple[History, tuple[Told, ...]]:
    """A history, and the units and statements of its transactions."""
    source = rng.choices((request_history, any_history, row_history), weights=(6, 2, 3))[0]
    history = source(rng)
    if source is not request_history:
        return history, tuple(Told(_some_unit(rng, t), _statements(rng, t)) for t in history)
    units = {t.begin: t.labels[0] for t in history}
    plain = tuple(replace(t, labels=()) for t in history)
    return plain, tuple(
        Told(None if rng.random() < 0.03 else units[t.begin], _statements(rng, t)) for t in plain
    )


def _some_unit(rng: random.Random, t: Txn) -> str | None:
    kind = rng.random()
    if kind < 0.1:
        return None
    return f"u{t.session}" if kind < 0.95 else rng.choice(("u0", "u1", "other"))


def _statements(rng: random.Random, t: Txn) -> tuple[tuple[int, bool], ...] | None:
    """Each operation a statement, but often a read and the write of its row in one UPDATE."""
    if rng.random() < 0.2:
        return None
    said: list[tuple[int, bool]] = []
    number, joined = 0, False
    for j, op in enumerate(t.ops):
        before = t.ops[j - 1] if j else None
        follows = before is not None and is_write(op) and not is_write(before) and not joined
        joined = follows and rng.random() < 0.6
        if not joined:
            number += rng.choice((1, 1, 1, 2))
        shown = rng.random() < (0.3 if is_write(op) else 0.05)
        if joined:
            said[-1] = (number, shown)
        said.append((number, shown))
    return tuple(said)


def request_history(rng: random.Random) -> History:
    """What two or three requests of a few transactions each do, one transaction at a time.

    The transactions are serial, so races are between requests alone; but some histories have one
    read changed. The labels name the requests, and real time is serial, too.
    """
    names = rng.choice((("x", "y"), ("x", "y"), ("x",), ("x", "sessions/a")))
    rows = rng.random() < 0.5
    state: dict[str, int | None] = dict.fromkeys(names)
    left = {f"u{n}": rng.choice((1, 2, 2, 3)) for n in range(rng.randint(2, 3))}
    favourite = {name: rng.choice(names) for name in left}
    began: set[str] = set()
    session = {name: n for n, name in enumerate(left)}
    txns: list[Txn] = []
    fresh = iter(range(1, 100))
    while left:
        unit = rng.choice(list(left))
        left[unit] -= 1
        if not left[unit]:
            del left[unit]
        before, ops = dict(state), []
        for _ in range(rng.choice((1, 1, 2))):
            key = favourite[unit] if rng.random() < 0.7 else rng.choice(names)
            reads = 0.8 if unit not in began else 0.3
            ops += _request_ops(rng, key, reads, rows, state, fresh)
        began.add(unit)
        status: Literal["committed", "aborted", "maybe"] = "committed"
        if rng.random() < 0.1:
            status = rng.choice(("aborted", "aborted", "maybe"))
            state = before if status == "aborted" else state
        if rng.random() < 0.05:
            session[unit] = max(session.values()) + 1
        at = 10 * len(txns)
        txns.append(Txn(session[unit], tuple(ops), status, at, at + 5, labels=(unit,)))
    return sort_by_session(_overlapping(rng, txns))


def _request_ops(
    rng: random.Random,
    key: str,
    reads: float,
    rows: bool,
    state: dict[str, int | None],
    fresh: Iterator[int],
) -> list[Op]:
    if rng.random() < reads:
        if rows and rng.random() < 0.6:
            predicate = rng.choice(((">=", "value", 0), (">=", "value", 3), ("=", "key", key)))
            rows_there = [(k, v) for k, v in state.items() if matches(predicate, k, v)]
            return [("scan", predicate, tuple(rows_there))]
        return [("r", key, state[key])]
    if rows and rng.random() < 0.2 and state[key] is not None:
        state[key] = None
        return [("delete", key)]
    word = "insert" if rows and state[key] is None else "w"
    old, state[key] = state[key], next(fresh)
    write = (word, key, state[key])
    return [("r", key, old), write] if rng.random() < 0.25 else [write]


def _overlapping(rng: random.Random, txns: list[Txn]) -> list[Txn]:
    """Sometimes a transaction begins earlier, or ends later, than its operations."""
    if rng.random() < 0.6:
        return txns
    wide = []
    for n, t in enumerate(txns):
        alone = [o for o in txns if o.session == t.session and o is not t]
        begin, end = t.begin, t.end
        assert begin is not None
        assert end is not None
        if rng.random() < 0.3 and not any(begin - 12 < (o.end or 0) < begin for o in alone):
            begin -= 12
        wide.append(replace(txns[n], begin=begin, end=end))
    return wide


def one_by_one(history: History) -> bool:
    """Whether each session ends a transaction before it begins the next, as EDN needs."""
    pairs = [(a.end, b.begin) for a, b in pairwise(history) if a.session == b.session]
    return all(begin is None or (end is not None and end < begin) for end, begin in pairs)


def as_text(history: History, told: tuple[Told, ...]) -> str:
    """The history as EDN, with ``:unit`` and ``:statements`` in the completions."""
    of_line = {}
    lines = to_edn(history).splitlines()
    completions = [n for n, line in enumerate(lines) if ":type :invoke" not in line]
    timed = history if has_time(history) else with_wide_times(history)
    inf = float("inf")
    ends = [inf if t.end is None else t.end for t in timed]
    order = sorted(range(len(history)), key=lambda i: (ends[i], i))
    for n, i in zip(completions, order, strict=True):
        of_line[n] = i
    for n, i in of_line.items():
        more = "" if told[i].unit is None else f', :unit "{told[i].unit}"'
        if (said := told[i].statements) is not None:
            shown = " ".join(f'"{number}{" shown" * is_shown}"' for number, is_shown in said)
            more += f", :statements [{shown}]"
        lines[n] = lines[n].removesuffix("}") + more + "}"
    return "\n".join(lines) + "\n"


def as_told(history: History, told: tuple[Told, ...]) -> Units:
    """The definition of the history that EDN says, with the order of lines as real time."""
    timed = history if has_time(history) else with_wide_times(history)
    marked = tuple(replace(t, labels=(str(i),)) for i, t in enumerate(timed))
    said = as_edn_says(marked)
    order = [int(t.labels[0]) for t in said]
    plain = tuple(replace(t, labels=()) for t in said)
    return Units(plain, tuple(told[i] for i in order))
