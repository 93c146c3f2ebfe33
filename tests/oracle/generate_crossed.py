"""Small histories of every mixture of what a history can say.

The generators beside this one each know a few features of a history: rows, lists, times, wrong
clocks. A fault that needs two features of different generators escapes all of them. Here the
features of a history are drawn first, each by itself; then clients of a small store, which has
all of them, note what they see, and now and then something is another than it was.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Final

from .before import UNWRITTEN, Before, OpenError, told
from .generate_rows import random_predicate
from .history import (
    UNKNOWN,
    History,
    Named,
    Op,
    Row,
    Txn,
    as_edn_says,
    is_list_key,
    is_write,
    keys,
    partly_timed,
    sort_by_session,
    without_operation,
)
from .predicates import matches
from .simulate import as_files_say, moved, partly_noted

#: Whether reads by name return what the version that they name holds. Without, most histories would
#: be refuted by their values alone; and two reads that name an initial version of which nothing is
#: declared, with two values, are an anomaly that the oracle does not know.
ONE_VALUE_BY_NAME: Final = True


@dataclass(frozen=True, slots=True)
class Crossed:
    """A history, what its registers held before, and how wrong its clocks may be.

    Attributes:
        history: of one to five transactions.
        initial: of every register, beside nil; what stood there instead of nil, or that the reads
            tell it; None: there was nothing.
        error: of any two clocks, or of each session's.
    """

    history: History
    initial: int | Before | None = None
    error: int | Mapping[int, int] = 0


def _of_transactions(test: Callable[[Txn], bool]) -> Callable[[Crossed], bool]:
    return lambda c: any(map(test, c.history))


def _of_operations(*kinds: str) -> Callable[[Crossed], bool]:
    return _of_transactions(lambda t: any(op[0] in kinds for op in t.ops))


#: Feature -> whether a history has it. It is asked of the history as the tool gets it.
FEATURES: Final[dict[str, Callable[[Crossed], bool]]] = {
    "times of transactions": _of_transactions(lambda t: t.begin is not None and t.times is None),
    "times of operations": _of_transactions(lambda t: any(t.times or ())),
    "times of some operations": lambda c: partly_timed(c.history),
    "clock error": lambda c: bool(c.error),
    "predicates": _of_operations("scan"),
    "lists": lambda c: any(is_list_key(c.history, k) for k in keys(c.history)),
    "set-reads": _of_operations("in", "notin"),
    "unknown outcomes": _of_transactions(lambda t: t.status == "maybe"),
    "aborted transactions": _of_transactions(lambda t: t.status == "aborted"),
    "groups": _of_transactions(lambda t: t.group is not None),
    "labels": _of_transactions(lambda t: bool(t.labels)),
    "levels": _of_transactions(lambda t: t.level is not None),
    "sources by name": _of_transactions(lambda t: bool(t.sources)),
    "versions": _of_transactions(lambda t: bool(t.versions)),
    "ordered versions": _of_transactions(lambda t: t.ordered and bool(t.versions)),
    "initial values": lambda c: isinstance(c.initial, int),
    "values instead of nil": lambda c: (
        isinstance(c.initial, Before)
        and not (c.initial.told or c.initial.declared)
        and bool(c.initial.values)
    ),
    "declared initial": lambda c: (
        isinstance(c.initial, Before) and c.initial.declared and bool(c.initial.values)
    ),
    "unwritten initial": lambda c: isinstance(c.initial, Before) and c.initial.told,
    "deletes": _of_operations("delete"),
}

#: Of these a history has one at most.
BEFORE: Final = ("initial values", "values instead of nil", "declared initial", "unwritten initial")

#: How often a feature is drawn, where it is less than others: levels by executions know no names.
_OFTEN: Final = {
    "versions": 0.15,
    "ordered versions": 0.2,
    "sources by name": 0.25,
    "values instead of nil": 0.25,
    "declared initial": 0.2,
}

#: Those that a history cannot be drawn without.
_NEEDS: Final = {
    "clock error": "times of transactions",
    "ordered versions": "versions",
    "times of some operations": "times of operations",
}


def features(crossed: Crossed) -> frozenset[str]:
    """What a history has, whatever was drawn."""
    return frozenset(name for name, has in FEATURES.items() if has(crossed))


def pairs(found: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Every two of these features, in the order of ``FEATURES``."""
    return combinations([name for name in FEATURES if name in found], 2)


