"""Detects the format of a history from the content of its files, ignoring file names."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

from msgspec import Struct

_HEAD = 1 << 16  # number of bytes at the start of a text used to detect the format


class Guess(Struct, frozen=True, kw_only=True):
    """The formats that a file's content may be in.

    Attributes:
        formats: the names of the possible formats; more than one if the content is ambiguous, none
            if the format is unknown.
        unsupported: if the content is in a known format that cannot be read, the format's name with
            advice; otherwise empty.
    """

    formats: tuple[str, ...] = ()
    looks_like: str = ""
    unsupported: str = ""


def detect(data: bytes) -> Guess:
    """Guess a file's format from its content."""
    if not data:
        return Guess(formats=("edn",), looks_like="an empty file")
    if data.startswith(b"JEPSEN"):
        return Guess(formats=("jepsen",), looks_like="Jepsen's binary file of a test")
    if data.startswith(b"PK\x03\x04"):
        return Guess(looks_like="a zip archive; unpack it first")
    if _is_bincode(data):
        return Guess(formats=("dbcop",), looks_like="dbcop bincode")
    if has_cobra_records(data, timestamps=False):
        return Guess(formats=("cobra",), looks_like="Cobra records")
    if has_cobra_records(data, timestamps=True):
        return Guess(formats=("cobra",), looks_like="Cobra records with timestamps")
    head = data[:_HEAD]
    if len(data) > _HEAD:
        head = head[: head.rfind(b"\n") + 1] or head
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as e:
        if e.start < len(head) - 4:  # not just a character cut in two at the end of the head
            return Guess(looks_like=_other_encoding(data, e.start))
        text = head[: e.start].decode("utf-8")
    if "\0" in text:
        return Guess(looks_like=_other_encoding(data, text.index("\0")))
    return _detect_text(text.removeprefix("\ufeff"))


def _other_encoding(data: bytes, place: int) -> str:
    """Describe data that is not UTF-8: as text in another encoding if it looks like that.

    Args:
        place: the number of the first byte that no text in UTF-8 has there.
    """
    head = data[: _HEAD - 4]
    for order, marks in (("le", b"\xff\xfe"), ("be", b"\xfe\xff")):
        text = head.decode(f"utf-16-{order}", "replace")
        if head.startswith(marks) and text.count("\n") and "\ufffd" not in text:
            return "not UTF-8 at line 1, but UTF-16; write it as UTF-8, as iconv does"
    marked = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    if not marked and all(byte >= 32 or byte in b"\t\n\r" for byte in head):
        line = data.count(b"\n", 0, place) + 1
        return (
            f"not UTF-8 at line {line}, but byte 0x{data[place]:02x}, perhaps of Latin-1; write it "
            "as UTF-8, as iconv does"
        )
    return f"binary data that starts with {data[:16].hex(' ')}"


def _is_bincode(data: bytes) -> bool:
    """Return whether data begins like dbcop's bincode: five counts, three strings, and a count."""
    at = 40
    texts = []
    for _ in range(3):
        if len(data) < at + 8:
            return False
        (length,) = struct.unpack_from("<Q", data, at)
        at += 8
        if length > min(4096, len(data) - at):
            return False
        texts.append(data[at : at + length])
        at += length
    if len(data) < at + 8:
        return False
    (sessions,) = struct.unpack_from("<Q", data, at)
    if sessions > (len(data) - at - 8) // 8:
        return False
    try:
        return all(t.decode("utf-8").isprintable() for t in texts)
    except UnicodeDecodeError:
        return False


_RECORDS = 256


def has_cobra_records(data: bytes, *, timestamps: bool) -> bool:
    """Return whether the first records have the sizes and order of Cobra's: S, then W or R, then C.

    The last record may be truncated. Text that happens to start with S is rejected, because one of
    the eight bytes of a transaction number is below 9, and text contains no such bytes.
    """
    at, seen, inside = 0, 0, False
    control = 17 if timestamps else 9
    sizes = {0x53: control, 0x57: 25, 0x52: 33, 0x43: control, 0x41: 1}
    if data[:1] != b"S" or (len(data) >= 9 and min(data[1:9]) >= 9):
        return False
    while at < len(data) and seen < _RECORDS:
        code = data[at]
        if code not in sizes or (code == 0x53) == inside:
            return False
        inside = code in (0x53, 0x57, 0x52)
        at += sizes[code]
        seen += 1
    return seen > 1 or at <= len(data)


# Python compiles a pattern when it first uses it, because most files need few of them.
_AWDIT_LINE = r"[rw]\s+\d+\s+\d+\s*"
_SEPARATOR = r"(?:-+|=+)\s*"
_PLUME_LINE = r"[rw]\(\d+,\d+,\d+,-?\d+\)\s*"
_HIST_START = r"\[\s*(?:\]|\w+\s*(?::=|==))"
_JEPSEN_LOG = r"INFO\s+jepsen\.util\s+-\s"
_ELLE_FLAT = r"\d+\s+\d+\s+\d+\s+[AR]\s"


