"""Plays a program on a client as one transaction, and records it."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Generator, Hashable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NoReturn, cast

from isolang.errors import IsolangError
from isolang.history.values import Literal
from isolang.run.operation import (
    DELETED,
    NULL,
    Abort,
    Append,
    Delete,
    DeleteRange,
    Insert,
    InsertRows,
    Operation,
    Pause,
    Program,
    Read,
    RecordedOperation,
    Scan,
    SelectRange,
    SelectWhere,
    SetNull,
    SeveralRows,
    Swap,
    TakeRow,
    UndoneWrite,
    UpdateRange,
    Upsert,
    Wait,
    Write,
    predicate_of,
    range_predicate,
)
from isolang.run.outcome import BadAnswer, Driver, Outcome, ProgramAborted
from isolang.run.record.operations import RecordedOperations
from isolang.run.record.recorder import RecordedTransaction, Recorder
from isolang.run.target import (
    Client,
    OptionalStatements,
    RunsWholeTransactions,
    SupportsSwap,
    Target,
)


def driver_for(target: Target) -> Driver:
    """Return a driver that uses the client's methods and its target's classification of errors."""
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
    recorded: str | None = None,
    rows: bool = False,
    nulls: bool = False,
    lists: Container[str] | None = None,
    wait: Callable[[Wait], None] = lambda operation: None,
    pace: Callable[[], None] = lambda: None,
) -> tuple[Outcome, Exception | None]:
    """Play a program as one recorded transaction.

    Raises:
        IsolangError: the run cannot continue.
    """
    known = program if isinstance(program, tuple) else ()
    plan = tuple(one for operation in known for one in planned_operations(operation, rows=rows))
    commits = None if isinstance(client, RunsWholeTransactions) else client
    t = recorder.transaction(session, commits, plan=plan, driver=driver, level=recorded)
    steps = program if isinstance(program, Generator) else as_conversation(known)
    try:
        pace()
        with t:
            if isinstance(client, RunsWholeTransactions):
                _transact(client, t, level, plan, lists)
            else:
                client.begin(level)
                _converse(steps, t, client, wait, pace, rows=rows, nulls=nulls, lists=lists)
    except BadAnswer as error:
        return t.outcome or "maybe", error
    except (IsolangError, AttributeError, LookupError, NameError, TypeError):
        raise  # a bug in an adapter or a program, not a response from a database
    except Exception as error:
        return t.outcome or "maybe", error
    return "committed", None


def as_conversation(operations: tuple[Operation, ...]) -> Generator[Operation, Any, None]:
    """Turn a program whose operations are known in advance into a conversation."""
    for operation in operations:  # noqa: UP028 - a tuple cannot be sent results
        yield operation


def _converse(
    program: Generator[Operation, Any, None],
    t: RecordedTransaction,
    client: Client,
    wait: Callable[[Wait], None],
    pace: Callable[[], None],
    *,
    rows: bool,
    nulls: bool,
    lists: Container[str] | None,
) -> None:
    result = None
    while True:
        try:
            operation = program.send(result)
        except StopIteration:
            return
        result = perform(operation, t, client, wait, rows=rows, nulls=nulls, lists=lists)
        pace()


def planned_operations(
    operation: Operation, *, rows: bool = False
) -> tuple[RecordedOperation, ...]:
    """Return the recorded form of an operation whose result is not yet known."""
    match operation:
        case Read(key):
            return (("r", key, None),)
        case Scan(keys):
            return tuple(("r", key, None) for key in keys)
        case Append(key, value):
            return (("append", key, value),)
        case Write(key, value) | Insert(key, value) | Upsert(key, value):
            return (("w", key, value),)
        case InsertRows(rows_):
            return tuple(("w", key, value) for key, value in rows_)
        case SetNull(key):
            return (("w", key, NULL),)
        case SelectWhere():
            return (("rp", predicate_of(operation), None),)
        case Swap(key, _, value):
            return (("r", key, None), ("w", key, value))
        case Delete(key, cascades):
            gone = (key, *cascades)
            return tuple(("delete", k, None) if rows else ("w", k, DELETED) for k in gone)
        case SelectRange(low, high, _, keys):
            return (("rp", range_predicate(low, high, keys), None),)
        case UpdateRange() | DeleteRange() | TakeRow():
            raise TypeError(
                "cannot play a statement whose rows are unknown in advance; write the program as "
                "a conversation"
            )
        case Wait() | Pause() | Abort() | UndoneWrite():
            return ()


def perform(
    operation: Operation,
    t: RecordedOperations,
    client: Client,
    wait: Callable[[Wait], None] = lambda operation: None,
    *,
    rows: bool = False,
    nulls: bool = False,
    lists: Container[str] | None = None,
) -> Any:
    """Perform an operation, record it, and return its result (options as in :func:`play`).

    An UPDATE or DELETE that finds no row is recorded as a read of a missing row.
    """
    absent = None if rows else DELETED

    def read(key: str, value: Any) -> Any:
        written = to_written_type(key, value, lists)
        return NULL if nulls and written is None else written

    def all_of(rows: Mapping[str, Any]) -> dict[str, Any]:
        return {key: read(key, value) for key, value in rows.items()}

    if isinstance(operation, Read) and operation.lock:
        client.lock = operation.lock  # type: ignore[attr-defined]  # all that have locks have it
    elif (
        isinstance(operation, Read | Write | Delete | Scan | SelectRange | SelectWhere)
        and operation.path
    ):
        client.path = operation.path  # type: ignore[attr-defined]  # all that have ways have it
    t.sending()
    match operation:
        case Read(key):
            found = client.read(key)
            every = found.values if isinstance(found, SeveralRows) else (found,)
            values = [read(key, value) for value in every]
            for value in values:
                t.read(key, absent if value == DELETED else value, **_version_argument(client))
            return values[-1]
        case Write(key, value):
            there = client.write(key, value)
            if there:
                t.write(key, value, **_version_argument(client))
            else:
                t.read(key, absent)
            return there
        case SelectRange(low, high, _, keys):
            if keys:
                answer = with_optional_statements(client).within(low, high, keys[0], keys[-1])
            else:
                answer = client.select(low, high)
            found = all_of(answer)
            t.select(low, high, found, keys)
            return found
        case SelectWhere():
            found = all_of(with_optional_statements(client).where(operation))
            t.matched(predicate_of(operation), found)
            return found
        case SetNull(key):
            there = with_optional_statements(client).clear(key)
            if there:
                t.write(key, NULL)
            else:
                t.read(key, absent)
            return there
        case TakeRow(low, high):
            found = all_of(with_optional_statements(client).take(low, high))
            for key, value in found.items():
                t.read(key, value)
            return found
        case DeleteRange(low, high):
            removed = with_optional_statements(client).remove(low, high)
            for key in removed:
                (t.delete(key) if rows else t.write(key, DELETED))
            return removed
        case UpdateRange(low, high, value):
            changed = client.change(low, high, value)
            for key in changed:
                t.write(key, value)
            return changed
        case Append(key, value):
            if client.append(key, value):
                t.append(key, value)
            else:
                t.read(key, list(_MISSING_LIST))
        case Insert(key, value):
            client.insert(key, value)
            t.write(key, value, **_version_argument(client))
        case InsertRows(several):
            with_optional_statements(client).insert_rows(several)
            for key, value in several:
                t.write(key, value)
        case Upsert(key, value, merge):
            with_optional_statements(client).insert_or_update(key, value, merge=merge)
            t.write(key, value)
        case Swap():
            return _swap(operation, t, client, lists)
        case Delete(key, cascades):
            there = client.delete(key)
            if not there:
                t.read(key, absent)
            # SOUND BECAUSE: the program has locked the row and read its child rows, so exactly
            # these child rows are deleted with it.
            for gone in (key, *cascades) if there else ():
                (t.delete(gone) if rows else t.write(gone, DELETED))
            return there
        case Scan(keys):
            found = all_of(client.scan(keys[0], keys[-1]))
            for key in keys:
                t.read(key, found.get(key, absent))
            return found
        case Wait():
            wait(operation)
        case Pause(milliseconds):
            time.sleep(milliseconds / 1000)
        case UndoneWrite(undone):
            _undo(undone, client)
        case Abort():
            raise ProgramAborted("the program aborts")
    return None


def note_copy(
    t: RecordedTransaction,
    rows: Sequence[tuple[str, Any]],
    *,
    keys: Sequence[str],
    predicates: bool,
    nulls: bool = False,
    lists: Container[str],
) -> None:
    """Record the rows in a copy of the tables as reads by one transaction.

    Args:
        predicates: whether workloads have predicates. If so, the transaction is recorded as a
            predicate read of all rows whose value is not NULL; otherwise as a read of each key.
    """
    found: dict[str, list[Any]] = {}
    for key, value in rows:
        found.setdefault(key, []).append(to_written_type(key, value, lists))
    if not predicates:
        for key in keys:
            for value in found.get(key, [to_written_type(key, DELETED, lists)]):
                t.read(key, value)
        return
    there = {
        key: [NULL if value is None else value for value in values]
        for key, values in found.items()
        if nulls or values != [None]
    }
    condition = Literal(":true" if nulls else "[:not [:null :value]]")
    t.matched(condition, {key: values[0] for key, values in there.items()})
    for key, values in there.items():
        for value in values[1:]:  # the copy has several rows with this key
            t.read(key, value)


def with_optional_statements(client: Client) -> OptionalStatements:
    """Return the same client, typed as having the statements that its target offers."""
    return cast("OptionalStatements", client)


def _swap(
    operation: Swap, t: RecordedOperations, client: Client, lists: Container[str] | None
) -> bool:
    """Compare and set; if that fails, record a read that did not return the expected value."""
    key, expected, value = operation.key, operation.expected, operation.value
    if not isinstance(client, SupportsSwap):
        found = to_written_type(key, client.read(key), lists)
        t.read(key, found)
        return bool(found == expected) and bool(perform(Write(key, value), t, client))
    if not client.swap(key, expected, value):
        t.read_none_of(key, [expected])
        return False
    t.read(key, expected)
    t.write(key, value, **_version_argument(client))
    return True


def _version_argument(client: Client) -> dict[str, Any]:
    """Return the version just read or written by the client, as keyword arguments."""
    version = getattr(client, "row_version", None)
    return {} if version is None else {"version": version}


def _undo(operation: Write | Append | Insert | Upsert | Delete, client: Client) -> None:
    """Write, and roll the write back to a savepoint, without recording it."""
    client.savepoint()
    match operation:
        case Write(key, value):
            client.write(key, value)
        case Append(key, value):
            client.append(key, value)
        case Insert(key, value):
            client.insert(key, value)
        case Upsert(key, value, merge):
            with_optional_statements(client).insert_or_update(key, value, merge=merge)
        case Delete(key):
            client.delete(key)
    client.rollback_to_savepoint()


def to_written_type(key: str, value: Any, lists: Container[str] | None = None) -> Any:
    """Convert a value that was read to the type of written values.

    Values are written as integers, and lists as lists of integers. For a written 3, a driver may
    return 3.0 or ``Decimal(3)``. In Python these values are equal, but in a history they differ, so
    the read would seem to return a value that no transaction wrote, and the database would be
    accused.

    Raises:
        BadAnswer: no transaction can have written the value: it is not an integer, or it is a list
            although the key holds a single value, or vice versa.
    """
    if value == DELETED and lists is not None and key in lists:
        return list(_MISSING_LIST)
    if type(value) is int or value is None or value == DELETED:
        shaped = value is None or value == DELETED or lists is None or key not in lists
        return value if shaped else _raise_bad_answer(key, "a list", value)
    if isinstance(value, list | tuple):
        if lists is not None and key not in lists:
            _raise_bad_answer(key, "a single value", value)
        return [one if type(one) is int else _number(key, one, lists) for one in value]
    if lists is not None and key in lists:
        _raise_bad_answer(key, "a list", value)
    return _number(key, value, lists)


def _number(key: str, value: Any, lists: Container[str] | None) -> Any:
    """Convert a number to an integer; reject other values, because runs write only integers."""
    if isinstance(value, bool | str) or not hasattr(value, "__int__"):
        return value if lists is None else _raise_bad_answer(key, "an integer", value)
    exact = hasattr(value, "__index__") or not hasattr(value, "__float__")
    try:
        number = int(value)
        if number == value and (
            exact or isinstance(value, Decimal) or abs(number) < _FIRST_INEXACT
        ):
            return number
    except (ArithmeticError, ValueError):  # the value is infinite or not a number
        pass
    return _raise_bad_answer(key, "an integer", value)


def _raise_bad_answer(key: str, expected: str, value: Any) -> NoReturn:
    raise BadAnswer(f"{key}: expected {expected} (got {ascii(value)[:80]})")


_MISSING_LIST: Final = (DELETED,)
"""The recorded result of a read of a list whose row is missing.

No transaction appends this element, so the read counts as an anomaly. That is correct, because no
transaction deletes a list's row.
"""

_FIRST_INEXACT: Final = 2**53
"""The smallest number at which one float may represent several integers."""


def _transact(
    client: RunsWholeTransactions,
    t: RecordedTransaction,
    level: str,
    plan: tuple[RecordedOperation, ...],
    lists: Container[str] | None,
) -> None:
    """Let a client run a whole transaction in one call, and record the results."""
    for (name, key, value), result in zip(plan, client.transact(level, plan), strict=True):
        if name == "r":
            t.read(key, to_written_type(key, result, lists))
        elif name == "append":
            t.append(key, value)
        else:
            t.write(key, value)
