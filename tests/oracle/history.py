"""Small histories as plain Python values, and how to hand them to the tool."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

Status = Literal["committed", "aborted", "maybe"]

#: The result of a read that is not known (a read of a crashed transaction): it constrains nothing.
UNKNOWN = "?"

#: What a delete writes: a version that is no row.
DEAD = "dead"

#: One operation:
#:
#: * ``("w", key, value)`` and ``("insert", key, row)`` write, ``("delete", key)`` writes ``DEAD``,
#:   ``("append", key, element)`` extends a list;
#: * ``("r", key, value | None | UNKNOWN | (v, …))`` saw this version, None being the initial one or
#:   none at all;
#: * ``("in", key, (v, …))`` saw one of these versions, ``("notin", key, (v, …))`` one that is none
#:   of these; None among them is the initial version;
#: * ``("miss", key, (v, …))`` is a ``notin`` that comes from a predicate read without such a row;
#: * ``("silent", key, UNKNOWN)`` is a statement that says nothing of any key, and no event;
#: * ``("scan", predicate, ((key, row), …))`` is one statement that returned these rows, all that
#:   satisfy the predicate.
Op = tuple[Any, ...]


#: A version by its name: the write (transaction, operation) that made it, both counted from 0,
#: ``initial`` for T0's, or ``missing`` for one that the data names and does not hold.
Named = tuple[int, int] | Literal["initial", "missing"]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of several columns; a row of one column ``value`` is the value alone."""

    columns: tuple[tuple[str, Any], ...]


_WRITES = frozenset(("w", "append", "insert", "delete"))


def is_write(op: Op) -> bool:
    """Whether an operation makes a version."""
    return op[0] in _WRITES


@dataclass(frozen=True, slots=True)
class Txn:
    """One transaction; those of one session stand in session order in the history."""

    session: int
    ops: tuple[Op, ...]
    status: Status = "committed"
    begin: int | None = None
    end: int | None = None
    #: the statement of each operation; without, each is one of its own
    statements: tuple[int, ...] | None = None
    #: when each operation was sent and answered; None in place of a pair, or of one of both: it is
    #: not known
    times: tuple[tuple[int | None, int | None] | None, ...] | None = None
    #: when COMMIT was sent
    commit: int | None = None
    #: when COMMIT was answered, if that is said beside the end
    answered: int | None = None
    #: whether begin and end are places in a file, and of another clock than the operations'
    by_lines: bool = False
    #: the name of its group
    group: str | None = None
    #: the reads, by their place, of which the format names the version that they saw
    sources: tuple[tuple[int, Named], ...] = ()
    #: what its author calls it
    labels: tuple[str, ...] = ()
    #: the level that it was asked to run at
    level: str | None = None
    #: the operations, by their place, that state the version which they read or wrote
    versions: tuple[tuple[int, int], ...] = ()
    #: whether the versions of the whole history are ordered: it is said of each transaction
    ordered: bool = False
    #: what follows: of keys that it writes, the place of its version among all that are stated
    ranks: tuple[tuple[str, int], ...] = ()

    def version(self, op: int) -> int | None:
        """The version that an operation states."""
        return dict(self.versions).get(op)

    def named(self, op: int) -> Named | None:
        """The name of the version that a read saw; None: it is told by its value alone."""
        return dict(self.sources).get(op)

    def statement(self, op: int) -> int:
        """The statement of an operation: what is in one has no order."""
        return op if self.statements is None else self.statements[op]


History = tuple[Txn, ...]


def has_time(history: History) -> bool:
    return any(t.begin is not None or t.end is not None for t in history)


def timed(history: History) -> bool:
    """Real time is used iff there are times, and every committed transaction has both."""
    committed = [t for t in history if t.status == "committed"]
    return any(t.begin is not None for t in history) and all(
        t.begin is not None and t.end is not None for t in committed
    )


def has_moments(t: Txn) -> bool:
    """Whether it is known when something inside of a transaction was sent and answered."""
    return any(t.times or ()) or t.commit is not None or t.answered is not None


def partly_timed(history: History) -> bool:
    """Whether it is known of some operations and COMMITs when they were sent, and of others not.

    Those of aborted transactions are never compared, nor need anybody have sent a COMMIT of unknown
    outcome.
    """
    known: list[bool] = []
    for t in history:
        if t.status != "aborted":
            known += [p is not None and None not in p for p in t.times or (None,) * len(t.ops)]
            if t.status == "committed" or t.commit is not None or not t.ops:
                known.append(t.commit is not None)
    return any(known) and not all(known)


