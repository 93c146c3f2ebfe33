"""The native readers of dbcop's JSON and ``.hist`` text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.readers import ABORTED, COMMITTED, transactions

from isolang import _native
from isolang._native import ReadError

NUMBER = st.one_of(st.integers(0, 3), st.sampled_from([2**63 - 1, 2**63, 2**64 - 1]))
SESSIONS = st.lists(
    st.lists(
        st.tuples(
            st.lists(
                st.one_of(
                    st.tuples(st.just("w"), NUMBER, NUMBER),
                    st.tuples(st.just("r"), NUMBER, st.one_of(NUMBER, st.none())),
                ),
                min_size=1,
            ),
            st.booleans(),
        ),
        max_size=3,
    ),
    max_size=3,
)


def meant(sessions: list[list[Any]], key: Any = lambda k: k) -> list[tuple[int, int, list[Any]]]:
    """Session, status and operations of each transaction; 0 that nobody wrote to a key is nil."""
    used = [session for session in sessions if session]
    zero = {k for session in used for ops, _ in session for o, k, v in ops if o == "w" and v == 0}

    def value(op: str, k: int, v: int | None) -> int | None:
        return None if op == "r" and v == 0 and k not in zero else v

    return [
        (s, COMMITTED if done else ABORTED, [(o, key(k), value(o, k, v)) for o, k, v in ops])
        for s, session in enumerate(used)
        for ops, done in session
    ]


def read(columns: Any) -> list[tuple[int, int, list[Any]]]:
    return [(t.session, t.status, t.ops) for t in transactions(columns)]


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(SESSIONS, st.randoms(use_true_random=False), st.sampled_from([None, 0, 3]))
def test_json_says_what_was_written(sessions: list[list[Any]], rng: Any, indent: Any) -> None:
    """In either spelling of events, with fields in any order, a missing version, and others."""

    def shuffled(fields: dict[str, Any]) -> dict[str, Any]:
        return dict(rng.sample(sorted(fields.items()), len(fields)))

    def event(op: str, k: int, v: int | None) -> Any:
        if rng.random() < 0.5:
            return [op, k, v]
        fields = {"variable": k, "version": v}
        if v is None and rng.random() < 0.5:
            del fields["version"]
        return {"Read" if op == "r" else "Write": shuffled(fields)}

    data: Any = [
        [
            shuffled({"events": [event(*op) for op in ops], "committed": done, "\u00e9\n": [{}]})
            for ops, done in session
        ]
        for session in sessions
    ]
    if rng.random() < 0.5:
        data = shuffled({"data": data, "params": {"n": [1]}, "info": 'a "b"', "more": None})
    columns, remarks = _native.read_dbcop_json(json.dumps(data, indent=indent).encode())
    assert read(columns) == meant(sessions)
    used = [i for i, session in enumerate(sessions, 1) if session]
    assert remarks["sessions"] == used
    assert remarks["empty_sessions"] == len(sessions) - len(used)
    found = set(remarks["unknown_fields"])
    assert found <= {"\u00e9\n", "more"}


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(SESSIONS, st.randoms(use_true_random=False))
def test_hist_says_what_was_written(sessions: list[list[Any]], rng: Any) -> None:
    """With blanks, lines and comments wherever they may stand."""

    def gap(least: str = "") -> str:
        return rng.choice((least or "", " ", "\t", "\r\n", " // [x:=1]\n", "\n\f "))

    def event(op: str, k: int, v: int | None) -> str:
        blank = rng.choice(("", " "))
        return f"k{k}{blank}{':=' if op == 'w' else '=='}{blank}{'?' if v is None else v}"

    lines = [
        "".join(
            gap() + "[" + gap(" ").join(event(*op) for op in ops) + "]" + ("" if done else " !")
            for ops, done in session
        )
        for session in sessions
    ]
    columns, remarks = _native.read_hist("\n--\n".join(lines).encode())
    assert read(columns) == meant(sessions, lambda k: f"k{k}")
    assert remarks["sessions"] == [i for i, session in enumerate(sessions, 1) if session]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'[[{"events": [', "line 1: the file ends inside a list (expected ']')"),
        (b'[[{"events": []', "line 1: the file ends inside an object (expected ',' or '}')"),
        (b'{"data": [],\n"data": []}', 'line 2: the field "data" stands twice'),
        (b"[]\n\n[]", "line 3: expected the end of the file (got '[' at column 1)"),
        (
            b'[[{"events": [], "events": [], "committed": true}]]',
            'line 1, session 1, transaction 1: not a transaction (got \'{"events": []',
        ),
        (
            b'[[],\n[{"events": [["r", 1, 2, 3]], "committed": true}]]',
            "line 2, session 2, transaction 1, event 1: not an event (got '[\"r\", 1, 2, 3]'",
        ),
        (
            b'[[{"events": [{"Read": {"variable": 01}}], "committed": true}]]',
            "line 1: expected a JSON value (got '01' at column 37)",
        ),
        (
            b'[[{"events": [["w", 1, 18446744073709551616]], "committed": true}]]',
            "line 1, session 1, transaction 1, event 1: not a version (got '18446744073709551616'",
        ),
        (
            b'[[{"events": [["w", 1]], "committed": true}]]',
            "line 1, session 1, transaction 1, event 1: not an event (got '[\"w\", 1]'",
        ),
    ],
)
def test_json_errors_name_the_place(data: bytes, message: str) -> None:
    """Line, session, transaction and event, what was found and what was expected."""
    with pytest.raises(ReadError) as error:
        _native.read_dbcop_json(data)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("data", [b"[x:=1]\n-\n", b"[x:=1]\n--- x\n", b"[x:=1] ! !", b"[:=1]"])
def test_hist_refuses_what_is_nothing(data: bytes) -> None:
    """A single dash, text after a separator, a second mark, an event without a variable."""
    with pytest.raises(ReadError, match=r"^line \d+: (not a history|.* outside a transaction)"):
        _native.read_hist(data)