def crossed_history(
    rng: random.Random, *, wanted: frozenset[str] = frozenset(), hot: bool = False
) -> Crossed:
    """What clients of a store note, with features drawn by themselves, and those wanted.

    If it is hot, nearly all operations access the same key, which is a list if there are any.
    """
    drawn = {name for name in FEATURES if rng.random() < _OFTEN.get(name, 0.4)} | wanted
    drawn |= {need for name, need in _NEEDS.items() if name in drawn}
    if drawn >= {"times of operations", "clock error"} and rng.random() < 0.5:
        drawn -= {"times of transactions"}
    before = [name for name in BEFORE if name in drawn]
    if before:
        drawn -= {*before} - ({rng.choice(before)} if rng.random() < 0.7 else set())
    store = _Store(rng, drawn, hot=hot)
    history = store.run()
    if "times of some operations" in drawn:
        history = partly_noted(rng, history)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        history = changed(rng, history)
    if ONE_VALUE_BY_NAME:
        history = _agreeing(history, store.before if store.initial is None else {})
    error: int | Mapping[int, int] = 0
    if "clock error" in drawn:
        error = rng.choice((1, 2, 3, 5))
        if rng.random() < 0.4:
            error = {s: rng.choice((0, 1, 2, 4)) for s in sorted({t.session for t in history})}
    if "times of some operations" in drawn and not error and rng.random() < 0.25:
        history = as_files_say(rng, history)
    initial: int | Before | None = store.initial
    if "values instead of nil" in drawn:
        kept = [
            k for k, v in store.before.items() if isinstance(v, tuple) == is_list_key(history, k)
        ]
        initial = Before({k: store.before[k] for k in kept})
    elif "declared initial" in drawn:
        kept = [k for k in store.before if not is_list_key(history, k)]
        initial = Before({k: store.before[k] for k in kept}, declared=True)
    elif "unwritten initial" in drawn:
        try:
            told(as_edn_says(history), UNWRITTEN)
            told(history, UNWRITTEN)
            initial = UNWRITTEN
        except OpenError:  # which the tool refuses
            initial = None
    return Crossed(history, initial, error)


# --- a store ---


@dataclass(frozen=True, slots=True)
class _Version:
    value: Any
    #: the number of its transaction, and the place of its write there; None: it was there before
    by: tuple[int, int] | None = None


@dataclass(slots=True)
class _Running:
    number: int
    session: int
    begin: int
    todo: int
    age: int
    ops: list[Op] = field(default_factory=list)
    times: list[tuple[int, int]] = field(default_factory=list)
    sources: list[tuple[int, tuple[int, int] | str]] = field(default_factory=list)
    saw: dict[int, tuple[int, int] | None] = field(default_factory=dict)  # reads of registers
    own: dict[str, _Version] = field(default_factory=dict)
    commit: int | None = None


