"""Translates the sequential-consistency test in which clients insert the rows k_0, k_1, ….

``:add [k "k_0"]`` inserts one row, and ``:write k`` inserts all rows of k in order. A read returns
``[k ["k_1" nil]]``, with the last row first and nil for a missing row. As in the test itself, each
insert and each read of a row is a separate transaction, in session order.
"""

from __future__ import annotations

from typing import Any, Final

from isolang.errors import UnsupportedError
from isolang.history import columns as c
from isolang.history.readers.reading import quantity
from isolang.history.readers.workloads.operations import Operations, PairedOperation, Translation
from isolang.history.values import Keyword, preview

_THERE: Final = Keyword("in")


def are_inserts(ops: Operations) -> bool:
    """Return whether the workload is the one that inserts rows in sequence.

    If so, each read returned the rows k_n … k_0 of some key k.
    """
    known = [d.value for d in ops.done if _has_answer(d)]
    return bool(known) and all(
        isinstance(value, tuple)
        and len(value) == 2
        and isinstance(value[1], tuple)
        and all(
            row is None or row == name for row, name in zip(value[1], _rows(value), strict=True)
        )
        for value in known
    )


def _has_answer(d: PairedOperation) -> bool:
    return d.function == "read" and d.answered


def _rows(value: tuple[Any, Any]) -> list[str]:
    """Return the names of the rows requested by a read, in the order in which they were read."""
    key, found = value
    return [f"{key}_{number}" for number in reversed(range(len(found)))]


class InsertedRows(Translation):
    """Translates row inserts and reads to one transaction per row."""

    what = "rows that were inserted in order and read from the last one on"
    initial = "a read without the row"

    def fill(self) -> None:
        """Translate all operations."""
        self.notes.append("each insert and each read of a row is a transaction of its own")
        sizes: dict[int, int] = {}
        unknown = partly = 0
        for d in self._ops.done:
            if _has_answer(d):
                sizes.setdefault(len(d.value[1]), d.line)
        if len(sizes) > 1:
            (a, _), (b, line) = list(sizes.items())[:2]
            msg = (
                f"{self._ops.name}: line {line}: the read returned {b} rows, but other reads "
                f"returned {a}"
            )
            raise UnsupportedError(msg)
        (size,) = sizes
        seen = {row for d in self._ops.done if _has_answer(d) for row in d.value[1]}
        for d in self._ops.done:
            if d.function == "read":
                if not _has_answer(d):
                    unknown += 1
                    continue
                for name, row in zip(_rows(d.value), d.value[1], strict=True):
                    self.sink.begin(d)
                    value = self.sink.value(None if row is None else _THERE)
                    self.sink.read(self.sink.key(name), value, d.line)
                continue
            names = self._inserted(d, size)
            partly += len(names) > 1 and d.status != c.COMMITTED
            last = max((n for n, name in enumerate(names) if name in seen), default=-1)
            for number, name in enumerate(names):
                status = d.status
                if len(names) > 1 and status != c.COMMITTED:  # a client stops after a failed insert
                    status = c.COMMITTED if number < last else c.INDETERMINATE
                self.sink.begin(d, status)
                self.sink.write(self.sink.key(name), self.sink.value(_THERE), d.line)
        if unknown:
            reads = quantity(unknown, "read")
            self.notes.append(f"{reads} without an answer, whose results are unknown")
        if partly:
            writes = quantity(partly, "write")
            self.notes.append(f"{writes} that may have inserted only the first rows")

    def _inserted(self, d: PairedOperation, size: int) -> list[str]:
        match d.invoked:
            case (_, str() as row) if d.function == "add":
                return [row]
            case int() | str() if d.function == "write":
                return [f"{d.invoked}_{number}" for number in range(size)]
        what = (
            f"wrong operation (got :{d.function} of {preview(d.invoked)}, expected :add [k "
            '"k_0"], or :write k)'
        )
        raise self._ops.fail(d.line, what)
