"""Readers of regular files read as the readers in Python do, or leave the file to them."""

import random

import pytest
from msgspec.structs import asdict
from support.paths import HISTORIES

from isolang._native import read_regular_text, read_regular_viper
from isolang.errors import IsolangError
from isolang.history.readers.dbcop_json import read_any_dbcop_json, read_dbcop_json
from isolang.history.readers.hist import read_any_hist, read_hist
from isolang.history.readers.viper import read_any_viper, read_viper

ARRAYS = (
    "txn_session", "txn_status", "txn_begin", "txn_end", "txn_label", "txn_position", "txn_file",
    "op_start", "op_kind", "op_ok", "op_key", "op_value", "op_source", "op_position", "list_start",
    "list_values", "key_atom", "initial_value",
)  # fmt: skip

VIPER = b"""{"value": [["w", 1, 1, true], ["r", 2, "nil", false]]}
{"value": [["r", 1, -9223372036854775808, false], ["w", 2, 18446744073709551615, false]]}

{"value": []}\r
{ "value" : [ [ "r" , 1 , 1 , false ] , ["w", 1, 2, true]]}
"""
OUTCOMES = b"""{"value": [["w", 1, 1, true], ["r", 2, 5, true]]}
{"value": [["w", 1, 2, false], ["r", 2, 5, false]]}
{"value": [["w", 1, 3, false], ["r", 2, 5, true], ["r", 1, 1, false]]}
"""
HIST = b"""// two sessions
[x:=1 y==0 z==?] [x:=2]!   // and a comment
---
-----  // empty
[ x == 18446744073709551615
  w_2 := 7 ] ! [x==0 y:=3]
--
"""
DBCOP = b"""{"params": {"id": 1, "n_node": 2}, "info": "a", "start": "2020", "end": null, "data": [
 [{"events": [{"Write": {"variable": 1, "version": 1}}, {"Read": {"version": 0, "variable": 2}}],
   "committed": true}, {"committed": false, "events": []}],
 [], [{"events": [["r", 1, null], ["w", 18446744073709551615, 2], ["r", 1, 1]], "committed": true}]
]}
"""
BARE = b'[[{"events":[{"Read":{"variable":1,"version":null}}],"committed":true}],[]]\n'

PIECES = [
    *(bytes([c]) for c in b'[]{}",:=!?-/0123456789.eE+ \t\n\r\x0b\x0c_xrw\\\x00\x7f\x80'),
    "é".encode(), b"\xef\xbb\xbf", b"null", b"true", b"false", b'"nil"', b"1e5", b"00", b"NaN",
    b'"isInitial": true', b'"d"', b"//", b"--", b'"value": []', b'"data": []', b"1.0", b"-0",
    b"9223372036854775808", b"18446744073709551616", b"99999999999999999999999", b'"version": 1',
]  # fmt: skip


def seen(reading):
    """All that a reader says."""
    columns = reading.columns
    columns.validate()
    arrays = {name: getattr(columns, name).tolist() for name in ARRAYS}
    keys = [columns.key(k) for k in range(columns.n_keys())]
    values = [columns.value(v) for v in range(columns.n_values())]
    said = {name: value for name, value in asdict(reading).items() if name != "columns"}
    return arrays, keys, values, columns.has_time, said


def texts(*contents):
    return tuple((f"J{i}.log", data) for i, data in enumerate(contents))


def both_viper(*contents):
    files = texts(*contents)
    return (
        read_regular_viper(list(files)), lambda: read_viper(files), lambda: read_any_viper(files)
    )  # fmt: skip


def both_hist(data):
    return (
        read_regular_text(data, "hist"),
        lambda: read_hist("h", data),
        lambda: read_any_hist("h", data),
    )


def both_dbcop(data):
    return (
        read_regular_text(data, "dbcop-json"),
        lambda: read_dbcop_json("h", data),
        lambda: read_any_dbcop_json("h", data),
    )


