"""Simulates runs: plays a workload on the in-memory database, in a random but repeatable order."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import count
from random import Random
from typing import Any, Final

from isolang.history import History, Transaction
from isolang.run.address import Address
from isolang.run.operation import NULL, Operation, Pause, Read, RecordedOperation, UndoneWrite, Wait
from isolang.run.outcome import RolledBack
from isolang.run.play.transaction import as_conversation, perform
from isolang.run.record.operations import RecordedOperations
from isolang.run.target import TargetError
from isolang.run.targets.memory import Memory, MemoryClient
from isolang.run.workloads import ProgramSource, Shape, Workload, workload_named

RULES: Final = {
    "strict-serializable": "serializable",
    "strong-snapshot": "snapshot",
    "read-committed": "read committed",
}
"""The in-memory database's level for each guarantee offered by ``isocheck generate``."""


def simulate(
    name: str,
    *,
    rule: str = "strict-serializable",
    shape: Shape | None = None,
    transactions: int = 100,
    sessions: int = 10,
    seed: int = 0,
) -> History:
    """Simulate a run of one of ``isocheck run``'s workloads, and return its history.

    Raises:
        TargetError: the workload or rule does not exist.
    """
    if rule not in RULES:
        expected = ", ".join(RULES)
        msg = f"unknown rule (got {rule!r}, expected one of {expected})"
        raise TargetError(msg)
    workload = workload_named(name, shape)
    target = Memory(Address(kind="memory"), "")
    target.setup(workload.registers, workload.lists)
    draw, values, clock = Random(f"{seed}/order").random, count(1), count()
    clients = [
        _SimulatedClient(number, target.connect(), ProgramSource(seed, number, values))
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
        # If all open transactions wait and none can begin, let a waiting transaction continue.
        elif client.until <= len(ended) or not any(
            one.steps is not None and one.until <= len(ended) for one in clients
        ):
            client.step(ended, clock)
    return History.from_transactions(ended, name=f"<simulated {name}>")


class _SimulatedClient:
    """A client with its open transaction."""

    def __init__(self, number: int, client: MemoryClient, source: ProgramSource) -> None:
        self.steps: Generator[Operation, Any, None] | None = None
        self.until = 0  # wait until this many transactions have ended
        self._number, self._client, self._source = number, client, source
        self._result: Any = None

    def start(self, workload: Workload, level: str, now: int) -> None:
        """Begin the next transaction of the workload."""
        program, self._rows = workload.program(self._source), workload.rows
        self._nulls = workload.nulls
        self._source.made += 1
        self.steps = as_conversation(program) if isinstance(program, tuple) else program
        self._begin, self._result, self._noted = now, None, RecordedOperations()
        self._client.begin(level)

    def step(self, ended: list[Transaction], clock: Iterator[int]) -> None:
        """Perform the next operation; if it ends the transaction, add that to ``ended``."""
        assert self.steps is not None
        self.until = len(ended)
        try:
            operation = self.steps.send(self._result)
            if isinstance(operation, Pause):  # let another client have the next turn
                self._result = None
                return
            if isinstance(operation, UndoneWrite):  # the simulated database has no savepoints
                operation = Read(operation.operation.key)
            if isinstance(operation, Read) and operation.lock:  # and no row locks
                operation = Read(operation.key)
            self._result = perform(
                operation, self._noted, self._client, self._wait, rows=self._rows, nulls=self._nulls
            )
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
            [*map(_as_operation, self._noted.operations)], session=self._number, status=status,
            begin=self._begin, end=next(clock),
        )  # fmt: skip


def _as_operation(operation: RecordedOperation) -> tuple[Any, ...]:
    """Return a recorded operation in the form used by :class:`Transaction`."""
    match operation:
        case ("delete", key, _):
            return "delete", key
        case ("rp", predicate, rows):
            return "scan", predicate.text, {key: _row(value) for key, value in rows.items()}
    name, key, value = operation
    return name, key, _row(value)


def _row(value: Any) -> Any:
    """Return the value or, for NULL, the row that represents it in a history."""
    return {"value": None} if value == NULL else value
