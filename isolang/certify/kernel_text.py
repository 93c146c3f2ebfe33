"""Translates a history, a level and a witness into text for the kernel.

``kernel/README.md`` describes the text format. Because the kernel is proved correct, its verdict is
a theorem about the text. Only this module guarantees that the text describes the given history and
specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from isolang.certify.anomalies import Anomaly, anomalies_of, value_of_initial
from isolang.certify.errors import NotCertifiedError
from isolang.certify.facts import Facts
from isolang.certify.history_index import (
    ABORTED,
    APPEND,
    BY_VALUE,
    COMMITTED,
    FROM_INITIAL,
    FROM_MISSING,
    INDETERMINATE,
    INITIAL,
    NIL,
    READ_LIST,
    READ_ONE_OF,
    SET_READS,
    UNKNOWN_VALUE,
    WRITE,
)
from isolang.certify.witness import included_transactions
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
"""In the text, the value of a read whose value no version can have."""
_INITIAL: Final = NOWHERE + 1
"""In the text, the value of a read that names the initial version as its source."""
JUDGING: Final = ("wr", "rw")
"""In the text, the relations by which a level judges reads."""
_OUTCOMES: Final = {COMMITTED: "c", INDETERMINATE: "u", ABORTED: "a", INITIAL: "a"}
_HISTORY_RELATIONS: Final = ("so", "rt", "init", "id")
_KEYED: Final = ("wr", "ww", "rw")


def unsupported(reason: str) -> NotCertifiedError:
    """Return the error for something the kernel does not support."""
    return NotCertifiedError(f"not certified by the kernel: {reason}")


class LevelText:
    """A specification, translated into the kernel's language.

    Attributes:
        order: the name of the order of all transactions; ``None`` if the specification has no such
            order.
        may_refuse: why the kernel may reject a correct proof; empty if it never does.

    Raises:
        NotCertifiedError: if the kernel's language cannot express the specification.
    """

    def __init__(self, spec: Spec, *, lists: bool = False, of_part: bool = False) -> None:
        """Translate a specification.

        Args:
            of_part: whether the history is a part of a chain. The next part begins with the last
                versions of the witness, so an order of all transactions must contain the version
                orders, even if the specification does not mention them.
        """
        self.order: str | None = None
        self._lists = lists
        self.checks: list[str] = []
        self.number: dict[str, int] = {}
        self.may_refuse = ""
        self._orders_versions = False  # whether `ww` replaces `vo` in this expression
        self._add_order(spec)
        if of_part and self.order is not None:
            self.checks.append("inorder ww _")
        for check in spec.checks:
            if not check.flag:
                self.number[check.name] = len(self.checks)
                self._add(check)

    def __str__(self) -> str:
        """Return the specification in the kernel's input format."""
        kind = "no-order" if self.order is None else "order"
        return "\n".join([f"level {kind} {len(self.checks)}", *self.checks, ""])

    def mentions(self, word: str) -> bool:
        """Return whether any check contains this word of the kernel's language."""
        return any(word in check.split() for check in self.checks)

    @property
    def judges_reads(self) -> bool:
        """Return whether any check says where reads read from (docs/language.md)."""
        return any(self.mentions(word) for word in JUDGING)

    def _add_order(self, spec: Spec) -> None:
        orders = [exists for exists in spec.exists if exists.name not in ("rf", "ww")]
        if not orders:
            return
        if any(exists.kind != "order" or exists.over != Rel("T") for exists in orders):
            name = next(e.name for e in orders if e.kind != "order" or e.over != Rel("T"))
            raise unsupported(f"the level chooses the relation {name}")
        if len(orders) > 1 or any(exists.name == "ww" for exists in spec.exists):
            raise unsupported("the level chooses several orders")
        (order,) = orders
        if order.within is not None:
            raise unsupported(f"{order.name} has an upper bound")
        self.order = order.name
        self.may_refuse = "the level does not try every order of all transactions"
        if order.containing is not None and (least := self._least(order.containing)) is not None:
            self.checks.append(f"inorder {self._expr(least, ())}")
            self._orders_versions = False

    def _least(self, e: Core) -> Core | None:
        """Return an expression with ``ww`` in place of ``vo``, or ``None`` if nothing remains.

        Only list reads and stated versions add pairs to ``vo``. If the history has no lists, ``vo``
        is therefore left out.

        SOUND BECAUSE no other check uses ``ww``. If an order of all transactions contains the
        orders that lists show, it orders the writers of each list in a way that explains the reads
        of the list. Therefore it contains some legal version orders, and these contain the orders
        that lists show.
        """
        if isinstance(e, Union):
            parts = [part for p in e.parts if (part := self._least(p)) is not None]
            return Union(tuple(parts)) if len(parts) > 1 else next(iter(parts), None)
        if isinstance(e, Rel) and e.name == "vo":
            self._orders_versions = self._lists
            return Rel("ww") if self._lists else None
        return e

    def _add(self, check: Check) -> None:
        if check.negated:
            raise unsupported(f"check {check.name} has not")
        if check.kind != "require":
            self.checks.append(f"{check.kind} {self._expr(check.expr, ())}")
            return
        if self.order is None or check.bound != Rel(self.order):
            raise unsupported(
                f"check {check.name} requires pairs in a relation other than an order"
            )
        e = check.expr
        if (
            isinstance(e, ForKey)
            and e.within is None
            and isinstance(e.body, Diff)
            and e.body.right == Rel("id")
        ):
            e = Diff(e.of(e.body.left), Rel("id"))  # `for x: (a \ id)` is `(for x: a) \ id`
        if isinstance(e, Diff) and e.right == Rel("id"):
            # In an axiom on the order, the kernel subtracts the identity exactly.
            self.checks.append(f"inorder minus {self._expr(e.left, ())} id")
        else:
            self.checks.append(f"inorder {self._expr(e, ())}")

    def _expr(self, e: Core, keys: tuple[str, ...]) -> str:
        match e:
            case Rel(name=name, key=key):
                if name in _HISTORY_RELATIONS:
                    return name
                if name in _KEYED:
                    if self._lists and self.order and name != "wr" and not self._orders_versions:
                        raise unsupported(f"{name} beside an order of all transactions, and lists")
                    return f"{name} {_key(key, keys)}"
                if name == self.order:
                    return "co"
                raise unsupported(f"the relation {name}")
            case Union(parts=parts):
                return self._nested("union", parts, keys)
            case Seq(parts=parts):
                return self._nested("seq", parts, keys)
            case Inter(parts=parts):
                self.may_refuse = "it only approximates & and \\"
                return self._nested("inter", parts, keys)
            case Diff(left=left, right=right):
                self.may_refuse = "it only approximates & and \\"
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
                # If an inner key has the same name as an outer key, the name means the inner key.
                return f"for {len(keys)} {self._expr(body, (*keys, key))}"
        raise unsupported(f"the expression {_named(e)}")

    def _nested(self, word: str, parts: Sequence[Core], keys: tuple[str, ...]) -> str:
        *others, last = [self._expr(part, keys) for part in parts]
        return "".join(f"{word} {part} " for part in others) + last