def _detect_text(text: str) -> Guess:
    body = text.lstrip()
    if not body:
        return Guess(formats=("edn",), looks_like="only blanks")
    lines = [line for line in text.splitlines() if line.strip()]
    first = _shorten_line(lines[0])
    if re.match(_JEPSEN_LOG, body):
        return Guess(formats=("registers",), looks_like="a Jepsen log of single operations")
    if re.match(r"-\s+-\s+events:", body):
        return Guess(
            looks_like="dbcop YAML",
            unsupported=(
                "dbcop's YAML; convert it to dbcop JSON: an event {write: true, variable: x, "
                'version: v} is {"Write": {"variable": x, "version": v}} there, and success is '
                '"committed"'
            ),
        )
    if re.match(_ELLE_FLAT, body):
        return Guess(
            looks_like="VeriStrong's flat list-append text",
            unsupported="VeriStrong's flat list-append text; convert it to Jepsen EDN",
        )
    if re.match(_PLUME_LINE, lines[0]):
        return Guess(formats=("plume",), looks_like=f"lines like {first}")
    content = next((line for line in lines if not re.fullmatch(_SEPARATOR, line)), None)
    if content is None and all(line[0] == "-" for line in lines):
        return Guess(formats=("hist", "awdit"), looks_like="only lines of dashes")
    if content is None or re.fullmatch(_AWDIT_LINE, content):
        return Guess(formats=("awdit",), looks_like=f"lines like {first}")
    if _looks_like_hist(lines):
        return Guess(formats=("hist",), looks_like=f"lines like {first}")
    if not (edn := _skip_edn_comments(body)):
        return Guess(formats=("edn",), looks_like="only EDN comments")
    if (":f" in edn or '"f"' in edn) and not re.search(_TRANSACTIONS, edn):
        clients = _without_named_processes(edn)
        parts = clients.split("{")
        search = re.compile(_FUNCTION).search
        functions = [(found[1], part) for part in parts if (found := search(part))]
        if _is_workload(clients, functions):
            what = "operations of one of Jepsen's workloads"
            return Guess(formats=("workload",), looks_like=what)
        if _are_single_operations(clients, parts, functions):
            return Guess(formats=("registers",), looks_like="operations on single objects")
    if edn[:1] in ("{", "[", "(", "#") and _is_edn(edn):
        return Guess(formats=("edn",), looks_like=f"EDN that starts with {_shorten_line(edn)}")
    if body[0] in "{[":
        return _detect_json(body)
    return Guess(looks_like=f"text that starts with {first!r}")


_CLIENT = r"(?<![\w:]):?\"?process\"?[\s:]+\d"
# A search for the second of these patterns is much faster, because it begins with fixed text. What
# the first pattern matches, contains what the second one does.
_OTHERS = r"(?<![\w:]):?\"?process\"?[\s:]+[:\"][a-z]"
_PERHAPS_OTHERS = r"process\"?[\s:]+[:\"][a-z]"
_FUNCTION = r"(?<![\w:]):?\"?f\"?[\s:]+[:\"]?([\w-]+)"
_TRANSACTIONS = r"(?<![\w:]):?\"?f\"?[\s:]+[:\"]?txn(?![\w-])"
_OF_OBJECTS = frozenset({"cas", "acquire", "release", "get", "put"})
_OF_REGISTERS = _OF_OBJECTS | {"read", "write", "append"}
_OTHER_VALUES = r"value\"?[\s:]+(?:\[\s*[\[\]]|#?\{)"


_TOKEN = r'(?s:"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}])'


def _without_named_processes(text: str) -> str:
    """Remove the operations of named processes, such as the nemesis, from a text.

    The values of these processes can have any form and say nothing about the clients' workload.
    Clients are identified by numbers, so they have no names.
    """
    if not re.search(_PERHAPS_OTHERS, text):
        return text
    kept, depth, begin, end = [], 0, 0, 0
    for token in re.finditer(_TOKEN, text):
        if token[0] == "{":
            if depth == 0:
                begin = token.start()
            depth += 1
        elif token[0] == "}" and depth:
            depth -= 1
            if depth == 0:
                kept.append(text[end:begin])
                end = token.end()
                if not re.search(_OTHERS, text[begin:end]):
                    kept.append(text[begin:end])
    return "".join(kept) + text[end:]


