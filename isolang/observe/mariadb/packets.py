"""Parses and changes the packets of the MySQL protocol that an observer must understand."""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from decimal import Decimal
from typing import Final

from msgspec import Struct

from isolang.observe.sql.predicates import Parameters
from isolang.observe.sql.values import NUMERIC, TIMESTAMP

# The capabilities of clients and servers.
CONNECT_WITH_DB: Final = 1 << 3
COMPRESS: Final = 1 << 5
TLS: Final = 1 << 11
SECURE_CONNECTION: Final = 1 << 15
LENENC_AUTH: Final = 1 << 21
SESSION_TRACK: Final = 1 << 23
DEPRECATE_EOF: Final = 1 << 24
OPTIONAL_METADATA: Final = 1 << 25
ZSTD: Final = 1 << 26
QUERY_ATTRIBUTES: Final = 1 << 27
# Compressed and encrypted packets cannot be read, query attributes would hide the text of a
# statement, and without its metadata an answer does not say how many columns it has.
MASKED: Final = COMPRESS | TLS | OPTIONAL_METADATA | ZSTD | QUERY_ATTRIBUTES

TLS_REQUEST_SIZE: Final = 32
"""The length of the login that only requests encryption, which is the beginning of a whole one."""
LAST_PREPARED: Final = 0xFFFFFFFF
"""Stands for the number of the last prepared statement, whose answer a client need not await."""
NO_CONNECTION: Final = 2003
"""The error of a client that cannot connect."""

# The flags of a status.
IN_TRANSACTION: Final = 0x1
AUTOCOMMITS: Final = 0x2
MORE_RESULTS: Final = 0x8
CURSOR_EXISTS: Final = 0x40
LAST_ROW_SENT: Final = 0x80
STATE_CHANGED: Final = 0x4000
ABOUT_INDEXES: Final = 0x30  # the flags of statements that used no index, or no good one

# The commands that differ from each other in their answers.
QUIT, INIT_DB, QUERY, FIELD_LIST, STATISTICS = 1, 2, 3, 4, 9
CHANGE_USER, BINLOG_DUMP, TABLE_DUMP = 17, 18, 19
PREPARE, EXECUTE, LONG_DATA, CLOSE, FETCH = 22, 23, 24, 25, 28
RESET_CONNECTION, BULK_EXECUTE = 31, 250

OTHERS: Final = frozenset(range(1, 32))
"""Commands. A client that compresses although it was not offered sends others, such as 0."""

LONGEST: Final = 0xFFFFFF
"""The length of a packet that goes on in the next one."""
ENDS_ROWS: Final = 9
"""The length that an EOF packet does not reach, unlike a row that begins with the same byte."""

# The types of columns and parameters.
_FIXED_SIZES: Final = {1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 8: 8, 9: 4, 13: 2}
_INTEGERS: Final = frozenset({1, 2, 3, 8, 9, 13})
_TIMES: Final = frozenset({7, 10, 11, 12})
_NULL, _FLOAT, _DOUBLE, _TIME = 6, 4, 5, 11
_DECIMALS: Final = frozenset({0, 246})
_OIDS: Final = dict.fromkeys(_INTEGERS | _DECIMALS | {_FLOAT, _DOUBLE}, NUMERIC) | dict.fromkeys(
    _TIMES, TIMESTAMP
)
_TRACKED: Final = frozenset({b"last_gtid", b"sql_mode", b"character_set_client"})


def read_lenenc(data: bytes, at: int) -> tuple[int | None, int]:
    r"""Return a length-encoded integer and the position behind it; ``None`` stands for NULL.

    >>> read_lenenc(b"\xfc\x34\x12", 0), read_lenenc(b"\xfb", 0)
    ((4660, 3), (None, 1))
    """
    first = data[at]
    if first < 0xFB:
        return first, at + 1
    if first == 0xFB:
        return None, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


def read_bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    """Return a text with its length in front, and the position behind it."""
    size, at = read_lenenc(data, at)
    if size is None:
        return None, at
    if at + size > len(data):
        raise IndexError("a packet that ends within a text")
    return data[at : at + size], at + size


