"""The native reader of Viper's logs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.readers import ABORTED, BY_VALUE, COMMITTED, FROM_INITIAL, transactions

from isolang import _native
from isolang._native import ReadError

SCALAR = st.one_of(
    st.integers(0, 3),
    st.sampled_from(["a", "\u00e9\n", "nil", -1, 2**64 - 1, 2**70, 1.5, -0.0, 1e22, True, None]),
)


def value(found: Any, *, read: bool) -> Any:
    """What a value is in the columns, as ``support.readers`` shows it."""
    if found is None or (read and found == "nil" and isinstance(found, str)):
        return None
    if isinstance(found, bool):
        return ("true" if found else "false",)
    if isinstance(found, float):
        return (repr(found + 0.0),)
    return found if isinstance(found, str) or -(2**63) <= found < 2**64 else (str(found),)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.lists(
            st.lists(
                st.one_of(
                    st.tuples(st.just("w"), SCALAR, SCALAR, st.booleans()),
                    st.tuples(st.just("r"), SCALAR, SCALAR, st.just(False)),
                    st.tuples(
                        st.sampled_from("id"), SCALAR, SCALAR, SCALAR, st.booleans(), st.booleans()
                    ),
                ),
                max_size=3,
            ),
            max_size=3,
        ),
        min_size=1,
        max_size=3,
    )
)
def test_logs_say_what_was_written(logs: list[list[list[Any]]]) -> None:
    """Reads and writes of any scalars; inserts and deletes are a read and a write."""
    files = [
        (f"J{i}.log", "\n".join(json.dumps({"value": ops}) for ops in log).encode())
        for i, log in enumerate(logs)
    ]
    columns, remarks = _native.read_viper(files)
    wanted, ok, sessions = [], [], 0
    for log in logs:
        for ops in log:
            meant, flags = [], []
            for kind, called, found, *rest in ops:
                key = value(called, read=False)
                if kind in "rw":
                    meant.append((kind, key, value(found, read=kind == "r")))
                    flags.append(kind == "r" or rest[0])
                    continue
                if rest[0] is not None:
                    meant.append(("r", key, value(rest[0], read=True)))
                    flags.append(rest[2])
                meant.append(("w", key, value(found, read=False)))
                flags.append(rest[2])
            wanted.append((sessions, meant))
            ok.append(flags)
        sessions += bool(log)
    txns = transactions(columns)
    written = {(k, repr(v)) for _, ops in wanted for o, k, v in ops if o == "w"}
    for t, (session, meant) in zip(txns, wanted, strict=True):
        assert t.session == session
        for (kind, key, found), op, source in zip(meant, t.ops, t.source, strict=True):
            unexplained = kind == "r" and found is not None and (key, repr(found)) not in written
            # A 0 that nobody wrote says that no row was there.
            absent = unexplained and found in (0, "0")
            assert op == (kind, key, None if absent else found)
            assert source == (FROM_INITIAL if unexplained else BY_VALUE)
    assert [t.ok for t in txns] == ok
    assert not remarks["outcomes"]


def test_outcomes_in_the_fourth_slot() -> None:
    """A dead read where nobody deletes: slots are outcomes; in a mix, a write's is its own."""
    log = b"""{"value": [["w", 1, 1, true], ["r", 2, 5, true]]}
{"value": [["w", 1, 2, false], ["r", 2, 5, false]]}
{"value": [["w", 1, 3, false], ["r", 2, 5, true], ["r", 1, 1, false]]}
{"value": [["r", 1, 1]]}
"""
    columns, remarks = _native.read_viper([("J0.log", log)])
    assert remarks["outcomes"]
    txns = transactions(columns)
    assert [t.status for t in txns] == [COMMITTED, ABORTED, COMMITTED, COMMITTED]
    assert [t.ok for t in txns] == [[True, True], [True, True], [False, True, True], [True]]


