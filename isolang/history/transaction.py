"""One transaction as Python objects: what people write, and what a history gives back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

Op: TypeAlias = tuple[Any, ...]
"""``("w", key, value)``, ``("append", key, value)``, or ``("r", key, result)``.

The result of a read is a value, ``None`` (the initial state), a list (what an append-only list
held) or :data:`~isolang.history.values.UNKNOWN`. A read may have a fourth element, the write it is
known to come from: ``(transaction, operation)``, both counted from 0, or ``"initial"``, or
``"missing"`` (a write that the data names but does not hold).
"""

StatusName: TypeAlias = Literal["committed", "aborted", "maybe", "initial"]


class Transaction(Struct, frozen=True):
    """A transaction.

    Attributes:
        ops: its operations in program order, see :data:`Op`.
        session: what it belongs to, any hashable; the transactions of a session stand in session
            order.
        status: ``committed``; ``aborted`` (certainly not applied); ``maybe`` (outcome unknown:
            applied iff somebody read from it); ``initial``: it *is* T0, the initial transaction,
            and its last writes are the initial values.
        begin: when it started, in any unit, or ``None`` if that is not known.
        end: when its outcome was known.
        label: the number to call it by (``T<label>``); by default its ordinal, from 1.
        failed: which of its operations (counted from 0) failed themselves: kept, but ignored.
    """

    ops: Sequence[Op]
    session: Any = 0
    status: StatusName = "committed"
    begin: int | None = None
    end: int | None = None
    label: int | None = None
    failed: tuple[int, ...] = ()
