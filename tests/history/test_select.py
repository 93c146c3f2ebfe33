"""Parts of a history: the operations that are kept are what they were."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.histories import transactions

from isolang.errors import HistoryError
from isolang.history import History, Transaction, sub_history


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(transactions(), st.data())
def test_parts(txns, data):
    """Kept operations keep values, places, numbers; transactions without any vanish."""
    h = History.from_transactions(txns, initial=3)
    keep = data.draw(st.sets(st.sampled_from(range(max(h.columns.operations(), 1)))))
    keep = sorted(op for op in keep if op < h.columns.operations())
    part = sub_history(h, data.draw(st.permutations(keep)))
    part.columns.validate()

    def described(of, op):
        t = of.transaction_of(op)
        columns = of.columns
        return (
            of.describe_op(op),
            of.where_op(op),
            of.where(t),
            of.status(t),
            of.session_of(t),
            int(columns.txn_number[t]),
            int(columns.txn_begin[t]),
            int(columns.txn_end[t]),
            of.value(int(columns.initial_value[int(columns.op_key[op])])),
        )

    ops = range(part.columns.operations())
    assert [described(part, op) for op in ops] == [described(h, op) for op in keep]
    assert part.columns.transactions() == len({h.transaction_of(op) for op in keep})
    assert part.columns.has_time == h.columns.has_time
    for op, old in zip(ops, keep, strict=True):
        source, before = int(part.columns.op_source[op]), int(h.columns.op_source[old])
        if before < 0:
            assert source == before
        elif before in keep:
            assert source == keep.index(before)
        else:
            assert source == -3


def test_named_sources_keep_what_they_name():
    """Its number changes with the operations before it; without it, the source is missing."""
    h = History.from_transactions(
        [
            Transaction([("w", "y", 1), ("w", "x", 1)], session=0),
            Transaction([("w", "x", 1), ("r", "x", 1, "initial")], session=1),
            Transaction([("r", "x", 1, (0, 1)), ("r", "x", 1, (1, 0)), ("r", "y", 1)], session=2),
        ]
    )
    assert h.columns.op_source.tolist() == [-1, -1, -1, -2, 1, 2, -1]
    part = sub_history(h, [1, 3, 4, 5, 6])
    assert part.columns.op_source.tolist() == [-1, -2, 0, -3, -1]


def test_everything_is_the_same_history():
    txns = [Transaction([("w", 1, 1)], session="a"), Transaction([("r", 1, 1)], session="b")]
    h = History.from_transactions(txns)
    part = sub_history(h, range(2))
    assert list(part.transactions()) == list(h.transactions())
    assert part.sha256 != h.sha256


def test_transactions_without_operations_stay_where_they_are_wanted():
    """Each at its place, with its times; also where nothing else is left."""
    h = History.from_transactions(
        [
            Transaction([], session="a", begin=1, end=2),
            Transaction([("w", 1, 1)], session="b", begin=3, end=4),
            Transaction([], session="a", begin=5, end=6),
            Transaction([("r", 1, 1)], session="c", begin=7, end=8),
            Transaction([], session="c", begin=9, end=10),
        ]
    )
    for ops, txns, begins in (
        ([0, 1], [], [3, 7]),
        ([0, 1], [4, 0, 2], [1, 3, 5, 7, 9]),
        ([1], [1, 3, 4], [3, 7, 9]),
        ([], [2, 4], [5, 9]),
    ):
        part = sub_history(h, ops, txns)
        assert part.columns.txn_begin.tolist() == begins
        assert part.columns.operations() == len(ops)
        part.columns.validate()
    for txn in (-1, 5):
        with pytest.raises(HistoryError, match="no transaction has this number"):
            sub_history(h, [0], [txn])


def test_no_such_operation():
    h = History.from_transactions([Transaction([("w", 1, 1)])])
    for op in (-1, 1):
        with pytest.raises(HistoryError) as error:
            sub_history(h, [0, op])
        assert (
            str(error.value)
            == f"<memory>: no operation has this number (got {op}, expected 0 to 0)"
        )