def _are_single_operations(
    text: str, parts: Sequence[str], functions: Sequence[tuple[str, str]]
) -> bool:
    """Return whether the clients ran single operations on registers instead of transactions.

    Args:
        parts: the parts of the text between opening braces.
        functions: the first function of each part that has one, with the part.
    """
    client = re.compile(_CLIENT).search
    if any(map(client, parts)):
        functions = [(name, part) for name, part in functions if client(part)]
    names = {name for name, _ in functions}
    if not names or not names <= _OF_REGISTERS:
        return False
    return bool(names & _OF_OBJECTS) or re.search(_OTHER_VALUES, text) is None


_SET = r"value\"?[\s:]+(?:\[\s*[^][{}()\s,]+[\s,]+)?#\{"
_COLLECTION = r"value\"?[\s:]+(?:\[\s*[^][{}()\s,]+[\s,]+[\[(]|\(|\[\s*\])"
_LONG = r"value\"?[\s:]+\[\s*[^][{}()\s,]+[\s,]+[^][{}()\s,]+[\s,]+[^][{}()\s,]+"
_TRANSACTION = r"value\"?[\s:]+(?:\[\s*[^][{}()\s,]+[\s,]+)?[\[(]\s*[\[(]\s*:?\"?[rwa]"


def _is_workload(text: str, functions: Sequence[tuple[str, str]]) -> bool:
    """Return whether the clients ran a workload such as bank or set instead of transactions.

    Args:
        functions: as for `_are_single_operations`.
    """
    if re.search(_PERHAPS_OTHERS, text):
        functions = [(name, part) for name, part in functions if not re.search(_OTHERS, part)]
    names = {name for name, _ in functions}
    if not names or re.search(_TRANSACTION, text):
        return False
    if names & {"transfer", "add"}:
        return not names & _OF_OBJECTS
    if names != {"read", "write"}:
        return False
    collections = {
        name for name, part in functions if re.search(_COLLECTION, part) or re.search(_LONG, part)
    }
    return collections == {"read"} or re.search(_SET, text) is not None


def _shorten_line(text: str) -> str:
    line = text.strip().split("\n", 1)[0].strip()
    return line if len(line) <= 40 else line[:40] + "…"


def _looks_like_hist(lines: list[str]) -> bool:
    for line in (raw.strip() for raw in lines):
        if line.startswith("//") or set(line) == {"-"}:
            continue
        return re.match(_HIST_START, line) is not None and ("==" in line or ":=" in line)
    return any(line.strip().startswith("//") for line in lines)


def _skip_edn_comments(body: str) -> str:
    while body.startswith(";"):
        body = body.partition("\n")[2].lstrip()
    return body


def _is_edn(body: str) -> bool:
    """Return whether a text looks like EDN rather than JSON.

    In EDN, a colon, a comment or a discard follows the first brace.
    """
    if re.match(r"#[A-Za-z]", body):
        return True
    inner = re.match(r"[\[(]?[\s,]*(?:;[^\n]*\n[\s,]*)*(?:#[\w.]+\s*)?\{[\s,]*(?P<key>.)", body)
    if inner:
        return inner["key"] in ":;#}" and not body.startswith("{}")
    return re.match(r"\([\s,]*\)\s*$", body) is not None


def _detect_json(body: str) -> Guess:
    looks = f"JSON that starts with {_shorten_line(body)}"
    if re.match(r'[\[\s]*\{\s*"threadID"', body):
        return Guess(formats=("leopard",), looks_like="a Leopard trace")
    if re.match(r"\[\s*\]\s*$", body):  # an empty history looks the same in all JSON formats
        return Guess(formats=("jepsen-json",), looks_like="an empty JSON list")
    if re.match(r"\[\s*\[", body):
        return Guess(formats=("dbcop-json",), looks_like=looks)
    if not re.match(r'\[?\s*\{\s*["}]', body):
        return Guess(looks_like=looks)
    keys = _keys_of_first_object(body)
    if body[0] == "[":
        if keys & {"type", "process", "f", "versions"}:
            return Guess(formats=("jepsen-json",), looks_like=looks)
    elif keys & {"type", "process", "versions"}:
        return Guess(formats=("jepsen-json",), looks_like=looks)
    elif "data" in keys or "params" in keys:
        return Guess(formats=("dbcop-json",), looks_like=looks)
    elif "value" in keys:
        return Guess(formats=("viper",), looks_like=looks)
    return Guess(looks_like=looks)


def _keys_of_first_object(body: str) -> set[str]:
    """Return the keys of the first object in a text; the object may be truncated."""
    import json

    start = body.index("{")
    try:
        found, _ = json.JSONDecoder().raw_decode(body, start)
        return set(found)
    except (ValueError, RecursionError):
        keys, depth, at = set(), 0, start
        token = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]|:')
        last = ""
        while match := token.search(body, at):
            at = match.end()
            text = match[0]
            if text in "[{":
                depth += 1
            elif text in "]}":
                depth -= 1
            elif text == ":":
                if depth == 1:
                    keys.add(last)
            else:
                last = text[1:-1]
        return keys
