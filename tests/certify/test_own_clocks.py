"""A clock error leaves what a session's own clock says, whatever else stands in the history."""

import pytest
from support.certify import verdicts_of_both

from isolang import check, load_spec
from isolang.certify.proofs import Witness
from isolang.history import History, Transaction
from isolang.history.clock_error import with_clock_error

#: One session writes x before it reads nil, by its own clock; the clocks of others do not matter.
PAIR = [
    Transaction([("w", "x", 1)], session=0, begin=0, end=10),
    Transaction([("r", "x", None)], session=0, begin=20, end=30),
]


def scanning(scans, *, first):
    """The pair, and before or behind it a session with this many predicate reads."""
    ops = [("scan", (">", "value", 100 + i), {}) for i in range(scans)]
    other = [Transaction(ops, session=1, begin=0, end=5)]
    rows = [*other, *PAIR] if first else [*PAIR, *other]
    return with_clock_error(History.from_transactions(rows), 1000)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("scans", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("level", ["sser-nosession", "strong-si-nosession", "pl-fcv"])
def test_predicate_reads_leave_each_transaction_its_own_clock(level, scans, first):
    """That the second transaction reads the initial value is refused by both checkers, however many
    predicate reads there are, and the verdict is certified.
    """
    history = scanning(scans, first=first)
    columns = history.columns
    t0 = columns.transactions()
    source = [-1, *[t0] * (len(columns.op_kind) - 1)]
    start = [0, *[1] * len(columns.key_atom)]
    assert (
        verdicts_of_both(history, load_spec(level), Witness.of(source, start, [int(first)]))
        == ("rejected",) * 2
    )
    verdict = check(history, level)
    assert (verdict.outcome, verdict.certified) == ("invalid", True)


@pytest.mark.parametrize("level", ["sser-nosession", "strong-si-nosession", "pl-fcv"])
def test_predicate_reads_put_no_transaction_on_the_clock_of_another_session(level):
    """Sessions that the error leaves concurrent may come in either order: two of them are not taken
    for one because one has predicate reads.
    """
    scan = ("scan", (">", "value", 100), {})
    apart = [
        Transaction([("w", "x", 1)], session=0, begin=0, end=10),
        Transaction([("r", "x", None)], session=1, begin=20, end=30),
        Transaction([scan, scan], session=0, begin=11, end=12),
    ]
    verdict = check(with_clock_error(History.from_transactions(apart), 1000), level)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
