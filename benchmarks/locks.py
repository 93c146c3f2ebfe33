"""Finds which locks prevent a write skew, by playing every interleaving on PostgreSQL.

    python benchmarks/locks.py [skew] [smallbank] [--level "repeatable read"]

The program prints the tables of docs/robustness.md. Outcomes are compared with those of serial
orders, which are computed instead of played, because under load a played order need not be serial.
"""

from __future__ import annotations

import argparse
import itertools
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import psycopg

from isolang.run.targets import target_named

Step = Callable[[Any, dict[str, int]], None]
Program = tuple[Callable[[frozenset[str]], list[Step]], Callable[[dict[str, int]], int]]


def reading(table: str, name: str, form: str) -> Step:
    """Return the step that reads a balance, with a lock on its row or with an identity update."""

    def step(client: Any, seen: dict[str, int]) -> None:
        if form == "=":
            client.execute(f"update {table} set b = b where i = 1")
        clause = {"!": " for update", "~": " for share"}.get(form, "")
        seen[name] = client.execute(f"select b from {table} where i = 1{clause}").fetchone()[0]

    return step


def form_of(variant: frozenset[str], read: str) -> str:
    """Return how a variant reads: ``!`` FOR UPDATE, ``~`` FOR SHARE, ``=`` identity update."""
    return next((sign for sign in "!~=" if read + sign in variant), "")


def withdraw(name: str, own: str, other: str) -> Program:
    """Return a program that takes 150 from an account if both accounts together have 150."""

    def steps(variant: frozenset[str]) -> list[Step]:
        def write(client: Any, seen: dict[str, int]) -> None:
            if seen[f"{name}.{own}"] + seen[f"{name}.{other}"] >= 150:
                client.execute(f"update {own} set b = b - 150 where i = 1")

        # both read the rows in the same order, which prevents deadlocks
        reads = [
            reading(table, f"{name}.{table}", form_of(variant, f"{name}.{table}"))
            for table in ("sav", "chk")
        ]
        return [*reads, write]

    def serially(state: dict[str, int]) -> int:
        if state[own] + state[other] >= 150:
            state[own] -= 150
        return 0

    return steps, serially


def balance() -> Program:
    def steps(variant: frozenset[str]) -> list[Step]:
        return [
            reading(table, f"B.{table}", form_of(variant, f"B.{table}")) for table in ("sav", "chk")
        ]

    return steps, lambda state: state["sav"] + state["chk"]


def write_check() -> Program:
    def steps(variant: frozenset[str]) -> list[Step]:
        def write(client: Any, seen: dict[str, int]) -> None:
            amount = 10 if seen["W.sav"] + seen["W.chk"] >= 10 else 11
            client.execute(f"update chk set b = b - {amount} where i = 1")

        return [
            reading("sav", "W.sav", form_of(variant, "W.sav")),
            reading("chk", "W.chk", form_of(variant, "W.chk")),
            write,
        ]

    def serially(state: dict[str, int]) -> int:
        state["chk"] -= 10 if state["sav"] + state["chk"] >= 10 else 11
        return 0

    return steps, serially


def deposit() -> Program:
    def steps(variant: frozenset[str]) -> list[Step]:
        return [lambda client, seen: client.execute("update sav set b = b + 20 where i = 1")]

    def serially(state: dict[str, int]) -> int:
        state["sav"] += 20
        return 0

    return steps, serially


# For each scenario, its programs, its initial balance, and its variants.
SCENARIOS: Mapping[str, tuple[Mapping[str, Program], int, Sequence[str]]] = {
    "skew": (
        {"P": withdraw("P", "sav", "chk"), "Q": withdraw("Q", "chk", "sav")},
        100,
        (
            "", "P.sav!", "P.chk!", "P.sav! Q.chk!", "P.chk! Q.sav!", "P.sav! P.chk!",
            "P.sav! P.chk! Q.sav! Q.chk!", "P.sav~ P.chk~ Q.sav~ Q.chk~", "P.sav! Q.sav!", "P.chk=",
            "P.sav=", "P.chk= Q.sav=",
        ),
    ),
    "smallbank": (
        {"B": balance(), "W": write_check(), "T": deposit()},
        0,
        ("", "W.sav!", "B.chk!", "B.sav!", "W.sav=", "B.chk="),
    ),
}  # fmt: skip


