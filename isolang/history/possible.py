"""Reads the facts of a recording that only *may* have decided an answer.

A completion may have ``:perhaps [[2 [:rp …] "3" "app.py:12" "…"] …]``: operations that may have
decided an answer of the database, but perhaps did not. Each has the number of operations in
``:value`` before it, and optionally its statement, its caller and its remark, as in the fields
``:statements``, ``:callers`` and ``:rows``.

While an observation is running, the versions follow on which an operation rests, each a vector of
its table and its name. At the end, the operation becomes certain if all of them were kept, and is
dropped otherwise.

Two histories result. The history of the certain facts consists of the operations in ``:value``.
Every reader of a file reads this one. The history of all facts also contains those of ``:perhaps``.
A violation counts only in the first, and a history is valid only if the second is.

SOUND BECAUSE: an operation only adds restrictions. So a history that satisfies a level with all
facts satisfies it without some of them, and what really happened lies between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from isolang.errors import HistoryError
from isolang.patterns import pattern

FIELD: Final = b":perhaps"
_TOKEN: Final = pattern(rb'"(?:[^"\\]|\\.)*"|[#\']?[\[{(]|[\]})]|;[^\n]*|[^\s,"\[\]{}()]+')
_STRING: Final = pattern(rb'"(?:[^"\\]|\\.)*"')
_NESTED: Final = pattern(rb":perhaps[\s,]*\[[\s,]*\[")
_STRING_OR_PREDICATE_READ: Final = pattern(rb'"(?:[^"\\]|\\.)*"|\[:rp[\s,]|\[:r-not-in[\s,]')
_STRING_OR_READ: Final = pattern(rb'"(?:[^"\\]|\\.)*"|\[:r(?:p|-not-in)?[\s,]')
_SILENT_READ: Final = b"[:rp [:not :true] {}]"
_OPENING: Final = (b"[", b"{", b"(")
_CLOSING: Final = (b"]", b"}", b")")
_DETAILS: Final = (b":statements", b":callers", b":rows")
_OF_INVOCATIONS: Final = (b":statements", b":versions")  # in a transaction of unknown outcome
# The fields with one entry per operation, and what stands for an entry that :perhaps lacks.
_PARALLEL: Final = {b":versions": b"nil", b":times": b"nil", **dict.fromkeys(_DETAILS, b'""')}


def with_possible_facts(text: bytes, name: str) -> bytes:
    """Return the text of a recording with the operations of ``:perhaps`` among those of ``:value``.

    No line changes its number.

    >>> with_possible_facts(b'{:type :ok, :value [[:w :x 1]], :perhaps [[0 [:r :y nil]]]}', "")
    b'{:type :ok, :value [[:r :y nil] [:w :x 1]], }'

    Raises:
        HistoryError: a ``:perhaps`` field is malformed.
    """
    if FIELD not in text:
        return text
    lines = text.split(b"\n")
    for at, line in enumerate(lines):
        if FIELD in line:
            lines[at] = _merged(line, f"{name}:{at + 1}")
    return b"\n".join(lines)


def with_settled_facts(line: bytes, is_kept: Callable[[str, str], bool]) -> bytes:
    """Return a line in which no operation of ``:perhaps`` rests on versions.

    >>> perhaps = b'[[0 [:r :y nil] "" "" "" [["t" "5"]]] [1 [:r :z 2]]]'
    >>> line = b"{:value [[:w :x 1]], :perhaps " + perhaps + b"}"
    >>> with_settled_facts(line, lambda table, version: version == "5")
    b'{:value [[:r :y nil] [:w :x 1]], , :perhaps [[2 [:r :z 2]]]}'
    >>> with_settled_facts(line, lambda table, version: False)
    b'{:value [[:w :x 1]], :perhaps [[1 [:r :z 2]]]}'
    """
    fields = _fields(line) if FIELD in line else {}
    if FIELD not in fields:
        return line
    span = fields[FIELD]
    entries = [(line[a:b], _entries(line, (a, b))) for a, b in _forms(line, *_inside(span))]
    certain = [
        b"[" + b" ".join(parts[:-1]) + b"]" for _, parts in entries
        if len(parts) > _WITH_DETAILS and all(is_kept(*names) for names in _versions(parts[-1]))
    ]  # fmt: skip
    rest = [(entry, parts) for entry, parts in entries if len(parts) <= _WITH_DETAILS]
    if len(rest) == len(entries):
        return line
    places = [int(_entries(entry, (0, len(entry)))[0]) for entry in certain]
    moved = [
        b"[%d" % (int(parts[0]) + sum(place <= int(parts[0]) for place in places))
        + entry[1 + len(parts[0]) :]
        for entry, parts in rest
    ]  # fmt: skip
    made = line
    if certain:
        made = _merged(line[: span[0]] + b"[" + b"\t".join(certain) + b"]" + line[span[1] :], "")
        end = made.rindex(b"}")
        field = b", :perhaps [" + b"\t".join(moved) + b"]" if moved else b""
        return made[:end] + field + made[end:]
    if moved:
        return line[: span[0]] + b"[" + b"\t".join(moved) + b"]" + line[span[1] :]
    begin, end = _with_key(line, span)
    return line[:begin] + line[end:]


def _versions(text: bytes) -> list[tuple[str, str]]:
    """Return versions as an operation names them, each with its table."""
    import json

    names = [json.loads(name) for name in _STRING.findall(text)]
    return [*zip(names[::2], names[1::2], strict=True)]


def with_silent_reads(text: bytes, *, only_predicates: bool = True) -> tuple[bytes, int]:
    """Return the text of a recording with predicate reads that say nothing, and their number.

    No line and no operation changes its place.

    Args:
        only_predicates: whether reads of single rows remain.

    >>> with_silent_reads(b'{:value [[:rp {:table "t" :where [:= :a 1]} {}] [:w :x 1]]}')
    (b'{:value [[:rp [:not :true] {}] [:w :x 1]]}', 1)
    """
    lines = text.split(b"\n")
    silenced = 0
    for place, line in enumerate(lines):
        if line.startswith(b";") or b"[:r" not in line:
            continue
        kept: list[bytes] = []
        at = 0
        pattern = _STRING_OR_PREDICATE_READ if only_predicates else _STRING_OR_READ
        for token in pattern.finditer(line):
            begin = token.start()
            if begin >= at and not token[0].startswith(b'"'):
                kept += (line[at:begin], _SILENT_READ)
                _, at = next(_forms(line, begin, len(line)), (begin, len(line)))
                silenced += 1
        lines[place] = b"".join([*kept, line[at:]])
    return b"\n".join(lines), silenced


def possible_places(text: bytes) -> Mapping[int, frozenset[int]]:
    """Return the places of the operations of ``:perhaps`` among all of a line, by line number.

    >>> possible_places(b"{:value [[:w :x 1]], :perhaps [[0 [:r :y nil]] [1 [:r :z 1]]]}")
    {1: frozenset({0, 2})}
    """
    places: dict[int, frozenset[int]] = {}
    for number, line in enumerate(text.split(b"\n") if FIELD in text else (), 1):
        fields = _fields(line) if FIELD in line else {}
        if FIELD in fields:
            entries = enumerate(_forms(line, *_inside(fields[FIELD])))
            places[number] = frozenset(_operation(line, one, "")[0] + n for n, one in entries)
    return places


def count_possible_facts(text: bytes, name: str) -> int:
    """Return the number of reads among the operations that may have decided an answer.

    If there are none, return the number of operations.

    >>> count_possible_facts(b'{:value [], :perhaps [[0 [:r :y nil]] [0 [:r :z 1]]]}', "run.edn")
    2

    Raises:
        HistoryError: a ``:perhaps`` field is not a vector, or is not on the same line with its map.
    """
    reads = others = 0
    for number, line in enumerate(text.split(b"\n") if FIELD in text else (), 1):
        if FIELD not in line or line.startswith(b";"):
            continue
        span = _fields(line).get(FIELD)
        if len(_NESTED.findall(_STRING.sub(b'""', line))) > (span is not None):
            raise HistoryError(
                f"{name}:{number}: a map with :perhaps must be alone on one line (got "
                f"{line.decode(errors='replace')[:80]})"
            )
        if span is None:
            continue
        if line[span[0] : span[0] + 1] != b"[":
            raise HistoryError(f"{name}:{number}: :perhaps is not a vector")
        for entry in _entries(line, span):
            is_read = entry.startswith(b"[:r") or b" [:r" in entry[:24]
            reads, others = reads + is_read, others + (not is_read)
    return reads or others


def separate_possible_facts(certain: bytes, whole: bytes) -> bytes | None:
    """Return the text of a recording, with what only ``whole`` has in ``:perhaps`` fields.

    Return ``None`` if the texts differ in more than further operations of some lines.

    >>> separate_possible_facts(b"{:type :ok :value []}", b"{:type :ok :value [[:r :y nil]]}")
    b'{:type :ok :value [], :perhaps [[0 [:r :y nil]]]}'
    """
    lines, others = certain.split(b"\n"), whole.split(b"\n")
    if len(lines) != len(others):
        return None
    for at, (line, other) in enumerate(zip(lines, others, strict=True)):
        if line == other:
            continue
        fields, more = _fields(line), _fields(other)
        if fields.keys() - _PARALLEL.keys() != more.keys() - _PARALLEL.keys():
            return None
        differing = {
            name
            for name in fields.keys() - _PARALLEL.keys()
            if line[slice(*fields[name])] != other[slice(*more[name])]
        }
        if differing == {b":value"} and fields.get(b":f") and _is_initial(line, fields):
            lines[at] = other  # it states further keys that only possible facts read
            continue
        if differing != {b":value"}:
            return None
        added = _added(_entries(line, fields[b":value"]), other, more)
        if added is None:
            return None
        begins = line[slice(*fields.get(b":type", (0, 0)))] == b":invoke"
        if begins:  # where reads say nothing
            added = [entry for entry in added if b" [:r" not in entry[:24]]
        if added:
            lines[at] = line[: line.rindex(b"}")] + b", :perhaps [" + b" ".join(added) + b"]}"
    return b"\n".join(lines)


_WITH_DETAILS: Final = 2 + len(_DETAILS)
Span = tuple[int, int]


def _is_initial(line: bytes, fields: Mapping[bytes, Span]) -> bool:
    return line[slice(*fields[b":f"])] == b":init"


def _added(values: list[bytes], line: bytes, fields: Mapping[bytes, Span]) -> list[bytes] | None:
    """Return the entries of ``:perhaps`` for the operations of a line besides the given ones."""
    operations = _entries(line, fields[b":value"])
    statements = _entries(line, fields[b":statements"]) if b":statements" in fields else []
    added, at = [], 0
    for number, operation in enumerate(operations):
        if at < len(values) and operation == values[at]:
            at += 1
            continue
        sent = b" " + statements[number] if len(statements) == len(operations) else b""
        added.append(b"[%d %s%s]" % (at, operation, sent))
    return added if at == len(values) else None


def _merged(line: bytes, where: str) -> bytes:
    """Return a line with the operations of its ``:perhaps`` in their places."""
    fields = _fields(line)
    if FIELD not in fields:
        return line
    added = [_operation(line, span, where) for span in _forms(line, *_inside(fields[FIELD]))]
    if b":value" not in fields:
        raise HistoryError(f"{where}: :perhaps without :value (expected both in one map)")
    values = _entries(line, fields[b":value"])
    changes = [(_with_key(line, fields[FIELD]), b"")]
    span = fields.get(b":type", (0, 0))
    outside = _OF_INVOCATIONS if line[slice(*span)] == b":info" else ()
    for name in (b":value", *_PARALLEL):
        if name not in fields or name in outside:
            continue
        span = fields[name]
        if line[span[0] : span[0] + 1] != b"[":
            raise HistoryError(f"{where}: {name.decode()} beside :perhaps is not a vector")
        entries = _entries(line, span)
        if len(entries) != len(values):
            continue  # it belongs to other operations, or says nothing
        made = list[bytes]()
        rest = iter(added)
        one = next(rest, None)
        for number in range(len(values) + 1):
            while one is not None and one[0] == number:
                made.append(one[1].get(name, _PARALLEL.get(name, b"")))
                one = next(rest, None)
            made += entries[number : number + 1]
        if one is not None:
            raise HistoryError(
                f"{where}: the places of :perhaps (got {one[0]}, expected ascending numbers up to "
                f"{len(values)})"
            )
        changes.append((_inside(span), (b"\t" if b"\t" in line else b" ").join(made)))
    for (begin, end), text in sorted(changes, reverse=True):
        line = line[:begin] + text + line[end:]
    return line


def _operation(line: bytes, span: Span, where: str) -> tuple[int, dict[bytes, bytes]]:
    """Return the place of an operation of ``:perhaps``, and its entry for each field."""
    parts = _entries(line, span)
    if len(parts) < 2 or not parts[0].isdigit() or parts[1][:1] != b"[":
        raise HistoryError(
            f"{where}: not an operation of :perhaps (got {line[slice(*span)].decode()[:80]}, "
            "expected [PLACE [:r k v]], perhaps with the statement, the caller and the row)"
        )
    return int(parts[0]), {b":value": parts[1], **dict(zip(_DETAILS, parts[2:], strict=False))}


def _fields(line: bytes) -> dict[bytes, Span]:
    """Return the places of the values in a line's map, by field."""
    begin = line.find(b"{")  # of a map, perhaps in a comment
    forms = [*_forms(line, begin + 1, len(line))] if begin >= 0 else []
    return {line[a:b]: value for (a, b), value in zip(forms[::2], forms[1::2], strict=False)}


def _entries(line: bytes, span: Span) -> list[bytes]:
    """Return the texts of a vector's forms."""
    return [line[a:b] for a, b in _forms(line, *_inside(span))]


def _inside(span: Span) -> Span:
    return span[0] + 1, span[1] - 1


def _with_key(line: bytes, span: Span) -> Span:
    """Return the place of the ``:perhaps`` field with its name."""
    return line.rindex(FIELD, 0, span[0]), span[1]


def _forms(line: bytes, begin: int, end: int) -> Iterator[Span]:
    """Yield the places of the forms between two positions."""
    depth, first = 0, begin
    for token in _TOKEN.finditer(line, begin, end):
        text = token[0]
        if text[-1:] in _OPENING and text[:1] != b'"':
            first = token.start() if not depth else first
            depth += 1
        elif text in _CLOSING:
            depth -= 1
            if depth < 0:
                return
            if not depth:
                yield first, token.end()
        elif not depth and text[:1] != b";":
            yield token.span()
