"""Conditions of SQL as predicates: what is expressed is exact, and the rest is refused."""

import struct
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from isolang.observe.sql import predicates, values
from isolang.observe.sql.lexer import UnclearTextError, shape, statements, tokens
from isolang.observe.sql.predicates import CannotEvaluateError, Parameters
from isolang.observe.sql.values import RecordedColumn

COLUMNS = {
    "a": RecordedColumn(name="a", oid=23),
    "big": RecordedColumn(name="big", oid=20),
    "s": RecordedColumn(name="s", oid=25),
    "ok": RecordedColumn(name="ok", oid=16),
    "price": RecordedColumn(name="price", oid=1700, scale=2),
    "day": RecordedColumn(name="day", oid=1082),
    "date": RecordedColumn(name="date", oid=1082),
    "at": RecordedColumn(name="at", oid=1114),
    "tz": RecordedColumn(name="tz", oid=1184),
    "doc": RecordedColumn(name="doc", oid=3802),
    "fold": RecordedColumn(name="fold", oid=25, equal=False),
    "kind": RecordedColumn(name="kind", oid=99999, enum=True),
}


def predicate(text, *given, oids=()):
    """The predicate of a condition on the table t."""
    part = list(tokens(text))

    def column(names):
        return names[-1] if len(names) == 1 or names[0] == "t" else None

    found = predicates.parse_condition(part, 0, len(part), column)
    return found.predicate(COLUMNS, part, Parameters(given, oids or (0,) * len(given)))


MICROSECONDS = int(datetime(2024, 2, 29, 12, 30, tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "true"),
        ("a = 1", ("=", "a", 1)),
        ("1 < t.a", (">", "a", 1)),
        ("a <> -1 or not (s = 'it''s')", ("or", ("!=", "a", -1), ("not", ("=", "s", "it's")))),
        ("a between 1 and 3 and ok", ("and", (">=", "a", 1), ("<=", "a", 3), ("=", "ok", True))),
        ("(a = 1 and a = 2) and s is not null",
         ("and", ("=", "a", 1), ("=", "a", 2), ("not", ("null", "s")))),
        ("a not in (1, 2)", ("not", ("in", "a", (1, 2)))),
        ("a < 2.5", ("<", "a", 2.5)),
        ("price >= 1.5", (">=", "price", 150)),
        ("day = '1970-01-02'", ("=", "day", 86_400_000_000)),
        ("day < date '1970-01-02'", ("<", "day", 86_400_000_000)),
        ("at >= '2024-02-29 12:30'::timestamp", (">=", "at", MICROSECONDS)),
        ("tz = '2024-02-29T13:30+01:00'", ("=", "tz", MICROSECONDS)),
        ("date = date '1970-01-02'", ("=", "date", 86_400_000_000)),
        ("kind = 'new'", ("=", "kind", "new")),
        ("cast('5' as integer) = a", ("=", "a", 5)),
        ("((a)) = (5)", ("=", "a", 5)),
        ("s = $$x$$", ("=", "s", "x")),
        ("a = -5::int", ("=", "a", -5)),
        ("day < '1970-01-02'::date::DATE", ("<", "day", 86_400_000_000)),
        ("price = 1.5::numeric", ("=", "price", 150)),
        ("a < '2.5'::float8", ("<", "a", 2.5)),
        ('"a" = 1 /* b /* c */ = 2 */ -- d', ("=", "a", 1)),
    ],
)  # fmt: skip
def test_a_condition_is_expressed(text, expected):
    """Comparisons, ranges, lists, NULL and the connectives become predicates of the same truth."""
    assert predicate(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a = big", "a + 1 = 2", "lower(s) = 'x'", "s like 'x%'", "s < 'x'", "doc = '{}'",
        "a = NULL", "fold = 'x'", "day = 'today'", "day = '01/02/2024'", "tz > '2024-01-01 10:00'",
        "price = 1.005", f"price = 7.{'0' * 30}1", f"a = 7.{'0' * 30}1",
        "a = '1'::text", "s = 5", "a is distinct from 3", "(a, s) = (1, 'x')",
        "exists (select 1)", "a in (select 1)", "ok is true", "a = 99999999999999999999",
        "at > now()", "u.a = 1", "a between symmetric 3 and 1", "not", "a =", "s = E'\\n'",
        "a::text = '1'", "nosuch = 1", "a = 2.5::int", "price = '1.5'::float8",
        "s = 1e1::text", "s = 007::varchar",
        "day = '1970-01-02 10:00'::timestamp::date", "id = 1 IS TRUE", "a < 1 = true", "a = 2 -1",
        "s = 'a'::varchar(3)", "NOT " * 99 + "ok", "(" * 99 + "ok" + ")" * 99,
        "a = " + "(" * 99 + "1" + ")" * 99, "a = 1 and",
        "s collate \"C\" = 'x'", "a = any (array[1])",
    ],
)  # fmt: skip
def test_a_condition_is_refused(text):
    """What depends on a collation, a setting, another table or a function is not expressed."""
    with pytest.raises(CannotEvaluateError):
        predicate(text)


