"""Chooses names for the values of a history in another format.

A format has one name for the initial state: ``nil`` or 0. A history may have two: nil and the key's
initial value. A name may change only if every read keeps exactly the same possible sources. For
each key, let I be the set of names for its initial state, and τ the format's name for this state.
Then:

* A read of v in I becomes a read of τ. If v is not τ itself, no transaction may write v or τ,
  because otherwise the read would lose or gain candidates.
* A read of any other value that is named τ would become a read of the initial state. Such a read is
  an error.

With ``renumber``, values get new names. For reads by value, equal values get equal numbers, and all
names in I become τ. If a transaction writes a value in I, no other name in I may occur. For reads
with explicit sources, each *write* gets a different number, and a read gets its source's number. A
missing source gets a number that no transaction writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from isolang.arrays import np
from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.readers.reading import quantity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolang.history.history import History
    from isolang.history.writers.outline import Outline

# Codes for names that are not atoms, as in native/writers/writers.hpp. The code for a new number n
# is FIRST_NUMBER - n.
INITIAL: Final = -2
FIRST_NUMBER: Final = -3


class Names(Struct, frozen=True, kw_only=True):
    """The names of values in another format.

    Attributes:
        of: for each operation to write, the name of its value: an atom or a list number, the code
            for an unknown value, :data:`INITIAL`, or the code for a new number.
        declared: for each key, whether the file must declare its initial value.
    """

    of: NDArray[np.int64]
    declared: NDArray[np.bool_]
    notes: tuple[str, ...]


def name_values(
    part: Outline,
    *,
    tau: int,
    expressible: Callable[[NDArray[np.int64]], NDArray[np.bool_]],
    tau_writable: bool,
    renumber: bool,
    declarable: NDArray[np.bool_] | None = None,
    declared: NDArray[np.bool_] | None = None,
) -> Names:
    """Choose a name for each operation's value.

    Args:
        tau: the atom used by the format as the name of the initial state; a number below -1 if the
            history has no such atom.
        expressible: a function that takes an array of atoms and returns a mask of those that the
            format can express.
        declared: the declarable keys whose initial values are always declared. The initial value of
            any other key is declared only if the format's name for the initial state cannot replace
            it.

    Raises:
        HistoryError: a value cannot be named in the format.
    """
    history = part.history
    _check_named(part)
    none = np.zeros(history.columns.n_keys(), dtype=bool)
    declarable = none if declarable is None else declarable
    declared = none.copy() if declared is None else declared & declarable

    def named() -> tuple[_WrittenColumns, list[tuple[NDArray[np.bool_], str]], NDArray[np.bool_]]:
        ops = _WrittenColumns(part, tau, declared)
        problems = _unnameable_operations(ops, part.target, expressible, tau_writable=tau_writable)
        wrong = np.zeros(len(part.ops), dtype=bool)
        for mask, _ in problems:
            wrong |= mask
        return ops, problems, wrong

    ops, problems, wrong = named()
    # a renumbered key cannot have a declared initial value
    for declare in (True, False):
        turned = declarable & (declared != declare)
        turned[np.setdiff1d(np.arange(len(none)), ops.key[wrong])] = False
        if turned.any():
            declared ^= turned
            ops, problems, wrong = named()
    nil = ops.reads & (ops.value == c.NIL_ATOM)
    names = np.where(ops.of_initial | nil, INITIAL, ops.value)
    keys = np.unique(ops.key[wrong]).tolist()
    kept = ~np.isin(ops.key, keys)
    notes = []
    translated = int(np.count_nonzero(ops.of_initial & (ops.value != tau) & kept))
    if translated:
        notes.append(f"{quantity(translated, 'read')} of the initial state under its name here")
    problem: tuple[str, int] | None = None
    if keys and not renumber:
        at = int(np.flatnonzero(wrong)[0])
        what = next(what for mask, what in problems if mask[at])
        problem = f"{what}; renumbering (renumber=True, --renumber) may help", at
    elif keys and len(history.columns.statement_txn):
        at = int(np.flatnonzero(wrong)[0])
        what = next(what for mask, what in problems if mask[at])
        problem = f"{what}, and predicate reads look at the values, so they are not renumbered", at
    elif keys:
        order = np.argsort(ops.key, kind="stable")
        first = np.searchsorted(ops.key[order], keys, side="left")
        last = np.searchsorted(ops.key[order], keys, side="right")
        for lo, hi in zip(first.tolist(), last.tolist(), strict=True):
            problem = problem or _renumber(ops, order[lo:hi], names, tau_writable=tau_writable)
        notes.append(f"renumbered: the values of {quantity(len(keys), 'key')}")
    if problem:
        what, at = problem
        op = int(part.ops[at])
        raise HistoryError(f"{history.where_op(op)}: {history.describe_op(op)}: {what}")
    return Names(of=names, declared=declared, notes=tuple(notes))


def _check_named(part: Outline) -> None:
    """Check that each read with an explicit source returns the value that its source wrote.

    Otherwise the read is an intrinsic anomaly, and renaming values would hide it.
    """
    history, columns = part.history, part.history.columns
    kind, key = columns.op_kind[part.ops], columns.op_key[part.ops]
    value, source = columns.op_value[part.ops], columns.op_source[part.ops]
    if columns.has_versions:
        source = np.where(columns.op_version[part.ops] != c.NO_VERSION, c.SOURCE_BY_VALUE, source)
    read = (kind == c.READ) & (value != c.UNKNOWN_VALUE)
    shown = np.full(len(part.ops), c.UNKNOWN_VALUE, columns.op_value.dtype)
    shown[source >= 0] = columns.op_value[source[source >= 0]]
    shown[shown == columns.deleted] = c.NIL_ATOM
    other = read & (source >= 0) & (shown != value)
    initial = columns.initial_value[key]
    nil = c.initial_alone(columns)[key] & (value == c.NIL_ATOM)
    other |= (
        read
        & (source == c.SOURCE_INITIAL)
        & (initial != c.NIL_ATOM)
        & (nil | ((value != c.NIL_ATOM) & (value != initial)))
    )
    first: dict[int, int] = {}  # by key, the value that a read of the initial state returned
    of_initial = read & (source == c.SOURCE_INITIAL) & (value != c.NIL_ATOM)
    for i in np.flatnonzero(of_initial).tolist():
        other[i] |= first.setdefault(int(key[i]), int(value[i])) != value[i]
    overwritten = np.zeros(len(part.ops), dtype=bool)
    for txn in np.flatnonzero(columns.txn_status == c.INITIAL).tolist():
        committed = np.repeat(columns.txn_status[part.txns] == c.COMMITTED, np.diff(part.start))
        written = committed & np.isin(kind, (c.WRITE, c.APPEND))
        rewritten = set(zip(key[written].tolist(), value[written].tolist(), strict=True))
        own = np.arange(columns.op_start[txn], columns.op_start[txn + 1])
        own = own[np.isin(columns.op_kind[own], (c.WRITE, c.APPEND))]
        lost = own[columns.initial_value[columns.op_key[own]] != columns.op_value[own]]
        pairs = set(
            zip(columns.op_key[lost].tolist(), columns.op_value[lost].tolist(), strict=True)
        )
        pairs = {(k, c.NIL_ATOM if v == columns.deleted else v) for k, v in pairs - rewritten}
        last = {int(columns.op_key[op]): int(op) for op in own}
        overwritten |= np.isin(source, own[~np.isin(own, list(last.values()))])
        if pairs:
            rows = zip(key.tolist(), value.tolist(), kind.tolist(), strict=True)
            overwritten |= np.array(
                [_may_show_any(history, *row, pairs) for row in rows], dtype=bool
            )
    for mask, what in (
        (other, "a read of another value than that of its source"),
        (overwritten, "a read of what the initial transaction may have overwritten"),
    ):
        if mask.any():
            op = int(part.ops[np.flatnonzero(mask)[0]])
            where = f"{history.where_op(op)}: {history.describe_op(op)}"
            raise HistoryError(f"{where}: {what} cannot be expressed in {part.target}")


def _may_show_any(
    history: History, key: int, value: int, kind: int, pairs: set[tuple[int, int]]
) -> bool:
    """Return whether a read of ``key`` returning ``value`` shows one of the given pairs."""
    if value == c.UNKNOWN_VALUE or kind not in (c.READ, c.READ_ONE_OF):
        return False
    values = history.list_values(value) if kind == c.READ_ONE_OF else [value]
    return any((key, one) in pairs for one in values)


class _WrittenColumns:
    """The columns of the operations to write."""

    def __init__(self, part: Outline, tau: int, declared: NDArray[np.bool_]) -> None:
        columns = part.history.columns
        self.columns, self.numbers, self.tau = columns, part.ops, tau
        self.key = columns.op_key[part.ops]
        self.value = columns.op_value[part.ops].astype("int64")
        self.source = columns.op_source[part.ops]
        if columns.has_versions:  # the file contains the versions, which determine the sources
            stated = columns.op_version[part.ops] != c.NO_VERSION
            self.source = np.where(stated, c.SOURCE_BY_VALUE, self.source)
        kind = columns.op_kind[part.ops]
        self.writes = (kind == c.WRITE) | (kind == c.APPEND)
        self.sets = (kind == c.READ_ONE_OF) | (kind == c.READ_NONE_OF)
        self.lists = ((kind == c.READ_LIST) | self.sets) & (self.value != c.UNKNOWN_VALUE)
        self.reads = (kind == c.READ) & (self.value != c.UNKNOWN_VALUE)
        self.initial = columns.initial_value[self.key] if len(self.key) else self.value
        alone = c.initial_alone(columns)
        # the operations on keys for which nil is not a second name for the initial state
        self.alone = alone[self.key] & (self.initial != c.NIL_ATOM)
        # the operations on keys whose initial state has the same name in the file as in the history
        self.declared = declared[self.key]
        self.of_initial = self.reads & self.is_initial()

    def is_initial(self) -> NDArray[np.bool_]:
        """Return a mask of the operations whose value names an undeclared initial state."""
        nil = (self.value == c.NIL_ATOM) & ~self.alone
        found: NDArray[np.bool_] = (nil | (self.value == self.initial)) & ~self.declared
        return found

    def written(self, atom: int | NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return a mask of the operations on keys to which some operation writes ``atom``."""
        found = np.zeros(self.columns.n_keys(), dtype=bool)
        found[self.key[self.writes & (self.value == atom)]] = True
        of_key: NDArray[np.bool_] = found[self.key]
        return of_key