class _Store:
    """Clients of a few registers, rows and lists, at some isolation level."""

    def __init__(self, rng: random.Random, drawn: set[str], *, hot: bool) -> None:
        self.rng = rng
        self.drawn = drawn
        self.level = rng.choice(("serial", "snapshot", "snapshot", "prefix", "committed"))
        self.stale = rng.random() < 0.6
        self.initial = rng.randint(1, 3) if "initial values" in drawn else None
        with_rows = bool(drawn & {"predicates", "deletes"})
        self.columns = with_rows and self.initial is None and rng.random() < 0.25
        self.registers = "xyz"[: rng.choice((1, 2, 2, 3) if with_rows else (1, 1, 2, 2))]
        self.lists = "l" if "lists" in drawn else ""
        self.hot = (self.lists or "x") * 8 if hot else ""
        self.values = rng.choice((2, 3, 9))
        #: what each key held before; registers that held nothing are not here
        self.before: dict[str, Any] = {}
        if self.initial is not None:
            self.before = dict.fromkeys(self.registers, self.initial)
        elif drawn & {"values instead of nil", "declared initial", "unwritten initial"}:
            self.before = {k: self.row() for k in self.registers if rng.random() < 0.7}
            if self.lists and "declared initial" not in drawn and rng.random() < 0.7:
                self.before["l"] = (91, 92)[: rng.randint(1, 2)]
        self.past: list[dict[str, _Version]] = [{k: _Version(v) for k, v in self.before.items()}]
        self.written: dict[str, int] = {}
        self.element = 0
        self.done: dict[int, Txn] = {}  # by number
        self.sources: dict[int, list[tuple[int, tuple[int, int] | str]]] = {}
        self.made: list[tuple[int, int]] = []  # the writes of registers, by number and place
        self.saw: dict[int, dict[int, tuple[int, int] | None]] = {}

    def row(self) -> Any:
        """What a register may have held before: mostly what nobody writes."""
        rng = self.rng
        if self.columns:
            return Row(tuple((name, rng.choice((None, 0, 1, 2))) for name in "ab"))
        return rng.choice((1, 3, 7, 8, 8))

    def run(self) -> History:
        """Some transactions, one step of one session after the other."""
        rng = self.rng
        left, sessions = rng.choice((2, 3, 4, 4, 4, 5, 5)), rng.randint(2, 3)
        running: dict[int, _Running] = {}
        clock = number = 0
        while left or running:
            clock += rng.choice((0, 1, 1, 2))
            session = rng.randrange(sessions)
            t = running.get(session)
            if t is None:
                if left and not (self.level == "serial" and running):
                    left -= 1
                    age = len(self.past) - 1
                    running[session] = _Running(number, session, clock, rng.randint(1, 3), age)
                    number += 1
            elif t.todo:
                t.todo -= 1
                sent = rng.randint(t.times[-1][1] if t.times else t.begin, clock)
                self.operation(t)
                t.times.append((sent, clock))
            elif t.commit is None:
                t.commit = clock
            else:
                del running[session]
                self.finish(t, clock)
        return self.noted()

    def operation(self, t: _Running) -> None:
        """One more operation."""
        rng, drawn = self.rng, self.drawn
        key = rng.choice(self.registers + self.lists * 2 + self.hot)
        base = self.past[t.age if self.level in ("serial", "snapshot", "prefix") else -1]
        if self.stale and rng.random() < 0.35:
            base = rng.choice(self.past[-3:])
        state = {**base, **t.own}
        if key in self.lists:
            self.list_operation(t, key, base)
        elif "predicates" in drawn and rng.random() < 0.35:
            predicate = random_predicate(rng, columns=self.columns)
            rows = {k: v.value for k, v in state.items() if k not in self.lists}
            found = [(k, row) for k, row in rows.items() if matches(predicate, k, row)]
            t.ops.append(("scan", predicate, tuple(rng.sample(found, len(found)))))
        elif rng.random() < 0.5:
            self.read(t, key, state.get(key, _Version(None)))
        else:
            self.write(t, key, state.get(key, _Version(None)))

    def list_operation(self, t: _Running, key: str, base: Mapping[str, _Version]) -> None:
        """An append, or a read of the whole list."""
        own = t.own.get(key, _Version(())).value
        if self.rng.random() < 0.5:
            self.element += 1
            t.ops.append(("append", key, self.element))
            t.own[key] = _Version((*own, self.element))
        else:
            t.ops.append(("r", key, (*base.get(key, _Version(())).value, *own)))

    def read(self, t: _Running, key: str, seen: _Version) -> None:
        """A read of a register, of its version by value or by name, or of a set."""
        rng, drawn = self.rng, self.drawn
        if "set-reads" in drawn and rng.random() < 0.45:
            others = [v for v in (None, 1, 2, 3) if v != seen.value]
            some = tuple(rng.sample(others, rng.randint(1, 2)))
            one_of = ("in", key, tuple(rng.sample((seen.value, *some), len(some) + 1)))
            t.ops.append(rng.choice((one_of, ("notin", key, some))))
            return
        t.saw[len(t.ops)] = seen.by
        if "sources by name" in drawn and rng.random() < (0.8 if seen.by else 0.2):
            t.sources.append((len(t.ops), seen.by or "initial"))
        t.ops.append(("r", key, seen.value))

    def write(self, t: _Running, key: str, before: _Version) -> None:
        """A write, an insert or a delete."""
        rng = self.rng
        new: Any = rng.randint(1, self.values)
        if self.columns:
            new = Row(tuple((name, rng.choice((None, 0, 1, 2))) for name in "ab"))
        op: Op = ("w", key, new)
        if before.value is None and self.drawn & {"predicates", "deletes"}:
            op = ("insert", key, new)
        elif "deletes" in self.drawn and before.value is not None and rng.random() < 0.5:
            op, new = ("delete", key), None
        t.own[key] = _Version(new, (t.number, len(t.ops)))
        self.made.append((t.number, len(t.ops)))
        t.ops.append(op)

    def finish(self, t: _Running, clock: int) -> None:
        """It commits, or not, or nobody knows."""
        rng = self.rng
        status: Any = "committed"
        if "unknown outcomes" in self.drawn and rng.random() < 0.3:
            status = "maybe"
        elif "aborted transactions" in self.drawn and rng.random() < 0.25:
            status = "aborted"
        late = any(self.written.get(key, 0) > t.age for key in t.own)
        if self.level in ("serial", "snapshot") and late and rng.random() < 0.8:
            status = "aborted" if "aborted transactions" in self.drawn else status
            if status == "committed":  # it leaves nothing
                t.ops = [op for op in t.ops if not is_write(op)]
                t.times, t.sources, t.own, t.saw = [], [], {}, {}
        applied = status == "committed" or (status == "maybe" and rng.random() < 0.6)
        applied = applied or (self.stale and rng.random() < 0.3)
        if applied:
            newest = self.past[-1]
            new = {
                key: replace(v, value=(*newest.get(key, _Version(())).value, *v.value))
                if key in self.lists
                else v
                for key, v in t.own.items()
            }
            self.written |= dict.fromkeys(new, len(self.past))
            self.past.append({**newest, **new})
        ops = tuple(t.ops)
        if status == "maybe" and rng.random() < 0.7:  # what it read was lost with the answer
            ops = tuple(
                ("r", op[1], UNKNOWN) if op[0] in ("r", "in", "notin") else op for op in ops
            )
            t.sources = []
        begin = end = None
        if self.drawn & {"times of transactions", "times of operations"}:
            begin, end = t.begin, None if status == "maybe" and rng.random() < 0.7 else clock
        made = Txn(t.session, ops, status, begin, end)
        whole = "times of transactions" in self.drawn and rng.random() < 0.4
        if "times of operations" in self.drawn and not whole and len(t.times) == len(ops):
            made = replace(made, times=tuple(t.times), commit=t.commit)
        if "groups" in self.drawn and rng.random() < 0.85:
            made = replace(made, group=rng.choice("aab"))
        if "labels" in self.drawn and rng.random() < 0.8:
            made = replace(made, labels=rng.choice((("a",), ("b",), ("ab",), ("a", "b"))))
        if "levels" in self.drawn and rng.random() < 0.85:
            made = replace(made, level=rng.choice(("ser", "si", "rc")))
        self.done[t.number] = made
        self.sources[t.number] = t.sources
        self.saw[t.number] = t.saw

    def noted(self) -> History:
        """The transactions in the order of their ends, with sources by their places there."""
        place = {number: at for at, number in enumerate(self.done)}

        def of(source: tuple[int, int] | str) -> Named:
            if not isinstance(source, tuple) or source[0] not in place:
                return "initial"
            return place[source[0]], source[1]

        stated = self.stated() if "versions" in self.drawn else {}
        return sort_by_session(
            replace(
                t,
                sources=tuple((op, of(source)) for op, source in self.sources[number]),
                versions=tuple(sorted(stated.get(number, {}).items())),
                ordered="ordered versions" in self.drawn,
            )
            for number, t in self.done.items()
        )

    def stated(self) -> dict[int, dict[int, int]]:
        """The versions that operations state, by transaction: what the store calls them.

        Each write gets its name as it is made, or as its transaction commits. Some operations do
        not say it; and what was there before has a name or not.
        """
        rng = self.rng
        place = {number: at for at, number in enumerate(self.done)}
        made = [(t, j) for t, j in self.made if t in place and self.is_write(t, j)]
        if rng.random() < 0.7:
            made.sort(key=lambda write: (place[write[0]], write[1]))
        name = {write: version for version, write in enumerate(made, 1)}
        saying = rng.choice((1, 1, 1, 0.9, 0.6))
        before = 0 if rng.random() < 0.5 else None
        found: dict[int, dict[int, int]] = {}
        for number in self.done:
            named = dict(self.sources[number])
            of = {j: name.get(by) if by else before for j, by in self.saw[number].items()}
            of |= {j: version for (t, j), version in name.items() if t == number}
            found[number] = {
                j: version
                for j, version in of.items()
                if version is not None and j not in named and rng.random() < saying
            }
        return found

    def is_write(self, number: int, place: int) -> bool:
        """Whether a transaction still has that write, which is gone if it could not commit."""
        ops = self.done[number].ops
        return place < len(ops) and is_write(ops[place])


