"""Defines transactions as Python objects, created by users and returned by histories."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET, Struct

Op: TypeAlias = tuple[Any, ...]
"""An operation on a register or a list: ``("w", key, value)``, ``("append", key, value)`` or
``("r", key, result)``; a set-read: ``("r-in", key, values)`` or ``("r-not-in", key, values)``; or
an operation on rows: ``("insert", key, row)``, ``("delete", key)`` or
``("scan", predicate, {key: row})``.

The result of a read is a value, ``None`` for the initial state, a list with the elements of an
append-only list, or :data:`~isolang.history.values.UNKNOWN`. A read may have a fourth element that
names the write it read: ``(transaction, operation)``, both counted from 0; ``"initial"``; or
``"missing"``, for a write that the data mentions but does not contain. A read must have the same
value as the write it names. A read of ``UNKNOWN`` constrains nothing, even if it names a write.

A predicate is ``("=", column, value)`` or another comparison, ``("between", column, low, high)``,
``("in", column, values)``, ``("null", column)``, ``("and", …)``, ``("or", …)`` or ``("not", …)``. A
dictionary ``{"table": …, "where": …}`` restricts such a predicate to a table. A predicate may also
be the EDN text of such a form. ``None`` in place of a predicate means that the recorder evaluated
the predicate. The operation then has a fourth element: the matching rows, by key, that were not
returned. A row is a dictionary, or a single value for a column named ``value``. The returned rows
may be ``UNKNOWN``.

A set-read states only that the version seen by the transaction has one of the given values, or none
of them. ``None`` among these values means the initial state. A failed compare-and-set is a
set-read.
"""

StatusName: TypeAlias = Literal["committed", "aborted", "indeterminate", "initial", "maybe", "info"]
"""The status of a transaction; ``maybe`` and ``info`` mean the same as ``indeterminate``."""

STATUS_ALIASES: Final[dict[str, StatusName]] = {"indeterminate": "maybe", "info": "maybe"}


Time: TypeAlias = int | float | dt.datetime
"""A time: an integer in nanoseconds, a float in seconds, or a datetime."""


class Transaction(Struct, frozen=True):
    """A transaction run by a client, as a Python object.

    Attributes:
        ops: the operations in program order, each in the form of :data:`Op`.
        session: the session, which may be any hashable object. The transactions of a session must
            be given in session order. Either all transactions in a history name a session, or none
            do; if none do, each transaction gets its own session. A client that continues after an
            indeterminate transaction needs a new session, because the indeterminate transaction may
            take effect later.
        status: ``committed``; ``aborted`` (the transaction certainly took no effect); ``maybe``,
            also called ``indeterminate`` and ``info`` (the outcome is unknown, so a checker may
            include or exclude the transaction); or ``initial`` (the transaction *is* T0: it only
            writes, and its last writes are the initial values).
        begin: the time at which the transaction began: an integer in nanoseconds, a float in
            seconds, or a datetime; ``None`` if unknown. All times in a history must be of the same
            kind.
        end: the time at which the client learned the outcome; ``None`` if unknown.
        number: the number in the transaction's name (``T<number>``); by default its position in the
            history, counted from 1.
        times: for each operation, the times at which it was sent and answered, by the clock of
            ``begin`` and ``end``. ``None`` stands for an unknown time, or for the whole pair if
            both times are unknown.
        commit: the time at which COMMIT was sent; the answer to COMMIT arrived at ``end``.
        group: an integer or a string; ``None`` for no group. Some levels promise more inside a
            group, such as the clients of one replica.
        versions: for each operation, the version it read or wrote, as named by the database (an
            integer, a string, or another scalar), or ``None``. Only operations on registers have
            versions, because the value of a list shows its version.
        label: one name, or several names. Specifications may require more, or less, from
            transactions with a label.
        level: the level requested by the transaction, by its name in ``.iso`` files (``ser``).
        unit: the name of the request, or the job, that the transaction belongs to. It is used only
            if the history is read with ``unit="request"``.
        failed: the indices, counted from 0, of operations that failed by themselves. These
            operations are kept, but have no effect on verdicts.
    """

    ops: Sequence[Op]
    session: Any = UNSET
    status: StatusName = "committed"
    begin: Time | None = None
    end: Time | None = None
    number: int | None = None
    failed: tuple[int, ...] = ()
    times: Sequence[tuple[Time | None, Time | None] | None] | None = None
    commit: Time | None = None
    group: Any = None
    versions: Sequence[Any] | None = None
    label: str | Sequence[str] | None = None
    level: str | None = None
    unit: str | None = None


def label_value(names: tuple[str, ...]) -> str | tuple[str, ...] | None:
    """Return names in the form of ``Transaction.label``: a name, several names, or ``None``."""
    return None if not names else names[0] if len(names) == 1 else names
