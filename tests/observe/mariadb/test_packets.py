"""What the proxy changes in a packet, and what it reads in one."""

import struct

import pytest

from isolang.observe.mariadb import packets
from isolang.observe.mariadb.packets import (
    cut_binary_row,
    cut_text_row,
    greeting_of,
    lenenc,
    login_of,
    ok_of,
    packet,
    parameters_of,
)
from isolang.observe.sql.values import NUMERIC, TIMESTAMP

GREETING = (
    b"\x0a10.11.19-MariaDB\0" + b"\1\0\0\0" + b"a" * 8 + b"\0" + b"\xff\xff" + b"\x2d" + b"\2\0"
    + b"\xff\xff" + b"\x15" + bytes(6) + b"\x07\0\0\0" + b"b" * 12 + b"\0mysql_native_password\0"
)  # fmt: skip


def text(value):
    """A text with its length in front."""
    return lenenc(len(value)) + value


def test_the_greeting_offers_only_what_can_be_read():
    """TLS, compression, query attributes and MariaDB's own capabilities are not offered."""
    greeting = greeting_of(GREETING)
    assert greeting.offers == 0xFFFFFFFF
    assert len(greeting.data) == len(GREETING)
    seen_by_client = greeting_of(greeting.data)
    assert not seen_by_client.offers & packets.MASKED
    assert seen_by_client.offers & packets.SESSION_TRACK
    assert b"\x07\0\0\0" in GREETING
    assert b"\x07\0\0\0" not in greeting.data


@pytest.mark.parametrize("auth", [packets.LENENC_AUTH, packets.SECURE_CONNECTION])
def test_the_login(auth):
    """The server always tracks the session; the database is the one that the client asks for."""
    capabilities = 1 << 9 | auth | packets.CONNECT_WITH_DB
    data = (
        struct.pack("<IIB", capabilities, 1 << 24, 45) + bytes(23) + b"root\0" + b"\x14" + b"x" * 20
        + b"app\0mysql_native_password\0"
    )  # fmt: skip
    login = login_of(data, packets.SESSION_TRACK)
    assert (login.capabilities, login.database) == (capabilities, "app")
    assert int.from_bytes(login.data[:4], "little") == capabilities | packets.SESSION_TRACK
    assert login.data[4:] == data[4:]
    with pytest.raises(ValueError, match="another form"):
        login_of(struct.pack("<H", 0) + data[2:], 0)


def ok_packet(state, status=packets.STATE_CHANGED | packets.IN_TRANSACTION, info=b""):
    """An OK packet with a state."""
    head = b"\0\1\0" + struct.pack("<HH", status, 3)
    return head + text(info) + text(state) if state or info else head


def variable(name, value):
    """The entry of a state that says that a variable has changed."""
    inside = text(name) + text(value)
    return b"\0" + text(inside)


def test_an_ok_packet_loses_what_only_the_observer_asked_for():
    """The name of the transaction, the mode and the character set are for the observer."""
    schema = b"\1" + text(text(b"app"))
    own = variable(b"last_gtid", b"0-1-7") + variable(b"sql_mode", b"ANSI_QUOTES")
    ok = ok_of(ok_packet(own + variable(b"autocommit", b"ON") + schema), tracked=True)
    assert (ok.gtid, ok.tracked[b"sql_mode"], ok.schema) == ("0-1-7", "ANSI_QUOTES", "app")
    kept = variable(b"autocommit", b"ON") + schema
    assert ok.packed(tracks=True) == ok_packet(kept)
    assert ok.packed(tracks=False) == ok_packet(b"", packets.IN_TRANSACTION)
    ok = ok_of(ok_packet(own, info=b"Rows matched: 1"), tracked=True)
    assert ok.packed(tracks=True) == ok_packet(b"", packets.IN_TRANSACTION, b"Rows matched: 1")[:-1]
    plain = ok_packet(b"", packets.IN_TRANSACTION)
    assert ok_of(plain, tracked=True).packed(tracks=True) == plain


def test_rows_lose_the_added_columns():
    """The rest of the row is the same to the byte, also with NULLs on either side."""
    assert cut_text_row(text(b"7") + b"\xfb" + text(b"x" * 300), 2) == (b"\x017\xfb", [b"x" * 300])
    types = [3, 253, 12, 252, 252]
    number, day = struct.pack("<i", 7), b"\4\xea\7\1\2"
    row = b"\0\0" + number + text(b"ab") + day + text(b"I") + text(b"J")
    assert cut_binary_row(row, types, 3) == (row[: -len(text(b"I") * 2)], [b"I", b"J"])
    row = b"\0" + bytes([0b01001000]) + number + day + text(b"I")
    kept = b"\0" + bytes([0b00001000]) + number + day
    assert cut_binary_row(row, types, 3) == (kept, [b"I", None])
    many = [3] * 6 + [252]  # the hidden column needs another byte for NULLs
    row = b"\0\0\0" + number * 6 + text(b"I")
    assert cut_binary_row(row, many, 6) == (b"\0\0" + number * 6, [b"I"])


def test_a_long_message_has_several_packets():
    """A message of exactly 16 MB less one byte ends with an empty packet."""
    made = packet(bytes(packets.LONGEST), 255)
    assert made[:4] == b"\xff\xff\xff\xff"
    assert made[-4:] == b"\0\0\0\0"


def execution(types, values, nulls=0, *, bound=True):
    """A COM_STMT_EXECUTE."""
    head = b"\x17" + bytes(9) + nulls.to_bytes((len(types) + 7) // 8, "little")
    kinds = b"".join(struct.pack("<H", kind) for kind in types) if bound else b""
    return head + bytes([bound]) + kinds + b"".join(values)


def test_parameters():
    """Parameters become texts; a value that is not certain becomes no text."""
    types = [8, 3 | 1 << 15, 5, 5, 253, 10, 12, 11, 6, 253]
    values = [
        struct.pack("<q", -5), struct.pack("<I", 4294967295), struct.pack("<d", 7.0),
        struct.pack("<d", 0.5), text("é".encode()), b"\4\xea\7\2\3", b"\7\xea\7\2\3\4\5\6",
        b"\x08" + bytes(8),
    ]  # fmt: skip
    data = execution(types, values, 1 << 9)
    made, bound = parameters_of(data, 10, (), charset="utf-8", sent_long=frozenset())
    assert made.values == ["-5", "4294967295", "7", b"", "é", "2026-02-03", "2026-02-03 04:05:06",
                           b"", None, None]  # fmt: skip
    assert made.oids == [NUMERIC] * 4 + [0] + [TIMESTAMP] * 3 + [0] * 2
    again = execution(types, values, 1 << 9, bound=False)
    made, _ = parameters_of(again, 10, bound, charset="", sent_long=frozenset())
    assert made.values[4] == b""  # without the character set, é is not certain
    with pytest.raises(ValueError, match="types"):
        parameters_of(again, 10, (), charset="", sent_long=frozenset())
    made, _ = parameters_of(execution([253, 8], [struct.pack("<q", 1)]), 2, (), charset="utf-8",
                            sent_long=frozenset({0}))  # fmt: skip
    assert made.values == [b"", "1"]
