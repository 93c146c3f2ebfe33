"""Converts Fressian, the binary encoding of Clojure data in Jepsen's files, to EDN text.

Every value becomes text, to be interpreted by the EDN readers. The codes are those of Fressian 0.6.
The tags defined by Clojure and Jepsen are recognised; values with any other tag become vectors of
their parts.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Sequence
from typing import Final, TypeVar
from uuid import UUID

T = TypeVar("T")

_BYTES, _STRING, _LIST, _CLOSED_LIST, _OPEN_LIST = 0xD9, 0xE3, 0xEC, 0xED, 0xEE
_INT, _TRUE, _DOUBLE_0, _END = 0xF8, 0xF5, 0xFB, 0xFD
# The tags with their own codes, and the number of objects that follow each code.
_TAGS: Final = {
    0xC0: ("map", 1),
    0xC1: ("set", 1),
    0xC3: ("uuid", 1),
    0xC4: ("regex", 1),
    0xC5: ("uri", 1),
    0xC6: ("bigint", 1),
    0xC7: ("bigdec", 2),
    0xC8: ("inst", 1),
    0xC9: ("sym", 2),
    0xCA: ("key", 2),
}
# For integers of 7 to 2 bytes: the first code, the code for zero, and the number of bytes that
# follow.
_PACKED: Final = (
    (0x7C, 0x7E, 6),
    (0x78, 0x7A, 5),
    (0x74, 0x76, 4),
    (0x70, 0x72, 3),
    (0x60, 0x68, 2),
    (0x40, 0x50, 1),
)
_OP: Final = ("index", "time", "type", "process", "f", "value")
REFERENCE: Final = "#block-ref "
"""The prefix of a text that refers to a value in another block of the file."""


class FressianError(ValueError):
    """Raised for bytes that are not Fressian or that contain an unknown code."""


class Items(str):
    """The EDN text of a list or a map, with the texts of its elements as an attribute.

    Attributes:
        parts: the texts of a list's elements, or of a map's alternating keys and values.
    """

    __slots__ = ("parts",)

    parts: list[str]

    @classmethod
    def of(cls, parts: list[str], brackets: str = "[]") -> Items:
        """Make the text of a list or map from the texts of its parts."""
        made = cls(f"{brackets[0]}{' '.join(parts)}{brackets[1]}")
        made.parts = parts
        return made


class Raw(str):
    """The EDN text of a byte string, with the bytes themselves as an attribute.

    Attributes:
        data: the bytes.
    """

    __slots__ = ("data",)

    data: bytes

    @classmethod
    def of(cls, data: bytes) -> Raw:
        """Make the text of a byte string."""
        made = cls(f'#bytes "{data.hex()}"')
        made.data = data
        return made


class Fressian:
    """Decodes a sequence of values; later values may refer to earlier ones through a cache."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._cached: list[str] = []
        self._structs: list[tuple[str, int]] = []

    def at_end(self) -> bool:
        """Return whether all bytes have been decoded."""
        return self._at >= len(self._data)

    def value(self) -> str:
        """Decode the next value and return its text.

        Raises:
            FressianError: the bytes end inside the value, or are not Fressian.
        """
        try:
            return self._object(self._byte())
        except (IndexError, struct.error):
            msg = f"the data ends inside a value (at byte {len(self._data)})"
            raise FressianError(msg) from None
        except RecursionError:
            msg = "values are nested too deeply"
            raise FressianError(msg) from None
        except FressianError:
            raise
        # int(), float() or chr() rejected the decoded bytes
        except (ValueError, OverflowError) as error:
            msg = f"{error} (before byte {self._at})"
            raise FressianError(msg) from None

    def _byte(self) -> int:
        code = self._data[self._at]
        self._at += 1
        return code

    def _take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + max(count, 0)]
        if len(taken) != count:
            raise IndexError
        self._at += count
        return taken

    def _object(self, code: int) -> str:
        if code < 0x80 or code in (0xFF, _INT):
            return str(self._integer(code))
        if code < 0xA0:
            return self._look_up(self._cached, code - 0x80)
        if code < 0xB0:
            return self._struct(*self._look_up(self._structs, code - 0xA0))
        if code in _TAGS:
            return self._struct(*_TAGS[code])
        if 0xDA <= code <= _STRING:
            return _quoted(self._bytes(code, 0xDA).decode("utf-8", "surrogatepass"))
        if 0xD0 <= code <= _BYTES:
            return Raw.of(self._bytes(code, 0xD0))
        if 0xE4 <= code <= _OPEN_LIST:
            return self._list(code)
        match code:
            case 0xF7:
                return "nil"
            case 0xF5 | 0xF6:
                return "true" if code == _TRUE else "false"
            case 0xF9:
                return repr(struct.unpack(">f", self._take(4))[0])
            case 0xFA:
                return repr(struct.unpack(">d", self._take(8))[0])
            case 0xFB | 0xFC:
                return "0.0" if code == _DOUBLE_0 else "1.0"
            case 0xCC:
                return self._look_up(self._cached, self._number())
            case 0xCD:
                place = len(self._cached)
                self._cached.append("nil")
                self._cached[place] = found = self._object(self._byte())
                return found
            case 0xEF:
                tag, count = self._object(self._byte()).strip('"'), self._number()
                self._structs.append((tag, count))
                return self._struct(tag, count)
            case 0xF0:
                return self._struct(*self._look_up(self._structs, self._number()))
            case 0xFE:
                self._cached, self._structs = [], []
                return self._object(self._byte())
        msg = f"code {code:#04x} (at byte {self._at - 1}), which is not a known value"
        raise FressianError(msg)

    def _look_up(self, cache: Sequence[T], place: int) -> T:
        if not 0 <= place < len(cache):
            msg = f"entry {place} of a cache of {len(cache)} (at byte {self._at})"
            raise FressianError(msg)
        return cache[place]

    def _integer(self, code: int) -> int:
        if code < 0x40:
            return code
        if code == 0xFF:
            return -1
        if code == _INT:
            return int.from_bytes(self._take(8), signed=True)
        if code < 0x80:
            for first, zero, more in _PACKED:
                if code >= first:
                    return ((code - zero) << 8 * more) | int.from_bytes(self._take(more))
        msg = f"code {code:#04x} (at byte {self._at - 1}, expected an integer)"
        raise FressianError(msg)

    def _number(self) -> int:
        return self._integer(self._byte())

    def _bytes(self, code: int, packed: int) -> bytes:
        """Return the bytes of a string or byte string, whether it is in one chunk or several."""
        pieces = []
        while code == packed + 8:  # another chunk follows this one
            pieces.append(self._take(self._number()))
            code = self._byte()
        length = self._number() if code == packed + 9 else code - packed
        if not packed <= code <= packed + 9:
            msg = f"code {code:#04x} (at byte {self._at - 1}, expected the rest of a string)"
            raise FressianError(msg)
        return b"".join([*pieces, self._take(length)])

    def _list(self, code: int) -> Items:
        if code in (_CLOSED_LIST, _OPEN_LIST):
            parts = []
            while not (code == _OPEN_LIST and self.at_end()):
                if (one := self._byte()) == _END:
                    break
                parts.append(self._object(one))
            return Items.of(parts)
        count = self._number() if code == _LIST else code - 0xE4
        if not 0 <= count <= len(self._data) - self._at:
            raise IndexError
        return Items.of([self._object(self._byte()) for _ in range(count)])

    def _struct(self, tag: str, count: int) -> str:
        if tag == "jepsen.history.Op" and count == 7:
            return self._operation()
        parts = [self._object(self._byte()) for _ in range(count)]
        known = _MEANING.get(tag)
        if known is not None:
            return known(parts)
        return f"#{tag} [{' '.join(parts)}]" if tag.isidentifier() else f"[{' '.join(parts)}]"

    def _operation(self) -> str:
        """Return an operation as a map, as in ``history.edn``, without an index or time of -1."""
        parts = [self._object(self._byte()) for _ in range(7)]
        fields = [
            f":{name} {value}"
            for name, value in zip(_OP, parts, strict=False)
            if not (name in ("index", "time") and value == "-1")
        ]
        more = " ".join(_part_texts(parts[6]))
        return "{" + ", ".join([*fields, more] if more else fields) + "}"