def by_lines(history: History) -> bool:
    """Whether real time is the order of lines, and what operations have is of another clock."""
    counted = [t for t in history if t.status != "aborted"]
    return any(t.by_lines for t in history) and any(map(has_moments, counted))


def without_time(history: History) -> History:
    return tuple(
        replace(t, begin=None, end=None, times=None, commit=None, answered=None, by_lines=False)
        for t in history
    )


def sort_by_session(history: Iterable[Txn]) -> History:
    """Keeps the order inside each session and numbers the sessions by first appearance."""
    txns = list(history)
    number: dict[int, int] = {}
    for t in txns:
        number.setdefault(t.session, len(number))
    order = sorted(range(len(txns)), key=lambda i: number[txns[i].session])
    place = {i: at for at, i in enumerate(order)}
    moved = (replace(txns[i], session=number[txns[i].session]) for i in order)
    return renamed(tuple(moved), lambda i, j: (place[i], j))


def renamed(history: History, new: Callable[[int, int], tuple[int, int] | None]) -> History:
    """The history after its writes got other places: named sources follow, those of writes that are
    gone are missing.
    """

    def of(source: Named) -> Named:
        return source if isinstance(source, str) else new(*source) or "missing"

    return tuple(
        replace(t, sources=tuple((op, of(source)) for op, source in t.sources)) if t.sources else t
        for t in history
    )


def without_transaction(history: History, gone: int) -> History:
    """The history without one transaction."""
    rest = history[:gone] + history[gone + 1 :]
    return renamed(rest, lambda i, j: None if i == gone else (i - (i > gone), j))


def without_operation(history: History, txn: int, gone: int) -> History:
    """The history without one operation."""
    t = history[txn]
    less = replace(
        t,
        ops=t.ops[:gone] + t.ops[gone + 1 :],
        times=t.times and t.times[:gone] + t.times[gone + 1 :],
        sources=tuple((op - (op > gone), source) for op, source in t.sources if op != gone),
        versions=tuple((op - (op > gone), v) for op, v in t.versions if op != gone),
    )
    rest = (*history[:txn], less, *history[txn + 1 :])
    return renamed(
        rest, lambda i, j: (i, j) if i != txn else None if j == gone else (i, j - (j > gone))
    )


def named_version(
    history: History, txn: int, op: int, names: tuple[object, ...] = (None, None)
) -> int | None:
    """Whose version a read with a named source saw: -1 for T0's, None if no transaction that may
    have taken effect left such a version behind, or if it holds another value.

    ``names`` are what a read calls T0's version: its value last, None if nothing is known of it.
    """
    source = history[txn].named(op)
    value = history[txn].ops[op][2]
    if source == "initial":
        return -1 if names[-1] is None or value in names else None
    if source is None or source == "missing":
        return None
    writer, at = source
    if writer == txn or history[writer].status == "aborted":
        return None
    if value != written(history[writer].ops[at]):
        return None
    return writer if last_write(history[writer], history[txn].ops[op][1]) == at else None


def written(op: Op) -> object:
    """What a write leaves for those who read it: a deleted row is nil."""
    return None if op[0] == "delete" or op[2] == DEAD else op[2]


def last_write(t: Txn, key: str, until: int | None = None) -> int | None:
    """The place of the last write of a key, among the first operations."""
    places = [j for j, op in enumerate(t.ops[:until]) if is_write(op) and op[1] == key]
    return places[-1] if places else None


def keys(history: History) -> list[str]:
    """The keys of all operations, those of returned rows among them."""
    found = {op[1] for t in history for op in t.ops if op[0] not in ("scan", "silent")}
    found |= {k for t in history for op in t.ops if op[0] == "scan" for k, _ in op[2]}
    return sorted(found)


def is_list_key(history: History, key: str) -> bool:
    return any(
        op[1] == key and (op[0] == "append" or (op[0] == "r" and isinstance(op[2], tuple)))
        for t in history
        for op in t.ops
    )


# --- a notation for people: `w(x,1) -> r(x,1) || r(x,nil)`
# ------------------------------------------------------

