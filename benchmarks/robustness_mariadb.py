"""Compares ``isocheck robust`` at InnoDB's levels with what a MariaDB server really does.

    nice python benchmarks/robustness_mariadb.py [--sets 0-200] [--schedules 70]

Starts a server, and plays instances of random templates in all interleavings of two transactions
and in some of three. A statement that would have to wait makes an interleaving impossible: the one
in which it runs later is played, too. What the reads returned and what the tables contain at the
end is compared with the serial orders, computed here. If none of them has the same outcome, the
answer must not be *robust*. The exit code is 1 if it is.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import pymysql
from pymysql.constants import CLIENT, ER
from support.random_templates import random_templates, template_lines

from isolang.foresee.decide import decide
from isolang.foresee.schedules import Level
from isolang.foresee.templates import ALL_COLUMNS, Branch, Templates, TemplateStatement
from isolang.run.servers import mariadb
from isolang.run.servers.server import Server

MODES: dict[str, list[Level]] = {
    "read committed": ["innodb-read-committed"],
    "repeatable read": ["innodb-repeatable-read"],
    "snapshot": ["innodb-snapshot"],
    "serializable": ["innodb-serializable"],
    "mixed": ["innodb-read-committed", "innodb-repeatable-read", "innodb-serializable"],
    "mixed snapshot": ["innodb-read-committed", "innodb-snapshot", "innodb-serializable"],
}
TABLES = ("x", "y")
COLUMNS = ("a", "b")
KEYS = (0, 1, 2)
REFUSED = (ER.LOCK_WAIT_TIMEOUT, ER.LOCK_DEADLOCK, 1020, ER.DUP_ENTRY)
State = dict[tuple[str, int], tuple[str, str]]  # the rows, each with the values of its columns
Outcome = tuple[tuple[Any, ...], ...]


class Call(NamedTuple):
    """A transaction: a branch with values of its parameters, and the level that it runs at."""

    number: int
    branch: Branch
    given: dict[str, int]
    level: Level
    scans: str  # the condition that finds rows if no key does

    def keys(self, statement: TemplateStatement) -> tuple[int, ...]:
        """Return the keys of the rows that a statement selects."""
        (key,) = statement.keys
        if key is None:
            return KEYS
        return (self.given[key] if isinstance(key, str) else key,)

    def sql(self, step: int) -> str:
        """Return a statement as SQL."""
        statement, value = self.branch.statements[step], f"{self.number}.{step}"
        where = f"WHERE k = {self.keys(statement)[0]}" if statement.keyed else f"WHERE {self.scans}"
        if statement.kind == "read":
            lock = {"update": " FOR UPDATE", "share": " LOCK IN SHARE MODE"}.get(statement.lock, "")
            lock = " FOR UPDATE" if statement.newest else lock
            columns = ", ".join(named(statement.reads))
            return f"SELECT k, {columns} FROM {statement.relation} {where}{lock}"
        if statement.kind == "insert":
            key = self.keys(statement)[0]
            return f"INSERT INTO {statement.relation} VALUES ({key}, 1, '{value}', '{value}')"
        if statement.kind == "delete":
            return f"DELETE FROM {statement.relation} {where}"
        read = "".join(f"{column}, " for column in named(statement.reads))
        new = (
            f"LEFT(MD5(CONCAT({read}'{value}')), 9)" if statement.kind == "update" else f"'{value}'"
        )
        changed = ", ".join(f"{column} = {new}" for column in named(statement.writes))
        return f"UPDATE {statement.relation} SET {changed} {where}"

    def serially(self, step: int, state: State) -> tuple[Any, ...] | None:
        """Execute a statement on a state, and return what it reads; ``None`` if it fails."""
        statement, value = self.branch.statements[step], f"{self.number}.{step}"
        rows = [
            (statement.relation, key)
            for key in self.keys(statement)
            if (statement.relation, key) in state
        ]
        if statement.kind == "insert":
            if rows:
                return None
            state[statement.relation, self.keys(statement)[0]] = value, value
            return ()
        if needs_row(statement) and not rows:
            return None
        if statement.kind == "read":
            picked = [COLUMNS.index(column) for column in named(statement.reads)]
            return tuple((row[1], *(state[row][n] for n in picked)) for row in rows)
        for row in rows:
            if statement.kind == "delete":
                del state[row]
                continue
            old = dict(zip(COLUMNS, state[row], strict=True))
            text = "".join(old[column] for column in named(statement.reads)) + value
            new = (
                hashlib.md5(text.encode()).hexdigest()[:9] if statement.kind == "update" else value
            )
            state[row] = tuple(  # type: ignore[assignment]
                new if column in named(statement.writes) else old[column] for column in COLUMNS
            )
        return ()


def named(columns: frozenset[str]) -> list[str]:
    """Return the columns of a statement."""
    return [column for column in COLUMNS if column in columns or ALL_COLUMNS in columns]


def needs_row(statement: TemplateStatement) -> bool:
    """Return whether a statement is assumed to find its row."""
    locks = bool(statement.lock) or statement.kind != "read"
    return statement.keyed and statement.kind != "insert" and locks


def serial_outcomes(calls: Sequence[Call], initial: State) -> set[Outcome]:
    """Return the outcomes of all serial orders."""
    outcomes = set()
    for order in itertools.permutations(calls):
        state = dict(initial)
        read: dict[int, list[tuple[Any, ...]]] = {}
        for call in order:
            for step in range(len(call.branch.statements)):
                result = call.serially(step, state)
                if result is None:
                    break
                read.setdefault(call.number, []).append(result)
            else:
                continue
            break
        else:
            every = (tuple(read[call.number]) for call in calls)
            outcomes.add((*every, tuple(sorted(state.items()))))
    return outcomes


class Player:
    """Plays transactions on a server, in a given order of their statements."""

    def __init__(self, socket: str, most: int) -> None:
        self._connections = [self._connect(socket) for _ in range(4)]
        self._admin = self._connections.pop()
        cursor = self._admin.cursor()
        cursor.execute("CREATE OR REPLACE DATABASE t")
        for connection in (self._admin, *self._connections):
            connection.select_db("t")
        for table in TABLES:
            cursor.execute(
                f"CREATE TABLE {table} (k INT PRIMARY KEY, g INT, a VARCHAR(9), b VARCHAR(9), "
                "KEY (g))"
            )

    @staticmethod
    def _connect(socket: str) -> Any:
        return pymysql.connect(
            unix_socket=socket, user="root", client_flag=CLIENT.FOUND_ROWS,
            init_command="SET innodb_lock_wait_timeout = 0, "
            "sql_mode = 'SIMULTANEOUS_ASSIGNMENT'",
        )  # fmt: skip

    def close(self) -> None:
        """Close the connections."""
        for connection in (self._admin, *self._connections):
            connection.close()

    def violation(
        self, calls: Sequence[Call], initial: State, orders: Iterator[tuple[int, ...]]
    ) -> tuple[int, ...] | None:
        """Return the first order whose outcome no serial order has."""
        serial = serial_outcomes(calls, initial)
        refused: set[tuple[int, ...]] = set()
        for connection, call in zip(self._connections, calls, strict=False):
            self._prepare(connection, call.level)
        for order in orders:
            if any(order[:n] in refused for n in range(len(order) + 1)):
                continue
            outcome, done = self._play(calls, initial, order)
            if outcome is None:
                refused.add(order[:done])
            elif outcome not in serial:
                return order
        return None

    def _prepare(self, connection: Any, level: Level) -> None:
        words = {"read": "READ COMMITTED", "serializable": "SERIALIZABLE"}
        name = words.get(level.split("-")[1], "REPEATABLE READ")
        with connection.cursor() as cursor:
            cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {name}")
            snapshot = "ON" if level == "innodb-snapshot" else "OFF"
            cursor.execute(f"SET innodb_snapshot_isolation = {snapshot}")
        connection.commit()

    def _play(
        self, calls: Sequence[Call], initial: State, order: tuple[int, ...]
    ) -> tuple[Outcome | None, int]:
        """Return the outcome of an order, or how many of its statements are not possible."""
        with self._admin.cursor() as cursor:
            for table in TABLES:
                cursor.execute(f"DELETE FROM {table}")
                rows = [
                    f"({k}, 1, '{v[0]}', '{v[1]}')" for (t, k), v in initial.items() if t == table
                ]
                if rows:
                    cursor.execute(f"INSERT INTO {table} VALUES {', '.join(rows)}")
        self._admin.commit()
        steps = [0] * len(calls)
        read: list[list[tuple[Any, ...]]] = [[] for _ in calls]
        try:
            for place, who in enumerate(order, 1):
                connection, call, step = self._connections[who], calls[who], steps[who]
                steps[who] += 1
                if step == len(call.branch.statements):
                    connection.commit()
                    continue
                with connection.cursor() as cursor:
                    try:
                        matched = cursor.execute(call.sql(step))
                    except pymysql.MySQLError as error:
                        if error.args[0] not in REFUSED:
                            raise
                        return None, place
                    if needs_row(call.branch.statements[step]) and not matched:
                        return None, place
                    read[who].append(tuple(sorted(cursor.fetchall())))
        finally:
            for connection in self._connections:
                connection.rollback()
        state: State = {}
        with self._admin.cursor() as cursor:
            for table in TABLES:
                cursor.execute(f"SELECT k, a, b FROM {table}")
                state |= {(table, k): (a, b) for k, a, b in cursor.fetchall()}
        self._admin.commit()
        return (*map(tuple, read), tuple(sorted(state.items()))), len(order)


def interleavings(lengths: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield all orders of the statements of some transactions, in lexical order."""
    if not any(lengths):
        yield ()
    for who, left in enumerate(lengths):
        if left:
            rest = [n - (other == who) for other, n in enumerate(lengths)]
            yield from ((who, *order) for order in interleavings(rest))