def test_declared_initial_state() -> None:
    """Then only 0 may be unexplained, as a number or as text; the field may stand at the end."""
    log = b"""{"value": [["range", 0, 9, [{"val": 3, "id": 1, "x": []}], []]], "isInitial": true}
{"value": [["r", 1, 3, false], ["r", 2, 0, false], ["r", 3, "0", false], ["r", 4, 7, false]]}
"""
    columns, remarks = _native.read_viper([("J0.log", log)])
    assert remarks["initial"] == 0
    assert transactions(columns)[1].source == [BY_VALUE, FROM_INITIAL, FROM_INITIAL, BY_VALUE]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"value": []}\n{"x": 1}', "line 2: not a transaction (got '{\"x\": 1}'"),
        (b'{"value": [["w", NaN, 1]]}', "line 1: expected a JSON value (got 'NaN' at column 18)"),
        (b'{"value": [["w", 1, nul]]}', "line 1: expected a JSON value (got 'nul' at column 21)"),
        (b'{"value": [["d", 1, 2]]}', "line 1, operation 1: not an operation (got"),
        (b'{"value": [[]]}', "line 1, operation 1: not an operation (got '[]'"),
        (b'{"value": [["range", 1]], "isInitial": true}', "line 1, operation 1: not a range"),
        (
            b'{"isInitial": true, "value": [["range", 1, 2, [{"id": 1}], []]]}',
            "line 1, operation 1: not a row (got '{\"id\": 1}'",
        ),
        (b'{"value": [["w", 1, 01]]}', "line 1: expected a JSON value (got '01' at column 21)"),
        (b'{"value": []', "line 1: the file ends inside an object (expected ',' or '}')"),
    ],
)
def test_errors_name_the_place(data: bytes, message: str) -> None:
    """File, line and operation, what was found and what was expected."""
    with pytest.raises(ReadError) as error:
        _native.read_viper([("J7.log", data)])
    assert str(error.value).startswith(f"J7.log: {message}")


def statements(columns: Any) -> list[tuple[str, list[Any]]]:
    """Of each range its predicate and its operations, those of set-reads in any order."""
    operations = [op for t in transactions(columns) for op in t.ops]
    return [
        (columns.predicates[predicate], sorted(operations[start:end]))
        for predicate, start, end in zip(
            columns.statement_predicate,
            columns.statement_start,
            columns.statement_end,
            strict=True,
        )
    ]


def test_a_range_is_a_predicate_read() -> None:
    """Rows and tombstones were read; of any other key of the range no version was there."""
    log = b"""{"value": [["w", 1, 10, true], ["w", 2, 20, true], ["w", 6, 60, true]]}
{"value": [["d", 2, 21, 20, false, true], ["w", 3, 30, true]]}
{"value": [["range", 1, 5, [{"id": 1, "val": 10}], [{"id": 2, "val": 21}], false]]}
{"value": [["range", "nil", 2, [], []], ["range", null, null, [], []]]}
"""
    columns, remarks = _native.read_viper([("J0.log", log)])
    assert remarks["ranges"] == 3
    assert statements(columns) == [
        (
            "{:where [:and [:>= :key 1] [:<= :key 5]]}",
            [("r", 1, 10), ("r", 2, 21), ("r-not-in", 3, [30])],
        ),
        ("{:where [:and [:<= :key 2]]}", [("r-not-in", 1, [10]), ("r-not-in", 2, [20, 21])]),
        (
            "{:where :true}",
            [("r-not-in", k, v) for k, v in ((1, [10]), (2, [20, 21]), (3, [30]), (6, [60]))],
        ),
    ]


def test_rows_that_were_there_at_first() -> None:
    """What nobody wrote was there, so a range that leaves it out has missed it; 0 is no row."""
    log = b"""{"value": [["r", 1, 7, false], ["r", 2, 0, false], ["w", 2, 20, true]]}
{"value": [["range", 1, 5, [], []]]}
"""
    columns, _ = _native.read_viper([("J0.log", log)])
    assert statements(columns)[0][1] == [("r-not-in", 1, [7]), ("r-not-in", 2, [20])]


@pytest.mark.parametrize(
    ("mop", "message"),
    [
        ('["range", "a", 5, [], []]', ", operation 1: a range of strings, whose order depends on"),
        ('["range", {}, 5, [], []]', ", operation 1: not a bound of a range (got '{}'"),
        ('["range", 1, 2, [], 3]', ", operation 1: not a range (got '3'"),
        ('["range", 1, 1e999, [], []]', ", operation 1: a number that predicates cannot"),
        ('["range", 1, 5, [{"id": "x", "val": 3}], []]', ": an order of values that are no"),
        (
            '["range", 1, 5, [{"id": 1, "val": 3}], [{"id": 1, "val": 4}]]',
            ": a row that was returned twice (got '1')",
        ),
    ],
)
def test_ranges_that_cannot_be_read(mop: str, message: str) -> None:
    """The message names the line."""
    with pytest.raises(ReadError) as error:
        _native.read_viper([("J0.log", f'{{"value": []}}\n{{"value": [{mop}]}}'.encode())])
    assert str(error.value).startswith(f"J0.log: line 2{message}")
