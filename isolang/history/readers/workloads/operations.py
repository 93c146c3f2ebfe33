"""Pairs the invocations and completions of operations in Jepsen workloads."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from msgspec import Struct

from isolang.caveat import Caveat
from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.edn import Elements, forms
from isolang.history.readers.jepsen import session_names
from isolang.history.readers.reading import quantity
from isolang.history.values import Keyword, encode, preview

_TYPES: Final = {"ok": c.COMMITTED, "fail": c.ABORTED, "info": c.INDETERMINATE}
_FIELDS = frozenset(("type", "f", "process", "value", "time", "index", "error"))
_LIKENESS = 0.7  # between 0 and 1, of a misspelt field and the field
_POLL = 4096  # number of forms read between two checks of the time


class PairedOperation(Struct, kw_only=True):
    """An operation, with its invocation and its completion.

    Attributes:
        number: the operation's number in messages: its ``:index``, or else its ordinal.
        begin: the position of the invocation among all events, or ``UNKNOWN_BEGIN`` if there is
            none.
        end: the position of the ``:ok`` or ``:fail`` among all events, or ``UNKNOWN_END`` if there
            is neither.
        status: the code for committed, aborted or indeterminate.
        invoked: the ``:value`` of the invocation, or of the completion if the invocation is
            missing.
        value: the ``:value`` of an ``:ok`` completion; otherwise ``None``.
        key: the ``:key`` of the invocation; ``None`` if it has none.
        completion: the ``:value`` of the completion, whatever its type.
        error: the ``:error`` of the completion.
        group: the operation's independent key; ``None`` if it has none.
    """

    function: str
    line: int
    number: int
    session: int
    begin: int
    end: int = c.UNKNOWN_END
    status: int = c.INDETERMINATE
    invoked: Any = None
    value: Any = None
    key: Any = None
    completion: Any = None
    error: Any = None
    group: Any = None

    @property
    def answered(self) -> bool:
        """Return whether the operation succeeded and its result is known."""
        return self.status == c.COMMITTED and self.value is not None


class Operations(Struct, frozen=True, kw_only=True):
    """All operations in a file.

    Attributes:
        done: the operations, ordered by when they began.
        timed: whether the file has invocations, and therefore real time.
        by_index: whether events are ordered by ``:index`` instead of by line.
        ignored: a phrase for each kind of input that has no effect on verdicts.
    """

    name: str
    done: Sequence[PairedOperation]
    timed: bool
    by_index: bool
    processes: bool
    session_names: tuple[str, ...]
    ignored: tuple[str, ...]
    notes: tuple[str, ...]

    def fail(self, line: int, what: str) -> HistoryError:
        """Return an error whose message begins with the file and the given line."""
        return HistoryError(f"{self.name}: line {line}: {what}")


def pair_operations(data: bytes, name: str, *, timeout: float) -> Operations:
    """Read the events in a file and pair invocations with completions.

    Raises:
        HistoryError: the file is malformed; the message names the file and line.
        TimeoutError: reading took longer than ``timeout`` seconds; 0 means no limit.
    """
    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        msg = f"{name}: byte {error.start}: not UTF-8"
        raise HistoryError(msg) from None
    until = time.monotonic() + timeout if timeout else None
    events = []
    for number, (line, form) in enumerate(forms(text, name)):
        if until is not None and number % _POLL == 0 and time.monotonic() > until:
            raise TimeoutError
        if not isinstance(form, Mapping):
            msg = f"{name}: line {line}: not an operation (got {preview(form)}, expected a map)"
            raise HistoryError(msg)
        events.append((line, {_word(key): value for key, value in form.items()}))
    return _Pairing(name, text).pair(events)


def _word(value: Any) -> Any:
    return value.name if isinstance(value, Keyword) else value


def _is_number(value: Any) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


class _Event(Struct, frozen=True, kw_only=True):
    """An invocation or a completion, which is a map in the file.

    Attributes:
        process: the process as an integer; ``None`` if the map has no process.
    """

    position: int
    line: int
    number: int
    process: int | None
    function: Any
    value: Any
    key: Any
    error: Any


class _Pairing:
    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.done: list[PairedOperation] = []
        self.open: dict[Any, list[PairedOperation]] = {}
        self.sessions: dict[Any, int] = {}
        self.processes_of_sessions: list[int] = []  # for each session, the process that runs it
        self.overlapping: set[int] = set()
        self.others: Counter[str] = Counter()
        self.strays = self.resumed = self.unanswered = 0
        self.after_info: set[Any] = set()

    def pair(self, maps: list[tuple[int, dict[Any, Any]]]) -> Operations:
        indices = [fields.get("index") for _, fields in maps]
        by_index = all(map(_is_number, indices)) and len(set(indices)) == len(indices)
        if by_index:
            maps.sort(key=lambda one: one[1]["index"])
        processes = any(_is_number(fields.get("process")) for _, fields in maps)
        timed = False
        for position, (line, fields) in enumerate(maps):
            process = fields.get("process")
            if process is not None and not _is_number(process):
                name = str(_word(process))
                if not re.match(r"[^\W\d]", name):  # a client must not be mistaken for a nemesis
                    what = (
                        f"wrong :process (got {preview(process)}, expected an integer of 64 bits or"
                    )
                    raise self.fail(line, f"{what} a name)")
                self.others[name] += 1
                continue
            if process is None and processes:
                what = "the operation has no :process, but other operations have one"
                raise self.lacks(line, fields, "process", what, "(got none, expected a number)")
            event = _Event(
                position=position,
                line=line,
                number=fields["index"] if by_index else len(self.done) + 1,
                process=process,
                function=_word(fields.get("f")),
                value=fields.get("value"),
                key=fields.get("key"),
                error=fields.get("error"),
            )
            kind = _word(fields.get("type"))
            if kind == "ok" and "value" not in fields and self.misspelt(fields, "value"):
                raise self.lacks(line, fields, "value", "an :ok without :value", "")
            if kind == "invoke":
                timed = True
                self.begin(event)
            elif kind in _TYPES:
                self.end(event, kind)
            else:
                got = "none" if kind is None else preview(kind)
                expected = f"(got {got}, expected :invoke, :ok, :fail or :info)"
                raise self.lacks(line, fields, "type", "wrong :type", expected)
        self.unanswered = sum(map(len, self.open.values()))
        return Operations(
            name=self.name,
            done=self.done,
            timed=timed,
            by_index=by_index,
            processes=processes,
            session_names=session_names(self.processes_of_sessions) if processes else (),
            ignored=self.ignored(),
            notes=self.notes(),
        )

    def fail(self, line: int, what: str) -> HistoryError:
        return HistoryError(f"{self.name}: line {line}: {what}")

    def misspelt(self, fields: Mapping[Any, Any], field: str) -> str:
        """Return the key of a map that looks like a misspelt field; empty if there is none."""
        if field in fields:
            return ""
        from difflib import get_close_matches

        unknown = [key for key in fields if isinstance(key, str) and key not in _FIELDS]
        return next(iter(get_close_matches(field, unknown, 1, _LIKENESS)), "")

    def lacks(
        self, line: int, fields: Mapping[Any, Any], field: str, what: str, otherwise: str
    ) -> HistoryError:
        """Return the error for a map that lacks a field, with a hint if the field is misspelt."""
        key = self.misspelt(fields, field)
        if not key:
            return self.fail(line, f"{what} {otherwise}")
        got, expected, at = f":{key}", f":{field}", ""
        for number, text in enumerate(self.text.split("\n")[line - 1 :], line):
            if found := re.search(rf"[:\"]{re.escape(key)}(?=[\s\",{{\[(])", text):
                at = f" at column {len(text[: found.start()].encode()) + 1}"
                at += f" of line {number}" * (number != line)
                if found[0].startswith('"'):
                    got, expected = f'"{key}"', f'"{field}"'
                break
        what = f"{what} (got '{got}'{at}, expected '{expected}')"
        return self.fail(line, f"{what}; did you mean '{expected}'?")

    def begin(self, event: _Event) -> PairedOperation:
        process = event.process
        now = self.open.setdefault(process, [])
        if now and process is not None and process not in self.overlapping:
            # if a process has overlapping operations, each of them gets its own session
            self.overlapping.add(process)
            now[0].session = self.session(object(), process)
        if not isinstance(event.function, str):
            got = preview(event.function)
            raise self.fail(event.line, f"wrong :f (got {got}, expected a name)")
        alone = process is None or process in self.overlapping
        done = PairedOperation(
            function=event.function,
            line=event.line,
            number=event.number,
            session=self.session(object() if alone else process, process),
            begin=event.position,
            invoked=event.value,
            key=event.key,
        )
        now.append(done)
        self.done.append(done)
        return done

    def session(self, key: object, process: int | None) -> int:
        if key not in self.sessions:
            self.sessions[key] = len(self.processes_of_sessions)
            self.processes_of_sessions.append(process or 0)
            self.resumed += key in self.after_info
        return self.sessions[key]

    def end(self, event: _Event, kind: str) -> None:
        now = self.open.setdefault(event.process, [])
        if now:
            done = self.completed_operation(now, event)
        elif kind == "ok":
            done = self.begin(event)
            done.begin = c.UNKNOWN_BEGIN
        else:
            self.strays += 1
            return
        now.remove(done)
        if event.function is not None and done.function != event.function:
            raise self.fail(
                event.line,
                f"the completion belongs to another operation (got :f {event.function}, expected "
                f":{done.function}, invoked in line {done.line})",
            )
        done.status = _TYPES[kind]
        done.completion, done.error = event.value, event.error
        if kind == "ok":
            done.value = event.value
        if kind != "info":
            done.end = event.position
        elif event.process is not None:
            # the outcome is unknown, so the process continues in a new session
            self.sessions.pop(event.process, None)
            self.after_info.add(event.process)

    def completed_operation(self, now: list[PairedOperation], event: _Event) -> PairedOperation:
        """Return the process's open operation that a completion belongs to."""
        if len(now) == 1:
            return now[0]
        alike = [d for d in now if d.function == event.function]
        exact = [d for d in alike if d.invoked == event.value]
        found = exact if len(exact) == 1 else alike
        if len(found) != 1:
            lines = " and ".join(str(d.line) for d in (found or now)[:2])
            what = f"several operations are open, those of lines {lines}"
            raise self.fail(
                event.line, f"{what}, and this completion could belong to either of them"
            )
        return found[0]

    def ignored(self) -> tuple[str, ...]:
        found: list[str] = []
        if self.others:
            who = ", ".join(f":{name}" for name in list(self.others)[:8])
            found.append(
                f"{quantity(self.others.total(), 'operation')} that no client sent ({who})"
            )
        if self.strays:
            found.append(Caveat(f"{quantity(self.strays, 'completion')} without an invocation"))
        return tuple(found)

    def notes(self) -> tuple[str, ...]:
        found: list[str] = []
        if self.unanswered:
            unanswered = quantity(self.unanswered, "invocation")
            found.append(f"{unanswered} without a completion, so the outcome is unknown")
        if self.resumed:
            times = quantity(self.resumed, "time")
            found.append(f"{times} a process went on after :info, as a new session")
        if self.overlapping:
            several = quantity(len(self.overlapping), "process", "processes")
            each = "each is a session of its own"
            found.append(Caveat(f"{several} with several open operations: {each}"))
        return tuple(found)


