"""Computes the history statistics printed by ``isocheck stats``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins

from isolang.history import columns as c
from isolang.history.look_alikes import LookAlike, find_look_alikes

if TYPE_CHECKING:
    from isolang.history.history import History


class Spread(Struct, frozen=True, kw_only=True):
    """The minimum, median and maximum of a count per transaction."""

    min: int
    median: float
    max: int


class Possible(Struct, frozen=True, kw_only=True):
    """A check, and the answer to whether any choice of sources and orders could violate it.

    Attributes:
        check: the name of the check.
        text: the check, or an equivalent one over dependencies.
        possible: whether some choice of sources and orders may violate the check; false only if
            certainly no choice does.
        why: the reason why no choice violates the check, or why isocheck cannot tell.
        pairs: for each relation that a violation may use, how many pairs of transactions (other
            than T0) it can have; an upper bound if there are very many pairs.
    """

    check: str
    text: str
    possible: bool
    why: str
    pairs: dict[str, int]

    def to_text(self) -> str:
        """Return one line of text that says whether the check could be violated, and why."""
        if not self.possible:
            return f"cannot be violated: {self.why}"
        counts = ", ".join(f"{relation} {_int(count)}" for relation, count in self.pairs.items())
        return f"could be violated ({self.why or 'pairs: ' + counts})"


class Stats(Struct, frozen=True, kw_only=True):
    """The statistics of a history.

    T0 does not count as a transaction, nor its operations as operations. Shares are of committed
    transactions with operations.

    Attributes:
        name: the name of the history.
        format: its format.
        initial: what a read of the initial state looks like.
        session: what a session is.
        real_time: where real time comes from.
        ignored: a phrase for each kind of input that has no influence on verdicts.
        notes: remarks on how the input was interpreted.
        transactions: the number of transactions.
        committed: the number of committed transactions.
        aborted: the number of aborted transactions.
        maybe: the number of indeterminate transactions.
        declared_initial: the number of transactions that are declared to be T0.
        sessions: the number of sessions.
        keys: the number of keys.
        operations: the number of operations.
        reads: the number of reads of registers.
        list_reads: the number of reads of lists.
        set_reads: the number of reads that only give values which the version has, or has not.
        writes: the number of writes of registers.
        appends: the number of appends to lists.
        failed_operations: the number of operations that failed themselves.
        unknown_reads: the number of reads with unknown results.
        initial_reads: the number of committed reads that return nil, an empty list or an initial
            value, or name T0 as their source.
        explicit_sources: the number of reads whose source the input names.
        missing_sources: the number of reads whose source the input names but does not contain.
        operations_per_transaction: the spread of the number of operations, over all transactions.
        keys_per_transaction: the spread of the number of keys, over all transactions.
        repeated_values: the number of (key, value) pairs that transactions, except aborted ones,
            write more than once.
        repeated_writes: the number of writes of these pairs.
        read_modify_write_share: the share of transactions that read some key before they write it.
        read_only_share: the share of transactions that write nothing.
        write_only_share: the share of transactions that read nothing.
        time_span: from the first begin to the last end, in the input's unit; ``None`` without real
            time.
        look_alikes: the transactions that look like initial transactions, but are not declared as
            such.
        checks: which checks of the requested specification the history could violate.
    """

    name: str
    format: str
    initial: str
    session: str
    real_time: str
    ignored: tuple[str, ...]
    notes: tuple[str, ...]
    transactions: int
    committed: int
    aborted: int
    maybe: int
    declared_initial: int
    sessions: int
    keys: int
    operations: int
    reads: int
    list_reads: int
    set_reads: int
    writes: int
    appends: int
    failed_operations: int
    unknown_reads: int
    initial_reads: int
    explicit_sources: int
    missing_sources: int
    operations_per_transaction: Spread
    keys_per_transaction: Spread
    repeated_values: int
    repeated_writes: int
    read_modify_write_share: float
    read_only_share: float
    write_only_share: float
    time_span: int | None
    look_alikes: tuple[LookAlike, ...]
    checks: tuple[Possible, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the statistics as dictionaries, lists and numbers for ``json.dumps``."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in to_builtins(self).items()}

    def to_text(self) -> str:
        """Return the statistics as lines of text for people."""
        rows = [
            ("format", self.format),
            ("initial state", self.initial),
            ("session", self.session),
            ("real time", self.real_time),
            ("transactions", self._transactions()),
            ("sessions", _int(self.sessions)),
            ("keys", _int(self.keys)),
            ("operations", self._operations()),
            ("per transaction", self._per_transaction()),
            ("shares", self._shares()),
            ("values", self._values()),
        ]
        if self.explicit_sources or self.missing_sources:
            missing = f", {_int(self.missing_sources)} missing" if self.missing_sources else ""
            rows.append(("sources given", _int(self.explicit_sources) + missing))
        if self.time_span is not None:
            rows.append(("time span", _int(self.time_span)))
        rows += [("ignored", text) for text in self.ignored]
        rows += [("note", text) for text in self.notes]
        for found in self.look_alikes:
            rows.append(
                (
                    "looks initial",
                    f"{found.name} ({found.where}) reads nothing and writes {_int(found.keys)} of "
                    f"{_int(self.keys)} keys; if it loaded the database, declare it with --initial "
                    f"{found.number}",
                )
            )
        rows += [(f"check {one.check}", one.to_text()) for one in self.checks]
        width = max(len(name) for name, _ in rows)
        lines = [self.name, *(f"  {name:<{width}}  {text}" for name, text in rows)]
        return "\n".join(lines) + "\n"

    def _transactions(self) -> str:
        parts = [f"{_int(self.committed)} committed"]
        parts += [f"{_int(self.aborted)} aborted"] if self.aborted else []
        parts += [f"{_int(self.maybe)} maybe"] if self.maybe else []
        text = f"{_int(self.transactions)} ({', '.join(parts)})"
        return text + (", and a declared initial one" if self.declared_initial else "")

    def _operations(self) -> str:
        kinds = (
            (self.reads, "reads"),
            (self.list_reads, "list reads"),
            (self.set_reads, "set-reads"),
            (self.writes, "writes"),
            (self.appends, "appends"),
        )
        text = f"{_int(self.operations)} ({', '.join(f'{_int(n)} {k}' for n, k in kinds if n)})"
        if not self.operations:
            text = "0"
        odd = ((self.failed_operations, "failed"), (self.unknown_reads, "with unknown results"))
        return text + "".join(f", {_int(n)} {what}" for n, what in odd if n)

    def _per_transaction(self) -> str:
        ops, keys = self.operations_per_transaction, self.keys_per_transaction
        return (
            f"operations {ops.min}/{ops.median:g}/{ops.max}, "
            f"keys {keys.min}/{keys.median:g}/{keys.max} (least/median/most)"
        )

    def _shares(self) -> str:
        return (
            f"read-modify-write {self.read_modify_write_share:.0%}, "
            f"read-only {self.read_only_share:.0%}, write-only {self.write_only_share:.0%}"
        )

    def _values(self) -> str:
        if not self.repeated_values:
            return (
                f"each written once per key; {_int(self.initial_reads)} read from the initial state"
            )
        return (
            f"{_int(self.repeated_values)} written more than once on a key, by "
            f"{_int(self.repeated_writes)} writes; "
            f"{_int(self.initial_reads)} read from the initial state"
        )


def _int(number: int) -> str:
    return f"{number:,}"


def summarize(history: History) -> Stats:
    """Compute the statistics of a history."""
    from isolang._native import census

    figures = census(history.columns)
    spreads: dict[str, Any] = {
        name: Spread(min=least, median=median, max=most)
        for name in ("operations_per_transaction", "keys_per_transaction")
        for least, median, most in (figures.pop(name),)
    }
    counts = history.counts()
    per_share = max(figures.pop("working"), 1)
    shares = {
        f"{name}_share": figures.pop(name) / per_share
        for name in ("read_modify_write", "read_only", "write_only")
    }
    return Stats(
        name=history.name,
        format=history.format,
        initial=history.initial,
        session=history.session,
        real_time=history.real_time,
        ignored=history.ignored,
        notes=tuple(map(str, history.notes)),
        transactions=counts["transactions"],
        committed=counts["committed"],
        aborted=counts["aborted"],
        maybe=counts["maybe"],
        declared_initial=counts["initial"],
        keys=counts["keys"],
        time_span=_time_span(history),
        look_alikes=find_look_alikes(history),
        **spreads,
        **shares,
        **figures,
    )


def _time_span(history: History) -> int | None:
    columns = history.columns
    if not columns.has_time:
        return None
    begins = columns.txn_begin[columns.txn_begin != c.UNKNOWN_BEGIN]
    ends = columns.txn_end[columns.txn_end != c.UNKNOWN_END]
    if len(begins) == 0 or len(ends) == 0:
        return None
    return int(ends.max()) - int(begins.min())
