"""Predictions with predicate reads by brute force, written from the definitions of docs/foresee.md.

A run has a table with two rows at most, which transactions read one by one or by the predicate
``v = 1``, write and delete. A version is the number of the transaction that wrote it, or
``INITIAL``. An answer is the version that a read returned, or ``ABSENT``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, permutations, product
from typing import Any, NamedTuple, TypeAlias

from foresee.agreement import partitions, searched_history
from foresee.by_definition import INITIAL, acyclic, closure
from foresee.enumeration import strangers, subsets, with_beginnings

from isolang import History, Transaction

ABSENT = -2
KEYS = ("x", "y")


class Statement(NamedTuple):
    """An operation: ``get``, ``scan``, ``write`` or ``delete``; a scan reads all keys.

    Operations with the same number that is not 0 are one SQL statement.
    """

    kind: str
    key: str = ""
    value: int = 0
    lock: str = ""
    number: int = 0

    def reads(self) -> Sequence[str]:
        """The keys that it reads."""
        return KEYS if self.kind == "scan" else (self.key,) if self.kind == "get" else ()


Answers: TypeAlias = Mapping[tuple[int, str], int]
"""What the external reads of a transaction returned, by statement and key."""


class Rows:
    """Transactions on the rows of a table.

    Args:
        initial: the value of each row at the beginning; ``None`` if there is none.
        answers: what each transaction was answered.
    """

    def __init__(
        self,
        sessions: Sequence[int],
        programs: Sequence[Sequence[Statement]],
        initial: Mapping[str, int | None],
        answers: Sequence[Answers] | None = None,
    ) -> None:
        self.sessions, self.programs, self.initial = sessions, programs, initial
        self.n = len(programs)
        self.answers = self.replayed(range(self.n)) if answers is None else answers
        self.writers = {
            key: [
                i
                for i, program in enumerate(programs)
                if any(s.kind in ("write", "delete") and s.key == key for s in program)
            ]
            for key in KEYS
        }

    def version(self, key: str, writer: int) -> int | None:
        """The value of a row in a version; ``None`` if there is no row."""
        if writer == INITIAL:
            return self.initial[key]
        last = next(
            s for s in reversed(self.programs[writer])
            if s.kind in ("write", "delete") and s.key == key
        )  # fmt: skip
        return None if last.kind == "delete" else last.value

    def answer(self, statement: Statement, key: str, writer: int) -> int:
        """What a statement returns of a row if it sees a version."""
        value = self.version(key, writer)
        shown = value == 1 if statement.kind == "scan" else value is not None
        return writer if shown else ABSENT

    def external(self, i: int) -> Iterator[tuple[int, str]]:
        """The reads of a transaction that do not see its own write."""
        written = set()
        for at, statement in enumerate(self.programs[i]):
            yield from ((at, key) for key in statement.reads() if key not in written)
            if statement.kind in ("write", "delete"):
                written.add(statement.key)

    def replayed(self, order: Sequence[int]) -> list[dict[tuple[int, str], int]]:
        """What everybody is answered if they run in this order, each alone."""
        last = dict.fromkeys(KEYS, INITIAL)
        answers: list[dict[tuple[int, str], int]] = [{} for _ in range(self.n)]
        for i in order:
            for at, key in self.external(i):
                answers[i][at, key] = self.answer(self.programs[i][at], key, last[key])
            for statement in self.programs[i]:
                if statement.kind in ("write", "delete"):
                    last[statement.key] = i
        return answers

    def so(self, a: int, b: int) -> bool:
        return a < b and self.sessions[a] == self.sessions[b]

    def part(self, kept: Sequence[int], answers: Mapping[int, Answers]) -> Rows:
        """The transactions that are kept, with these answers in place of the recorded ones."""
        new = {txn: at for at, txn in enumerate(kept)} | {INITIAL: INITIAL, ABSENT: ABSENT}
        return Rows(
            [self.sessions[i] for i in kept],
            [self.programs[i] for i in kept],
            self.initial,
            [
                {read: new[seen] for read, seen in answers.get(i, self.answers[i]).items()}
                for i in kept
            ],
        )

    def seen_versions(self, i: int, at: int, key: str) -> list[int]:
        """The versions that may have been seen, given the answer."""
        answer = self.answers[i][at, key]
        if answer != ABSENT:
            return [answer]
        versions = [INITIAL, *(w for w in self.writers[key] if w != i)]
        return [w for w in versions if self.answer(self.programs[i][at], key, w) == ABSENT]


# --- levels: some versions explain the answers ---


class _Explained(NamedTuple):
    """The version that each read saw: by transaction, statement and key."""

    rows: Rows
    seen: tuple[dict[tuple[int, str], int], ...]


def _explanations(h: Rows) -> Iterator[_Explained]:
    reads = [(i, at, key) for i in range(h.n) for at, key in h.answers[i]]
    for versions in product(*(h.seen_versions(*read) for read in reads)):
        seen: tuple[dict[tuple[int, str], int], ...] = tuple({} for _ in range(h.n))
        for (i, at, key), version in zip(reads, versions, strict=True):
            seen[i][at, key] = version
        yield _Explained(h, seen)


def _so_wr(explained: _Explained) -> set[tuple[int, int]]:
    h = explained.rows
    edges = {(a, b) for a in range(h.n) for b in range(h.n) if h.so(a, b)}
    return edges | {(w, i) for i in range(h.n) for w in explained.seen[i].values() if w != INITIAL}


def ser(h: Rows) -> bool:
    """Some serial order has the sessions and gives every answer."""
    return any(
        h.replayed(order) == list(h.answers)
        for order in permutations(range(h.n))
        if not any(h.so(b, a) for a, b in combinations(order, 2))
    )


def si(h: Rows) -> bool:
    """Some version orders make (so | wr | ww) ; rw? acyclic."""
    for explained in _explanations(h):
        base = _so_wr(explained)
        for orders in product(*(list(permutations(h.writers[key])) for key in KEYS)):
            versions = dict(zip(KEYS, orders, strict=True))
            depends = base | {pair for order in orders for pair in combinations(order, 2)}
            rw = set()
            for reader in range(h.n):
                for (_, key), w in explained.seen[reader].items():
                    order = versions[key]
                    later = order[order.index(w) + 1 :] if w != INITIAL else order
                    rw |= {(reader, writer) for writer in later if writer != reader}
            if acyclic(h.n, depends | {(a, d) for a, b in depends for c, d in rw if b == c}):
                return True
    return False


def _has_commit_order(
    explained: _Explained, must_see: Callable[[int, int, tuple[int, str]], bool]
) -> bool:
    """Some order has so and wr, and the read version last of those the reader must have seen."""
    h, edges = explained.rows, _so_wr(explained)
    for reader in range(h.n):
        for (at, key), source in explained.seen[reader].items():
            for other in h.writers[key]:
                if other in (source, reader) or not must_see(other, reader, (at, key)):
                    continue
                if source == INITIAL:
                    return False
                edges.add((other, source))
    return acyclic(h.n, edges)


def ra(h: Rows) -> bool:
    for explained in _explanations(h):
        direct = _so_wr(explained)
        if _has_commit_order(explained, lambda other, reader, _, d=direct: (other, reader) in d):
            return True
    return False


def cc(h: Rows) -> bool:
    for explained in _explanations(h):
        before = closure(h.n, _so_wr(explained))
        if _has_commit_order(explained, lambda other, reader, _, b=before: (other, reader) in b):
            return True
    return False


def rc(h: Rows) -> bool:
    """The same, of the versions that earlier statements saw."""

    def must_see(other: int, reader: int, read: tuple[int, str], explained: _Explained) -> bool:
        return any(w == other and at < read[0] for (at, _), w in explained.seen[reader].items())

    return any(
        _has_commit_order(
            explained, lambda other, reader, read, x=explained: must_see(other, reader, read, x)
        )
        for explained in _explanations(h)
    )


LEVELS: dict[str, Callable[[Rows], bool]] = {"ser": ser, "si": si, "ra": ra, "cc": cc, "rc": rc}


# --- the two rules ---


def depends_on(run: Rows) -> set[tuple[int, int]]:
    """Pairs of so and wr; an answer without a row depends on the version that took it away."""
    edges = {(a, b) for a in range(run.n) for b in range(run.n) if run.so(a, b)}
    for i in range(run.n):
        for (at, key), answer in run.answers[i].items():
            versions = [INITIAL, *(w for w in run.writers[key] if w < i)]
            source = answer
            if answer == ABSENT:
                shown = [run.answer(run.programs[i][at], key, w) != ABSENT for w in versions]
                last = max((n for n, yes in enumerate(shown) if yes), default=-1)
                source = versions[last + 1] if last >= 0 else INITIAL
            if source != INITIAL:
                edges.add((source, i))
    return edges


def one_stranger(run: Rows) -> Iterator[Rows]:
    """B1: a subset K, closed under so and wr, that reads what was recorded, and one more."""
    for stranger, k in strangers(run, depends_on(run)):
        yield from _answered(run, k, (stranger,))


def same_statements(run: Rows) -> Iterator[Rows]:
    """B2: any subset with its sessions' beginnings, in which everybody may be answered anything."""
    for kept in subsets(range(run.n)):
        if with_beginnings(run, kept):
            yield from _answered(run, (), kept)