def lenenc(number: int) -> bytes:
    """Return a length-encoded integer.

    >>> numbers = (0, 250, 251, 65535, 65536, 1 << 24, 1 << 40)
    >>> all(read_lenenc(lenenc(number), 0)[0] == number for number in numbers)
    True
    """
    if number < 0xFB:
        return bytes([number])
    if number < 1 << 16:
        return b"\xfc" + number.to_bytes(2, "little")
    if number < 1 << 24:
        return b"\xfd" + number.to_bytes(3, "little")
    return b"\xfe" + number.to_bytes(8, "little")


def packet(data: bytes, sequence: int) -> bytes:
    """Return the bytes to send for a message; a message of 16 MB or more needs several packets."""
    if len(data) < LONGEST:
        return len(data).to_bytes(3, "little") + bytes([sequence & 255]) + data
    head = LONGEST.to_bytes(3, "little") + bytes([sequence & 255]) + data[:LONGEST]
    return head + packet(data[LONGEST:], sequence + 1)


class Greeting(Struct, frozen=True):
    """The server's first packet, without what a proxy cannot forward.

    Attributes:
        data: the packet to send to the client.
        offers: the server's capabilities.
        thread: the server's number of the connection.
    """

    data: bytes
    offers: int
    thread: int = 0


def greeting_of(data: bytes) -> Greeting:
    """Parse the server's first packet."""
    changed = bytearray(data)
    end = data.index(0, 1)
    at = end + 1 + 4 + 8 + 1
    low = int.from_bytes(data[at : at + 2], "little")
    high = int.from_bytes(data[at + 5 : at + 7], "little")
    offers = low | high << 16
    masked = offers & ~MASKED
    changed[at : at + 2] = (masked & 0xFFFF).to_bytes(2, "little")
    changed[at + 5 : at + 7] = (masked >> 16).to_bytes(2, "little")
    changed[at + 14 : at + 18] = bytes(4)  # MariaDB's own capabilities, such as bulk execution
    thread = int.from_bytes(data[end + 1 : end + 5], "little")
    return Greeting(bytes(changed), offers, thread)


class Login(Struct, frozen=True):
    """The client's first packet.

    Attributes:
        data: the packet to send to the server, which always tracks the session.
        capabilities: what the client understands.
        database: the database that it asks for; empty if none.
    """

    data: bytes
    capabilities: int
    database: str


def login_of(data: bytes, offers: int) -> Login:
    """Parse the client's first packet, for a server with these capabilities.

    Raises:
        ValueError: the packet is not that of a client since MySQL 4.1.
    """
    capabilities = int.from_bytes(data[:4], "little")
    if len(data) < 33 or not capabilities & 1 << 9:
        raise ValueError("a login of another form")
    changed = bytearray(data)
    changed[:4] = ((capabilities & ~MASKED) | offers & SESSION_TRACK).to_bytes(4, "little")
    at = data.index(0, 32) + 1
    if capabilities & LENENC_AUTH:
        _, at = read_bytes(data, at)
    elif capabilities & SECURE_CONNECTION:
        at += 1 + data[at]
    else:
        at = data.index(0, at) + 1
    database = b""
    if capabilities & CONNECT_WITH_DB and at < len(data):
        database = data[at : data.index(0, at)]
    return Login(bytes(changed), capabilities & ~MASKED, database.decode("utf-8", "replace"))


def is_tls_request(data: bytes) -> bool:
    """Return whether a client's first packet only requests encryption."""
    return len(data) == TLS_REQUEST_SIZE and bool(int.from_bytes(data[:4], "little") & TLS)


def tls_request(login: bytes) -> bytes:
    """Return the packet that requests encryption before a login.

    >>> is_tls_request(tls_request(bytes(60)))
    True
    """
    capabilities = int.from_bytes(login[:4], "little") | TLS
    return capabilities.to_bytes(4, "little") + login[4:TLS_REQUEST_SIZE]


