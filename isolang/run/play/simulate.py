"""Simulates runs: plays a workload on the database in memory, in a random order by the seed."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import count
from random import Random
from typing import Any, Final

from isolang.history import History, Transaction
from isolang.run.address import Address
from isolang.run.operation import Operation, Wait
from isolang.run.outcome import RolledBack
from isolang.run.play.transaction import as_conversation, perform
from isolang.run.target import TargetError
from isolang.run.targets.memory import Memory, MemoryClient
from isolang.run.workloads import ProgramSource, Shape, Workload, workload_named

RULES: Final = {
    "strict-serializable": "serializable",
    "strong-snapshot": "snapshot",
    "read-committed": "read committed",
}
"""The level of the database in memory for each of these guarantees of ``isocheck generate``."""


def simulate(
    name: str,
    *,
    rule: str = "strict-serializable",
    shape: Shape | None = None,
    transactions: int = 100,
    sessions: int = 10,
    seed: int = 0,
) -> History:
    """Return the history of a simulated workload of ``isocheck run``.

    Args:
        name: the name of the workload.
        rule: a key of ``RULES``.
        shape: the sizes of the workload.
        transactions: the number of transactions, including aborted ones.
        sessions: the number of clients.
        seed: the seed of all random choices; equal seeds give equal histories.

    Raises:
        TargetError: the workload or rule does not exist.
    """
    if rule not in RULES:
        expected = ", ".join(RULES)
        msg = f"no such rule of a workload (got {rule!r}, expected one of {expected})"
        raise TargetError(msg)
    workload = workload_named(name, shape)
    target = Memory(Address(kind="memory"), "")
    target.setup(workload.registers, workload.lists)
    draw, values, clock = Random(f"{seed}/order").random, count(1), count()
    clients = [
        _Client(number, target.connect(), ProgramSource(seed, number, values))
        for number in range(sessions)
    ]
    ended: list[Transaction] = []
    begun = 0
    while len(ended) < transactions:
        client = clients[int(draw() * sessions)]
        if client.steps is None:
            if begun < transactions:
                client.start(workload, RULES[rule], next(clock))
                begun += 1
        # If all open transactions wait and no other transaction can begin, a waiting one continues.
        elif client.until <= len(ended) or not any(
            one.steps is not None and one.until <= len(ended) for one in clients
        ):
            client.step(ended, clock)
    return History.from_transactions(ended, name=f"<simulated {name}>")


class _Client:
    """A client with its open transaction. It notes operations as a recorder does."""

    def __init__(self, number: int, client: MemoryClient, source: ProgramSource) -> None:
        self.steps: Generator[Operation, Any, None] | None = None
        self.until = 0  # the client waits until this many transactions have ended
        self._number, self._client, self._source = number, client, source
        self._result: Any = None

    def start(self, workload: Workload, level: str, now: int) -> None:
        """Begin a transaction."""
        program, self._rows = workload.program(self._source), workload.rows
        self._source.made += 1
        self.steps = as_conversation(program) if isinstance(program, tuple) else program
        self._begin, self._result, self._operations = now, None, list[Any]()
        self._client.begin(level)

    def step(self, ended: list[Transaction], clock: Iterator[int]) -> None:
        """Do the next operation; add the transaction to ``ended`` if it has ended."""
        assert self.steps is not None
        self.until = len(ended)
        try:
            operation = self.steps.send(self._result)
            self._result = perform(operation, self, self._client, self._wait, rows=self._rows)
        except StopIteration:
            ended.append(self._end(clock))
        except RolledBack:
            self._client.rollback()
            ended.append(self._ended("aborted", clock))

    def _wait(self, operation: Wait) -> None:
        self.until += operation.transactions

    def _end(self, clock: Iterator[int]) -> Transaction:
        try:
            self._client.commit()
        except RolledBack:
            return self._ended("aborted", clock)
        return self._ended("committed", clock)

    def _ended(self, status: Any, clock: Iterator[int]) -> Transaction:
        self.steps = None
        return Transaction(
            self._operations, session=self._number, status=status, begin=self._begin,
            end=next(clock),
        )  # fmt: skip

    # --- the notes of the transaction's operations ---

    def sending(self) -> None:
        """Note nothing: the simulation has no times of operations."""

    def read(self, key: str, value: Any, version: Any = None) -> None:
        """Note a read."""
        self._operations.append(("r", key, value))

    def write(self, key: str, value: Any, version: Any = None) -> None:
        """Note a write."""
        self._operations.append(("w", key, value))

    def read_none_of(self, key: str, values: Any) -> None:
        """Note a read whose value was none of these."""
        self._operations.append(("r-not-in", key, values))

    def delete(self, key: str) -> None:
        """Note a delete."""
        self._operations.append(("delete", key))

    def select(self, low: int, high: int, rows: dict[str, Any]) -> None:
        """Note a predicate read."""
        self._operations.append(("scan", f"[:between :value {low} {high}]", rows))

    def append(self, key: str, value: Any) -> None:
        """Note an append."""
        self._operations.append(("append", key, value))
