"""JSON histories are JSON: what is not is refused with its place, not read as something else."""

import io
import json

import pytest

import isolang
from isolang.errors import IsolangError

# One history of each format that is JSON.
JEPSEN = b"""[{"process":0,"type":"invoke","f":"txn","value":[["w","x",1],["r","y",null]]},
{"process":0,"type":"ok","f":"txn","value":[["w","x",1],["r","y",null]]}]"""
LINES = b"""{"process":0,"type":"invoke","f":"txn","value":[["append","x",1]]}
{"process":0,"type":"ok","f":"txn","value":[["append","x",1]]}
"""
REGISTERS = b"""{"process":0,"type":"invoke","f":"write","value":1}
{"process":0,"type":"ok","f":"write","value":1}
"""
VIPER = b"""{"value":[["w",1,10,true],["r",2,0,false]]}
{"value":[["r",1,10,false]]}
"""
DBCOP = b'{"data":[[{"events":[["w",1,2],["r",1,2]],"committed":true}]]}'
WORKLOAD = b"""[{"process":0,"type":"ok","f":"add","value":1},
{"process":0,"type":"ok","f":"read","value":[1]}]"""
HISTORIES = {
    "jepsen-json": JEPSEN,
    "registers": REGISTERS,
    "viper": VIPER,
    "dbcop-json": DBCOP,
    "workload": WORKLOAD,
}


def read(text, form):
    return isolang.load_history(io.BytesIO(text), form)


def is_json(text):
    """What Python's own reader says: one value, or one on each line."""

    def refuse(word):
        raise ValueError(word)

    def loads(part):
        json.loads(part, parse_constant=refuse)

    try:
        loads(text)
    except ValueError:
        try:
            for line in text.splitlines():
                if line.strip():
                    loads(line)
        except ValueError:
            return False
    return True


def but(form, old, new):
    """The history of a format with one text in another's place, once."""
    assert old in HISTORIES[form]
    return form, HISTORIES[form].replace(old, new, 1)


NO_JSON = [
    (*but("jepsen-json", b'"x",1', b'"x" 1'), "line 1: expected ',' or ']' (got '1'"),
    (*but("jepsen-json", b"},", b"}"), "line 2: expected ',' or ']' (got '{' at column 1)"),
    (*but("jepsen-json", b'"ok",', b'"ok",,'), "expected a field name in quotes (got ',' at"),
    (*but("jepsen-json", b'"type":"ok"', b'"type" "ok"'), "line 2: expected ':' after the name"),
    (*but("jepsen-json", b'"ok",', b'"ok":'), "line 2: expected ',' or '}' (got ':' at column 25)"),
    (*but("jepsen-json", b"null]]}]", b"null,]]}]"), "expected a JSON value (got ']'"),
    (*but("jepsen-json", b"},", b"},;;"), "line 1: expected a JSON value (got ';'"),
    (*but("jepsen-json", b"},", b"},#_ "), "line 1: expected a JSON value (got '#_'"),
    (*but("jepsen-json", b"null", b"#{1}"), "expected a JSON value (got '#'"),
    (*but("jepsen-json", b"null", b"nil"), "expected a JSON value (got 'nil'"),
    (*but("jepsen-json", b"null", b"NaN"), "expected a JSON value (got 'NaN'"),
    (*but("jepsen-json", b"null", b"01"), "expected a JSON value (got '01'"),
    (*but("jepsen-json", b"null", b"1."), "expected a JSON value (got '1.'"),
    (*but("jepsen-json", b'"x"', b":x"), "expected a JSON value (got ':'"),
    (*but("jepsen-json", b'"x"', b'"x\n"'), "a control character in a string"),
    ("jepsen-json", b"(" + JEPSEN[1:-1] + b")", "line 1: expected a JSON value (got '('"),
    ("jepsen-json", LINES.replace(b"}\n", b"} ", 1), "expected the end of the line after a value"),
    ("jepsen-json", LINES.replace(b"}\n", b"},\n"), "line 1: expected the end of the line"),
    (*but("registers", b',"type"', b' "type"'), "line 1: expected ',' or '}'"),
    (
        *but("viper", b"0,false", b"0 false"),
        "line 1: expected ',' or ']' (got 'false' at column 36)",
    ),
    (*but("viper", b"1,10,true", b"1,,10,true"), "line 1: expected a JSON value (got ','"),
    (*but("dbcop-json", b'["w",1,2]', b'["w" 1 2]'), "line 1: expected ',' or ']' (got '1'"),
    (*but("dbcop-json", b'"events":', b'"events"'), "line 1: expected ':' after the name of a"),
    (*but("workload", b',"value"', b' "value"'), "line 1: expected JSON: Expecting ','"),
    (*but("workload", b"},", b"}"), "line 2: expected ',' or ']' (got '{' at column 1)"),
    (
        *but("workload", b"[1]", b"[NaN]"),
        "line 2: cannot read the JSON (got NaN, expected a JSON number)",
    ),
]


@pytest.mark.parametrize(("form", "text", "got"), NO_JSON, ids=[row[2] for row in NO_JSON])
def test_what_is_no_json(form, text, got):
    """Commas and colons are no blanks, and EDN's forms are none of JSON's."""
    with pytest.raises(IsolangError) as raised:
        read(text, form)
    assert got in str(raised.value)


@pytest.mark.parametrize("form", HISTORIES)
@pytest.mark.parametrize("put", [b"", b",", b":", b" ", b"0", b"]", b"}", b'"', b";"])
def test_no_damage_becomes_another_history(form, put):
    """A character that is lost or another one in its place: if it is read, it is still JSON."""
    text = HISTORIES[form]
    refused = 0
    for at in range(len(text)):
        damaged = text[:at] + put + text[at + 1 :]
        try:
            read(damaged, form)
        except IsolangError:
            refused += 1
            continue
        assert is_json(damaged), damaged
    assert refused > len(text) / 3


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("jepsen-json", JEPSEN),
        ("jepsen-json", LINES),
        ("jepsen-json", LINES.replace(b"\n", b"\r\n\r\n")),
        ("jepsen-json", b"\xef\xbb\xbf" + JEPSEN.replace(b"[[", b" [ [ ").replace(b":", b" :\t")),
        ("jepsen-json", json.dumps(json.loads(JEPSEN), indent=2).encode()),
        ("jepsen-json", b"[]"),
        but("jepsen-json", b"null", rb'"a \" ] } \\ \u00e9"'),
        but("jepsen-json", b'"y"', b"-1.5e-3"),
        ("viper", VIPER),
        ("viper", VIPER.rstrip()),
        ("dbcop-json", DBCOP + b"\n"),
        ("registers", REGISTERS),
        ("workload", WORKLOAD),
        ("workload", WORKLOAD[1:-1].replace(b",\n", b"\n")),
    ],
)  # fmt: skip
def test_what_is_json(form, text):
    """In whatever layout: one list, or an object a line."""
    assert read(text, form).counts()["transactions"] in {0, 1, 2}