def _key(key: str | None, keys: tuple[str, ...]) -> str:
    return "_" if key is None else str(len(keys) - 1 - keys[::-1].index(key))


def _named(e: Core) -> str:
    """Return a short description of an unsupported expression."""
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
    """A history, translated into the kernel's input format.

    Usually, the values in the text are the history's value numbers, and a read states the value it
    returned. If some reads name the write they saw, or some set-reads involve keys with declared
    initial values, each write gets a number of its own instead. Each read then lists the writes it
    may have seen.

    Attributes:
        place: for each operation in the text, the number of its transaction and the operation's
            number in that transaction, both in the kernel's numbering.

    Raises:
        NotCertifiedError: if the history cannot be expressed in the kernel's input format.
    """

    def __init__(self, history: History, level: LevelText) -> None:
        columns = history.columns
        if columns.implicit or columns.statements():
            raise unsupported("the history has predicate reads")
        if columns.has_versions:
            raise unsupported("the history states versions")
        self.facts = facts = Facts(history)
        if facts.has_own_clocks:
            raise unsupported("the history was read with a clock error")
        if level.mentions("rt"):
            if not facts.has_time:
                raise unsupported("the level uses rt, but the history has no times")
            facts.require_times()
        if has_lists(history) and not level.judges_reads:
            raise unsupported("the level ignores reads, but the history has lists")
        self.place: dict[int, tuple[int, int]] = {}
        self._lists = self._list_keys()
        self._by_write = self._numbers_writes()
        self._moment = _moments_of(facts)
        self._judged = level.judges_reads
        self._initial: dict[int, set[int]] = {}
        self._require_one_initial_value()
        lines = [self._transaction(t) for t in range(facts.n)]
        keys = f"keys {facts.keys}"
        self._text = "\n".join(
            [f"history {facts.n}", *lines, keys, self._initial_values(), self._beginnings(), ""]
        )

    def __str__(self) -> str:
        """Return the history in the kernel's input format."""
        return self._text

    def number(self, t: int) -> int:
        """Return a transaction's number in the kernel's input."""
        return 1 if t == self.facts.n else t + 2

    def beginning(self, key: int) -> list[int]:
        """Return the elements of a key's initial list."""
        facts = self.facts
        return [facts.value[op] for op in facts.writes_by(facts.n, key)]

    def _list_keys(self) -> set[int]:
        """Return the keys whose values are lists."""
        facts = self.facts
        lists: set[int] = set()
        registers: set[int] = set()
        for op in range(facts.operations):
            if not facts.ok[op] or not facts.live(facts.txn_of[op]):
                continue
            kind, known = facts.kind[op], facts.value[op] != UNKNOWN_VALUE
            if kind == APPEND or (kind == READ_LIST and known):
                lists.add(facts.key[op])
            elif kind == WRITE or (kind in SET_READS and known) or facts.value[op] > NIL:
                registers.add(facts.key[op])
        if both := lists & registers:
            raise unsupported(f"key {min(both)} is both a register and a list")
        return lists

    def _numbers_writes(self) -> bool:
        """Return whether writes need their own numbers because values leave sources open."""
        facts = self.facts
        return any(
            facts.source[op] >= 0
            or (facts.kind[op] in SET_READS and facts.initial_value[facts.key[op]] != NIL)
            for op in range(facts.operations)
            if facts.is_read(op) and facts.key[op] not in self._lists
        )

    def _require_one_initial_value(self) -> None:
        """Require that reads that name the same key's initial version return the same value."""
        facts = self.facts
        found: dict[int, int] = {}
        for op in range(facts.operations):
            if facts.source[op] == BY_VALUE or facts.key[op] in self._lists:
                continue
            value = value_of_initial(facts, op)
            if value is not None and found.setdefault(facts.key[op], value) != value:
                raise unsupported("two reads of an initial version returned different values")

    def _transaction(self, t: int) -> str:
        facts = self.facts
        operations: list[str] = []
        if facts.status[t] != INITIAL:
            for op in range(facts.op_start[t], facts.op_start[t + 1]):
                if text := self._operation(op):
                    operations.append(text)
                    self.place[op] = (t + 2, len(operations))
        began = str(self._moment[facts.begin[t]]) if facts.begins(t) else "-"
        ended = str(self._moment[facts.end[t]]) if facts.ends(t) else "-"
        session, outcome = facts.session[t] + 1, _OUTCOMES[facts.status[t]]
        head = f"t {session} {outcome} {began} {ended} {len(operations)}"
        return " ".join([head, *operations])

    def _operation(self, op: int) -> str:
        """Return an operation as text, or an empty string if the kernel does not need it."""
        facts = self.facts
        kind, key = facts.kind[op], facts.key[op] + 1
        writes = kind in (WRITE, APPEND)
        if not facts.ok[op] or (not writes and facts.value[op] == UNKNOWN_VALUE):
            return ""
        if not facts.live(facts.txn_of[op]):
            # for an aborted transaction, the kernel needs only the keys it writes
            return f"w {key} {NOWHERE}" if writes else ""
        if facts.key[op] in self._lists:
            if writes:
                return f"w {key} {facts.value[op]}"
            missing = facts.source[op] == FROM_MISSING
            return _with_list("l", key, [NOWHERE] if missing else facts.list_of(op))
        if writes:
            return f"w {key} {self._version(op)}"
        if self._by_write:
            return _with_list("o", key, self._writes_that_explain(op))
        if kind in SET_READS:
            values = sorted({facts.as_read(v) for v in facts.list_of(op)})
            return _with_list("o" if kind == READ_ONE_OF else "n", key, values)
        return f"r {key} {self._value(op)}"

    def _version(self, write: int) -> int:
        return write + 1 if self._by_write else self.facts.as_read(self.facts.value[write])

    def _value(self, op: int) -> int:
        """Return the value stated in the text for a read, which may be a special code."""
        facts = self.facts
        source = facts.source[op]
        if source == BY_VALUE:
            return facts.value[op]
        if source != FROM_INITIAL or self._contradicts_its_source(op):
            return NOWHERE
        self._initial.setdefault(facts.key[op], set()).add(_INITIAL)
        return _INITIAL

    def _contradicts_its_source(self, op: int) -> bool:
        """Return whether a read shows a value other than its source's, at a level that judges."""
        return self._judged and Anomaly.TWO_VALUES in anomalies_of(self.facts, op)

    def _writes_that_explain(self, op: int) -> list[int]:
        """Return the numbers of the writes a read may have seen; 0 is the initial version."""
        facts = self.facts
        source, key = facts.source[op], facts.key[op]
        if source == BY_VALUE:
            found = [w + 1 for w in facts.writes_seen(op) if facts.txn_of[w] != facts.n]
            initial = facts.may_be_initial(op) or any(
                facts.last[facts.n].get(key) == w for w in facts.writes_seen(op)
            )
            return [NIL, *found] if initial else found
        if source == FROM_MISSING or self._contradicts_its_source(op):
            return []
        if source == FROM_INITIAL or facts.txn_of[source] == facts.n:
            return [NIL]
        explains = facts.kind[source] == WRITE and facts.key[source] == key and facts.ok[source]
        return [source + 1] if explains else []

    def _initial_values(self) -> str:
        """Return the text for initial versions that may have a value other than nil."""
        facts = self.facts
        entries: list[str] = []
        for key in range(facts.keys):
            if self._by_write or key in self._lists:
                continue
            initial = facts.initial_value[key]
            found = {initial, *self._initial.get(key, ())}
            if (write := facts.last[facts.n].get(key)) is not None:
                found.add(facts.as_read(facts.value[write]))
            if facts.nil_is_initial(key) and not facts.vanishes(key):
                found.add(NIL)
            if found != {NIL}:
                entries.append(_with_list("", key + 1, sorted(found)))
        return "".join([f"initial {len(entries)}", *entries])

    def _beginnings(self) -> str:
        """Return the text for initial lists that are not empty."""
        found = {key: self.beginning(key) for key in sorted(self._lists)}
        entries = [_with_list("", key + 1, values) for key, values in found.items() if values]
        return "".join([f"beginning {len(entries)}", *entries])


def _moments_of(facts: Facts) -> dict[int, int]:
    """Return a number for each known time, in ascending order, because only the order counts.

    The times themselves may be larger than the numbers that the kernel's program reads.
    """
    begun = {facts.begin[t] for t in range(facts.n) if facts.begins(t)}
    ended = {facts.end[t] for t in range(facts.n) if facts.ends(t)}
    return {time: number for number, time in enumerate(sorted(begun | ended))}


def has_lists(history: History) -> bool:
    """Return whether a history appends to lists or reads lists."""
    kinds = history.columns.op_kind
    return bool(((kinds == APPEND) | (kinds == READ_LIST)).any())


def _with_list(word: str, key: int, values: Sequence[int]) -> str:
    return " ".join([word, str(key), str(len(values)), *map(str, values)])


def witness_text(text: HistoryText, witness: Witness) -> str:
    """Return a witness in the kernel's input format.

    Raises:
        NotCertifiedError: if the kernel does not support this kind of witness.
    """
    if witness.commits is not None:
        raise unsupported("the witness orders COMMITs")
    facts = text.facts
    sources = witness.source.tolist()
    included = included_transactions(facts, sources)
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
