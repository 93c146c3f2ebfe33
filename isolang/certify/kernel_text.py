"""Writes a history, a level and a witness as the text that the kernel reads.

``kernel/README.md`` describes the text. The kernel is proved, so a verdict of it is a theorem about
the text; that the text says what the history and the specification say is the part of this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from isolang.certify.anomalies import Anomaly, anomalies_of, value_of_initial
from isolang.certify.errors import NotCertifiedError
from isolang.certify.facts import Facts
from isolang.certify.history_index import (
    ABORTED,
    BY_VALUE,
    COMMITTED,
    FROM_INITIAL,
    FROM_MISSING,
    INDETERMINATE,
    INITIAL,
    NIL,
    READ,
    READ_NONE_OF,
    READ_ONE_OF,
    SET_READS,
    UNKNOWN_VALUE,
    WRITE,
)
from isolang.certify.witness import included_by
from isolang.language.meaning.core import (
    Check,
    Core,
    Diff,
    ForKey,
    Inter,
    Inverse,
    Lift,
    Named,
    Opt,
    Plus,
    Rel,
    Seq,
    Spec,
    Star,
    Union,
)

if TYPE_CHECKING:
    from isolang.certify.proofs import Witness
    from isolang.history.history import History

NOWHERE: Final = 1 << 50
"""The value of a read that no version can have."""
_NO_TIME: Final = 1 << 62
_OUTCOMES: Final = {COMMITTED: "c", INDETERMINATE: "u", ABORTED: "a", INITIAL: "a"}
_HISTORY_RELATIONS: Final = ("so", "rt", "init", "id")
_KEYED: Final = ("wr", "ww", "rw")


def beyond(reason: str) -> NotCertifiedError:
    """Return the error that the kernel does not cover something."""
    return NotCertifiedError(f"not certified by the kernel: {reason}")


class LevelText:
    """A specification in the kernel's language.

    Attributes:
        order: the name of the order of all transactions; ``None`` without one.
        checks: the checks as text.
        number: the place of each check of the specification in ``checks``.
        approximated: whether the kernel may refuse a witness that holds, because it takes more
            pairs for an intersection or a difference than these have.

    Raises:
        NotCertifiedError: the kernel's language cannot express the specification.
    """

    def __init__(self, spec: Spec) -> None:
        self.order: str | None = None
        self.checks: list[str] = []
        self.number: dict[str, int] = {}
        self.approximated = False
        self._add_order(spec)
        for check in spec.checks:
            if not check.flag:
                self.number[check.name] = len(self.checks)
                self._add(check)

    def __str__(self) -> str:
        """Return the text."""
        kind = "no-order" if self.order is None else "order"
        return "\n".join([f"level {kind} {len(self.checks)}", *self.checks, ""])

    def mentions(self, word: str) -> bool:
        """Return whether a check uses a word of the kernel's language."""
        return any(word in check.split() for check in self.checks)

    def _add_order(self, spec: Spec) -> None:
        orders = [exists for exists in spec.exists if exists.name not in ("rf", "ww")]
        if not orders:
            return
        if any(exists.kind != "order" or exists.over != Rel("T") for exists in orders):
            name = next(e.name for e in orders if e.kind != "order" or e.over != Rel("T"))
            raise beyond(f"the level chooses the relation {name}")
        if len(orders) > 1 or any(exists.name == "ww" for exists in spec.exists):
            raise beyond("the level chooses several orders")
        (order,) = orders
        if order.within is not None:
            raise beyond(f"{order.name} has an upper bound")
        self.order = order.name
        if order.containing is not None and (least := _without_vo(order.containing)) is not None:
            self.checks.append(f"inorder {self._expr(least, ())}")

    def _add(self, check: Check) -> None:
        if check.negated:
            raise beyond(f"check {check.name} has not")
        if check.kind != "require":
            self.checks.append(f"{check.kind} {self._expr(check.expr, ())}")
            return
        if self.order is None or check.bound != Rel(self.order):
            raise beyond(f"check {check.name} requires pairs in another relation than an order")
        e = check.expr
        if (
            isinstance(e, ForKey)
            and e.within is None
            and isinstance(e.body, Diff)
            and e.body.right == Rel("id")
        ):
            e = Diff(e.of(e.body.left), Rel("id"))  # `for x: (a \ id)` is `(for x: a) \ id`
        if isinstance(e, Diff) and e.right == Rel("id"):
            # The kernel removes the identity from what an order must contain exactly.
            self.checks.append(f"inorder minus {self._expr(e.left, ())} id")
        else:
            self.checks.append(f"inorder {self._expr(e, ())}")

    def _expr(self, e: Core, keys: tuple[str, ...]) -> str:
        match e:
            case Rel(name=name, key=key):
                if name in _HISTORY_RELATIONS:
                    return name
                if name in _KEYED:
                    return f"{name} {_key(key, keys)}"
                if name == self.order:
                    return "co"
                raise beyond(f"the relation {name}")
            case Union(parts=parts):
                return self._nested("union", parts, keys)
            case Seq(parts=parts):
                return self._nested("seq", parts, keys)
            case Inter(parts=parts):
                self.approximated = True
                return self._nested("inter", parts, keys)
            case Diff(left=left, right=right):
                self.approximated = True
                return f"minus {self._expr(left, keys)} {self._expr(right, keys)}"
            case Inverse(arg=arg):
                return f"inv {self._expr(arg, keys)}"
            case Plus(arg=arg):
                return f"plus {self._expr(arg, keys)}"
            case Star(arg=arg):
                return f"opt plus {self._expr(arg, keys)}"
            case Opt(arg=arg):
                return f"opt {self._expr(arg, keys)}"
            case Lift(arg=Union(parts=parts)):
                return self._nested("union", [Lift(part) for part in parts], keys)
            case Lift(arg=Rel(name="T")):
                return "T"
            case Lift(arg=Rel(name=("W" | "R") as name, key=key)):
                return f"{name} {_key(key, keys)}"
            case ForKey(key=key, body=body, within=None):
                # A key that hides another one of the same name: the last one counts.
                return f"for {len(keys)} {self._expr(body, (*keys, key))}"
        raise beyond(f"the expression {_named(e)}")

    def _nested(self, word: str, parts: Sequence[Core], keys: tuple[str, ...]) -> str:
        *others, last = [self._expr(part, keys) for part in parts]
        return "".join(f"{word} {part} " for part in others) + last


