"""Translates a model over the variables of small histories to the history it represents."""

from __future__ import annotations

from collections.abc import Sequence

from isolang.comparison.small import List, Miss, Operation, Small, SmallRead, SmallWrite
from isolang.comparison.variables import HistoryVariables


class Decoder:
    """Translates one model to the history it represents."""

    def __init__(self, variables: HistoryVariables, model: Sequence[int]) -> None:
        """Store the variables of the histories, and a model of their circuit."""
        self._of = variables
        self._model = model

    def history(self) -> Small:
        """Return the history represented by the model."""
        of = self._of
        so = {pair for pair, literal in of.so.items() if self._true(literal)}
        sessions = {
            tuple(sorted(own, key=lambda t: sum((s, t) in so for s in own)))
            for own in (_related_to(t, so) for t in of.txns)
        }
        together = {pair for pair, literal in of.together.items() if self._true(literal)}
        groups = {_related_to(t, together) for t in of.txns} if of.scope.groups else ()
        return Small(
            transactions=tuple(tuple(self._operations_of(t)) for t in of.txns),
            sessions=tuple(sorted(sessions)),
            lists=tuple(self._list(x) for x in of.keys),
            before=tuple(pair for pair, literal in of.rt.items() if self._true(literal)),
            timed=of.scope.real_time,
            groups=tuple(sorted(tuple(sorted(own)) for own in groups)),
            labels=tuple(self._names("label", t) for t in of.txns),
            levels=tuple("".join(self._names("level", t)) for t in of.txns),
            key_names=tuple(self._key_name(x) for x in of.keys),
        ).tidied()

    def _true(self, literal: int) -> bool:
        return self._of.circuit.value(literal, self._model)

    def _list(self, x: int) -> List | None:
        """Return the writers of a list in the order of its elements; ``None`` for a register."""
        if not self._true(self._of.are_lists[x]):
            return None
        writers = [t for t in self._of.txns if self._true(self._of.write[t, x])]
        before = self._of.shown[x]
        place = {t: sum(self._true(before[s, t]) for s in writers if s != t) for t in writers}
        return tuple(sorted(writers, key=place.__getitem__))

    def _names(self, kind: str, t: int) -> tuple[str, ...]:
        return tuple(
            name
            for (word, u, name), x in self._of.bears.items()
            if (word, u) == (kind, t) and self._true(x)
        )

    def _key_name(self, x: int) -> str:
        named = self._of.key_names.items()
        return next((name for (y, name), one in named if y == x and self._true(one)), "")

    def _operations_of(self, t: int) -> list[Operation]:
        of = self._of
        reads = [
            (x, j, s)
            for (u, x, j, s), literal in of.source.items()
            if u == t and self._true(literal)
        ]
        writes = [x for x in of.keys if self._true(of.write[t, x])]
        if not of.scope.operations:
            found: list[Operation] = [self._one_read(x, j, s) for x, j, s in sorted(reads)]
            found.sort(
                key=lambda op: isinstance(op, SmallRead)
            )  # a predicate read that finds no row precedes the reads that find one
            return [*found, *map(SmallWrite, writes)]
        done: dict[int, Operation] = {of.event_of[t, x, None]: SmallWrite(x) for x in writes}
        done |= {of.event_of[t, x, j]: self._one_read(x, j, s) for x, j, s in reads}
        place = {e: sum(self._true(of.order[d, e]) for d in done if d != e) for e in done}
        return [done[e] for e in sorted(done, key=place.__getitem__)]

    def _one_read(self, x: int, j: int, s: int) -> Operation:
        return Miss(x) if j == self._of.scope.reads else SmallRead(x, s)


def _related_to(t: int, pairs: set[tuple[int, int]]) -> frozenset[int]:
    """Return a transaction and all transactions paired with it, in either direction."""
    return frozenset((t, *(b for a, b in pairs if a == t), *(a for a, b in pairs if b == t)))