# --- something is another than it was ---


def changed(rng: random.Random, history: History) -> History:
    """The history with one thing changed that it says; or the history, if nothing is there."""
    i = rng.randrange(len(history))
    t = history[i]
    if rng.random() < 0.25 and t.begin is not None:
        return _put(history, i, moved(t, rng.choice((-3, -2, -1, 1, 2, 3))))
    if rng.random() < 0.1 and any(t.times or ()):
        return _put(history, i, _moved_operation(rng, t))
    if rng.random() < 0.12:
        return _put(history, i, replace(t, status=rng.choice(("committed", "maybe", "aborted"))))
    if not t.ops:
        return history
    j = rng.randrange(len(t.ops))
    op = t.ops[j]
    if rng.random() < 0.1:
        return without_operation(history, i, j)
    if t.version(j) is not None and rng.random() < 0.5:
        some = [v for u in history for at, v in u.versions if u.ops[at][1] == op[1]]
        other = rng.choice((*some, rng.choice(some) + 1, 0))
        versions = tuple((at, other if at == j else old) for at, old in t.versions)
        return _put(history, i, replace(t, versions=versions))
    if t.named(j) is not None:
        source = rng.choice(_names(history, op[1]))
        sources = tuple((at, source if at == j else old) for at, old in t.sources)
        return _put(history, i, replace(t, sources=sources))
    new = _changed_operation(rng, history, op)
    return _put(history, i, replace(t, ops=(*t.ops[:j], new, *t.ops[j + 1 :])))


