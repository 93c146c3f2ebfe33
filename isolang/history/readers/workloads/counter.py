"""Translates a counter: ``:add n``, always with the same n, and ``:read`` of the sum.

An add does not return the resulting value. But if every add adds the same n, exactly v adds precede
a read of v·n. Therefore the history is linearizable iff the adds can be ordered so that the v-th
add takes effect after the begin of each read of less than v·n, before the end of each read of v·n
or more, and between its own invocation and completion. Neither of the first two bounds falls when v
rises. Therefore the rule "earliest deadline first" finds such an order if one exists (W. Horn,
1974). In this order, each add becomes a read of one value and a write of the next value, and a
witness for these operations is a witness for the counter.

If no such order exists, a refutation shows where the attempted order is not linearizable. No
certificate shows that all other orders fail too; that follows only from the argument above. A
weaker level might allow a different order, so in this case the history can only be checked for
strict serializability.
"""

from __future__ import annotations

import heapq
import itertools
from typing import Any, Final

from isolang.errors import UnsupportedError
from isolang.history import columns as c
from isolang.history.readers.reading import quantity
from isolang.history.readers.workloads.operations import PairedOperation, Translation
from isolang.history.values import Keyword, preview

LINEARIZABLE: Final = tuple(
    "sser" + form + sessions for form in ("", "-co", "-vis") for sessions in ("", "-nosession")
)
_FIRST, _NEVER = -1, c.UNKNOWN_END


class Sums(Translation):
    """Orders the adds of each counter, and translates adds and reads."""

    what = "a counter, with equal adds and reads of their sum"
    initial = "a read of 0"

    def fill(self) -> None:
        """Translate all operations."""
        done = self._ops.done
        if done and not self._ops.timed:
            msg = (
                f"{self._ops.name}: a counter needs :invoke lines, because the begin and the end "
                "of an add determine the value that it produced"
            )
            raise UnsupportedError(msg)
        self.split("counter")
        step = self._common_amount([d for d in done if d.function == "add"])
        groups: dict[Any, list[PairedOperation]] = {}
        for d in done:
            groups.setdefault(d.group, []).append(d)
        place: dict[int, int] = {}  # for each add, its position in the order of adds
        seen: dict[int, int] = {}  # for each read, the number of adds before it
        thin: set[int] = set()  # the reads of values that no number of adds can produce
        for group in groups.values():
            self._order_adds(group, step, place, seen, thin)
        unused = sum(
            d.function == "add" and d.status == c.INDETERMINATE and id(d) not in place for d in done
        )
        if unused:
            adds = quantity(unused, "add")
            self.notes.append(
                f"{adds} of unknown outcome that no read needs, which are taken not to have taken "
                "effect"
            )
        for d in done:
            self.sink.begin(d)
            name = Keyword("counter") if d.group is None else d.group
            key = self.sink.key(name, 0)
            if (before := place.get(id(d))) is not None:
                self.sink.read(key, self.sink.value((before - 1) * step), d.line)
                self.sink.write(key, self.sink.value(before * step), d.line)
            elif id(d) in seen or id(d) in thin:
                self.sink.read(key, self.sink.value(d.value), d.line)
        self.notes.append(
            "each add becomes a read of one value and a write of the next; which add "
            "produced which value is chosen to fit real time"
        )
        if self.levels:
            self.notes.append(
                "no order of the adds fits real time; the counterexample shows this for one "
                "order, and for all other orders only the reader's count does, which is not a "
                "proof"
            )

    def _common_amount(self, adds: list[PairedOperation]) -> int:
        """Check that all adds add the same amount, and return it."""
        step = adds[0].invoked if adds else 1
        for d in adds:
            if type(d.invoked) is int and d.invoked and d.invoked == step:
                continue
            expected = preview(step) if d.invoked != step else "an integer that is not 0"
            msg = (
                f"{self._ops.name}: line {d.line}: the adds of a counter must be equal (got "
                f"{preview(d.invoked)}, expected {expected}), because otherwise its values do not "
                "show how many adds a read follows; hint: the nearest model is a set (--from "
                "set): each add is an element, and a read returns all of them"
            )
            raise UnsupportedError(msg)
        return int(step)

    def _order_adds(
        self,
        done: list[PairedOperation],
        step: int,
        place: dict[int, int],
        seen: dict[int, int],
        thin: set[int],
    ) -> None:
        """Order one counter's adds, and record the number of adds that precede each read."""
        adds = [d for d in done if d.function == "add" and d.status != c.ABORTED]
        for d in done:
            if d.function != "read" or not d.answered:
                continue
            if type(d.value) is not int:
                what = f"not a :read of a counter (got {preview(d.value)}, expected an integer)"
                raise self._ops.fail(d.line, what)
            follows, rest = divmod(d.value, step)
            if rest or not 0 <= follows <= len(adds):
                thin.add(id(d))
            else:
                seen[id(d)] = follows
        reads = [d for d in done if id(d) in seen]
        most = max((seen[id(d)] for d in reads), default=0)
        # after[v]: the latest begin of a read that saw fewer than v adds
        after = [_FIRST] * (most + 2)
        # before[v]: the earliest end of a read that saw at least v adds
        before = [_NEVER] * (most + 2)
        for d in reads:
            v = seen[id(d)]
            after[v + 1] = max(after[v + 1], d.begin)
            before[v] = min(before[v], d.end)
        for v in range(1, most + 2):
            after[v] = max(after[v], after[v - 1])
            before[most + 1 - v] = min(before[most + 1 - v], before[most + 2 - v])
        row, fits = _ordered_adds(adds, after, before, most)
        for v, d in enumerate(row, 1):
            place[id(d)] = v
        if not fits:
            self.levels = LINEARIZABLE


def _ordered_adds(
    adds: list[PairedOperation], after: list[int], before: list[int], most: int
) -> tuple[list[PairedOperation], bool]:
    """Order the adds by "earliest deadline first".

    Returns:
        The adds in order, and whether each of them is within its bounds. They are all adds that
        took effect, and the indeterminate adds that fill the remaining positions.
    """
    waiting = sorted(adds, key=lambda d: d.begin, reverse=True)
    ready: list[tuple[bool, int, int, PairedOperation]] = []
    numbers = itertools.count()
    row: list[PairedOperation] = []
    fits = True

    def release(until: int) -> None:
        while waiting and waiting[-1].begin < until:
            push(waiting.pop())

    def push(d: PairedOperation) -> None:
        heapq.heappush(ready, (d.status != c.COMMITTED, d.end, next(numbers), d))

    for v in range(1, most + 1):
        release(before[v])
        if not ready:
            fits = False
            push(waiting.pop())
        *_, d = heapq.heappop(ready)
        fits = fits and max(d.begin, after[v]) < min(d.end, before[v])
        row.append(d)
    release(_NEVER + 1)
    for optional, end, _, d in sorted(ready, key=lambda one: one[:3]):
        if not optional:
            fits = fits and max(d.begin, after[most + 1]) < end
            row.append(d)
    return row, fits