_OP = re.compile(r"\s*(w|r|append|a|in|notin|miss|insert|delete|scan)\(")
_TOKEN = re.compile(r"\s*([\[\]{}(),]|[^\s\[\]{}(),]+)")
_BRACKETS = {"[": "]", "{": "}"}
_TIMES = re.compile(r"@(@?)(-?\d*)-(-?\d*)(?::((?:nil|[\d,-])*):(-?\d*)(?:/(-?\d+))?)?\s*$")
_PAIR = re.compile(r"(nil|-?\d+)-(nil|-?\d+)|nil")
_VERSION = re.compile(r"#(-?\d+)")
_GROUP = re.compile(r"%(\w+)\s*$")
_LABELS = re.compile(r"~([\w,]+)\s*$")
_LEVEL = re.compile(r"\^(\w+)\s*$")
_STATUS = {"!": "aborted", "?": "maybe"}


def parse(text: str) -> History:
    """Reads ``w(x,1) r(y,nil) -> … || …``; ``|| `` separates sessions, a leading ``!`` aborts,
    ``?`` is a maybe.

    ``@3-7`` after a transaction gives its real-time interval (``@3-`` for an end that is not
    known, ``@-7`` for a begin), ``@3-7:3-4,5-5:6`` also when each operation and COMMIT were sent
    and answered, ``@3-7:nil,5-nil:`` with operations and COMMIT of which that is not known, and
    ``@@3-7:nil,5-5:6/8`` with a COMMIT that was answered at 8, where 3 and 7 are of another clock.
    ``%a`` at the end is its group; behind it, ``~a,b`` are its labels, and ``^ser`` its level.
    ``w(x,1)#3`` states the version 3, and versions are ordered where the text begins with ``#``.
    ``r(x,1,[0 2])`` names the write that was read, by the numbers of its transaction and its
    operation, ``r(x,1,initial)`` T0's.
    """
    txns = []
    ordered = text.startswith("#")
    for session, part in enumerate(text.removeprefix("#").split("||")):
        for piece in part.split("->"):
            body = piece.strip()
            status: Any = _STATUS.get(body[:1], "committed")
            body = body.lstrip("!?").strip()
            begin = end = commit = answered = times = group = None
            lines = False
            labels: tuple[str, ...] = ()
            level = None
            if found := _LEVEL.search(body):
                level, body = found[1], body[: found.start()].strip()
            if found := _LABELS.search(body):
                labels, body = tuple(found[1].split(",")), body[: found.start()].strip()
            if found := _GROUP.search(body):
                group, body = found[1], body[: found.start()].strip()
            if found := _TIMES.search(body):
                lines = bool(found[1])
                begin, end, commit, answered = map(_number, found.group(2, 3, 5, 6))
                if found[4] is not None:
                    pairs = [p.groups() for p in _PAIR.finditer(found[4])]
                    times = tuple((_number(a), _number(b)) if a else None for a, b in pairs)
                body = body[: found.start()].strip()
            ops: list[Op] = []
            sources: list[tuple[int, Named]] = []
            versions: list[tuple[int, int]] = []
            at = 0
            while at < len(body):
                match = _OP.match(body, at)
                if not match:
                    raise ValueError(f"cannot read {body[at:]!r} in {text!r}")
                op, at = _parse_op("append" if match[1] == "a" else match[1], body, match.end())
                if op[0] == "r" and len(op) == 4:
                    sources.append((len(ops), op[3]))
                if stated := _VERSION.match(body, at):
                    versions.append((len(ops), int(stated[1])))
                    at = stated.end()
                ops.append(op[:3])
            made = Txn(
                session, tuple(ops), status, begin, end, None, times, commit, answered, lines
            )
            made = replace(made, group=group, sources=tuple(sources), labels=labels, level=level)
            txns.append(replace(made, versions=tuple(versions), ordered=ordered))
    return tuple(txns)


def _number(text: str | None) -> int | None:
    return int(text) if text and text != "nil" else None


def _parse_op(kind: str, text: str, at: int) -> tuple[Op, int]:
    """An operation from what stands between its parentheses."""
    given: list[Any] = []
    while True:
        value, at = _parse_value(text, at)
        given.append(value)
        token, at = _token(text, at)
        if token == ")":
            break
        if token != ",":
            raise ValueError(f"`,` or `)` is missing before {text[at:]!r}")
    if kind == "scan":
        predicate, rows = given
        rows = tuple(rows.columns) if isinstance(rows, Row) else rows
        return (kind, predicate, rows), at
    if kind in ("in", "notin", "miss"):
        given[1] = tuple(v for pair in given[1].columns for v in pair)
    return (kind, str(given[0]), *given[1:]), at


