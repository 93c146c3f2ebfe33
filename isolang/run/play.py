"""Plays one program as one recorded transaction of a client."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from typing import Any, Protocol

from isolang.errors import IsolangError
from isolang.run.operation import (
    DELETED,
    Abort,
    Append,
    Delete,
    Insert,
    Operation,
    Program,
    Read,
    Scan,
    Swap,
    Undone,
    Wait,
    Write,
)
from isolang.run.outcome import Driver, Outcome, RolledBack
from isolang.run.recorder import Recorded, RecordedTransaction, Recorder
from isolang.run.target import Client, Swapping, Target, TargetError, Transacting


def driver_for(target: Target) -> Driver:
    """How the clients of a target commit, and what their errors mean."""
    return Driver(
        commit=lambda client: client.commit(),
        rollback=lambda client: client.rollback(),
        classify=target.classify,
        resolve=lambda client: client.resolve(),
    )


def play(
    program: Program,
    *,
    recorder: Recorder,
    session: Hashable,
    client: Client,
    driver: Driver,
    level: str,
    wait: Callable[[Wait], None] = lambda operation: None,
    pace: Callable[[], None] = lambda: None,
) -> tuple[Outcome, Exception | None]:
    """Play a program as one transaction.

    Args:
        program: of a workload.
        recorder: where to record it.
        session: of the recorder.
        client: a connection without an open transaction.
        driver: of :func:`driver_for`.
        level: of the target.
        wait: keeps the transaction open.
        pace: called before each operation, and before COMMIT: whoever wants to say when.

    Returns:
        The outcome as it was recorded, and what the client raised.

    Raises:
        IsolangError: the run cannot go on.
    """
    known = program if isinstance(program, tuple) else ()
    plan = tuple(one for operation in known for one in planned(operation))
    commits = None if isinstance(client, Transacting) else client
    t = recorder.transaction(session, commits, plan=plan, driver=driver)
    steps = program if isinstance(program, Generator) else told(known)
    try:
        pace()
        with t:
            if isinstance(client, Transacting):
                _transact(client, t, level, plan)
            else:
                client.begin(level)
                _converse(steps, t, client, wait, pace)
    except (IsolangError, AttributeError, NameError, TypeError):
        raise  # a mistake of an adapter or a program is no answer of a database
    except Exception as error:
        return t.outcome or "maybe", error
    return "committed", None


def told(operations: tuple[Operation, ...]) -> Generator[Operation, Any, None]:
    """The conversation of a program that does not listen."""
    for operation in operations:  # noqa: UP028 - a tuple cannot be sent results
        yield operation


def _converse(
    program: Generator[Operation, Any, None],
    t: RecordedTransaction,
    client: Client,
    wait: Callable[[Wait], None],
    pace: Callable[[], None],
) -> None:
    result = None
    while True:
        try:
            operation = program.send(result)
        except StopIteration:
            return
        result = perform(operation, t, client, wait)
        pace()


def planned(operation: Operation) -> tuple[Recorded, ...]:
    """What an operation is in the history, before its result is known."""
    match operation:
        case Read(key):
            return (("r", key, None),)
        case Scan(keys):
            return tuple(("r", key, None) for key in keys)
        case Append(key, value):
            return (("append", key, value),)
        case Write(key, value) | Insert(key, value):
            return (("w", key, value),)
        case Swap(key, _, value):
            return (("r", key, None), ("w", key, value))
        case Delete(key):
            return (("w", key, DELETED),)
        case Wait() | Abort() | Undone():
            return ()


class Notes(Protocol):
    """Where it is noted what a transaction does: a recorded transaction has all of this."""

    def sending(self) -> None:
        """A statement will be sent."""

    def read(self, key: Any, value: Any) -> None:
        """A key was read."""

    def read_none_of(self, key: Any, values: list[Any]) -> None:
        """A key was read, and had none of these values."""

    def write(self, key: Any, value: Any) -> None:
        """A key was written."""

    def append(self, key: Any, value: Any) -> None:
        """Something was appended to a list."""


def perform(
    operation: Operation,
    t: Notes,
    client: Client,
    wait: Callable[[Wait], None] = lambda operation: None,
) -> Any:
    """Perform one operation, record what it did, and give its result."""
    t.sending()
    match operation:
        case Read(key):
            value = client.read(key)
            t.read(key, value)
            return value
        case Write(key, value):
            return _changed(t, client.write(key, value), key, value)
        case Append(key, value):
            if not client.append(key, value):
                raise TargetError(f"the list {key} is gone: somebody else has removed its row")
            t.append(key, value)
        case Insert(key, value):
            client.insert(key, value)
            t.write(key, value)
        case Swap():
            return _swap(operation, t, client)
        case Delete(key):
            return _changed(t, client.delete(key), key, DELETED)
        case Scan(keys):
            found = client.scan(keys[0], keys[-1])
            for key in keys:
                t.read(key, found.get(key, DELETED))
            return found
        case Wait():
            wait(operation)
        case Undone(undone):
            _undo(undone, client)
        case Abort():
            raise RolledBack("the program aborts")
    return None


def _swap(operation: Swap, t: Notes, client: Client) -> bool:
    """Compare and set. One that failed has read something else, nobody knows what."""
    key, expected, value = operation.key, operation.expected, operation.value
    if not isinstance(client, Swapping):
        found = client.read(key)
        t.read(key, found)
        return bool(found == expected) and _changed(t, client.write(key, value), key, value)
    if not client.swap(key, expected, value):
        t.read_none_of(key, [expected])
        return False
    t.read(key, expected)
    t.write(key, value)
    return True


def _undo(operation: Write | Append | Insert | Delete, client: Client) -> None:
    """Write and take it back: that is no operation of the history."""
    client.savepoint()
    match operation:
        case Write(key, value):
            client.write(key, value)
        case Append(key, value):
            client.append(key, value)
        case Insert(key, value):
            client.insert(key, value)
        case Delete(key):
            client.delete(key)
    client.rollback_to_savepoint()


def _changed(t: Notes, there: bool, key: str, value: object) -> bool:
    """Record an UPDATE or DELETE: one that found no row has read that there is none."""
    if there:
        t.write(key, value)
    else:
        t.read(key, DELETED)
    return there


def _transact(
    client: Transacting, t: RecordedTransaction, level: str, plan: tuple[Recorded, ...]
) -> None:
    """Have a client run a whole transaction that is known before."""
    for (name, key, value), result in zip(plan, client.transact(level, plan), strict=True):
        if name == "r":
            t.read(key, result)
        elif name == "append":
            t.append(key, value)
        else:
            t.write(key, value)
