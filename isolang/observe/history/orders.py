"""Writes orders of transactions into a recorded history, as facts that only acquit."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from isolang.observe.history.edn import edn
from isolang.observe.history.lines import TAB
from isolang.observe.history.windows import Decided

_PERHAPS: Final = ", :perhaps ["


def write_orders(path: Path, decided: Decided, into: Path) -> None:
    """Write a history with orders, each as a key that one transaction writes and another reads."""
    added = _operations(decided)
    with path.open(encoding="utf-8") as lines, into.open("x", encoding="utf-8") as out:
        for number, line in enumerate(lines, 1):
            out.write(_with_facts(line, added[number]) if number in added else line)


def _operations(decided: Decided) -> dict[int, list[str]]:
    """Return the operations to add to each line."""
    added: defaultdict[int, list[str]] = defaultdict(list)

    def add(first: int, text: str, why: str) -> None:
        begin, end = decided.lines[first]
        entry = f'[0 {text} "" {edn(why)} ""]'
        added[end].append(entry)
        if text.startswith("[:w"):  # a transaction of unknown outcome has what it was invoked with
            added[begin].append(entry)

    for number, order in enumerate(decided.orders):
        key = f"[:order {number}]"
        write, read = f"[:w {key} 1]", f"[:r {key} 1]"
        if order.missed:  # nil in a transaction of unknown outcome says nothing
            hides = order.first in decided.uncertain
            read = f"[:r-not-in {key} [1]]" if hides else f"[:r {key} nil]"
        add(order.first, read if order.missed else write, order.why)
        add(order.second, write if order.missed else read, order.why)
    return added


def _with_facts(line: str, facts: Sequence[str]) -> str:
    """Return the line of a transaction with more facts in front of those that it has."""
    text = TAB.join(facts)
    end = line.rindex("}")
    at = next(_outside_strings(line, _PERHAPS), -1)
    if at >= 0:
        place = at + len(_PERHAPS)
        return f"{line[:place]}{text}{TAB}{line[place:]}"
    return f"{line[:end]}{_PERHAPS}{text}]{line[end:]}"


def _outside_strings(line: str, text: str) -> Iterator[int]:
    """Yield the positions of a text in a line, except inside strings."""
    for token in re.finditer(rf'"(?:[^"\\]|\\.)*"|{re.escape(text)}', line):
        if token[0] == text:
            yield token.start()