def _token(text: str, at: int) -> tuple[str, int]:
    match = _TOKEN.match(text, at)
    if not match:
        raise ValueError(f"something is missing after {text!r}")
    return match[1], match.end()


def _parse_value(text: str, at: int) -> tuple[Any, int]:
    """A number, nil, a name, ``[v …]`` or ``{k v …}``: the latter is a row, or a set in pairs."""
    token, at = _token(text, at)
    if token not in _BRACKETS:
        if token in ("nil", "?"):
            return (None if token == "nil" else UNKNOWN), at
        number = re.fullmatch(r"-?\d+(\.\d+)?", token)
        if number:
            return (float(token) if number[1] else int(token)), at
        return token.lstrip(":"), at
    items = []
    while _token(text, at)[0] != _BRACKETS[token]:
        value, at = _parse_value(text, at)
        items.append(value)
    at = _token(text, at)[1]
    if token == "[":
        return tuple(items), at
    pairs = [tuple(items[i : i + 2]) for i in range(0, len(items), 2)]
    return Row(tuple(pairs)), at


def show(history: History) -> str:
    """The inverse of ``parse``, up to spaces."""

    def op(o: Op) -> str:
        kind, first, *rest = o
        if kind == "scan":
            rows = " ".join(f"{k} {_shown(row)}" for k, row in rest[0])
            return f"scan({_shown(first)},{{{rows}}})"
        if kind in ("in", "notin", "miss"):
            return f"{kind}({first},{{{' '.join(map(_shown, rest[0]))}}})"
        return f"{kind}({','.join([first, *map(_shown, rest)])})"

    def read(t: Txn, j: int) -> str:
        source, version = t.named(j), t.version(j)
        stated = "" if version is None else f"#{version}"
        return op(t.ops[j] if source is None else (*t.ops[j], source)) + stated

    def txn(t: Txn) -> str:
        time = ""
        if t.begin is not None or t.end is not None or t.times is not None:
            begin, end, sent = ("" if at is None else at for at in (t.begin, t.end, t.commit))
            time = f" @{'@' * t.by_lines}{begin}-{end}"
            if t.times is not None:
                pairs = ("-".join(map(_shown, pair)) if pair else "nil" for pair in t.times)
                time += f":{','.join(pairs)}:{sent}"
                time += "" if t.answered is None else f"/{t.answered}"
        group = "" if t.group is None else f" %{t.group}"
        names = f" ~{','.join(t.labels)}" if t.labels else ""
        names += "" if t.level is None else f" ^{t.level}"
        mark = {"aborted": "!", "maybe": "?"}.get(t.status, "")
        return mark + " ".join(read(t, j) for j in range(len(t.ops))) + time + group + names

    sessions: dict[int, list[Txn]] = {}
    for t in history:
        sessions.setdefault(t.session, []).append(t)
    text = " || ".join(" -> ".join(map(txn, ts)) for ts in sessions.values())
    return "#" + text if any(t.ordered for t in history) else text


def _shown(value: Any) -> str:
    if value is None:
        return "nil"
    if isinstance(value, tuple):
        return f"[{' '.join(map(_shown, value))}]"
    if isinstance(value, Row):
        return "{" + " ".join(f":{name} {_shown(v)}" for name, v in value.columns) + "}"
    return str(value)


# --- Jepsen EDN ---


