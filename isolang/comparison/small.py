"""Small histories found by a search, to show as text or to check with the engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from isolang.history.history import History

List: TypeAlias = tuple[int, ...]
"""The transactions that append to one list key, in the order of the elements."""


class SmallRead(Struct, frozen=True):
    """A read of a key that returns the value from transaction ``source``; 0 stands for T0."""

    key: int
    source: int


class Miss(Struct, frozen=True):
    """A predicate read of a key that found no row, so its source is T0."""

    key: int


class SmallWrite(Struct, frozen=True):
    """A write of a key; the written value is the number of the transaction."""

    key: int


Operation: TypeAlias = SmallRead | Miss | SmallWrite


class Small(Struct, frozen=True, kw_only=True):
    """A history of the transactions 1 … n, with T0 as number 0.

    Attributes:
        lists: for each key, the order of its list; ``None`` if the key is a register.
        before: the pairs (a, b) of transactions in which a ended before b began.
        groups: for each group of sessions, its transactions; empty if sessions have no groups.
        labels: for each transaction, its labels; empty if none has any.
        levels: for each transaction, the level it requested, or an empty string.
        key_names: for each key, its required name; empty if any name is possible.
    """

    transactions: tuple[tuple[Operation, ...], ...]
    sessions: tuple[tuple[int, ...], ...]
    lists: tuple[List | None, ...]
    before: tuple[tuple[int, int], ...] = ()
    timed: bool = False
    groups: tuple[tuple[int, ...], ...] = ()
    labels: tuple[tuple[str, ...], ...] = ()
    levels: tuple[str, ...] = ()
    key_names: tuple[str, ...] = ()

    @property
    def operations(self) -> int:
        """The number of operations in the history."""
        return sum(map(len, self.transactions))

    @property
    def keys(self) -> int:
        """The number of keys in the history."""
        return len({op.key for ops in self.transactions for op in ops})

    def tidied(self) -> Small:
        """Return the same history renumbered: transactions by session, and keys by first use.

        The transactions of longer sessions come first.
        """
        order = [t for own in sorted(self.sessions, key=lambda own: -len(own)) for t in own]
        number = {0: 0} | {t: i for i, t in enumerate(order, 1)}
        keys = list(dict.fromkeys(op.key for t in order for op in self.transactions[t - 1]))

        def renamed(op: Operation) -> Operation:
            key = keys.index(op.key)
            return SmallRead(key, number[op.source]) if isinstance(op, SmallRead) else type(op)(key)

        made = [self.lists[key] for key in keys]
        return Small(
            transactions=tuple(tuple(map(renamed, self.transactions[t - 1])) for t in order),
            sessions=tuple(
                tuple(number[t] for t in own)
                for own in sorted(self.sessions, key=lambda own: number[own[0]])
            ),
            lists=tuple(one if one is None else tuple(number[t] for t in one) for one in made),
            before=tuple((number[a], number[b]) for a, b in self.before),
            timed=self.timed,
            groups=tuple(sorted(tuple(sorted(number[t] for t in own)) for own in self.groups)),
            labels=tuple(self.labels[t - 1] for t in order) if any(self.labels) else (),
            levels=tuple(self.levels[t - 1] for t in order) if any(self.levels) else (),
            key_names=tuple(self.key_names[key] for key in keys) if any(self.key_names) else (),
        )

    def group(self, t: int) -> str:
        """Return the name of a transaction's group, or an empty string without groups."""
        return next((chr(ord("A") + i) for i, own in enumerate(self.groups) if t in own), "")

    def intervals(self) -> list[tuple[int, int]]:
        """Return a begin time and an end time for each transaction that yield exactly ``before``.

        In an interval order, the sets of predecessors form a chain, so their sizes can serve as
        begin times (P. Fishburn, 1970).
        """
        size = len(self.transactions)
        past = [{a for a, b in self.before if b == t} for t in range(1, size + 1)]
        begins = [2 * len(one) for one in past]
        ends = []
        for t in range(1, size + 1):
            later = [begins[b - 1] for a, b in self.before if a == t]
            ends.append(min(later, default=2 * size + 2) - 1)
        return list(zip(begins, ends, strict=True))

    def history(self, name: str = "witness") -> History:
        """Return the history in the form checked by the engine."""
        from isolang.history.history import History
        from isolang.history.transaction import Transaction

        session = {t: i for i, own in enumerate(self.sessions, 1) for t in own}
        times = self.intervals()
        order = [t for own in self.sessions for t in own]
        return History.from_transactions(
            [
                Transaction(
                    [self._op(t, op) for op in self.transactions[t - 1]],
                    session=session[t],
                    begin=times[t - 1][0] if self.timed else None,
                    end=times[t - 1][1] if self.timed else None,
                    number=t,
                    group=self.group(t) or None,
                    label=self.labels[t - 1] if self.labels else None,
                    level=(self.levels[t - 1] or None) if self.levels else None,
                )
                for t in order
            ],
            name=name,
        )

    def _op(self, t: int, op: Operation) -> tuple[Any, ...]:
        if isinstance(op, Miss):
            return ("scan", ("=", "key", self.key(op.key)), {})
        key, made = self.key(op.key), self.lists[op.key]
        if isinstance(op, SmallWrite):
            return ("w" if made is None else "append", key, t)
        if made is None:
            return ("r", key, op.source or None)
        return ("r", key, list(made[: made.index(op.source) + 1]) if op.source else [])

    def key(self, number: int) -> str:
        """Return a key's required name, or x, y, z and so on if any name is possible."""
        if self.key_names and self.key_names[number]:
            return self.key_names[number]
        return "xyzuvw"[number] if number < 6 else f"k{number}"

    def names(self, t: int) -> str:
        """Return a transaction's labels and level in the notation for histories."""
        labels = ",".join(self.labels[t - 1]) if self.labels else ""
        level = self.levels[t - 1] if self.levels else ""
        return " ".join([f"#{labels}"] * bool(labels) + [f"^{level}"] * bool(level))

    def shown(self, t: int) -> str:
        """Return a transaction's operations in the notation for histories."""
        parts = []
        for op in self.transactions[t - 1]:
            if isinstance(op, Miss):
                parts.append(f"rp({self.key(op.key)},none)")
                continue
            name, key, value = self._op(t, op)
            text = "nil" if value is None else value
            if isinstance(value, list):
                text = "[" + " ".join(map(str, value)) + "]"
            parts.append(f"{name}({key},{text})")
        return " ".join(parts)

    def __str__(self) -> str:
        times = self.intervals()

        def one(t: int) -> str:
            at = "@{}-{}".format(*times[t - 1]) if self.timed else ""
            group = f"%{self.group(t)}" if self.groups else ""
            return " ".join(part for part in (self.shown(t), at, group, self.names(t)) if part)

        return " || ".join(" -> ".join(map(one, own)) for own in self.sessions)

    def table(self) -> Iterator[tuple[str, str, str]]:
        """Yield a row for each transaction: its session, its name, and its operations as text."""
        times = self.intervals()
        for number, own in enumerate(self.sessions, 1):
            for t in own:
                at = "" if not self.timed else "   from {} to {}".format(*times[t - 1])
                group = f"   group {self.group(t)}" if self.groups else ""
                names = f"   {self.names(t)}" if self.names(t) else ""
                yield f"session {number}", f"T{t}", self.shown(t) + at + group + names
