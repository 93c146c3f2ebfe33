"""Jepsen's EDN: one operation map per line, sessions as processes.

With real time, ``:invoke`` and ``:ok`` lines stand in its order. Without, there are completions
only: any order of invocations would claim a real-time order that the history does not have.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.values import INTEGER, NIL, show
from isolang.history.writers import WriteReport
from isolang.history.writers.outline import Outline, Target, outline
from isolang.history.writers.renaming import INITIAL, Names, name_values

if TYPE_CHECKING:
    from isolang.history.history import History

_TARGET = Target(
    name="EDN",
    lists=True,
    maybe=True,
    real_time=True,
    unknown=True,
    empty=True,
    hint="",
)
_COMPLETION = {c.COMMITTED: "ok", c.ABORTED: "fail", c.MAYBE: "info"}


class Syntax:
    """How maps, operations and atoms look."""

    format = "edn"
    target = _TARGET

    def atom(self, kind: int, payload: object) -> str:
        """The text of an atom."""
        return show(kind, payload)

    def operation(self, name: str, key: str, value: str) -> str:
        """The text of an operation."""
        return f"[:{name} {key} {value}]"

    def elements(self, texts: Iterable[str]) -> str:
        """The text of a list."""
        return "[" + " ".join(texts) + "]"

    def line(self, index: int, kind: str, process: str, time: int | None, value: str) -> str:
        """The text of a map."""
        when = "" if time is None else f", :time {time}"
        return (
            f"{{:index {index}, :type :{kind}, :process {process}{when}, :f :txn, :value {value}}}"
        )


def encode(
    history: History, *, renumber: bool, drop: frozenset[str], syntax: Syntax | None = None
) -> tuple[bytes, WriteReport]:
    """Encode a history, in EDN if not said otherwise.

    Raises:
        HistoryError: if the format cannot express it.
    """
    syntax = syntax or Syntax()
    part = outline(history, syntax.target, drop)
    columns = history.columns
    texts = _Texts(history, syntax)
    names = name_values(
        part,
        target=syntax.target.name,
        tau=c.NIL_ATOM,
        expressible=texts.expressible,
        tau_writable=True,
        renumber=renumber,
    )
    _check_keys(part, texts)
    _check_maybe_reads(part, names)
    notes = [*part.notes, *names.notes]
    lines = _Lines(part, names, texts)
    if columns.has_time and "real-time" in drop:
        notes.append("left out: real time")
    if columns.has_time and "real-time" not in drop:
        lines.in_real_time()
    else:
        lines.completions_only()
    report = WriteReport(
        format=syntax.format,
        transactions=len(part.transactions),
        operations=part.count(),
        notes=tuple(notes),
    )
    return "".join(lines.out).encode(), report


class _Texts:
    """Texts of atoms, checked by reading them back."""

    def __init__(self, history: History, syntax: Syntax) -> None:
        self.history = history
        self.syntax = syntax
        self.known: dict[tuple[int, object], bool] = {}

    def expressible(self, atom: int) -> bool:
        return self.reads_back(self.history.columns.value(atom))

    def reads_back(self, atom: tuple[int, object]) -> bool:
        """Say whether the text of an atom means the same atom, as a key and as a value."""
        if atom[0] in (NIL, INTEGER):
            return True
        if atom not in self.known:
            from isolang import _native

            syntax, text = self.syntax, self.syntax.atom(*atom)
            both = syntax.elements(syntax.operation(name, text, text) for name in ("w", "r"))
            line = syntax.line(1, "ok", "0", None, both) + "\n"
            try:
                back, _ = _native.read_edn(line.encode())
                self.known[atom] = (
                    back.operations() == 2
                    and back.op_kind.tolist() == [c.WRITE, c.READ]
                    and back.n_keys() == 1
                    and back.key(0) == atom
                    and all(back.value(v) == atom for v in back.op_value.tolist())
                )
            except (_native.ReadError, _native.UnsupportedInput):
                self.known[atom] = False
        return self.known[atom]


def _check_keys(part: Outline, texts: _Texts) -> None:
    history = part.history
    used = {part.key[op] for t in part.transactions for op in part.ops(t)}
    for key in sorted(used):
        if not texts.reads_back(history.columns.key(key)):
            msg = f"{history.name}: the key {history.key(key)} cannot be expressed in {part.target}"
            raise HistoryError(msg)


def _check_maybe_reads(part: Outline, names: Names) -> None:
    """In ``:info`` maps nil means "not known", so there a read of the initial state has no text."""
    history = part.history
    for txn in part.transactions:
        if part.status[txn] != c.MAYBE:
            continue
        for op in part.ops(txn):
            if op in names.initial or names.number.get(op) == INITIAL:
                msg = (
                    f"{history.where_op(op)}: {history.describe_op(op)}: a read of the initial "
                    "state by a transaction whose outcome is unknown cannot be expressed in "
                    f"{part.target} (there nil means that the result is not known)"
                )
                raise HistoryError(msg)


class _Lines:
    """The lines of the file."""

    def __init__(self, part: Outline, names: Names, texts: _Texts) -> None:
        self.part = part
        self.history = part.history
        self.names = names
        self.sessions = part.by_session()
        self.out: list[str] = []
        self.keys: dict[int, str] = {}
        self.atoms: dict[int, str] = {}
        self.syntax = texts.syntax
        self.processes = self._processes()

    def _processes(self) -> list[str]:
        """Numbers that the input gave to its sessions are kept; else they are counted from 0."""
        session_of = self.history.columns.txn_session
        given = [self.history.session_name(int(session_of[s[0]])) for s in self.sessions]
        canonical = all(n.isdecimal() and str(int(n)) == n and len(n) < 19 for n in given)
        fits = self.history.session_names and canonical and len(set(given)) == len(given)
        return given if fits else [str(i) for i in range(len(given))]

    def line(self, kind: str, session: int, txn: int, time: int | None = None) -> None:
        ops = (self._op(op, asked=kind == "invoke") for op in self.part.ops(txn))
        value = self.syntax.elements(ops)
        index, process = len(self.out) + 1, self.processes[session]
        self.out.append(self.syntax.line(index, kind, process, time, value) + "\n")

    def _op(self, op: int, *, asked: bool) -> str:
        kind, key = self.part.kind[op], self._key(self.part.key[op])
        if kind in (c.WRITE, c.APPEND):
            name = "w" if kind == c.WRITE else "append"
            return self.syntax.operation(name, key, self._value(op))
        return self.syntax.operation("r", key, self._nil() if asked else self._value(op))

    def _nil(self) -> str:
        return self.syntax.atom(NIL, None)

    def _key(self, key: int) -> str:
        if key not in self.keys:
            self.keys[key] = self.syntax.atom(*self.history.columns.key(key))
        return self.keys[key]

    def _atom(self, atom: int) -> str:
        if atom not in self.atoms:
            self.atoms[atom] = self.syntax.atom(*self.history.columns.value(atom))
        return self.atoms[atom]

    def _value(self, op: int) -> str:
        number, value = self.names.number.get(op), self.part.value[op]
        if number is not None:
            return self._nil() if number == INITIAL else str(number)
        if op in self.names.initial or value == c.UNKNOWN_VALUE:
            return self._nil()
        if self.part.kind[op] != c.READ_LIST:
            return self._atom(value)
        start = self.history.columns.list_start
        elements = self.history.columns.list_values[start[value] : start[value + 1]].tolist()
        return self.syntax.elements(map(self._atom, elements))

    def completions_only(self) -> None:
        order = {t: (s, t) for s, session in enumerate(self.sessions) for t in session}
        for txn in self.part.transactions:
            session, _ = order[txn]
            self.line(_COMPLETION[self.part.status[txn]], session, txn)

    def in_real_time(self) -> None:
        """Invocations and completions in their order; where times are equal, invocations first.

        SOUND BECAUSE: t1 is before t2 in real time iff t1 ended strictly before t2 began. Aborted
        transactions have no real-time edges, and maybe ones no outgoing ones: their free ends go
        where their process needs them. An unknown begin is a completion without invocation.
        """
        columns = self.history.columns
        status, begins = self.part.status, columns.txn_begin.tolist()
        ends = columns.txn_end.tolist()
        events = []
        session_of, place = {}, {}
        for s, session in enumerate(self.sessions):
            for i, txn in enumerate(session):
                session_of[txn], place[txn] = s, i
                begin, end = begins[txn], ends[txn]
                if status[txn] != c.ABORTED and begin != c.UNKNOWN_BEGIN:
                    events.append((begin, 0, txn))
                if status[txn] == c.COMMITTED:
                    events.append((end, 1, txn))
        done = [0] * len(self.sessions)  # transactions of each session that are completed
        running: list[int | None] = [None] * len(self.sessions)

        def make_room(s: int, upto: int) -> None:
            while done[s] < upto:
                txn = self.sessions[s][done[s]]
                if status[txn] == c.ABORTED:
                    self.line("invoke", s, txn)
                    self.line("fail", s, txn)
                elif status[txn] == c.MAYBE and (
                    running[s] == txn or begins[txn] == c.UNKNOWN_BEGIN
                ):
                    self.line("info", s, txn)
                    running[s] = None
                else:
                    return
                done[s] += 1

        for time, completion, txn in sorted(events):
            s = session_of[txn]
            make_room(s, place[txn])
            if done[s] != place[txn] or running[s] not in (None, txn):
                other = self.sessions[s][done[s]]
                msg = (
                    f"{self.history.where(txn)}: {self.history.label(txn)} does not begin after "
                    f"{self.history.label(other)} of the same session ended, and a "
                    f"process in {self.part.target} does one thing at a time; drop real-time"
                )
                raise HistoryError(msg)
            self.line("ok" if completion else "invoke", s, txn, time)
            running[s] = None if completion else txn
            done[s] += completion
        for s, session in enumerate(self.sessions):
            make_room(s, len(session))