def _answered(run: Rows, k: tuple[int, ...], free: tuple[int, ...]) -> Iterator[Rows]:
    kept = sorted({*k, *free})
    reads = [(i, *read) for i in free for read in run.answers[i]]
    possible = [
        sorted({
            run.answer(run.programs[i][at], key, w)
            for w in (INITIAL, *run.writers[key])
            if w == INITIAL or (w != i and w in (k or kept))
        })
        for i, at, key in reads
    ]  # fmt: skip
    for chosen in product(*possible):
        answers: dict[int, dict[tuple[int, str], int]] = {i: {} for i in free}
        for (i, at, key), answer in zip(reads, chosen, strict=True):
            answers[i][at, key] = answer
        yield run.part(kept, answers)


def exists(histories: Iterator[Rows], at: str) -> bool:
    """Whether one of the histories is valid at the level and not serializable."""
    return any(not ser(h) and LEVELS[at](h) for h in histories)


# --- random runs ---


def random_program(draw: random.Random, most: int) -> list[Statement]:
    """Up to ``most`` statements; a key is written once."""
    statements: list[Statement] = []
    for _ in range(draw.choice(range(1, most + 1))):
        kind = draw.choice(["scan", "get", "write", "write", "delete"])
        key = draw.choice(KEYS)
        if kind in ("write", "delete"):
            if any(s.kind in ("write", "delete") and s.key == key for s in statements):
                continue
            if draw.random() < 0.7:
                statements.append(Statement("get", key))
        statements.append(Statement(kind, "" if kind == "scan" else key, draw.choice([0, 1, 1])))
    return statements