def _unnameable_operations(
    ops: _WrittenColumns,
    target: str,
    expressible: Callable[[NDArray[np.int64]], NDArray[np.bool_]],
    *,
    tau_writable: bool,
) -> list[tuple[NDArray[np.bool_], str]]:
    """Return masks of the operations whose values cannot keep their names, with reasons."""
    columns, tau = ops.columns, ops.tau
    named = (ops.writes | ops.reads) & ~ops.of_initial
    start = columns.list_start
    elements = np.zeros(len(columns.list_values), dtype=bool)  # the elements of lists to write
    for number in np.unique(ops.value[ops.lists]).tolist():
        elements[start[number] : start[number + 1]] = True
    used = np.unique(np.concatenate([ops.value[named], columns.list_values[elements]]))
    fits = np.ones(columns.n_values(), dtype=bool)
    fits[used] = expressible(used)
    unfit = named.copy()
    unfit[named] = ~fits[ops.value[named]]
    before = np.concatenate([[0], np.cumsum(~fits[columns.list_values])])
    unfit_in = before[start[1:]] > before[start[:-1]]
    unfit[ops.lists] = unfit_in[ops.value[ops.lists]]
    contested = ops.written(tau) | np.where(
        ops.value == c.NIL_ATOM, ops.written(c.NIL_ATOM), ops.written(ops.initial)
    )
    return [
        (
            (ops.reads | ops.lists) & (ops.source != c.SOURCE_BY_VALUE),
            f"a read with an explicit source cannot be expressed in {target}",
        ),
        (
            ops.writes & (ops.value == tau) & (not tau_writable),
            f"a write of what {target} calls the initial state",
        ),
        (
            ops.of_initial & (ops.value != tau) & contested,
            f"a read that may be of the initial state or of a write, which {target} distinguishes",
        ),
        (
            ops.reads & ~ops.of_initial & (ops.value == tau) & ~ops.declared,
            f"a read of what {target} calls the initial state",
        ),
        (
            ops.sets & (ops.initial != tau) & ~ops.declared,
            f"a set-read of a key with an initial value cannot be expressed in {target}",
        ),
        (unfit, f"a value that cannot be expressed in {target}"),
    ]


