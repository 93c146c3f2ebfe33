"""dbcop's JSON: sessions of transactions, bare or inside an object with parameters.

An event is ``{"Read": {"variable": V, "version": V or null}}``, ``{"Write": …}``, ``["r", V,
version or null]`` or ``["w", V, version]``. A transaction that is not committed is aborted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.readers.native import read_regular
from isolang.history.readers.reading import U64, Reading, counted, show_json, text_of
from isolang.history.readers.versions import (
    INITIAL_SENTENCE,
    REAL_TIME_SENTENCE,
    SESSION_SENTENCE,
    normalise_zero_reads,
)

if TYPE_CHECKING:
    from isolang._native import Columns

_HEADER = {"params", "info", "start", "end", "data"}
_EVENT = (
    'expected {"Read": {"variable": n, "version": n or null}}, {"Write": …}, '
    '["r", n, n or null] or ["w", n, n]'
)


def read_dbcop_json(name: str, data: bytes, timeout: float = 0.0) -> Reading:
    """Read a dbcop JSON history.

    Raises:
        HistoryError: naming the line (syntax) or the session and transaction (content).
    """
    regular = read_regular("dbcop-json", ((name, data),), timeout)
    if regular is None:
        return read_any_dbcop_json(name, data)
    columns, say = regular
    return _reading(columns, say["sessions"], say["empty"], set())


def read_any_dbcop_json(name: str, data: bytes) -> Reading:
    """The same of any file, regular or not, and slower."""
    from isolang._native import Columns

    columns = Columns()
    unknown_fields: set[str] = set()
    sessions = _sessions(name, _parse(name, data), unknown_fields)
    ordinal = 0
    number = 0
    for s, session in enumerate(sessions):
        if not isinstance(session, list):
            msg = (
                f"{name}: session {s + 1}: not a list of transactions "
                f"(got {show_json(session)}, expected [...])"
            )
            raise HistoryError(msg)
        for t, transaction in enumerate(session):
            ordinal += 1
            where = f"{name}: session {s + 1}, transaction {t + 1}"
            _transaction(
                columns,
                transaction,
                session=number,
                ordinal=ordinal,
                where=where,
                unknown_fields=unknown_fields,
            )
        number += bool(session)
    columns.validate()
    ordinals = [s + 1 for s, session in enumerate(sessions) if session]
    return _reading(columns, ordinals, len(sessions) - number, unknown_fields)


def _reading(
    columns: Columns, ordinals: Sequence[int], empty: int, unknown_fields: set[str]
) -> Reading:
    notes = normalise_zero_reads(columns)
    ignored = []
    if unknown_fields:
        ignored.append(f"unknown fields: {', '.join(sorted(unknown_fields))}")
    if empty:
        ignored.append(counted(empty, "session") + " without transactions")
    return Reading(
        columns=columns,
        position_unit="record",
        initial=INITIAL_SENTENCE,
        session=SESSION_SENTENCE,
        real_time=REAL_TIME_SENTENCE,
        ignored=tuple(ignored),
        notes=notes,
        session_names=tuple(str(s) for s in ordinals),
    )


def _parse(name: str, data: bytes) -> Any:
    try:
        return json.loads(text_of(name, data))
    except json.JSONDecodeError as e:
        msg = f"{name}: line {e.lineno}: not JSON ({e.msg}, column {e.colno})"
        raise HistoryError(msg) from None
    except RecursionError:
        msg = f"{name}: JSON that is nested too deeply (expected at most 6 levels)"
        raise HistoryError(msg) from None
    except ValueError as e:  # a number of thousands of digits
        msg = f"{name}: not JSON ({e})"
        raise HistoryError(msg) from None


def _sessions(name: str, found: Any, unknown_fields: set[str]) -> list[Any]:
    if isinstance(found, dict):
        if "data" not in found:
            fields = ", ".join(found) or "none"
            msg = f'{name}: no sessions (got the fields {fields}, expected "data")'
            raise HistoryError(msg)
        unknown_fields.update(found.keys() - _HEADER)
        found = found["data"]
    if not isinstance(found, list):
        msg = f"{name}: not a list of sessions (got {show_json(found)}, expected [[...], ...])"
        raise HistoryError(msg)
    return found


def _transaction(
    columns: Columns,
    found: Any,
    *,
    session: int,
    ordinal: int,
    where: str,
    unknown_fields: set[str],
) -> None:
    if not isinstance(found, dict) or not isinstance(found.get("events"), list):
        msg = (
            f"{where}: not a transaction (got {show_json(found)}, "
            'expected {"events": [...], "committed": true or false})'
        )
        raise HistoryError(msg)
    committed = found.get("committed")
    if not isinstance(committed, bool):
        msg = (
            f'{where}: no outcome (got {show_json(committed)}, expected "committed": true or false)'
        )
        raise HistoryError(msg)
    unknown_fields.update(found.keys() - {"events", "committed"})
    status = c.COMMITTED if committed else c.ABORTED
    columns.begin_transaction(session, status, ordinal, ordinal)
    for i, event in enumerate(found["events"]):
        write, variable, version = _event(event, f"{where}, event {i + 1}")
        key = columns.intern_key(*_number(variable))
        value = c.NIL_ATOM if version is None else columns.intern_value(*_number(version))
        columns.add_op(c.WRITE if write else c.READ, key, value, i + 1)


def _event(event: Any, where: str) -> tuple[bool, int, int | None]:
    write: bool | None = None
    variable: Any = None
    version: Any = None
    match event:
        case ["r" | "w" as kind, variable, version]:
            write = kind == "w"
        case {"Read": {"variable": variable, **rest}} if len(event) == 1:
            write, version = False, rest.pop("version", None)
            if rest:
                write = None
        case {"Write": {"variable": variable, "version": version}} if len(event) == 1:
            write = True
    if write is None:
        msg = f"{where}: not an event (got {show_json(event)}, {_EVENT})"
        raise HistoryError(msg)
    if not _is_u64(variable):
        msg = (
            f"{where}: not a variable (got {show_json(variable)}, "
            "expected an unsigned 64-bit integer)"
        )
        raise HistoryError(msg)
    if not _is_u64(version) and (write or version is not None):
        msg = (
            f"{where}: not a version (got {show_json(version)}, "
            f"expected an unsigned 64-bit integer{'' if write else ' or null'})"
        )
        raise HistoryError(msg)
    return write, variable, version


def _is_u64(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and 0 <= x < U64


def _number(x: int) -> tuple[int, int]:
    return (1 if x < 2**63 else 2), x
