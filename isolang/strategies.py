"""Hypothesis strategies: transactions, histories, and interleavings to run on a database.

Import this module by its name; it needs ``isolang[hypothesis]``.
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
def transactions(  # noqa: D417 - Hypothesis gives draw
    draw: st.DrawFn,
    *,
    keys: Sequence[Hashable] = ("x", "y"),
    sessions: int = 3,
    max_transactions: int = 5,
    max_operations: int = 4,
    lists: bool = False,
    statuses: Sequence[StatusName] = ("committed",),
) -> list[Transaction]:
    """Transactions of a history: of any, not only of one that a level allows.

    No value is written twice; a read returns something that somebody writes to its key, or what
    was there at first. Fewer transactions and reads of the initial state are simpler.

    Args:
        keys: that are read and written.
        sessions: at most this many.
        max_transactions: likewise.
        max_operations: of each transaction.
        lists: append to lists, and read them, instead of writing values.
        statuses: that transactions may have; the simplest first.

    Returns:
        A strategy of what ``History.from_transactions`` takes.
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
    """Histories of :func:`transactions`, whose arguments it takes."""
    return transactions(**options).map(History.from_transactions)


@st.composite
def programs(  # noqa: D417
    draw: st.DrawFn,
    *,
    keys: Sequence[str] = ("x", "y"),
    max_transactions: int = 3,
    max_operations: int = 3,
) -> tuple[tuple[Operation, ...], ...]:
    """Small transactions to run on a database, two at least: reads, and writes of values.

    Args:
        keys: of rows.
        max_transactions: at most this many.
        max_operations: of each transaction.
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
def interleavings(  # noqa: D417
    draw: st.DrawFn,
    *,
    keys: Sequence[str] = ("x", "y"),
    max_transactions: int = 3,
    max_operations: int = 3,
    of: st.SearchStrategy[tuple[tuple[Operation, ...], ...]] | None = None,
) -> Interleaving:
    """Small transactions and an order of their steps; one after the other is the simplest.

    Args:
        keys: as :func:`programs` has it; likewise the next two.
        max_transactions: at most this many.
        max_operations: of each transaction.
        of: the transactions to choose from, instead.
    """
    if of is None:
        of = programs(keys=keys, max_transactions=max_transactions, max_operations=max_operations)
    drawn = draw(of)
    left = [len(program) + 1 for program in drawn]
    schedule = []
    while any(left):
        number = draw(st.sampled_from([i for i, steps in enumerate(left) if steps]))
        left[number] -= 1
        schedule.append(number)
    return Interleaving(drawn, tuple(schedule))
