"""Decides by definition, over all interleavings, whether instances of templates are serializable.

The rules follow PostgreSQL's manual and use no theorem about the form of cycles. Statements run one
at a time. At MVRC, a statement sees what is committed when it runs; at SI and SSI, it sees what was
committed when its transaction ran its first statement. A write waits for other active writers of
the same columns; at SI and SSI it fails if another transaction has committed such a write since the
snapshot. An insert requires that its row does not exist, and every other keyed write requires a
visible row. SSI aborts a transaction if there are two consecutive anti-dependencies between
concurrent transactions at SSI, the last of which commits first (Cahill et al. 2008; Ports, Grittner
2012, with their rule for read-only transactions).

At InnoDB's levels, the rules follow the manuals of MySQL and MariaDB: see :class:`_InnodbMachine`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from isolang.foresee.split import readable_values
from isolang.foresee.templates import ALL_COLUMNS, Branch, Templates

Item = tuple[str, tuple[int, ...], str]  # a relation, the keys of a row, a column


class RunStatement(NamedTuple):
    """A statement of an instance: the items that it reads and writes, and its rows.

    An insert creates its row, and a delete removes it. ``plain`` is true of a read that takes no
    lock.
    """

    kind: str
    keyed: bool
    rows: tuple[tuple[str, tuple[int, ...]], ...]
    reads: frozenset[Item]
    writes: frozenset[Item]
    lock: str = ""
    plain: bool = False


class Instance(NamedTuple):
    """A transaction, with its program, its level and its statements."""

    program: str
    level: str
    statements: tuple[RunStatement, ...]


def columns_of(templates: Templates) -> dict[str, tuple[str, ...]]:
    """Return the columns of each relation; if no statement names any, one column without a name."""
    found: dict[str, set[str]] = {}
    for branch in templates.branches:
        for one in branch.statements:
            found.setdefault(one.relation, set()).update(one.reads | one.writes)
    return {name: tuple(sorted(own - {ALL_COLUMNS})) or ("",) for name, own in found.items()}


def instances(templates: Templates, levels: dict[str, str], values: int) -> list[Instance]:
    """Return all instances of the templates whose parameters are less than ``values``."""
    found = []
    for branch in templates.branches:
        for picked in itertools.product(range(values), repeat=len(branch.parameters)):
            given = dict(zip(branch.parameters, picked, strict=True))
            if any(given[a] == given[b] for a, b in branch.different):
                continue
            found += instances_of_branch(templates, branch, given, levels, range(values))
    return list(dict.fromkeys(found))


def instances_of_branch(
    templates, branch: Branch, given: dict, levels, universe
) -> Iterator[Instance]:
    """Yield the instances of a branch for given parameter values.

    A write with a condition has one instance for each set of rows that it may find.
    """
    columns = columns_of(templates)
    choices = []
    for one in branch.statements:
        keys = [
            universe if key is None else [given[key] if isinstance(key, str) else key]
            for key in one.keys
        ]
        rows = tuple((one.relation, row) for row in itertools.product(*keys))

        def items(names, rows, relation=one.relation):
            every = columns[relation] if ALL_COLUMNS in names else names
            return frozenset((*row, column) for row in rows for column in every)

        if one.keyed or not one.writes:
            chosen = [rows] if one.writes or one.lock else [()]
        else:
            chosen = [
                picked
                for count in range(len(rows) + 1)
                for picked in itertools.combinations(rows, count)
            ]
        choices.append(
            [
                RunStatement(
                    one.kind,
                    one.keyed,
                    written,
                    items(one.reads, rows),
                    items(one.writes, written),
                    one.lock,
                    one.is_plain,
                )
                for written in chosen
            ]
        )
    for picked in itertools.product(*choices):
        yield Instance(branch.program, levels[branch.program], picked)


def has_violation(
    chosen: tuple[Instance, ...], before: tuple[int | None, ...], deleting: frozenset[str]
) -> bool:
    """Return whether some interleaving of these transactions is not serializable.

    For each transaction, ``before`` has the transaction that precedes it in its session. The
    relations in ``deleting`` may lack some rows at the beginning.
    """
    uncertain = sorted(
        {
            row
            for one in chosen
            for ran in one.statements
            for row in ran.rows
            if row[0] in deleting or ran.kind == "insert"
        }
    )
    machine = _InnodbMachine if chosen[0].level.startswith("innodb-") else _Machine
    return any(
        machine(
            chosen, before, {r for r, there in zip(uncertain, state, strict=True) if not there}
        ).explore()
        for state in itertools.product((True, False), repeat=len(uncertain))
    )


class _Machine:
    def __init__(self, chosen, before, missing) -> None:
        self.chosen, self.before = chosen, before
        count = len(chosen)
        self.at = [0] * count
        self.begun: list[int | None] = [None] * count  # the tick of the first statement
        self.snapshot = [0] * count
        self.commits: list[int] = []
        self.ended = [0] * count
        self.tick = 0
        self.own: list[dict[Item, int]] = [{} for _ in chosen]
        self.seen: list[list[tuple[Item, int]]] = [[] for _ in chosen]  # items, and commits seen
        self.there: list[dict] = [{} for _ in chosen]
        self.locks: list[list[RunStatement]] = [[] for _ in chosen]
        self.missing = missing
        self.has_locks = any(ran.lock for instance in chosen for ran in instance.statements)

    def explore(self) -> bool:
        if len(self.commits) == len(self.chosen):
            return self.judge()
        return any(self.step(one) for one in range(len(self.chosen)))

    def step(self, one: int) -> bool:
        if one in self.commits:
            return False
        previous = self.before[one]
        if previous is not None and previous not in self.commits:
            return False
        mine = self.chosen[one].statements
        if self.at[one] == len(mine):
            self.commits.append(one)
            self.tick += 1
            self.ended[one] = self.tick
            found = self.explore()
            self.tick -= 1
            self.commits.pop()
            return found
        ran, first = mine[self.at[one]], self.begun[one] is None
        self.tick += 1
        if first:
            self.begun[one] = self.tick
            self.begin(one)
            if self.may_wait_with_snapshot(one, ran) and self.explore():
                self.begun[one] = None
                self.tick -= 1
                return True
        found = self.run(one, ran) and self.explore_after(one, ran)
        if first:
            self.begun[one] = None
        self.tick -= 1
        return found

    def may_wait_with_snapshot(self, number: int, ran: RunStatement) -> bool:
        """Return whether a first statement takes its snapshot, and may then wait for a lock."""
        takes_lock = ran.lock or (ran.writes and self.has_locks)
        return bool(takes_lock) and self.chosen[number].level != "mvrc"

    def begin(self, number: int) -> None:
        self.snapshot[number] = len(self.commits)

    def visible(self, one: int) -> int:
        return len(self.commits) if self.chosen[one].level == "mvrc" else self.snapshot[one]

    def sees(self, number: int, ran: RunStatement, item: Item) -> int:
        return self.visible(number)

    def is_there(self, one: int, row, sees: int) -> bool:
        if row in self.there[one]:
            return self.there[one][row]
        for other in reversed(self.commits[:sees]):
            if row in self.there[other]:
                return self.there[other][row]
        return row not in self.missing

    def run(self, one: int, ran: RunStatement) -> bool:
        """Return whether the statement can run now."""
        active = [
            other
            for other in range(len(self.chosen))
            if other != one and self.begun[other] is not None and other not in self.commits
        ]
        if any(not ran.writes.isdisjoint(self.own[other]) for other in active):
            return False  # it waits
        if any(must_wait(ran, held) for other in active for held in self.locks[other]):
            return False
        if ran.kind == "insert":
            return not self.is_there(one, ran.rows[0], len(self.commits))
        sees = self.visible(one)
        if not all(self.is_there(one, row, sees) for row in ran.rows):
            return False
        if self.chosen[one].level == "mvrc":
            return True
        since = self.commits[self.snapshot[one] :]
        rows = {(relation, row) for relation, row, _ in {x for o in since for x in self.own[o]}}
        if ran.lock and not rows.isdisjoint(ran.rows):
            return False
        return all(ran.writes.isdisjoint(self.own[other]) for other in since)

    def explore_after(self, one: int, ran: RunStatement) -> bool:
        seen, own, there = len(self.seen[one]), dict(self.own[one]), dict(self.there[one])
        for item in ran.reads:
            if item not in own:
                self.seen[one].append((item, self.sees(one, ran, item)))
        self.own[one].update(dict.fromkeys(ran.writes, 1))
        self.locks[one].append(ran)
        if ran.kind in ("insert", "delete"):
            self.there[one].update(dict.fromkeys(ran.rows, ran.kind == "insert"))
        self.at[one] += 1
        found = self.explore()
        self.at[one] -= 1
        self.own[one], self.there[one] = own, there
        self.locks[one].pop()
        del self.seen[one][seen:]
        return found

    def judge(self) -> bool:
        count = len(self.chosen)
        place = {one: number for number, one in enumerate(self.commits)}
        edges, anti = set(), set()
        for a in range(count):
            if self.before[a] is not None:
                edges.add((self.before[a], a))
            for b in range(count):
                if a == b:
                    continue
                if place[a] < place[b] and not self.own[a].keys().isdisjoint(self.own[b]):
                    edges.add((a, b))
                for item, sees in self.seen[a]:
                    if item in self.own[b]:
                        if place[b] < sees:
                            edges.add((b, a))
                        else:
                            edges.add((a, b))
                            anti.add((a, b))
        if self.refused(anti, place):
            return False
        left = set(range(count))
        while free := {a for a in left if not any(x in left and y == a for x, y in edges)}:
            left -= free
        return bool(left)

    def refused(self, anti, place) -> bool:
        ssi = [one for one, own in enumerate(self.chosen) if own.level == "ssi"]
        beside = lambda a, b: self.begun[a] < self.ended[b] and self.begun[b] < self.ended[a]  # noqa: E731
        for a, b, c in itertools.product(ssi, repeat=3):
            if (a, b) not in anti or (b, c) not in anti or not beside(a, b) or not beside(b, c):
                continue
            first = place[c] <= place[a] and place[c] < place[b]
            reads_only = not self.own[a]
            if first and not (reads_only and self.ended[c] > self.begun[a]):
                return True
        return False


class _InnodbMachine(_Machine):
    """InnoDB's rules: a statement that would wait cannot run yet, and number that fails never runs.

    Statements that lock or write see the newest rows and lock them until the commit: whole rows,
    and from REPEATABLE READ on, also those that a read by a condition does not find. Plain
    reads see the newest rows at READ COMMITTED; at REPEATABLE READ, those committed before the
    first plain read, and rows that the transaction has written as they are now. At SERIALIZABLE,
    they lock. With snapshot isolation, a row that has changed since the snapshot cannot be locked.
    """

    def __init__(self, chosen, before, missing) -> None:
        super().__init__(chosen, before, missing)
        self.snapshot: list[int | None] = [None] * len(chosen)
        self.written_at: list[dict] = [{} for _ in chosen]

    def begin(self, number: int) -> None:
        self.snapshot[number] = None

    def may_wait_with_snapshot(self, number, ran) -> bool:
        return False

    def run(self, number: int, ran: RunStatement) -> bool:
        wanted = self.locked_rows(number, ran)
        for other in range(len(self.chosen)):
            if other == number or self.begun[other] is None or other in self.commits:
                continue
            for held in self.locks[other]:
                rows = self.locked_rows(other, held)
                if any(rows[row] + wanted[row] > 2 for row in rows.keys() & wanted):
                    return False
        if ran.kind == "insert":
            return not self.is_there(number, ran.rows[0], len(self.commits))
        if not all(self.is_there(number, row, len(self.commits)) for row in ran.rows):
            return False
        sees = self.snapshot[number]
        if self.chosen[number].level != "innodb-snapshot" or sees is None or ran.plain:
            return True
        changed = {item[:2] for other in self.commits[sees:] for item in self.own[other]}
        return changed.isdisjoint(wanted)

    def locked_rows(self, number: int, ran: RunStatement) -> dict:
        """Return the rows that a statement locks: 1 for readers, 2 against all others."""
        level = self.chosen[number].level
        if ran.plain and level != "innodb-serializable":
            return {}
        alone = ran.kind != "read" or ran.lock == "update"
        read = () if level == "innodb-read-committed" else {item[:2] for item in ran.reads}
        return dict.fromkeys((*ran.rows, *read), 2 if alone else 1)

    def explore_after(self, number: int, ran: RunStatement) -> bool:
        level, before = self.chosen[number].level, self.snapshot[number]
        written = dict(self.written_at[number])
        now = len(self.commits)
        if level in ("innodb-repeatable-read", "innodb-snapshot") and ran.plain and before is None:
            self.snapshot[number] = now
        self.written_at[number].update(dict.fromkeys(ran.rows if ran.writes else (), now))
        fails = super().explore_after(number, ran)
        self.snapshot[number], self.written_at[number] = before, written
        return fails

    def sees(self, number: int, ran: RunStatement, item: Item) -> int:
        """Return how many of the commits a statement sees in an item."""
        snapshot = self.snapshot[number]
        if not ran.plain or snapshot is None:
            return len(self.commits)
        return max(snapshot, self.written_at[number].get(item[:2], 0))


def must_wait(ran: RunStatement, held: RunStatement) -> bool:
    """Return whether a row lock that one of two statements takes without a write makes one wait."""
    if not (ran.lock or held.lock) or set(ran.rows).isdisjoint(held.rows):
        return False
    mine, theirs = ("update" if statement.writes else statement.lock for statement in (ran, held))
    return bool(mine and theirs and "update" in (mine, theirs))


def are_linked(chosen: tuple[Instance, ...], before: tuple[int | None, ...]) -> bool:
    """Return whether each transaction conflicts with another or shares a session with one.

    This is true of all transactions on a cycle.
    """
    reads = [frozenset().union(*(ran.reads for ran in one.statements)) for one in chosen]
    writes = [frozenset().union(*(ran.writes for ran in one.statements)) for one in chosen]
    return all(
        before[a] is not None
        or a in before
        or any(
            writes[a] & (reads[b] | writes[b]) or reads[a] & writes[b]
            for b in range(len(chosen))
            if b != a
        )
        for a in range(len(chosen))
    )


def some_violation(
    templates: Templates, levels: dict[str, str], *, sessions: bool, values: int = 2, most: int
) -> tuple | None:
    """Return the first two or three instances that have an interleaving which is not serializable.

    At most ``most`` combinations of instances are tried. If none fails, the result is ``None``.
    """
    every = instances(templates, levels, values)
    deleting = frozenset(
        one.relation for own in templates.branches for one in own.statements if one.kind == "delete"
    )
    alone = [(None, None), (None, None, None)]
    in_sessions = [(None, 0), (None, 0, None), (None, 0, 1)] if sessions else []
    tried = 0
    for before in sorted([*alone, *in_sessions], key=len):
        choose = itertools.product if before in in_sessions else _multisets
        for chosen in choose(every, repeat=len(before)):
            if not are_linked(chosen, before):
                continue
            tried += 1
            if tried > most:
                return None
            if has_violation(chosen, before, deleting):
                return chosen, before
    return None


def _multisets(every: list[Instance], *, repeat: int) -> Iterator[tuple[Instance, ...]]:
    return itertools.combinations_with_replacement(every, repeat)


def is_replayed(found, levels, candidate, sessions: bool) -> bool:
    """Return whether the transactions of a counterexample fail in some interleaving."""
    numbers: dict[str, int] = {"0": 0}
    given = [
        {name: numbers.setdefault(value, len(numbers)) for name, value in one.items()}
        for one in readable_values(found, candidate)
    ]
    before: list[int | None] = [None, None]
    for number, link in enumerate(candidate.links, 2):
        before.append(number - 1 if link.kind == "session" else None)
    universe = range(len(numbers) + 1)
    deleting = frozenset(
        one.relation for own in found.branches for one in own.statements if one.kind == "delete"
    )
    every = [
        list(instances_of_branch(found, one.branch, values, levels, universe))
        for one, values in zip((candidate.split, *candidate.chain), given, strict=True)
    ]
    return any(
        has_violation(chosen, tuple(before), deleting) for chosen in itertools.product(*every)
    )
