"""Translates a set that grows: ``:add e`` (for comments, ``:write id``), and ``:read`` of the set.

Each element becomes a key. An add writes the key of its element. A read reads the keys of all
elements: as written for the elements that it returned, and as not written for all others. This
translation is exact if an add inserts a row. If a read returns an element twice although it was
added only once, the translated read returns a value that no transaction wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any, Final

from isolang.history.edn import Elements
from isolang.history.readers.reading import quantity
from isolang.history.readers.workloads.operations import (
    Operations,
    PairedOperation,
    Sink,
    Translation,
)
from isolang.history.values import Keyword, encode, preview

_THERE: Final = Keyword("in")
_TWICE: Final = Keyword("in-twice")


class Members(Translation):
    """Translates adds and reads of sets; each element that was added or read becomes a key."""

    what = "a set, whose elements are separate keys, like inserted rows"
    initial = "a read without the element"

    def __init__(self, ops: Operations, sink: Sink) -> None:
        super().__init__(ops, sink)
        self._adds = "write" if any(d.function == "write" for d in ops.done) else "add"
        self._unknown = self._twice = 0
        self._pairs: Any = None

    def fill(self) -> None:
        """Translate all operations."""
        done = self._ops.done
        grouped = self.split("set")
        added = Counter(
            (atom(d.group), self._element(d, d.invoked)) for d in done if d.function == self._adds
        )
        self._check_for_pairs([d.invoked for d in done if d.function == self._adds])
        shown_by = {id(d): self._returned_elements(d) for d in done if d.function == "read"}
        universe: dict[Any, dict[Any, int]] = {}
        for d in done:
            elements = universe.setdefault(atom(d.group), {})
            found = [d.invoked] if d.function == self._adds else shown_by[id(d)] or ()
            for element in found:
                if (known := atom(element)) not in elements:
                    elements[known] = self.sink.key((d.group, element) if grouped else element)
        there, twice = self.sink.value(_THERE), self.sink.value(_TWICE)
        absent = self.sink.value(None)
        for d in done:
            self.sink.begin(d)
            group = atom(d.group)
            if d.function == self._adds:
                self.sink.write(universe[group][atom(d.invoked)], there, d.line)
                continue
            shows = shown_by[id(d)]
            if shows is None:
                continue
            often = Counter(map(atom, shows))
            for element, key in universe[group].items():
                value = there if often[element] else absent
                if often[element] > 1:
                    repeated = added[group, element] > 1
                    value = there if repeated else twice
                    self._twice += repeated
                self.sink.read(key, value, d.line)
        if self._unknown:
            reads = quantity(self._unknown, "read")
            self.notes.append(f"{reads} without an answer, whose results are unknown")
        if self._twice:
            times = quantity(self._twice, "time")
            self.notes.append(
                f"{times} a read returned an element twice that was added several times, which "
                "counts as once"
            )

    def _element(self, d: PairedOperation, element: Any) -> Any:
        if element is None or isinstance(element, dict | Elements):
            what = f"wrong element of :{d.function}"
            got = preview(element)
            raise self._ops.fail(d.line, f"{what} (got {got}, expected a number or a string)")
        return atom(element)

    def _returned_elements(self, d: PairedOperation) -> Collection[Any] | None:
        """Return the elements returned by a read; ``None`` if its result is unknown."""
        if not d.answered:
            self._unknown += 1
            return None
        shows = d.value.elements if isinstance(d.value, Elements) else d.value
        if not isinstance(shows, tuple):
            what = f"not a :read of a set (got {preview(d.value)}, expected a collection)"
            raise self._ops.fail(d.line, what)
        if self._pairs is not None and not all(isinstance(e, tuple) for e in shows):
            what = f"elements are pairs, as {preview(self._pairs)}, and a read shows others (got"
            hint = "a read of an independent key is [k #{…}]"
            raise self._ops.fail(d.line, f"{what} {preview(d.value)}); {hint}")
        for element in shows:
            self._element(d, element)
        return shows

    def _check_for_pairs(self, added: Collection[Any]) -> None:
        """Record whether all added elements are pairs, probably of a key and an element.

        If so, a read that returns elements other than pairs lacks its key. The first pair is kept
        as an example for messages.
        """
        if added and all(isinstance(element, tuple) for element in added):
            self._pairs = next(iter(added))


def atom(value: Any) -> tuple[int, Any]:
    """Return a value as an atom; unlike in Python, 1, 1.0 and true are different atoms."""
    return encode(value, "")
