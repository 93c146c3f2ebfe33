"""Hypothesis strategies for transactions, histories, and interleavings to run on a database.

The package does not import this module, because it requires the extra ``isolang[hypothesis]``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from hypothesis import strategies as st

from isolang.history import History, Transaction
from isolang.history.transaction import Op, StatusName
from isolang.run.operation import Operation, Read, Write
from isolang.testing.database import Interleaving

__all__ = ["histories", "interleavings", "programs", "transactions"]


@st.composite
def transactions(
    draw: st.DrawFn,
    *,
    keys: Sequence[Hashable] = ("x", "y"),
    sessions: int = 3,
    max_transactions: int = 5,
    max_operations: int = 4,
    lists: bool = False,
    statuses: Sequence[StatusName] = ("committed",),
) -> list[Transaction]:
    """Generate the transactions of a history, which a level may allow or forbid.

    No value is written twice. A read returns the initial state, or a value written to the same key
    by some transaction. Hypothesis shrinks examples to fewer transactions and to reads of the
    initial state.

    Args:
        keys: the keys that transactions may read and write.
        sessions: the maximum number of sessions.
        max_transactions: the maximum number of transactions.
        max_operations: the maximum number of operations in a transaction.
        lists: whether transactions append to lists and read them, instead of writing values.
        statuses: the statuses that transactions may have, simplest first.

    Returns:
        A strategy whose examples are arguments for ``History.from_transactions``.
    """
    kinds = st.sampled_from(["r", "append" if lists else "w"])
    drafts = draw(
        st.lists(
            st.lists(st.tuples(kinds, st.sampled_from(keys)), min_size=1, max_size=max_operations),
            min_size=1,
            max_size=max_transactions,
        )
    )
    written: dict[Hashable, list[int]] = {key: [] for key in keys}
    numbers: list[list[int]] = []
    for draft in drafts:
        numbers.append([])
        for kind, key in draft:
            number = 1 + sum(map(len, written.values()))
            numbers[-1].append(number)
            if kind != "r":
                written[key].append(number)
    results: dict[Hashable, st.SearchStrategy[Any]] = {
        key: _lists_of(values) if lists else st.sampled_from([None, *values])
        for key, values in written.items()
    }
    made = []
    for draft, values in zip(drafts, numbers, strict=True):
        ops: list[Op] = [
            (kind, key, draw(results[key]) if kind == "r" else value)
            for (kind, key), value in zip(draft, values, strict=True)
        ]
        made.append(
            Transaction(
                ops,
                session=draw(st.integers(0, sessions - 1)),
                status=draw(st.sampled_from(statuses)),
            )
        )
    return made


def _lists_of(values: list[int]) -> st.SearchStrategy[Any]:
    if not values:
        return st.just([])
    return st.lists(st.sampled_from(values), unique=True)


def histories(**options: Any) -> st.SearchStrategy[History]:
    """Generate histories; the arguments are the same as for :func:`transactions`."""
    return transactions(**options).map(History.from_transactions)


@st.composite
def programs(
    draw: st.DrawFn,
    *,
    keys: Sequence[str] = ("x", "y"),
    max_transactions: int = 3,
    max_operations: int = 3,
) -> tuple[tuple[Operation, ...], ...]:
    """Generate two or more small transactions of reads and writes, to run on a database.

    Args:
        keys: the keys of the rows that the transactions may read and write.
        max_transactions: the maximum number of transactions.
        max_operations: the maximum number of operations in a transaction.
    """
    kinds: st.SearchStrategy[Callable[..., Operation]] = st.sampled_from([Read, Write])
    drafts = draw(
        st.lists(
            st.lists(st.tuples(kinds, st.sampled_from(keys)), min_size=1, max_size=max_operations),
            min_size=2,
            max_size=max_transactions,
        )
    )
    written = 0
    made = []
    for draft in drafts:
        operations = []
        for kind, key in draft:
            if kind is Write:
                written += 1
            operations.append(Write(key, written) if kind is Write else Read(key))
        made.append(tuple(operations))
    return tuple(made)


@st.composite
def interleavings(
    draw: st.DrawFn,
    *,
    keys: Sequence[str] = ("x", "y"),
    max_transactions: int = 3,
    max_operations: int = 3,
    of: st.SearchStrategy[tuple[tuple[Operation, ...], ...]] | None = None,
) -> Interleaving:
    """Generate small transactions and an order for their steps.

    Hypothesis shrinks examples to serial orders.

    Args:
        keys: the keys of the rows that the transactions may read and write.
        max_transactions: the maximum number of transactions.
        max_operations: the maximum number of operations in a transaction.
        of: a strategy for the transactions; by default :func:`programs`.
    """
    if of is None:
        of = programs(keys=keys, max_transactions=max_transactions, max_operations=max_operations)
    transactions = draw(of)
    remaining = [len(program) + 1 for program in transactions]
    schedule = []
    while any(remaining):
        number = draw(st.sampled_from([i for i, steps in enumerate(remaining) if steps]))
        remaining[number] -= 1
        schedule.append(number)
    return Interleaving(transactions, tuple(schedule))