def _put(history: History, i: int, t: Txn) -> History:
    if t.status == "committed" and t.begin is not None and t.end is None:
        known = [t.begin, t.commit, t.answered, *(at for p in t.times or () if p for at in p)]
        t = replace(t, end=max(at for at in known if at is not None))
    return (*history[:i], t, *history[i + 1 :])


def _moved_operation(rng: random.Random, t: Txn) -> Txn:
    """One operation was sent and answered at other times within its transaction."""
    times = list(t.times or ())
    j = rng.choice([at for at, pair in enumerate(times) if pair])
    known = [at for pair in times if pair for at in pair] + [t.begin, t.end]
    some = [at for at in known if at is not None]
    sent, answered = sorted(rng.randint(min(some), max(some)) for _ in range(2))
    times[j] = (sent, answered)
    return replace(t, times=tuple(times))


def _names(history: History, key: str) -> list[Named]:
    """What a read of a register may name."""
    writes: list[Named] = [
        (i, j)
        for i, t in enumerate(history)
        for j, op in enumerate(t.ops)
        if is_write(op) and op[1] == key
    ]
    return [*writes * 3, "initial", "missing"]


def _changed_operation(rng: random.Random, history: History, op: Op) -> Op:
    kind, first, *rest = op
    rows = [o[2] for t in history for o in t.ops if o[0] in ("w", "insert")]
    if kind == "scan":
        found = dict(rest[0])
        fitting = [
            (k, row)
            for k in keys(history)
            for row in rows
            if not is_list_key(history, k) and matches(first, k, row)
        ]
        if found and rng.random() < 0.5:
            del found[rng.choice(list(found))]
        elif fitting:
            found |= dict([rng.choice(fitting)])
        return (kind, first, tuple(found.items()))
    if kind in ("in", "notin") and rng.random() < 0.5:
        return ("notin" if kind == "in" else "in", first, rest[0])
    if kind == "r" and is_list_key(history, first):
        elements = list(rest[0] or ()) if rest[0] != UNKNOWN else []
        others = [
            o[2]
            for t in history
            for o in t.ops
            if o[:2] == ("append", first) and o[2] not in elements
        ]
        if others and rng.random() < 0.5:
            elements.append(rng.choice(others))
        elif elements:
            del elements[rng.randrange(len(elements))]
        return (kind, first, tuple(elements))
    if kind == "r":
        return (kind, first, rng.choice([None, *rows]))
    if kind in ("w", "insert") and rows:
        return (kind, first, rng.choice(rows))
    return op


def _agreeing(history: History, before: Mapping[str, Any]) -> History:
    """Every read by name returns what the write that it names wrote, T0 before all others; or nil
    if it names none.
    """

    def value(t: Txn, j: int) -> Any:
        source = t.named(j)
        if not isinstance(source, tuple):
            return before.get(t.ops[j][1]) if source == "initial" else None
        written = history[source[0]].ops[source[1]]
        return None if written[0] == "delete" else written[2]

    return tuple(
        replace(
            t,
            ops=tuple(
                op if t.named(j) is None else ("r", op[1], value(t, j))
                for j, op in enumerate(t.ops)
            ),
        )
        for t in history
    )
