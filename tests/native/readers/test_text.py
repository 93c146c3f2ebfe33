"""The native readers of Plume/PolySI/IsoVista and AWDIT text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.readers import (
    ABORTED,
    COMMITTED,
    Txn,
    atom,
    transactions,
)

from isolang import _native
from isolang._native import ReadError

# --- Plume, PolySI, IsoVista; AWDIT ---


def text(data: bytes, kind: str) -> tuple[list[Txn], dict[str, Any]]:
    columns, remarks = (_native.read_awdit if kind == "awdit" else _native.read_plume)(data)
    zero = 0 if kind != "awdit" else None
    assert all(atom(columns.value(int(v))) == zero for v in columns.initial_value)
    assert not columns.has_time
    return transactions(columns), remarks


def test_plume_transactions_and_aborted_runs() -> None:
    txns, remarks = text(
        b"w(0,1,7,1)\nr(0,0,7,-1)\nw(9,9,3,-1)\nw(0,5,7,-1)\nr(1,1,7,2)\nw(0,6,7,-1)\nw(2,0,7,1)\n",
        "plume",
    )
    assert [(t.session, t.status, t.number, t.position) for t in txns] == [
        (0, COMMITTED, 1, 1),
        (0, ABORTED, -1, 2),
        (1, ABORTED, -1, 3),
        (0, COMMITTED, 2, 5),
        (0, ABORTED, -1, 6),
    ]
    # line 7 belongs to transaction 1, which began on line 1: all lines of an id are one transaction
    assert txns[0].ops == [("w", 0, 1), ("w", 2, 0)]
    assert txns[0].lines == [1, 7]
    assert txns[1].ops == [("r", 0, 0), ("w", 0, 5)]
    assert remarks["aborted_lines"] == 4
    assert remarks["aborted_transactions"] == 3
    assert remarks["interleaved_lines"] == 1
    assert remarks["zero_writes"] == 1
    assert remarks["session_labels"] == [7, 3]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("rw"),
            st.integers(0, 2**64 - 1),
            st.integers(0, 3),
            st.integers(0, 9),
            st.booleans(),
        )
    )
)
def test_plume_lines_by_a_second_reading(lines: list[tuple[str, int, int, int, bool]]) -> None:
    ends = ["\n", "\r\n", " \n"]
    data = "".join(
        f"{op}({key},{value},{txn % 3},{-1 if aborted else txn}){ends[(key + value) % 3]}"
        for op, key, value, txn, aborted in lines
    )
    if not lines:
        with pytest.raises(ReadError, match="no operations"):
            text(data.encode(), "plume")
        return
    wanted: dict[Any, tuple[int, int, list[Any]]] = {}
    sessions: dict[int, int] = {}
    run: dict[int, Any] = {}
    for number, (op, key, value, txn, aborted) in enumerate(lines):
        session = sessions.setdefault(txn % 3, len(sessions))
        if aborted:
            run[session] = run.get(session) or ("run", number)
        else:
            run[session] = None
        name = run[session] or txn
        wanted.setdefault(name, (session, ABORTED if aborted else COMMITTED, []))[2].append(
            (op, key, value)
        )
    txns, _ = text(data.encode(), "isovista")
    assert [(t.session, t.status, t.ops) for t in txns] == list(wanted.values())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b"w(0,1,1,1)\nr(0,1,2,1)\n",
            "line 2: the transaction id 1 was used in session 1 on line 1 (got session 2)",
        ),
        (b"w(0,1,1,1)\nx(0,1,1,1)\n", "line 2: expected 'r' or 'w' at column 1 (got 'x(0,1,1,1)'"),
        (b"w(0,1,1)\n", "line 1: expected ',' at column 8"),
        (b"w(0,-1,1,1)\n", "line 1: expected a number at column 5"),
        (
            b"w(0,1,1,-2)\n",
            "line 1: expected -1, which means aborted, or a transaction id at column 10",
        ),
        (b"w(0,1,1,1) 5\n", "line 1: expected the end of the line at column 12"),
        (b"w(0,18446744073709551616,1,1)", "line 1: expected a number below 2^64 at column 5"),
        (b"w(0,1,1,9223372036854775808)", "line 1: expected a number below 2^63 at column 9"),
        (b"\n\nw(0,1,", "line 3: expected a number at column 7"),
        (b"\n", "line 1: no operations"),
    ],
)
def test_plume_errors_name_the_line(data: bytes, message: str) -> None:
    with pytest.raises(ReadError) as error:
        _native.read_plume(data)
    assert str(error.value).startswith(message)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.lists(
            st.lists(
                st.tuples(st.sampled_from("rw"), st.integers(0, 9), st.integers(0, 2**64 - 1)),
                min_size=1,
            ),
            min_size=1,
        ),
        min_size=1,
    ),
    st.integers(1, 9),
)
def test_awdit_says_what_was_written(sessions: list[list[list[Any]]], dashes: int) -> None:
    data = f"\n{'=' * dashes}\n".join(
        f"\n{'-' * dashes}\n".join("\n".join(f"{o} {k} {v}" for o, k, v in ops) for ops in txns)
        for txns in sessions
    )
    txns, remarks = text(data.encode(), "awdit")
    wanted = [(s, ops) for s, each in enumerate(sessions) for ops in each]
    assert [(t.session, t.ops) for t in txns] == wanted
    assert all(t.status == COMMITTED for t in txns)
    assert remarks["idle_separators"] == 0


def test_awdit_separators_with_nothing_between_make_no_transaction() -> None:
    txns, remarks = text(b"====\nr 1 2\n---\n--\n\n=\n===\nw 1 2\n-", "awdit")
    assert [(t.session, t.ops, t.position) for t in txns] == [
        (0, [("r", 1, 2)], 2),
        (1, [("w", 1, 2)], 8),
    ]
    assert remarks["idle_separators"] == 5


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"r 1 2\nq 1 2", "line 2: expected 'r', 'w', a line of '-' or a line of '=' (got 'q 1 2'"),
        (b"r 1", "line 1: expected a blank and a number (got the end of the line"),
        (b"r 1 2 3", "line 1: expected the end of the line (got '3'"),
        (b"r 1 x", "line 1: expected a number (got 'x'"),
        (b"---\n", "line 2: no operations"),
    ],
)
def test_awdit_errors_name_the_line(data: bytes, message: str) -> None:
    with pytest.raises(ReadError) as error:
        _native.read_awdit(data)
    assert str(error.value).startswith(message)
