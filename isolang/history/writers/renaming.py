"""What each operation's value is called in another format.

A format has one name for the initial state, ``nil`` or 0; a history may have two, nil and an
initial value of the key. A name may change only if every read keeps exactly the writes that it may
come from. So, for each key, with I the names of its initial state and τ the format's name for it:

* a read of v in I becomes a read of τ. If v is not τ itself, nobody may write v, and nobody τ: else
the read would lose
  or gain writers;
* a read of anything else called τ would become initial: refused.

``renumber`` gives new names instead. Reads by value: equal values get equal numbers, and all of I
becomes τ (if somebody writes a value in I, then no other name in I may occur). Reads with an
explicit source: each *write* gets a number of its own, and a read the number of its source; a
missing source gets a number that nobody writes.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct, field

from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.readers.reading import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from isolang._native import Columns
    from isolang.history.writers.outline import Outline

INITIAL = -1
"""The name of the initial state in the other format; new numbers are 1, 2, …"""


class Names(Struct, kw_only=True):
    """The names of values in the other format.

    Attributes:
        number: for an operation of a renumbered key, its number; :data:`INITIAL` for the initial
            state.
        initial: operations that are reads of the initial state, under whatever name.
        notes: what changed.
    """

    number: dict[int, int] = field(default_factory=dict)
    initial: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


def name_values(
    outline: Outline,
    *,
    target: str,
    tau: int,
    expressible: Callable[[int], bool],
    tau_writable: bool,
    renumber: bool,
) -> Names:
    """Find the name of each operation's value.

    Args:
        outline: what is written.
        target: the format's name in messages.
        tau: the atom of the format's name for the initial state, -1 if the history has no such
            atom.
        expressible: whether an atom can be written as it is.
        tau_writable: whether the format distinguishes a write of that name from the initial state.
        renumber: whether new names may be given.

    Raises:
        HistoryError: if a value has no name in the format.
    """
    history, names = outline.history, Names()
    columns = history.columns
    by_key: dict[int, list[int]] = defaultdict(list)
    for txn in outline.transactions:
        for op in outline.ops(txn):
            by_key[outline.key[op]].append(op)
    renumbered = translated = 0
    initial_value = columns.initial_value.tolist()
    expressed: dict[int, bool] = {}

    def can(atom: int) -> bool:
        if atom not in expressed:
            expressed[atom] = expressible(atom)
        return expressed[atom]

    for key, ops in by_key.items():
        of_key = _Key(outline, ops, tau, initial_value[key])
        problem = of_key.problem(target, can, tau_writable=tau_writable)
        if problem is None:
            reads = of_key.reads_of_initial()
            translated += sum(outline.value[op] != tau for op in reads)
            names.initial.update(reads)
            continue
        what, op = problem
        if renumber:
            impossible = of_key.renumber(names, tau_writable=tau_writable)
            if impossible is None:
                renumbered += 1
                continue
            what, op = impossible
        hint = "" if renumber else "; renumbering (renumber=True, --renumber) may"
        msg = f"{history.where_op(op)}: {history.describe_op(op)}: {what}{hint}"
        raise HistoryError(msg)
    if translated:
        names.notes.append(
            f"{counted(translated, 'read')} of the initial state under its name here"
        )
    if renumbered:
        names.notes.append(f"renumbered: the values of {counted(renumbered, 'key')}")
    return names


class _Key:
    """The operations of one key."""

    def __init__(self, outline: Outline, ops: list[int], tau: int, initial: int) -> None:
        columns = outline.history.columns
        self.value, self.source, kinds = outline.value, outline.source, outline.kind
        self.writes = [op for op in ops if kinds[op] in (c.WRITE, c.APPEND)]
        self.lists = [op for op in ops if kinds[op] == c.READ_LIST]
        self.elements = {
            atom
            for op in self.lists
            if self.value[op] >= 0
            for atom in _elements(columns, self.value[op])
        }
        self.reads = [op for op in ops if kinds[op] == c.READ and self.value[op] != c.UNKNOWN_VALUE]
        self.written = {self.value[op] for op in self.writes}
        self.initial = {c.NIL_ATOM, initial}
        self.tau = tau
        self.ops = ops

    def explicit(self) -> list[int]:
        return [op for op in self.reads + self.lists if self.source[op] != c.SOURCE_BY_VALUE]

    def reads_of_initial(self) -> list[int]:
        return [op for op in self.reads if self.value[op] in self.initial]

    def problem(
        self, target: str, expressible: Callable[[int], bool], *, tau_writable: bool
    ) -> tuple[str, int] | None:
        """Say why the values cannot keep their names, and at which operation."""
        explicit = self.explicit()
        if explicit:
            return f"a read with an explicit source cannot be expressed in {target}", explicit[0]
        for op in self.writes:
            if self.value[op] == self.tau and not tau_writable:
                return f"a write of what {target} calls the initial state", op
        for op in self.reads:
            value = self.value[op]
            if value in self.initial:
                if value != self.tau and (value in self.written or self.tau in self.written):
                    return f"a read of the initial state or of a write; in {target} it differs", op
            elif value == self.tau:
                return f"a read of what {target} calls the initial state", op
        initial_reads = set(self.reads_of_initial())
        for op in self.ops:
            value = self.value[op]
            if op in initial_reads or value == c.UNKNOWN_VALUE:
                continue
            if op in self.lists:
                if not all(expressible(atom) for atom in self.elements):
                    return f"a value that cannot be expressed in {target}", op
            elif not expressible(value):
                return f"a value that cannot be expressed in {target}", op
        return None

    def renumber(self, names: Names, *, tau_writable: bool) -> tuple[str, int] | None:
        """Give numbers to the values of this key, or say why that is impossible."""
        if self.lists:
            return "lists cannot be renumbered", self.lists[0]
        sourced = [op for op in self.reads if self.source[op] >= 0]
        by_value = [
            op
            for op in self.reads
            if self.source[op] == c.SOURCE_BY_VALUE
            and not (self.value[op] in self.initial and self.value[op] not in self.written)
        ]
        unique = len(self.written) == len(self.writes)
        if sourced and by_value and not unique:
            return "reads by value and reads with an explicit source of one key", by_value[0]
        per_write = bool(sourced) and not by_value
        number: dict[int, int] = {}
        numbers: dict[int, int] = {}
        writes_of_initial = self.written & self.initial
        if writes_of_initial and not per_write:
            # All of I becomes one name, which somebody writes: then it must have been one name
            # before.
            used = {self.value[op] for op in by_value + self.writes} & self.initial
            rest = [op for op in self.reads if op not in by_value]
            if len(used) > 1 or rest or not tau_writable:
                return "a write of the initial state's value", self.writes[0]
        for op in self.writes:
            value = self.value[op]
            if per_write:
                number[op] = len(number) + 1
            elif value in self.initial:
                number[op] = INITIAL
            else:
                number[op] = numbers.setdefault(value, len(numbers) + 1)
        fresh = len(self.ops) + 1  # above every number given
        for op in self.reads:
            source, value = self.source[op], self.value[op]
            if source >= 0:
                # A source that is not written (a failed operation) is missing there.
                number[op] = number.get(source, fresh)
            elif source == c.SOURCE_INITIAL:
                number[op] = INITIAL
            elif source == c.SOURCE_MISSING:
                number[op] = fresh
            elif value in self.initial:
                number[op] = INITIAL
            else:
                number[op] = numbers.setdefault(value, len(numbers) + 1)
        names.number.update(number)
        return None


def _elements(columns: Columns, number: int) -> list[int]:
    start = columns.list_start
    values: list[int] = columns.list_values[start[number] : start[number + 1]].tolist()
    return values