def test_a_cast_to_a_type_of_users_names_no_row():
    """Equality of `citext` holds for several texts, so such a constant identifies nothing."""
    for text, equal in (
        ("s = 'a'", {"s"}),
        ("s = 'a'::citext", set()),
        ('s = cast($1 as "T")', set()),
    ):
        part = list(tokens(text))
        found = predicates.parse_known_parts(part, 0, len(part), lambda names: names[-1])
        assert found.equal.keys() == equal, text


def test_arrays_in_text():
    """Drivers write elements with quotes, or without; NULL and nested arrays are refused."""
    text = '{plain, "a,b" ,"NULL","q\\"\\\\", two words,""}'
    elements = ("plain", "a,b", "NULL", 'q"\\', "two words", "")
    for condition in ("s = any ($1)", "s in (select unnest($1::text[]))"):
        assert predicate(condition, text) == ("in", "s", elements)
    assert predicate("a = any ($1)", '{"1",2}') == ("in", "a", (1, 2))
    assert predicate("s = any ($1)", "{ }") == ("in", "s", ())
    for wrong in ("{null}", "{{1},{2}}", "[0:0]={1}", "{a,}", '{"a"b}', "{a", "{a}b", "a}"):
        with pytest.raises(CannotEvaluateError):
            predicate("s = any ($1)", wrong)
    with pytest.raises(CannotEvaluateError):
        predicate("s in (select unnest($1::text[]) limit 1)", "{a}")


def test_parameters_have_their_types():
    """Parameters are read in text and in binary format; NULL and unknown types are refused."""
    assert predicate("a = $1 and s = $2", "7", "x") == ("and", ("=", "a", 7), ("=", "s", "x"))
    assert predicate("a = $1", struct.pack("!q", -7), oids=(20,)) == ("=", "a", -7)
    assert predicate("ok = $1", b"\1", oids=(16,)) == ("=", "ok", True)
    assert predicate("day = $1", struct.pack("!i", 1), oids=(1082,)) == (
        "=", "day", 946_684_800_000_000 + 86_400_000_000,
    )  # fmt: skip
    price = struct.pack("!hhHhhh", 2, 0, 0x4000, 2, 12, 5000)
    assert values.binary_value(price, values.NUMERIC) == Decimal("-12.5")
    assert predicate("price = $1", price, oids=(1700,)) == ("=", "price", -1250)
    assert predicate("a = any($1)", "{1,2}") == ("in", "a", (1, 2))
    items = struct.pack("!iiiiiiiii", 1, 0, 23, 2, 1, 4, 1, 4, 2)
    assert predicate("a <> all($1::int[])", items, oids=(1007,)) == ("not", ("in", "a", (1, 2)))
    assert predicate("a = $1::bigint", "7", oids=(23,)) == ("=", "a", 7)
    assert predicate("day = $1::date", "1970-01-02", oids=(25,)) == ("=", "day", 86_400_000_000)
    half, halves = struct.pack("!d", 2.5), struct.pack("!iiiiiid", 1, 0, 701, 1, 1, 8, 2.5)
    for text, given, oid in (  # 2.5::int is 3
        ("a = $1::int", half, 701), ("a = $1::int", "2.5", 1700),
        ("a = any($1::int[])", halves, 1022), ("a = any($1::int[])", "{2.5}", 1231),
    ):  # fmt: skip
        with pytest.raises(CannotEvaluateError):
            predicate(text, given, oids=(oid,))
    for given, oid in ((None, 23), (b"\0\0\0\1", 0), (b"\0", 3802), ("1", 114)):
        with pytest.raises(CannotEvaluateError):
            predicate("a = $1", given, oids=(oid,))


def test_a_text_is_split_like_the_server_does():
    """Operators end before comments and signs; strings, quotes and dollars hide semicolons."""
    text = "select a=-1, '; --', \"x;\", $f$;$f$ from t; -- no ;\nselect 2;;"
    parts = list(statements(list(tokens(text))))
    assert [t.text for t in parts[0]][:4] == ["select", "a", "=", "-"]
    assert len(parts) == 2
    assert shape(parts[0]) == 'select a = - <number> , <text> , "x;" , <text> from t'


@pytest.mark.parametrize("text", ["select 'x", 'select "x', "/* x", "select U&'x'", "$a$ x"])
def test_an_unclear_text_is_refused(text):
    """A string or comment without end, and unusual strings, are not split."""
    if text == "$a$ x":
        assert next(iter(tokens(text))).text == "$"
        return
    with pytest.raises(UnclearTextError):
        list(tokens(text))


def test_values_of_columns_that_no_constant_has_keep_their_order():
    """Infinity and years before Christ lie outside of all constants; a long text is its hash."""
    at = COLUMNS["at"]
    assert at.recorded("-infinity") < at.recorded("1970-01-01T00:00:00") == 0
    assert at.recorded("infinity") > at.recorded("9999-12-31T23:59:59.999999")
    assert COLUMNS["price"].recorded("NaN") > COLUMNS["price"].recorded("99.99") == 9999
    long = COLUMNS["s"].recorded("x" * 100)
    assert long == COLUMNS["s"].constant("x" * 100, 25) != COLUMNS["s"].recorded("x" * 99)