def to_edn(history: History, rows: Mapping[str, Any] | None = None) -> str:
    """One op map per line; the order of lines is real time. Where only some operations have times,
    each line has the operations' clock's, unless that is said to be another one.

    A maybe transaction's end is when its client gave up. A history without times gets an order of
    lines in which every transaction starts as early and ends as late as its session allows, so that
    sessions of one transaction are all concurrent. ``rows`` were there before.
    """
    timed = history if has_time(history) else with_wide_times(history)
    last = 1 + max((at for t in timed for at in (t.begin, t.end) if at is not None), default=0)
    by_clock = partly_timed(history) and not by_lines(history)
    events: list[tuple[float, int, int, str]] = []
    for i, t in enumerate(timed):
        process = str(t.session)
        begin = float("-inf") if t.begin is None else t.begin
        end = float("inf") if t.end is None else t.end
        clock = (t.begin, last if t.end is None else t.end) if by_clock else (None, None)
        line = _edn_line("invoke", process, t, clock[0], invoke=True)
        events.append((begin, 0, i, line))
        outcome = {"committed": "ok", "aborted": "fail", "maybe": "info"}[t.status]
        line = _edn_line(outcome, process, t, clock[1], invoke=False)
        events.append((end, 1, i, line))
    lines = [e[3] for e in sorted(events, key=lambda e: e[:3])]
    header = "{:versions :ordered}\n" if any(t.ordered for t in history) else ""
    if rows is not None:
        shown = " ".join(f":{key} {_shown(row)}" for key, row in rows.items())
        process = 1 + max((t.session for t in history), default=0)
        header += f"{{:type :ok, :f :init, :value {{{shown}}}, :process {process}, :index -1}}\n"
    return header + (
        "\n".join(line.replace(":index -1", f":index {i}", 1) for i, line in enumerate(lines))
        + "\n"
    )


def with_wide_times(history: History) -> History:
    """Every transaction starts as early and ends as late as its session allows."""
    sessions: dict[int, list[int]] = {}
    for i, t in enumerate(history):
        sessions.setdefault(t.session, []).append(i)
    out = list(history)
    longest = max(map(len, sessions.values()), default=0)
    for number, members in enumerate(sessions.values()):
        for place, i in enumerate(members):
            # Session `number` goes from one transaction to its next between two own ticks.
            tick = 2 * len(sessions)
            begin = 0 if place == 0 else (place - 1) * tick + 2 * number + 2
            last = place == len(members) - 1
            end = longest * tick + 1 if last else place * tick + 2 * number + 1
            out[i] = replace(out[i], begin=begin, end=end)
    return tuple(out)


def as_python_says(history: History) -> History:
    """What only files can say is not said: an answer to COMMIT beside the end, another clock."""
    return tuple(replace(t, answered=None, by_lines=False) for t in history)


def as_edn_says(history: History) -> History:
    """After an unknown outcome a process is another session; nil is what it may not have read."""
    found, session = [], {t.session: t.session for t in history}
    for t in history:
        ops = t.ops
        if t.status == "maybe":  # also where it says when it was answered
            ops = tuple(
                ("r", op[1], UNKNOWN) if op[0] == "r" and op[2] is None else op for op in ops
            )
        found.append(replace(t, ops=ops, session=session[t.session]))
        if t.status == "maybe":
            session[t.session] = max(session.values()) + 1
    return sort_by_session(found)


def _edn_line(kind: str, process: str, t: Txn, clock: int | None, *, invoke: bool) -> str:
    ops = " ".join(_edn_op(o, invoke=invoke) for o in t.ops)
    more = "" if clock is None else f", :time {clock}"
    if not invoke and any(t.times or ()):
        pairs = (_edn_pair(*pair) if pair else "nil" for pair in t.times or ())
        more += f", :times [{' '.join(pairs)}]"
    if not invoke and (t.commit is not None or t.answered is not None):
        answered = t.end if t.answered is None and not t.by_lines else t.answered
        more += f", :commit {_edn_pair(t.commit, answered)}"
    if t.group is not None:
        more += f", :group {t.group}"
    if not invoke and t.versions:
        stated = (t.version(j) for j in range(len(t.ops)))
        more += f", :versions [{' '.join('nil' if v is None else str(v) for v in stated)}]"
    if t.labels:
        more += f", :label [{' '.join(f':{name}' for name in t.labels)}]"
    if t.level is not None:
        more += f", :level {t.level}"
    return f"{{:type :{kind}, :f :txn, :value [{ops}], :process {process}, :index -1{more}}}"


def _edn_pair(sent: int | None, answered: int | None) -> str:
    return f"[{_shown(sent)} {_shown(answered)}]"


#: The tool's names of the reads that say less than a version.
_EDN_NAMES = {"in": "r-in", "notin": "r-not-in", "miss": "r-not-in"}


def _edn_op(o: Op, *, invoke: bool) -> str:
    kind, first, *rest = o
    if kind == "scan":
        predicate = _shown_predicate(first)
        rows = " ".join(f":{k} {_shown(row)}" for k, row in rest[0])
        return f"[:rp {{:where {predicate}}} {'nil' if invoke else f'{{{rows}}}'}]"
    if kind == "delete":
        return f"[:delete :{first}]"
    value = "nil" if kind == "r" and (invoke or rest[0] == UNKNOWN) else _shown(rest[0])
    return f"[:{_EDN_NAMES.get(kind, kind)} :{first} {value}]"


