"""The native reader of Viper's logs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.readers import ABORTED, BY_VALUE, COMMITTED, FROM_INITIAL, transactions

from isolang import _native
from isolang._native import ReadError, UnsupportedInput

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
    assert [(t.session, t.ops) for t in txns] == wanted
    assert [t.ok for t in txns] == ok
    written = {(k, repr(v)) for _, ops in wanted for o, k, v in ops if o == "w"}
    for t in txns:
        for (kind, key, found), source in zip(t.ops, t.source, strict=True):
            unexplained = kind == "r" and found is not None and (key, repr(found)) not in written
            assert source == (FROM_INITIAL if unexplained else BY_VALUE)
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
        (b'{"value": [["w", NaN, 1]]}', "line 1, operation 1: not a key (got 'NaN'"),
        (b'{"value": [["w", 1, nul]]}', "line 1, operation 1: not a value (got 'nul'"),
        (b'{"value": [["d", 1, 2]]}', "line 1, operation 1: not an operation (got"),
        (b'{"value": [[]]}', "line 1, operation 1: not an operation (got '[]'"),
        (b'{"value": [["range", 1]], "isInitial": true}', "line 1, operation 1: not a range"),
        (
            b'{"isInitial": true, "value": [["range", 1, 2, [{"id": 1}], []]]}',
            "line 1, operation 1: not a row (got '{\"id\": 1}'",
        ),
        (b'{"value": [["w", 1, 01]]}', "line 1: a number with a leading zero (got '01')"),
        (b'{"value": []', "line 1: the file ends inside an object (expected '}')"),
    ],
)
def test_errors_name_the_place(data: bytes, message: str) -> None:
    """File, line and operation, what was found and what was expected."""
    with pytest.raises(ReadError) as error:
        _native.read_viper([("J7.log", data)])
    assert str(error.value).startswith(f"J7.log: {message}")


def test_ranges_are_unsupported() -> None:
    """Outside the initial state they read the absence of keys."""
    with pytest.raises(UnsupportedInput, match="line 1: a range query"):
        _native.read_viper(
            [("J0.log", b'{"value": [["range", 1, 5, [], []]], "isInitial": false}')]
        )