class Client(threading.Thread):
    """A thread with a connection, which runs one step at a time."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.connection = psycopg.connect(url, autocommit=True)
        self.pid = self.connection.info.backend_pid
        self.todo: queue.Queue[Callable[[Any], None] | None] = queue.Queue()
        self.done: queue.Queue[bool] = queue.Queue()
        self.start()

    def run(self) -> None:
        while (step := self.todo.get()) is not None:
            try:
                step(self.connection)
            except psycopg.Error:
                self.connection.rollback()
                self.connection.execute("rollback")
                self.done.put(False)
            else:
                self.done.put(True)


def orders(lengths: Mapping[str, int]) -> Iterator[str]:
    """Yield all interleavings of programs with these numbers of steps."""
    if not any(lengths.values()):
        yield ""
    for name, count in lengths.items():
        if count:
            for rest in orders({**lengths, name: count - 1}):
                yield name + rest


class Player:
    """Plays interleavings of programs on a server."""

    def __init__(self, url: str, level: str) -> None:
        self.level = level
        self.own = psycopg.connect(url, autocommit=True)
        self.own.execute("drop table if exists sav, chk")
        for table in ("sav", "chk"):
            self.own.execute(f"create table {table} (i int primary key, b int)")
            self.own.execute(f"insert into {table} values (1, 0)")
        self.clients: dict[str, Client] = {}
        self.url = url

    def play(
        self, order: str, steps: Mapping[str, list[Step]], seen: dict[str, int], before: int
    ) -> bool:
        """Play one interleaving, and return whether all transactions committed."""
        self.own.execute(f"update sav set b = {before}")
        self.own.execute(f"update chk set b = {before}")
        waiting: dict[str, list[Callable[[Any], None]]] = {name: [] for name in steps}
        busy: set[str] = set()
        dead: set[str] = set()
        at = dict.fromkeys(steps, 0)

        def pump(name: str) -> None:
            client = self.clients[name]
            while waiting[name] and name not in busy and name not in dead:
                client.todo.put(waiting[name].pop(0))
                busy.add(name)
                settle(name)

        def settle(name: str) -> None:
            """Wait until the step has ended, or the server reports that it waits for a lock."""
            client = self.clients[name]
            while name in busy:
                try:
                    ended = client.done.get(timeout=0.01)
                except queue.Empty:
                    if self.blocked(client.pid):
                        return
                    continue
                busy.discard(name)
                if not ended:
                    dead.add(name)

        def step_of(name: str) -> Callable[[Any], None]:
            number, at[name] = at[name], at[name] + 1
            own = steps[name]
            if number == len(own):
                return lambda client: client.execute("commit")

            def step(client: Any) -> None:
                if number == 0:
                    client.execute(f"begin isolation level {self.level}")
                own[number](client, seen)

            return step

        for name in order:
            waiting[name].append(step_of(name))
            for one in steps:
                if one in busy:
                    settle(one)
                pump(one)
        while busy or any(waiting[name] for name in steps if name not in dead):
            for one in steps:
                if one in busy:
                    settle(one)
                pump(one)
        return not dead

    def blocked(self, pid: int) -> bool:
        return bool(self.own.execute("select pg_blocking_pids(%s)", (pid,)).fetchone()[0])

    def measure(self, scenario: str, variant: str) -> tuple[int, int, int, str]:
        """Return how many interleavings there are, how many have an abort, and how many are wrong.

        The last result is the first wrong interleaving.
        """
        programs, before, _ = SCENARIOS[scenario]
        self.clients = {name: Client(self.url) for name in programs}
        serial = set()
        for names in itertools.permutations(programs):
            state = {"sav": before, "chk": before}
            returned = {name: programs[name][1](state) for name in names}
            serial.add((returned.get("B", 0), state["sav"], state["chk"]))
        count = aborted = wrong = 0
        first = ""
        steps = {name: make(frozenset(variant.split())) for name, (make, _) in programs.items()}
        for order in orders({name: len(own) + 1 for name, own in steps.items()}):
            seen: dict[str, int] = {}
            count += 1
            if not self.play(order, steps, seen, before):
                aborted += 1
                continue
            state = [self.own.execute(f"select b from {t}").fetchone()[0] for t in ("sav", "chk")]
            if (seen.get("B.sav", 0) + seen.get("B.chk", 0), *state) not in serial:
                wrong += 1
                first = first or order
        for client in self.clients.values():
            client.todo.put(None)
            client.join()
            client.connection.close()
        return count, aborted, wrong, first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", default=list(SCENARIOS))
    parser.add_argument("--level", default="repeatable read")
    parser.add_argument("--url", help="of a database that may be overwritten; else one is started")
    options = parser.parse_args()
    target = None if options.url else target_named("postgres")
    try:
        if target is not None:
            target.start()
        url = options.url or f"postgresql://postgres@/postgres?host={target.server.folder}"
        with psycopg.connect(url) as own:
            print(own.execute("select version()").fetchone()[0].split(" on ")[0], options.level)
        player = Player(url, options.level)
        print("| | interleavings | with an abort | committed and wrong |\n|---|--:|--:|--:|")
        for scenario in options.scenarios:
            for variant in SCENARIOS[scenario][2]:
                count, aborted, wrong, first = player.measure(scenario, variant)
                example = f" (`{first}`)" if first else ""
                print(
                    f"| {scenario} {variant} | {count} | {aborted} | {wrong}{example} |", flush=True
                )
    finally:
        if target is not None:
            target.close()


if __name__ == "__main__":
    main()