def chosen_calls(
    templates: Templates, levels: dict[str, Level], rng: random.Random, count: int
) -> list[Call]:
    """Return random instances of templates."""
    calls = []
    for number in range(count):
        branch = rng.choice(templates.branches)
        given = {name: rng.choice((1, 2)) for name in branch.parameters}
        if any(given[a] == given[b] for a, b in branch.different):
            given = dict(zip(branch.parameters, rng.sample((1, 2), 2), strict=False))
        scans = rng.choice(("g = 1", "a <> 'none'"))
        calls.append(Call(number, branch, given, levels[branch.program], scans))
    return calls


def first_violation(
    player: Player,
    templates: Templates,
    levels: dict[str, Level],
    rng: random.Random,
    schedules: int,
) -> str:
    """Return a description of what the server showed that no serial order shows; empty if none."""
    changing = {
        statement.relation
        for branch in templates.branches
        for statement in branch.statements
        if statement.kind in ("insert", "delete")
    }
    for count in (2, 2, 2, 2, 3, 3):
        calls = chosen_calls(templates, levels, rng, count)
        initial = {
            (table, key): (f"{table}{key}", f"{table}{key}")
            for table in TABLES
            for key in KEYS
            if table not in changing or rng.random() < 0.5
        }
        lengths = [len(call.branch.statements) + 1 for call in calls]
        orders = list(interleavings(lengths)) if sum(lengths) < 9 else []
        if not orders or len(orders) > schedules:
            deck = [who for who, length in enumerate(lengths) for _ in range(length)]
            orders = [tuple(rng.sample(deck, len(deck))) for _ in range(schedules)]
        order = player.violation(calls, initial, iter(orders))
        if order is not None:
            given = [(call.branch.name, call.given, call.level, call.scans) for call in calls]
            return f"{given} in the order {order} from {sorted(initial)}"
    return ""