def random_runs(seed: int, n: int, count: int, most: int = 2) -> Iterator[Rows]:
    draw = random.Random(seed)
    sessions = list(partitions(n))
    for _ in range(count):
        yield Rows(
            draw.choice(sessions),
            [random_program(draw, most) for _ in range(n)],
            {key: draw.choice([None, 0, 1]) for key in KEYS},
        )


def history_of(h: Rows) -> History:
    """The history that a recorder would write."""

    def row(key: str, writer: int) -> dict[str, Any] | None:
        value = h.version(key, writer)
        if value is None:
            return None
        return {"v": value, "w": writer, "u": value if value > 1 else None}

    def ops(i: int) -> Iterator[tuple[Any, ...]]:
        written: dict[str, dict[str, Any] | None] = {}
        for at, statement in enumerate(h.programs[i]):
            kind, key = statement.kind, statement.key
            shown = {}
            for name in statement.reads():
                if name in written:
                    value = written[name]
                    if value is not None and (kind == "get" or value["v"] == 1):
                        shown["t", name] = value
                elif (answer := h.answers[i][at, name]) != ABSENT:
                    shown["t", name] = row(name, answer)
            if kind == "scan":
                yield ("scan", {"table": "t", "where": ("=", "v", 1)}, shown)
            elif kind == "get":
                yield ("r", ("t", key), shown.get(("t", key)))
            else:
                written[key] = row(key, i)
                yield (
                    ("delete", ("t", key)) if kind == "delete" else ("w", ("t", key), written[key])
                )

    initial = [("w", ("t", key), row(key, INITIAL)) for key in KEYS if h.initial[key] is not None]
    first = [Transaction(initial, session="first", status="initial")] if initial else []
    return History.from_transactions([
        *first,
        *(Transaction([*ops(i)], session=h.sessions[i], number=i + 1) for i in range(h.n)),
    ])  # fmt: skip


def compared(run: Rows, at: str) -> tuple[tuple[bool, bool], tuple[bool, bool]]:
    """What the definitions and the search predict: by the first rule, and by either."""
    first = exists(one_stranger(run), at)
    expected = first, first or exists(same_statements(run), at)
    return expected, searched_history(history_of(run), at)