class Sink:
    """Fills the columns of a history with translated operations."""

    def __init__(self, name: str) -> None:
        from isolang._native import Columns

        self.columns = Columns()
        self.name = name
        self._keys: dict[tuple[int, Any], int] = {}
        self._values: dict[Any, int] = {}

    def begin(self, done: PairedOperation, status: int | None = None) -> None:
        """Begin a transaction for an operation, with the operation's status by default."""
        status = done.status if status is None else status
        self.columns.begin_transaction(
            done.session, status, done.number, done.line, 0, done.begin, done.end
        )

    def key(self, key: Any, initial: Any = None) -> int:
        """Return a key's number; a new key is added with the given initial value."""
        atom = encode(key, self.name)
        if atom not in self._keys:
            self._keys[atom] = self.columns.intern_key(*atom, self.value(initial))
        return self._keys[atom]

    def value(self, value: Any) -> int:
        """Return a value's number, adding the value if it is new."""
        atom = encode(value, self.name)
        if atom not in self._values:
            self._values[atom] = self.columns.intern_value(*atom)
        return self._values[atom]

    def read(self, key: int, value: int, line: int) -> None:
        """Add a read to the last transaction."""
        self.columns.add_op(c.READ, key, value, line)

    def write(self, key: int, value: int, line: int) -> None:
        """Add a write to the last transaction."""
        self.columns.add_op(c.WRITE, key, value, line)