class Ok(Struct):
    """An OK packet, or the one that ends rows in its place.

    Attributes:
        rest: what follows the state.
        tracked: the values of the tracked variables.
        schema: the new default database; empty if it did not change.
    """

    head: int
    affected: int
    last_id: int
    status: int
    warnings: int
    info: bytes
    state: bytes
    rest: bytes
    tracked: dict[bytes, str]
    schema: str = ""

    @property
    def gtid(self) -> str:
        """Return the name of the transaction that ended, in the server's log; empty if none did."""
        return self.tracked.get(b"last_gtid", "")

    def packed(self, *, tracks: bool) -> bytes:
        """Return the packet for the client, which may not track its session."""
        state = self.state if tracks else b""
        status = self.status if state else self.status & ~STATE_CHANGED
        head = bytes([self.head]) + lenenc(self.affected) + lenenc(self.last_id)
        out = head + struct.pack("<HH", status, self.warnings)
        if self.info or state:
            out += lenenc(len(self.info)) + self.info
        if state:
            out += lenenc(len(state)) + state
        return out + self.rest


def ok_of(data: bytes, *, tracked: bool) -> Ok:
    """Parse an OK packet, and take out the variables that only the observer asked for.

    Args:
        tracked: whether the server tracks the session.
    """
    affected, at = read_lenenc(data, 1)
    last_id, at = read_lenenc(data, at)
    status, warnings = struct.unpack_from("<HH", data, at)
    at += 4
    info, state = b"", b""
    if at < len(data):
        info, at = read_bytes(data, at)  # type: ignore[assignment]
        if tracked and status & STATE_CHANGED:
            state, at = read_bytes(data, at)  # type: ignore[assignment]
    made = Ok(
        data[0], affected or 0, last_id or 0, status, warnings, info, b"", data[at:], {}
    )  # fmt: skip
    kept, at = b"", 0
    while at < len(state):
        entry, end = read_bytes(state, at + 1)
        assert entry is not None
        if state[at] == 0:
            name, begin = read_bytes(entry, 0)
            assert name is not None
            if name in _TRACKED:
                made.tracked[name] = (read_bytes(entry, begin)[0] or b"").decode("latin1")
                at = end
                continue
        elif state[at] == 1:
            made.schema = (read_bytes(entry, 0)[0] or b"").decode("utf-8", "replace")
        kept += state[at:end]
        at = end
    made.state = kept
    return made


def column_type(definition: bytes) -> int:
    """Return the type in the definition of an answer's column."""
    at = 0
    for _ in range(6):
        _, at = read_bytes(definition, at)
    return definition[at + 1 + 2 + 4]


def cut_text_row(row: bytes, keep: int) -> tuple[bytes, list[bytes | None]]:
    r"""Return a row without the columns after the first ones, and their values.

    >>> cut_text_row(b"\x011\xfb\x02ab", 2)
    (b'\x011\xfb', [b'ab'])
    """
    at = 0
    for _ in range(keep):
        size, at = read_lenenc(row, at)
        at += size or 0
    kept, hidden = row[:at], []
    while at < len(row):
        value, at = read_bytes(row, at)
        hidden.append(value)
    return kept, hidden