def _shown_predicate(p: Any) -> str:
    """A predicate in EDN: its head and its column are keywords."""
    head, *rest = p
    if head in ("and", "or", "not"):
        return f"[:{head} {' '.join(map(_shown_predicate, rest))}]"
    column, *values = rest
    shown = [f":{v}" if column == "key" else _shown(v) for v in values]
    return f"[{' '.join([f':{head}', f':{column}', *shown])}]"


# --- the tool's columns ---

_STATUS_NUMBER = {"committed": 0, "aborted": 1, "maybe": 2}


def to_columns(history: History) -> Any:
    """The native columns of a history, made with the builder that readers use."""
    from isolang import _native

    columns = _native.Columns()
    number: dict[str, int] = {}

    def atom(value: Any) -> int:
        if value is None:
            return int(columns.intern_value(0, None))
        return int(columns.intern_value(1, value))

    for label, t in enumerate(history):
        times = {}
        if t.begin is not None:
            times["begin"] = t.begin
        if t.end is not None and t.status != "maybe":
            times["end"] = t.end
        columns.begin_transaction(t.session, _STATUS_NUMBER[t.status], label, label, 0, **times)
        if t.labels:
            columns.set_labels(label, list(t.labels))
        if t.level is not None:
            columns.set_level(label, t.level)
        for position, (kind, key, value) in enumerate(t.ops):
            if key not in number:
                number[key] = columns.intern_key(3, key)
            k = number[key]
            if kind in ("in", "notin"):
                among = columns.add_list([atom(v) for v in value])
                columns.add_op(4 if kind == "in" else 5, k, among, position)
            elif kind == "w":
                columns.add_op(1, k, atom(value), position)
            elif kind == "append":
                columns.add_op(2, k, atom(value), position)
            elif value == UNKNOWN:
                columns.add_op(3 if is_list_key(history, key) else 0, k, -1, position)
            elif isinstance(value, tuple):
                columns.add_op(3, k, columns.add_list([atom(v) for v in value]), position)
            else:
                columns.add_op(0, k, atom(value), position)
    columns.has_time = has_time(history)
    columns.validate()
    return columns


def from_columns(columns: Any) -> History:
    """The plain value of a history that the tool has read (integers and lists of integers only)."""

    def value(atom: int) -> Any:
        kind, payload = columns.value(atom)
        if kind not in (0, 1):
            raise ValueError(f"the oracle knows integer values only (got {payload!r})")
        return payload

    def at(txn: int, op: int, initial: Any) -> Op:
        kind, v = int(columns.op_kind[op]), int(columns.op_value[op])
        key = str(columns.key(int(columns.op_key[op]))[1])
        if kind in (1, 2):
            return ("w" if kind == 1 else "append", key, value(v))
        if v < 0:
            return ("r", key, UNKNOWN)
        if kind in (3, 4, 5):
            start, stop = columns.list_start[v], columns.list_start[v + 1]
            if kind != 3:
                among = tuple(value(int(a)) for a in columns.list_values[start:stop])
                return ("in" if kind == 4 else "notin", key, among)
            return ("r", key, tuple(value(int(a)) for a in columns.list_values[start:stop]))
        read = value(v)
        return ("r", key, None if read == initial else read)

    def time(t: int, column: Any) -> int | None:
        known = columns.has_time and abs(int(column[t])) < 2**63 - 1
        return int(column[t]) if known else None

    txns = []
    names = {0: "committed", 1: "aborted", 2: "maybe"}
    for t in range(columns.transactions()):
        first, last = int(columns.op_start[t]), int(columns.op_start[t + 1])
        ops = tuple(
            at(t, op, value(int(columns.initial_value[int(columns.op_key[op])])))
            for op in range(first, last)
            if columns.op_ok[op]
        )
        status: Any = names[int(columns.txn_status[t])]
        txns.append(
            Txn(
                int(columns.txn_session[t]),
                ops,
                status,
                time(t, columns.txn_begin),
                time(t, columns.txn_end),
            )
        )
    return tuple(txns)


def each_op(history: History) -> Iterator[tuple[int, int, Op]]:
    for i, t in enumerate(history):
        for j, op in enumerate(t.ops):
            yield i, j, op