def _quoted(text: str) -> str:
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        whole = whole.replace(plain, escaped)
    return f'"{whole}"'


def _qualified_name(parts: list[str]) -> str:
    """Return the name of a keyword or symbol, with its namespace."""
    return "/".join(part.strip('"') for part in parts if part != "nil")


def _part_texts(text: str) -> list[str]:
    return text.parts if isinstance(text, Items) else []


def _set_text(parts: list[str]) -> str:
    return f"#{{{' '.join(_part_texts(parts[0]))}}}"


def _bytes_of_text(text: str) -> bytes:
    if not isinstance(text, Raw):
        msg = f"{text[:30]} (expected bytes)"
        raise FressianError(msg)
    return text.data


def _big_integer_text(text: str) -> str:
    """Return the text of an arbitrary-size integer encoded as a byte string or small integer."""
    return str(int.from_bytes(text.data, signed=True)) if isinstance(text, Raw) else text


def _instant_text(parts: list[str]) -> str:
    try:
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=int(parts[0]))
    except (ValueError, OverflowError):
        msg = f"a date of {parts[0][:30]} milliseconds"
        raise FressianError(msg) from None
    return f'#inst "{moment.isoformat()}"'


def _uuid_text(parts: list[str]) -> str:
    data = _bytes_of_text(parts[0])
    if len(data) != 16:
        msg = f"a UUID of {len(data)} bytes (expected 16)"
        raise FressianError(msg)
    return f'#uuid "{UUID(bytes=data)}"'


_MEANING: Final[dict[str, Callable[[list[str]], str]]] = {
    "map": lambda parts: Items.of(_part_texts(parts[0]), "{}"),
    "set": _set_text,
    "persistent-hash-set": _set_text,
    "persistent-sorted-set": _set_text,
    "map-entry": lambda parts: f"[{parts[0]} {parts[1]}]",
    "vec": lambda parts: parts[0],
    "record": lambda parts: parts[1],
    "atom": lambda parts: parts[0],
    "byte": lambda parts: parts[0],
    "char": lambda parts: _quoted(chr(int(parts[0]))),
    "ratio": lambda parts: f"{_big_integer_text(parts[0])}/{_big_integer_text(parts[1])}",
    "block-ref": lambda parts: REFERENCE + parts[0],
    "key": lambda parts: ":" + _qualified_name(parts),
    "sym": _qualified_name,
    "uuid": _uuid_text,
    "regex": lambda parts: "#" + parts[0],
    "uri": lambda parts: parts[0],
    "instant": lambda parts: "#inst " + parts[0],
    "inst": _instant_text,
    "bigint": lambda parts: _big_integer_text(parts[0]),
    "bigdec": lambda parts: f"{_big_integer_text(parts[0])}E-{parts[1]}M",
}
