"""The native readers of dbcop's bincode and of Cobra's logs."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fuzz_readers import COBRA, INIT, NULL, UNIVERSAL, bincode, cobra
from support.readers import (
    ABORTED,
    BY_VALUE,
    COMMITTED,
    FROM_INITIAL,
    INDETERMINATE,
    MISSING,
    READ,
    WRITE,
    atom,
    transactions,
)

from isolang import _native
from isolang._native import ReadError, UnsupportedInput

# --- bincode ---

EVENT = st.tuples(
    st.booleans(),
    st.integers(0, 5) | st.integers(0, 2**64 - 1),
    st.integers(0, 5) | st.integers(0, 2**64 - 1),
    st.booleans(),
)
SESSIONS = st.lists(
    st.lists(st.tuples(st.lists(EVENT, max_size=5), st.booleans()), max_size=4), max_size=4
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(SESSIONS)
def test_bincode_says_what_was_written(sessions: list[list[tuple[list[Any], bool]]]) -> None:
    columns, remarks = _native.read_bincode(bincode(sessions))
    wanted = [
        (
            s,
            COMMITTED if success else ABORTED,
            [(WRITE if w else READ, k, v) for w, k, v, _ in events],
            [ok for *_, ok in events],
        )
        for s, txns in enumerate(txns for txns in sessions if txns)
        for events, success in txns
    ]
    assert [(t.session, t.status, t.ops, t.ok) for t in transactions(columns)] == wanted
    assert all(atom(columns.value(int(v))) == 0 for v in columns.initial_value)
    assert not columns.has_time
    assert remarks["info"] == "PostgreSQL"
    assert remarks["failed_transactions"] == sum(status == ABORTED for _, status, _, _ in wanted)
    assert remarks["failed_events"] == sum(not ok for *_, oks in wanted for ok in oks)


def test_bincode_positions_are_bytes() -> None:
    data = bincode([[([(True, 1, 2, True), (False, 1, 2, True)], True)]])
    txn = transactions(_native.read_bincode(data)[0])[0]
    assert data[txn.lines[0] :][:9] == struct.pack("<?Q", True, 1)
    assert txn.lines[1] == txn.lines[0] + 18
    assert data[txn.position :][:8] == struct.pack("<Q", 2)


def test_a_plan_is_remarked() -> None:
    assert _native.read_bincode(bincode([[([(True, 1, 2, False)], False)]]))[1]["plan"]
    assert not _native.read_bincode(bincode([[([(True, 1, 2, True)], False)]]))[1]["plan"]
    assert not _native.read_bincode(bincode([]))[1]["plan"]


def test_every_truncation_of_a_bincode_file_is_an_error_with_a_byte() -> None:
    data = bincode([[([(True, 1, 2, True)], True)], [([(False, 1, 2, True)] * 2, True)]])
    _native.read_bincode(data)
    for length in range(len(data)):
        with pytest.raises(ReadError, match=r"^byte \d+: "):
            _native.read_bincode(data[:length])
    with pytest.raises(ReadError, match=f"^byte {len(data)}: bytes after the last session"):
        _native.read_bincode(data + b"\0")


@pytest.mark.parametrize("count", [2**63, 2**64 - 1, 10**12, 100])
def test_counts_beyond_the_file_are_refused_before_anything_is_allocated(count: int) -> None:
    data = bincode([[([], True)]])
    for at in (len(data) - 25, len(data) - 17, len(data) - 9):
        bad = data[:at] + struct.pack("<Q", count) + data[at + 8 :]
        with pytest.raises(ReadError, match=f"^byte {at}: .* is impossible"):
            _native.read_bincode(bad)


def test_a_boolean_is_zero_or_one() -> None:
    data = bytearray(bincode([[([(True, 1, 2, True)], True)]]))
    data[-1] = 2
    with pytest.raises(
        ReadError, match=f"^byte {len(data) - 1}: transaction.success is not a boolean"
    ):
        _native.read_bincode(data)


# --- Cobra ---


def test_cobra_sources_are_the_named_writes() -> None:
    first = cobra([("S", 7), ("R", 9, 91, 5, -3), ("W", 70, 5, 1), ("W", 71, 5, 2), ("C", 7)])
    second = cobra(
        [
            ("S", 9),
            ("W", 91, 5, -3),
            ("R", 7, 70, 5, 1),
            ("R", INIT, INIT, 6, 8),
            ("R", NULL, NULL, 6, 0),
            ("C", 9),
            ("S", 10),
            ("R", 7, 99, 5, 2),
            ("R", 9, 70, 5, 1),
            ("R", 7, 70, 5, 2),
            ("R", 7, 70, 6, 1),
            ("R", INIT, 590553907, 6, 0),
            ("A",),
            ("S", 11),
        ]
    )
    columns, remarks = _native.read_cobra([("T1.log", first), ("T2.log", second)])
    txns = transactions(columns)
    assert [(t.session, t.status, t.number) for t in txns] == [
        (0, COMMITTED, 7),
        (1, COMMITTED, 9),
        (1, ABORTED, 10),
        (1, INDETERMINATE, 11),
    ]
    assert txns[0].source == [3, BY_VALUE, BY_VALUE]  # a write of a later file
    assert txns[1].source == [BY_VALUE, 1, FROM_INITIAL, FROM_INITIAL]
    # no such write; not in that transaction; another value; another key; a garbage-collection fence
    assert txns[2].source == [MISSING, MISSING, MISSING, MISSING, FROM_INITIAL]
    assert txns[0].ops == [("r", 5, -3), ("w", 5, 1), ("w", 5, 2)]
    assert (remarks["missing_sources"], remarks["contradicting_sources"]) == (1, 3)
    assert (remarks["initial_reads"], remarks["unfinished"], remarks["aborted"]) == (3, 1, 1)
    assert list(columns.txn_file) == [0, 1, 1, 1]
    assert not columns.has_time
    assert [atom(columns.value(int(v))) for v in columns.initial_value] == [None, None]


def test_the_duplicate_value_variant_matches_by_value() -> None:
    log = cobra(
        [
            ("S", 1),
            ("W", UNIVERSAL, 5, 7),
            ("W", UNIVERSAL, 5, 7),
            ("R", UNIVERSAL, UNIVERSAL, 5, 7),
            ("C", 1),
        ]
    )
    columns, remarks = _native.read_cobra([("T1.log", log)])
    assert list(columns.op_source) == [BY_VALUE] * 3
    assert remarks["duplicate_values"]
    genuine = cobra([("S", 2), ("W", 70, 5, 7), ("C", 2)])
    with pytest.raises(
        ReadError, match=r"^T1\.log: byte 9: the write id 0xabddefee .*\(as in T2\.log, byte 9\)"
    ):
        _native.read_cobra([("T1.log", log), ("T2.log", genuine)])


def test_cobra_timestamps_are_an_option() -> None:
    logs = [("a.log", COBRA[2][0]), ("b.log", COBRA[2][1])]
    columns, _ = _native.read_cobra(logs, True)
    assert columns.has_time
    assert [(t.begin, t.end) for t in transactions(columns)] == [(100, 200), (150, 300)]
    with pytest.raises(ReadError, match="hint: with timestamps these logs can be read"):
        _native.read_cobra(logs)
    with pytest.raises(ReadError, match="hint: without timestamps these logs can be read"):
        _native.read_cobra([("a.log", COBRA[0][0]), ("b.log", COBRA[0][1])], True)
    back = cobra([("S", 1, 100), ("C", 1, 99)])
    with pytest.raises(ReadError, match=r"^a: byte 17: transaction 1 commits before it starts"):
        _native.read_cobra([("a", back)], True)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "byte 0: no transactions"),
        ([("W", 1, 2, 3)], "byte 0: a write outside a transaction"),
        ([("S", 1), ("S", 2)], "byte 9: a start inside transaction 1"),
        ([("S", 1), ("C", 2)], "byte 9: a commit of another transaction (got 2, expected 1)"),
        ([("S", 1), ("C", 1), ("S", 1)], "byte 18: the transaction id 1 is used twice"),
        ([("S", 1), ("W", 4, 2, 3), ("W", 4, 2, 3)], "byte 34: the write id 4 is used twice"),
        ([("S", 1), ("Q",)], "byte 9: no record starts so (got 'Q' (0x51)"),
        (
            [("S", 1), ("W", 4, 2)],
            "byte 26: the file ends inside the record of byte 9, before a value hash",
        ),
    ],
)
def test_cobra_errors_name_file_and_byte(records: list[tuple[Any, ...]], message: str) -> None:
    with pytest.raises(ReadError) as error:
        _native.read_cobra([("T1.log", cobra(records))])
    assert str(error.value).startswith(f"T1.log: {message}")


def test_deleted_keys_are_unsupported() -> None:
    log = cobra([("S", 1), ("R", 0xABCDEFAB, 0xABCDEFAB, 1, 2), ("C", 1)])
    with pytest.raises(UnsupportedInput, match=r"^T1\.log: byte 9: a read of a deleted key"):
        _native.read_cobra([("T1.log", log)])
