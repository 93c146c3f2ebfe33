"""Transactions as Python objects, which people write and histories return."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET, Struct

Op: TypeAlias = tuple[Any, ...]
"""``("w", key, value)``, ``("append", key, value)``, or ``("r", key, result)``; or a set-read:
``("r-in", key, values)``, ``("r-not-in", key, values)``; or one on rows: ``("insert", key, row)``,
``("delete", key)``, ``("scan", predicate, {key: row})``.

The result of a read is a value, ``None`` (the initial state), a list (the elements of an
append-only list) or :data:`~isolang.history.values.UNKNOWN`. A read may have a fourth element, the
write that it read: ``(transaction, operation)``, both counted from 0, or ``"initial"``, or
``"missing"`` (a write that the data names but does not contain). The value of a read must be that
of the write that it names; a read of ``UNKNOWN`` constrains nothing, whatever it names.

A predicate is ``("=", column, value)`` or another comparison, ``("between", column, low, high)``,
``("in", column, values)``, ``("null", column)``, ``("and", …)``, ``("or", …)``, ``("not", …)``; a
dictionary ``{"table": …, "where": …}`` of a table and one of these; or the text of such a form in
EDN. ``None`` means that the recorder evaluated the predicate: then a fourth element has, for other
keys, the matching rows that were not found. A row is a dictionary, or a value of the column
``value``. The returned rows may be ``UNKNOWN``.

A set-read states only that the version that the transaction saw has one, or none, of some values;
``None`` among them is the initial state. A failed compare-and-set is one.
"""

StatusName: TypeAlias = Literal["committed", "aborted", "indeterminate", "initial", "maybe", "info"]
"""The last two are other names of ``indeterminate``."""

STATUS_ALIASES: Final[dict[str, StatusName]] = {"indeterminate": "maybe", "info": "maybe"}


Time: TypeAlias = int | float | dt.datetime
"""Nanoseconds, seconds, or an instant."""


class Transaction(Struct, frozen=True):
    """A transaction.

    Attributes:
        ops: its operations in program order, see :data:`Op`.
        session: its session, any hashable; the transactions of a session are in session order.
            Name it for all transactions, or for none: then each has its own session. A client that
            continues after an indeterminate transaction is a new session: the transaction may take
            effect later.
        status: ``committed``; ``aborted`` (certainly not applied); ``maybe``, also called
            ``indeterminate`` and ``info`` (outcome unknown: a checker may include or exclude it);
            ``initial``: it *is* T0, the initial transaction: it only writes, and its last writes
            are the initial values.
        begin: when it started, or ``None`` if that is not known: integers (nanoseconds), floats
            (seconds) or datetimes, one kind for the whole history.
        end: when its outcome was known.
        number: the number in its name (``T<number>``); by default its ordinal, from 1.
        times: when each operation was sent and when it was answered, or ``None`` for one of the two
            or for both; by the clock of ``begin`` and ``end``.
        commit: when COMMIT was sent; its answer is at ``end``.
        group: an integer or a string; ``None`` for none. Some levels promise more inside a group,
            for example of the clients of one replica.
        versions: for each operation the version that it read or wrote, as the database names it, or
            ``None``: an integer, a string, any scalar. Only for registers: the value of a list
            shows its version.
        label: a name, or several; specifications may require more, or less, of transactions with
            a label.
        level: the level that it requested, by its name in ``.iso`` files (``ser``).
        failed: its operations (counted from 0) that failed themselves: kept, but ignored.
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