def agree(case):
    """Whether the file is regular; the readers agree on it if it is."""
    regular, read, read_any = case
    try:
        expected = seen(read_any())
    except IsolangError:
        assert regular is None, "what is wrong is for the reader that explains it"
        return False
    if regular is not None:
        assert seen(read()) == expected
    return regular is not None


@pytest.mark.parametrize(
    "case",
    [
        both_viper(VIPER), both_viper(OUTCOMES), both_viper(b"", VIPER, b"\n", OUTCOMES),
        both_viper(VIPER, VIPER), both_hist(HIST), both_hist(b""), both_hist(b"---\n--"),
        both_hist(b"[x:=1]"), both_dbcop(DBCOP), both_dbcop(BARE), both_dbcop(b"[]"),
        both_dbcop(b' { "data" : [ ] } '),
        both_hist((HISTORIES / "session.hist").read_bytes()),
        both_dbcop((HISTORIES / "dbcop.json").read_bytes()),
        both_dbcop((HISTORIES / "dbcop-compact.json").read_bytes()),
        both_viper(*(p.read_bytes() for p in sorted((HISTORIES / "viper").glob("*.log")))),
    ],
)  # fmt: skip
def test_regular_files_are_read_alike(case, request):
    regular = agree(case)
    assert regular or "case15" in request.node.name, "Viper's sample has inserts"


@pytest.mark.parametrize(
    "line",
    [
        '["i", 1, 2, null, false, true, true]', '["d", 1, 2, 3, false, true, true]',
        '["r", "x", 1, false]', '["r", 1, 1.5, false]', '["r", 1, 1]', '["r", 1, 1, false, 2]',
        '["r", 1, null, false]', '["w", 1, "nil", true]', '["r", 1, 99999999999999999999, false]',
        '["r", 1, true, false]', '["r", 1, 1e2, false]',
    ],
)  # fmt: skip
def test_what_else_the_format_allows_is_read_in_python(line):
    """And read right: the history has it."""
    regular, read, _ = both_viper(f'{{"value": [{line}]}}\n'.encode())
    assert regular is None
    assert read().columns.operations() >= 1


@pytest.mark.parametrize(
    "data",
    [
        b'{"value": [], "isInitial": true}\n', b'{"value": [], "x": 1}\n', b'{"value":\n []}\n',
        b'{"value": []} {"value": []}\n', b'{"value": [], "value": []}\n', b'{"value": []}x\n',
        b'\xef\xbb\xbf{"value": []}\n', b'{"value": [["r", 01, 1, false]]}\n', b'{"value": [',
        b'{"value": [["w", 1, 1, truer]]}', b'{"value": [["w", 1, 1, true],]}', b"\x0b\n",
        b'{"value": [["w", 1, --1, true]]}', b'{"value": [["w", 1, -, true]]}', b"{",
    ],
)  # fmt: skip
def test_what_is_not_regular_is_left(data):
    assert not agree(both_viper(data))


def mutated(rng, data):
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(data) + 1)
        upto = min(len(data), at + rng.choice([0, 0, 1, 1, 3]))
        piece = rng.choice([b"", *PIECES])
        if rng.random() < 0.7:  # what may well be regular still
            piece, upto = rng.choice([b" ", b"\n", b"\t", b"1", b"7"]), at
        data = data[:at] + piece + data[upto:]
    return data


@pytest.mark.parametrize(
    ("both", "samples"),
    [(both_viper, (VIPER, OUTCOMES)), (both_hist, (HIST,)), (both_dbcop, (DBCOP, BARE))],
)
def test_mutated_files(both, samples):
    """Near the border between regular and not, too, whatever is accepted is read alike."""
    rng = random.Random(7)
    taken = sum(agree(both(mutated(rng, rng.choice(samples)))) for _ in range(3000))
    assert 250 < taken < 2500


def test_time_runs_out():
    """The deadline holds while regular files are read."""
    data = b'{"value": [["w", 1, 1, true]]}\n' * 100_000
    with pytest.raises(TimeoutError):
        read_viper(texts(data), timeout=1e-6)