def _renumber(
    ops: _WrittenColumns,
    which: NDArray[np.int64],
    names: NDArray[np.int64],
    *,
    tau_writable: bool,
) -> tuple[str, int] | None:
    """Replace the values of one key by numbers."""
    at = which.tolist()
    value = dict(zip(at, ops.value[which].tolist(), strict=True))
    source = dict(zip(at, ops.source[which].tolist(), strict=True))
    writes = [i for i in at if ops.writes[i]]
    reads = [i for i in at if ops.reads[i]]
    lists = [i for i in at if ops.lists[i]]
    if lists:
        return "lists cannot be renumbered", lists[0]
    if deletes := [i for i in writes if value[i] == ops.columns.deleted]:
        return "a key with deletes cannot be renumbered", deletes[0]
    written = {value[i] for i in writes}
    initial = {int(ops.initial[at[0]])} | (set() if ops.alone[at[0]] else {c.NIL_ATOM})
    sourced = [i for i in reads if source[i] >= 0]
    by_value = [
        i
        for i in reads
        if source[i] == c.SOURCE_BY_VALUE and not (value[i] in initial and value[i] not in written)
    ]
    if sourced and by_value and len(written) < len(writes):
        return "one key with both reads by value and reads with an explicit source", by_value[0]
    per_write = bool(sourced) and not by_value
    if written & initial and not per_write:
        # All names in I become one name. If an operation writes that name, no other name in I may
        # be in use.
        used = {value[i] for i in by_value + writes} & initial
        if len(used) > 1 or len(by_value) < len(reads) or not tau_writable:
            return "a write of the initial state's value", writes[0]
    numbers: dict[int, int] = {}  # the new number of each value
    number_of: dict[int, int] = {}  # the new number of each write, by operation

    def numbered(v: int) -> int:
        return FIRST_NUMBER - numbers.setdefault(v, len(numbers) + 1)

    for n, i in enumerate(writes, 1):
        if per_write:
            names[i] = FIRST_NUMBER - n
        else:
            names[i] = INITIAL if value[i] in initial else numbered(value[i])
        number_of[int(ops.numbers[i])] = int(names[i])
    fresh = FIRST_NUMBER - (len(at) + 1)  # above all numbers in use
    for i in reads:
        # the source becomes missing if it is not written to the file, for example because it failed
        if source[i] >= 0:
            names[i] = number_of.get(source[i], fresh)
        elif source[i] == c.SOURCE_MISSING:
            names[i] = fresh
        elif source[i] == c.SOURCE_INITIAL or value[i] in initial:
            names[i] = INITIAL
        else:
            names[i] = numbered(value[i])
    return None