def cut_binary_row(row: bytes, types: Sequence[int], keep: int) -> tuple[bytes, list[bytes | None]]:
    """Return a row of a prepared statement without the columns after the first ones."""
    size = (len(types) + 9) // 8
    bits = int.from_bytes(row[1 : 1 + size], "little")
    at = 1 + size
    end, hidden = at, list[bytes | None]()
    for number, kind in enumerate(types):
        if number == keep:
            end = at
        if bits >> (number + 2) & 1:
            if number >= keep:
                hidden.append(None)
        elif kind in _FIXED_SIZES:
            at += _FIXED_SIZES[kind]
        elif kind in _TIMES:
            at += 1 + row[at]
        else:
            value, at = read_bytes(row, at)
            if number >= keep:
                hidden.append(value)
    if keep == len(types):
        end = at
    mask = bits & ((1 << (keep + 2)) - 1)
    kept = mask.to_bytes((keep + 9) // 8, "little")
    return b"\0" + kept + row[1 + size : end], hidden


UNCERTAIN: Final = b""
"""Stands for a parameter whose text is not certain; no condition with it can be evaluated."""


def parameters_of(
    data: bytes, count: int, bound: Sequence[int], *, charset: str, sent_long: frozenset[int]
) -> tuple[Parameters, Sequence[int]]:
    """Return the parameters of an execution, and their types, which the next one may leave out.

    Args:
        bound: the types that an earlier execution has sent.
        charset: Python's name of the client's character set; empty if it is not known.
        sent_long: the numbers of the parameters that were sent before.

    Raises:
        LookupError, ValueError: the packet has another form.
    """
    if not count:
        return Parameters(), bound
    at = 10 + (count + 7) // 8
    bits = int.from_bytes(data[10:at], "little")
    if data[at]:
        bound = struct.unpack_from(f"<{count}H", data, at + 1)
        at += 2 * count
    at += 1
    if len(bound) != count:
        raise ValueError("parameters without types")
    values: list[str | bytes | None] = []
    oids = [_OIDS.get(kind & 0xFF, 0) for kind in bound]
    for number, kind in enumerate(bound):
        base = kind & 0xFF
        if number in sent_long:
            values.append(UNCERTAIN)
        elif bits >> number & 1 or base == _NULL:
            values.append(None)
        else:
            value, at = _parameter(data, at, base, charset, is_unsigned=bool(kind >> 15))
            values.append(value)
    return Parameters(values, oids), bound


def with_repeated_parameters(
    data: bytes, bound: Sequence[int], order: Sequence[int], *, sent_long: Collection[int] = ()
) -> bytes:
    """Return an execution whose statement has each of some parameters, by its number from 1.

    Args:
        bound: the types of the parameters, which the execution may leave out.
        sent_long: the numbers from 0 of the parameters that were sent before.
    """
    count = len(bound)
    at = 10 + (count + 7) // 8
    bits = int.from_bytes(data[10:at], "little")
    at += 1 + 2 * count * data[at]
    values = []
    for number, kind in enumerate(bound):
        base, begin = kind & 0xFF, at
        if not (bits >> number & 1 or base == _NULL or number in sent_long):
            _, at = _parameter(data, at, base, "latin1", is_unsigned=False)
        values.append(data[begin:at])
    nulls = sum((bits >> (number - 1) & 1) << k for k, number in enumerate(order))
    return b"".join([
        data[:10], nulls.to_bytes((len(order) + 7) // 8, "little"), b"\1",
        *(struct.pack("<H", bound[number - 1]) for number in order),
        *(values[number - 1] for number in order),
    ])  # fmt: skip


def _parameter(
    data: bytes, at: int, base: int, charset: str, *, is_unsigned: bool
) -> tuple[str | bytes, int]:
    """Return the text of a parameter, or ``UNCERTAIN``, and the position behind it."""
    if base in _INTEGERS:
        size = _FIXED_SIZES[base]
        number = int.from_bytes(data[at : at + size], "little", signed=not is_unsigned)
        return str(number), at + size
    if base in (_FLOAT, _DOUBLE):
        (real,) = struct.unpack_from("<f" if base == _FLOAT else "<d", data, at)
        # JavaScript sends its integers as doubles; another number is compared as a float.
        exact = abs(real) < 2**53 and real == int(real)
        return str(Decimal(int(real))) if exact else UNCERTAIN, at + _FIXED_SIZES[base]
    if base in _TIMES:
        size = data[at]
        return _time(data[at + 1 : at + 1 + size], base), at + 1 + size
    value, at = read_bytes(data, at)
    if value is None:
        return UNCERTAIN, at
    try:
        return value.decode(charset or "ascii"), at
    except UnicodeDecodeError:
        return UNCERTAIN, at


def _time(data: bytes, base: int) -> str | bytes:
    """Return the text of a date and time, without the time if it has none."""
    if base == _TIME or len(data) < 4:
        return UNCERTAIN
    text = f"{data[0] | data[1] << 8:04d}-{data[2]:02d}-{data[3]:02d}"
    if len(data) >= 7:
        text += f" {data[4]:02d}:{data[5]:02d}:{data[6]:02d}"
    if len(data) >= 11:
        text += f".{int.from_bytes(data[7:11], 'little'):06d}"
    return text