def have_independent_keys(
    done: Sequence[PairedOperation], is_read: Callable[[PairedOperation], bool]
) -> bool:
    """Return whether all values have the form ``[k …]``, where k is an independent key.

    A read is invoked with ``[k nil]``. A read without an invocation returns ``[k collection]``.
    """
    values = [d.invoked if d.invoked is not None else d.value for d in done]
    if not done or not all(isinstance(v, tuple) and len(v) == 2 for v in values):
        return False
    reads = [v for d, v in zip(done, values, strict=True) if is_read(d)]
    return bool(reads) and all(
        not isinstance(k, tuple | Elements | dict)
        and (v is None or isinstance(v, tuple | Elements | dict))
        for k, v in reads
    )


def split_groups(ops: Operations, done: Sequence[PairedOperation]) -> None:
    """Move each operation's independent key from its values to ``group``.

    Raises:
        HistoryError: a value of an ``:ok`` read is not of the form ``[k …]``.
    """
    for d in done:
        invoked = d.invoked if d.invoked is not None else d.value
        d.group = invoked[0]
        if d.invoked is not None:
            d.invoked = d.invoked[1]
        if not d.answered:
            continue
        pair = d.value
        if not (isinstance(pair, tuple) and len(pair) == 2 and pair[0] == d.group):
            what = f"the value has no key (got {preview(pair)}, expected [{d.group} …]"
            raise ops.fail(d.line, f"{what}, as in the operations before)")
        d.value = pair[1]


class Translation:
    """Translates one kind of workload's operations to reads and writes of keys.

    Attributes:
        what: the name of the workload in the history's notes, such as "a bank".
        initial: a description of the reads that return the initial value.
        levels: the names of the levels that the history can be checked against; empty if it can be
            checked against all of them.
        sink: fills the columns with the translated operations.
    """

    what: ClassVar[str]
    initial: ClassVar[str]
    levels: tuple[str, ...] = ()

    def __init__(self, ops: Operations, sink: Sink) -> None:
        self.sink = sink
        self.notes: list[str] = []
        self._ops = ops

    def fill(self) -> None:
        """Translate all operations.

        Raises:
            HistoryError: an operation is malformed; the message names the file and line.
            UnsupportedError: the operations do not determine a history.
        """
        raise NotImplementedError

    def split(self, what: str = "") -> bool:
        """Split the operations by independent key; return whether they have such keys."""
        done = self._ops.done
        if not have_independent_keys(done, lambda d: d.function == "read"):
            return False
        split_groups(self._ops, done)
        if what:
            self.notes.append(f"operations on independent keys [k …], with one {what} for each k")
        return True