def _key(key: str | None, keys: tuple[str, ...]) -> str:
    return "_" if key is None else str(len(keys) - 1 - keys[::-1].index(key))


def _without_vo(e: Core) -> Core | None:
    """Return an expression without its alternative ``vo``; ``None`` if nothing else is in it.

    Only list reads and stated versions give ``vo`` a pair, and the kernel's histories have neither.
    """
    if isinstance(e, Union):
        parts = [part for p in e.parts if (part := _without_vo(p)) is not None]
        return Union(tuple(parts)) if len(parts) > 1 else next(iter(parts), None)
    return None if isinstance(e, Rel) and e.name == "vo" else e


def _named(e: Core) -> str:
    """Return a few words for an expression that the kernel does not know."""
    match e:
        case Lift(arg=arg):
            return f"[{_named(arg)}]"
        case Rel(name=name):
            return name
        case Named(word=word):
            return f"{word} with a name"
        case ForKey():
            return "for x, over keys with a name"
    return type(e).__name__.lower()


class HistoryText:
    """A history in the kernel's form.

    Attributes:
        facts: the facts of the history.
        place: for each operation that the kernel knows, its transaction and its number there, as
            the kernel counts them.

    Raises:
        NotCertifiedError: the kernel's histories cannot express this one.
    """

    def __init__(self, history: History, level: LevelText) -> None:
        columns = history.columns
        if columns.implicit or columns.statements():
            raise beyond("the history has predicate reads")
        if columns.has_versions:
            raise beyond("the history states versions")
        self.facts = facts = Facts(history)
        if facts.has_own_clocks:
            raise beyond("the history was read with a clock error")
        if level.mentions("rt"):
            if not facts.has_time:
                raise beyond("the level uses rt, and the history has no times")
            facts.require_times()
        self.place: dict[int, tuple[int, int]] = {}
        self._named = self._names_sources()
        known = [t for t in (*facts.begin, *facts.end) if abs(t) < _NO_TIME]
        self._first = min(known, default=0)
        lines = [self._transaction(t) for t in range(facts.n)]
        self._text = "\n".join([f"history {facts.n}", *lines, self._initial(), ""])

    def __str__(self) -> str:
        """Return the text."""
        return self._text

    def number(self, t: int) -> int:
        """Return the kernel's number of a transaction."""
        return 1 if t == self.facts.n else t + 2

    def _reads(self) -> list[int]:
        facts = self.facts
        return [
            op
            for op in range(facts.operations)
            if facts.kind[op] == READ and facts.ok[op] and facts.value[op] != UNKNOWN_VALUE
        ]

    def _names_sources(self) -> bool:
        """Return whether the reads name the writes that they saw; else they say values."""
        facts = self.facts
        reads = self._reads()
        named = [op for op in reads if facts.source[op] not in (BY_VALUE, FROM_MISSING)]
        if not named:
            return False
        if all(facts.source[op] == FROM_INITIAL for op in named) and all(
            value == NIL for value in facts.initial_value
        ):
            # Nil is the value of the initial version alone.
            if any(facts.value[op] != NIL for op in named):
                raise beyond("a read names the initial version and returned a value")
            return False
        if len(named) < len([op for op in reads if facts.source[op] != FROM_MISSING]):
            raise beyond("some reads name the write that they saw, and others do not")
        initial: dict[int, int] = {}
        for op in reads:
            value = value_of_initial(facts, op)
            if value is not None and initial.setdefault(facts.key[op], value) != value:
                raise beyond("two reads of an initial version returned different values")
        return True

    def _transaction(self, t: int) -> str:
        facts = self.facts
        operations: list[str] = []
        if facts.status[t] != INITIAL:
            for op in range(facts.op_start[t], facts.op_start[t + 1]):
                if text := self._operation(op):
                    operations.append(text)
                    self.place[op] = (t + 2, len(operations))
        else:
            for op in range(facts.op_start[t], facts.op_start[t + 1]):
                if facts.kind[op] not in (READ, WRITE):
                    raise beyond("the history has lists")
        times = f"{self._time(facts.begin[t])} {self._time(facts.end[t])}"
        head = f"t {facts.session[t] + 1} {_OUTCOMES[facts.status[t]]} {times} {len(operations)}"
        return " ".join([head, *operations])

    def _time(self, time: int) -> str:
        return "-" if not self.facts.has_time or abs(time) >= _NO_TIME else str(time - self._first)

    def _operation(self, op: int) -> str:
        """Return an operation as text; empty if it says nothing."""
        facts = self.facts
        kind, key = facts.kind[op], facts.key[op] + 1
        if kind not in (READ, WRITE, READ_ONE_OF, READ_NONE_OF):
            raise beyond("the history has lists")
        if not facts.ok[op] or (kind != WRITE and facts.value[op] == UNKNOWN_VALUE):
            return ""
        if kind in SET_READS:
            if self._named or facts.initial_value[facts.key[op]] != NIL:
                raise beyond("the history has set-reads beside stated sources or initial values")
            values = sorted({facts.as_read(v) for v in facts.list_of(op)})
            word = "o" if kind == READ_ONE_OF else "n"
            return " ".join([word, str(key), str(len(values)), *map(str, values)])
        if kind == WRITE:
            return f"w {key} {self._version(op)}"
        return f"r {key} {self._read(op)}"

    def _version(self, write: int) -> int:
        return write + 1 if self._named else self.facts.as_read(self.facts.value[write])

    def _read(self, op: int) -> int:
        """Return the value that a read returned, as a number."""
        facts = self.facts
        source = facts.source[op]
        if source == FROM_MISSING or not self._named:
            return NOWHERE if source == FROM_MISSING else facts.value[op]
        if Anomaly.TWO_VALUES in anomalies_of(facts, op):
            return NOWHERE
        if source == FROM_INITIAL or facts.txn_of[source] == facts.n:
            return NIL
        same = facts.kind[source] == WRITE and facts.key[source] == facts.key[op]
        return source + 1 if same and facts.ok[source] else NOWHERE

    def _initial(self) -> str:
        """Return the values of the initial versions that are not nil."""
        facts = self.facts
        found: dict[int, int] = {}
        if not self._named:
            found = {k: v for k, v in enumerate(facts.initial_value) if v != NIL}
            found |= {k: facts.as_read(facts.value[op]) for k, op in facts.last[facts.n].items()}
            for op in self._reads():
                if facts.value[op] == NIL and facts.key[op] in found:
                    raise beyond("a read of nil, where an initial value is declared")
        pairs = [f"{key + 1} {value}" for key, value in found.items()]
        return " ".join([f"initial {len(pairs)}", *pairs])


def witness_text(text: HistoryText, witness: Witness) -> str:
    """Return a witness as text.

    Raises:
        NotCertifiedError: the witness is of a kind that the kernel does not know.
    """
    if witness.commits is not None:
        raise beyond("the witness orders COMMITs")
    facts = text.facts
    sources = witness.source.tolist()
    included = included_by(facts, sources)
    maybe = [str(text.number(t)) for t in sorted(included) if facts.status[t] == INDETERMINATE]
    lines = [" ".join(["witness\nincluded", str(len(maybe)), *maybe])]
    read = [(op, u) for op, u in enumerate(sources) if u >= 0]
    lines.append(f"source {len(read)}")
    for op, u in read:
        txn, number = text.place[op]
        lines.append(f"{txn} {number} {text.number(u)}")
    start, txns = witness.order_start.tolist(), witness.order_txn.tolist()
    orders = [
        (key, [str(text.number(t)) for t in txns[start[key] : start[key + 1]] if t in included])
        for key in range(facts.keys)
        if start[key] < start[key + 1]
    ]
    lines.append(f"orders {len(orders)}")
    lines += [" ".join([str(key + 1), str(len(order)), *order]) for key, order in orders]
    return "\n".join([*lines, "end", ""])
