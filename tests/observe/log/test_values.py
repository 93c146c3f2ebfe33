"""Values as a server wrote them into its log."""

from pathlib import Path

import pytest

from isolang.observe.log.tables import LoggedColumn
from isolang.observe.log.values import UnknownTypeError, decoder

LINES = Path(__file__).with_name("values.txt").read_text(encoding="utf-8").splitlines()
VALUES = [line.split(" | ") for line in LINES if not line.startswith("#")]


def column_named(sql):
    """Return the column that a definition in SQL declares."""
    words = sql.removeprefix("old ").lower().split()
    name, _, digits = words[0].partition("(")
    moments = ("time", "datetime", "timestamp")
    return LoggedColumn(
        name="c",
        type=name,
        scale=int(digits.rstrip(")") or 0) if name in moments else 0,
        unsigned="unsigned" in words or "zerofill" in words,
        old=sql.startswith("old "),
    )


@pytest.mark.parametrize(("sql", "logged", "data", "text"), VALUES)
def test_each_value_is_decoded_to_the_server_s_text(sql, logged, data, text):
    """The decoder stops behind the value, whatever follows."""
    kind, _, metadata = logged.partition(" ")
    column = column_named(sql)
    more = bytes.fromhex(metadata.replace("-", ""))
    decode = decoder(int(kind), more, unsigned=column.unsigned, column=column)
    value = bytes.fromhex(data)
    assert decode(b"\xff" + value + b"\xff\xff", 1) == (text, 1 + len(value))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("123E4567E89B12D3A456426655440000", "123e4567-e89b-12d3-a456-426655440000"),
        ("FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    ],
)
def test_the_groups_of_a_uuid_are_reversed_unless_its_version_is_ordered(text, shown):
    """Version 1 is stored in reverse order; the last UUID, as it is."""
    record = bytes.fromhex(text)
    if shown.startswith("123e"):
        record = record[10:] + record[8:10] + record[6:8] + record[4:6] + record[:4]
    column = LoggedColumn(name="c", type="uuid")
    decode = decoder(254, b"\xfe\x10", unsigned=False, column=column)
    assert decode(bytes([16]) + record, 0) == (text, 17)
    assert column.value(text) == shown


def test_a_type_of_another_server_is_refused():
    """MySQL's binary JSON has type 245."""
    with pytest.raises(UnknownTypeError):
        decoder(245, b"", unsigned=False, column=None)


@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        ({"type": "set", "elements": ("x", "y", "z")}, "5", "x,z"),
        ({"type": "set", "elements": ("x", "y", "z")}, "0", ""),
        ({"type": "enum", "elements": ("x", "y")}, "0", ""),
        ({"type": "enum", "elements": ("x", "y")}, "2", "y"),
        ({"type": "decimal", "scale": 2}, "-0.01", -1),
        ({"type": "decimal", "scale": 2}, f"1{'0' * 40}.01", 10**42 + 1),
        ({"type": "decimal", "scale": 9}, "-1.000000001", "-1.000000001"),
        ({"type": "double"}, "1e300", "1e+300"),
        ({"type": "date"}, "0000-00-00", "0000-00-00"),
        ({"type": "date"}, "2024-02-31", "2024-02-31"),
        ({"type": "date"}, "1970-01-02", 86_400_000_000),
        ({"type": "datetime", "scale": 3}, "1969-12-31 23:59:59.999", -1000),
        ({"type": "timestamp", "scale": 3}, "1.500", 1_500_000),
        ({"type": "time", "scale": 2}, "-12:34:56.78", "-12:34:56.78"),
        ({"type": "varchar", "charset": "latin1"}, "E980", "é€"),
        ({"type": "varchar", "charset": "latin1"}, "81", "\x81"),
        ({"type": "varchar", "charset": "ucs2"}, "00E9", "é"),
        ({"type": "varchar", "charset": "gbk"}, "C4E3", "C4E3"),
        ({"type": "int"}, "N", None),
    ],
)
def test_a_text_becomes_a_canonical_value(column, text, value):
    """The answers to SELECT and the log have the same texts, so also the same values."""
    assert LoggedColumn(name="c", **column).value(text) == value


@pytest.mark.parametrize(
    ("collation", "text", "other", "same"),
    [
        ("utf8mb4_general_ci", "Alice", "alice  ", True),
        ("utf8mb4_nopad_bin", "a", "a ", False),
        ("utf8mb4_bin", "a", "a ", True),
        ("utf8mb4_bin", "a", "A", False),
        ("latin1_general_cs", "a", "A", False),
        ("utf8mb4_general_ci", "É", "É", True),
        ("", "a", "A", False),
    ],
)
def test_texts_that_a_collation_makes_equal_are_recorded_as_one(collation, text, other, same):
    """Two keys in the log are one row if the server's index says so."""
    column = LoggedColumn(name="c", type="varchar", charset="utf8mb4", collation=collation)
    assert (column.recorded(text) == column.recorded(other)) is same


@pytest.mark.parametrize("text", ["é", "a\x01", "ß"])
def test_only_the_server_compares_texts_that_are_not_plain_ascii(text):
    """Under most collations, é equals e, and control characters have no weight."""
    column = LoggedColumn(
        name="c", type="varchar", charset="utf8mb4", collation="utf8mb4_general_ci"
    )
    assert not column.decides(text)
    assert LoggedColumn(name="c", type="varchar", collation="utf8mb4_bin").decides(text)
    assert column.decides("plain")
