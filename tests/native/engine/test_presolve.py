"""Histories of one transaction a session, where the order of the file is assumed.

What stands far apart in the file is assumed to be ordered. Here that is right, wrong for some, and
wrong throughout; the verdict must not depend on it.
"""

from __future__ import annotations

import random

import pytest

from isolang.api import check, load_spec
from isolang.history import History, Transaction

SIZE = 1500
Op = tuple[str, str, int | None]


def serial(rng: random.Random, repeated: bool) -> list[list[Op]]:
    """The transactions of a serial store, in its order."""
    state: dict[str, int | None] = {f"k{i}": None for i in range(SIZE // 10)}
    transactions = []
    for number in range(SIZE):
        ops: list[Op] = []
        for key in rng.sample(sorted(state), 4):
            if rng.random() < 0.5:
                ops.append(("r", key, state[key]))
            else:
                state[key] = rng.randrange(20) if repeated else number
                ops.append(("w", key, state[key]))
        transactions.append(ops)
    return transactions


def of_own_sessions(transactions: list[list[Op]]) -> History:
    return History.from_transactions(
        Transaction(ops, session=f"s{i}") for i, ops in enumerate(transactions)
    )


def displaced(rng: random.Random, transactions: list[list[Op]], count: int) -> list[list[Op]]:
    """Some transactions are told far from when they took place."""
    moved = [transactions.pop(rng.randrange(len(transactions))) for _ in range(count)]
    for ops in moved:
        transactions.insert(rng.randrange(len(transactions) + 1), ops)
    return transactions


@pytest.mark.parametrize("level", ["ser", "si"])
@pytest.mark.parametrize(
    ("count", "repeated"), [(0, False), (0, True), (1, False), (1, True), (SIZE, False)]
)
def test_valid_wherever_transactions_stand(level: str, count: int, repeated: bool) -> None:
    rng = random.Random(count)
    verdict = check(
        of_own_sessions(displaced(rng, serial(rng, repeated), count)), load_spec(level), timeout=60
    )
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    if count < SIZE:
        assert verdict.statistics["presolve_window"] >= 64
    else:
        assert "presolve_window" not in verdict.statistics  # nothing in the order is to be believed


SKEW: list[list[Op]] = [
    [("r", "a", None), ("r", "b", None), ("w", "a", 1)],
    [("r", "a", None), ("r", "b", None), ("w", "b", 1)],
]
LOST: list[list[Op]] = [[("r", "a", None), ("w", "a", 1)], [("r", "a", None), ("w", "a", 2)]]


@pytest.mark.parametrize(("level", "violation"), [("ser", SKEW), ("si", LOST)])
@pytest.mark.parametrize("places", [(700, 701), (30, 1470)])
def test_a_violation_is_no_misplaced_transaction(
    level: str, violation: list[list[Op]], places: tuple[int, int]
) -> None:
    transactions = serial(random.Random(7), repeated=False)
    for place, ops in zip(places, violation, strict=True):
        transactions.insert(place, ops)
    verdict = check(of_own_sessions(transactions), load_spec(level), timeout=60)
    assert (verdict.outcome, verdict.certified) == ("invalid", True)
    assert verdict.violation is not None
    assert {t.number for t in verdict.violation.transactions} <= set(places)


def test_a_read_across_the_assumed_order() -> None:
    """The write that it saw is told 1,380 places later: nothing is assumed of these two."""
    transactions = serial(random.Random(8), repeated=False)
    transactions.insert(1390, [("w", "a", 1)])
    transactions.insert(10, [("r", "a", 1), ("w", "b", 1)])
    verdict = check(of_own_sessions(transactions), load_spec("ser"), timeout=60)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    assert verdict.statistics["presolve_window"] == 64


@pytest.mark.parametrize("level", ["ser", "si"])
def test_reads_that_add_up_across_the_assumed_order(level: str) -> None:
    """Each is told 32 places before the write that it saw, four in a row: two windows in all.

    No read tells that by itself, so the assumption is refuted first, and then withdrawn.
    """
    transactions = serial(random.Random(9), repeated=False)
    for i in reversed(range(5)):
        seen: list[Op] = [("r", f"a{i - 1}", 1)] if i else []
        transactions.insert(1000 - 32 * i, [*seen, ("w", f"a{i}", 1)])
    verdict = check(of_own_sessions(transactions), load_spec(level), timeout=60)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    assert verdict.statistics["presolve_window"] == 64
    assert 1 < verdict.statistics["presolve_rounds"] < 5
