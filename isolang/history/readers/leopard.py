"""Reads Leopard's traces, which have one JSON object with two times per operation.

They are the times of the request and the answer. A key consists of a table, a primary key and a
column. A ``LOCKING_READ`` or ``UNCOMMITTED_READ`` may see different values from a consistent read.
Therefore the reader ignores and counts the values of these reads, but keeps the writes of their
statements. The published guideline does not name the records that end a transaction. This reader
expects ``COMMIT`` and ``ROLLBACK``, in upper or lower case. If a trace contains no such record,
every transaction is assumed to have committed at its last operation. Otherwise a transaction
without such a record is indeterminate.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from isolang.caveat import Caveat
from isolang.errors import HistoryError
from isolang.history.transaction import StatusName, Transaction

if TYPE_CHECKING:
    from isolang.history.readers.reading import Files, Reading

_ENDS: Final[Mapping[str, StatusName]] = {
    "COMMIT": "committed",
    "ROLLBACK": "aborted",
    "ABORT": "aborted",
}
_BEGINS: Final = ("BEGIN", "START", "START_TRANSACTION")


class _Traced(Struct):
    """A transaction under construction, with the operations read so far."""

    session: str
    begin: int
    end: int
    status: StatusName | None = None
    commit: int | None = None
    ops: list[tuple[Any, ...]] = field(default_factory=list)
    times: list[tuple[int, int] | None] = field(default_factory=list)


def read(files: Files, *, timeout: float = 0.0) -> Reading:
    """Read one history from any number of trace files.

    Raises:
        HistoryError: a line is not an operation of a trace, or its times contradict each other.
    """
    from isolang.history.build import build

    traced: dict[str, _Traced] = {}
    skipped = 0
    for name, data in files:
        for number, record in _records(data, name):
            skipped += _take(record, traced, f"{name}:{number}")
    ended = any(t.status is not None for t in traced.values())
    ordered = sorted(traced.values(), key=lambda t: (t.begin, t.end))
    found = [
        Transaction(
            ops=t.ops,
            session=t.session,
            status=t.status or ("maybe" if ended else "committed"),
            begin=t.begin,
            end=t.end if t.status or not ended else None,
            times=t.times,
            commit=t.commit,
        )
        for t in ordered
    ]
    reading = build(found, initial=None, name=files[0][0] if files else "trace")
    ignored = list(reading.ignored)
    if skipped:
        ignored.append(Caveat(f"{skipped} values of locking and uncommitted reads"))
    no_commit = Caveat("the trace contains no COMMIT, so every transaction counts as committed")
    notes = () if ended else (no_commit,)
    return replace(
        reading,
        session="one threadID",
        real_time="startTimestamp and finishTimestamp of operations",
        ignored=tuple(ignored),
        notes=(*reading.notes, *notes),
    )


def _records(data: bytes, name: str) -> Iterator[tuple[int, Any]]:
    """Yield the objects in a file, each with its line, or with its index if they form a list."""
    text = data.decode("utf-8", "replace")
    if text.lstrip().startswith("["):
        try:
            yield from enumerate(json.loads(text), 1)
        except ValueError as error:
            raise HistoryError(f"{name}: not JSON ({error})") from None
        return
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip().rstrip(",")
        if stripped:
            try:
                yield number, json.loads(stripped)
            except ValueError as error:
                raise HistoryError(f"{name}:{number}: not JSON ({error})") from None


def _take(record: Any, traced: dict[str, _Traced], where: str) -> int:
    """Add a record's operation to its transaction and return the number of ignored read values."""
    try:
        session, txn = str(record["threadID"]), str(record["transactionID"])
        kind = str(record["operationTraceType"]).upper()
        begin, end = record["startTimestamp"], record["finishTimestamp"]
    except (KeyError, TypeError):
        raise HistoryError(
            f"{where}: not an operation of a Leopard trace (expected threadID, transactionID, "
            "operationTraceType, startTimestamp, finishTimestamp)"
        ) from None
    if type(begin) is not int or type(end) is not int or begin > end:
        raise HistoryError(
            f"{where}: wrong times (got {begin!r:.30} and {end!r:.30}, expected whole nanoseconds, "
            "with the start no later than the finish)"
        )
    t = traced.setdefault(txn, _Traced(session, begin, end))
    if t.session != session:
        raise HistoryError(
            f"{where}: transaction {txn} belongs to two threads, {t.session} and {session}"
        )
    if t.status is not None:
        raise HistoryError(f"{where}: transaction {txn} has an operation after its end")
    t.begin, t.end = min(t.begin, begin), max(t.end, end)
    if kind in _ENDS:
        t.status = _ENDS[kind]
        t.commit = begin
        return 0
    if kind in _BEGINS:
        return 0
    consistent = record.get("readMode") in (None, "CONSISTENT_READ")
    skipped = 0
    for name, word in (("readTupleList", "r"), ("writeTupleList", "w")):
        for key, value in _values(record.get(name), f"{where}: {name}"):
            if word == "r" and not consistent:
                skipped += 1
                continue
            t.ops.append((word, key, value))
            t.times.append((begin, end))
    return skipped


def _values(tuples: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Yield the key and value of every column in every row of a record."""
    for row in tuples or ():
        try:
            prefix = f"{row['table']}/{row['primaryKey']}"
            columns = row["valueMap"].items()
        except (KeyError, TypeError, AttributeError):
            raise HistoryError(
                f"{where}: not a row (expected table, primaryKey and valueMap)"
            ) from None
        for column, value in columns:
            yield f"{prefix}/{column}", value
