"""Transactions as Python objects, which users write and histories return."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET, Struct

Op: TypeAlias = tuple[Any, ...]
"""An operation: ``("w", key, value)``, ``("append", key, value)``, or ``("r", key, result)``; a
set-read: ``("r-in", key, values)``, ``("r-not-in", key, values)``; or an operation on rows:
``("insert", key, row)``, ``("delete", key)``, ``("scan", predicate, {key: row})``.

The result of a read is a value, ``None`` (the initial state), a list (the elements of an
append-only list) or :data:`~isolang.history.values.UNKNOWN`. A read may have a fourth element, the
write that it read: ``(transaction, operation)``, both counted from 0, or ``"initial"``, or
``"missing"`` (a write that the data names but does not contain). The value of a read must be the
value of the write that it names. A read of ``UNKNOWN`` constrains nothing, even if it names a
write.

A predicate is ``("=", column, value)`` or another comparison, ``("between", column, low, high)``,
``("in", column, values)``, ``("null", column)``, ``("and", …)``, ``("or", …)``, ``("not", …)``; a
dictionary ``{"table": …, "where": …}`` of a table and one of these; or the text of such a form in
EDN. ``None`` means that the recorder evaluated the predicate. The operation then has a fourth
element: for other keys, the matching rows that were not returned. A row is a dictionary, or a value
of the column ``value``. The returned rows may be ``UNKNOWN``.

A set-read states only that the version that the transaction saw has one, or none, of some values;
``None`` as one of these values means the initial state. A failed compare-and-set is a set-read.
"""

StatusName: TypeAlias = Literal["committed", "aborted", "indeterminate", "initial", "maybe", "info"]
"""The status of a transaction; ``maybe`` and ``info`` are other names of ``indeterminate``."""

STATUS_ALIASES: Final[dict[str, StatusName]] = {"indeterminate": "maybe", "info": "maybe"}


Time: TypeAlias = int | float | dt.datetime
"""Nanoseconds, seconds, or an instant."""


class Transaction(Struct, frozen=True):
    """A transaction.

    Attributes:
        ops: the operations in program order; see :data:`Op`.
        session: the session, any hashable object; the transactions of a session are in session
            order. Name it for all transactions or for none; without names, each transaction has its
            own session. A client that continues after an indeterminate transaction needs a new
            session, because that transaction may take effect later.
        status: ``committed``; ``aborted`` (certainly not applied); ``maybe``, also called
            ``indeterminate`` and ``info`` (the outcome is unknown, so a checker may include or
            exclude the transaction); or ``initial`` (the transaction *is* T0: it only writes, and
            its last writes are the initial values).
        begin: the time at which it started, or ``None`` if that is not known: an integer
            (nanoseconds), a float (seconds) or a datetime, of the same kind in the whole history.
        end: the time at which its outcome was known.
        number: the number in its name (``T<number>``); by default its ordinal, from 1.
        times: for each operation, the times at which it was sent and answered, by the clock of
            ``begin`` and ``end``; ``None`` in place of one or both times that are not known.
        commit: the time at which COMMIT was sent; the answer to COMMIT is at ``end``.
        group: an integer or a string; ``None`` for no group. Some levels promise more inside a
            group, such as the clients of one replica.
        versions: for each operation, the version that it read or wrote, as the database names it,
            or ``None``: an integer, a string, or any scalar. Only operations on registers have
            versions, because the value of a list shows its version.
        label: one name, or several; specifications may require more, or less, of transactions with
            a label.
        level: the level that the transaction requested, by its name in ``.iso`` files (``ser``).
        failed: the operations (counted from 0) that failed themselves; they are kept but ignored.
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


def one_or_several(names: tuple[str, ...]) -> str | tuple[str, ...] | None:
    """Return labels as a transaction has them: one name, several, or ``None``."""
    return None if not names else names[0] if len(names) == 1 else names