def main() -> int:
    """Run the campaign, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default="0-200", help="the seeds, first and behind the last")
    parser.add_argument("--schedules", type=int, default=70, help="the most orders of one choice")
    options = parser.parse_args()
    first, last = map(int, options.sets.split("-"))
    counts: Counter[tuple[str, str]] = Counter()
    wrong = 0
    server = Server("mariadb", "mysql")
    try:
        mariadb.start(
            server,
            {},
            lambda: Player._connect(mariadb.socket_of(server)).close(),
        )
        with closing(Player(mariadb.socket_of(server), options.schedules)) as player:
            for seed in range(first, last):
                for mode, how in MODES.items():
                    rng = random.Random(seed)
                    templates = random_templates(rng, locks=True, scans_lock=True)
                    levels = {program: rng.choice(how) for program in templates.programs}
                    shown = first_violation(player, templates, levels, rng, options.schedules)
                    answer = decide(templates, levels, sessions=False).standing
                    counts[mode, f"{answer}; server {'fails' if shown else 'fails nowhere'}"] += 1
                    if shown and answer == "robust":
                        wrong += 1
                        print(
                            seed, levels, *template_lines(templates), shown, sep="\n  ", flush=True
                        )
    finally:
        server.stop()
    for (mode, outcome), count in sorted(counts.items()):
        print(f"{mode:16} {outcome:40} {count:6,}")
    print(f"{last - first:,} sets, {wrong} wrong, {time.process_time():.0f} s of CPU")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
