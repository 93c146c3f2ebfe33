"""Writes orders of transactions into a recorded history, as facts that only acquit."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from isolang.history.possible import WHOLE_LINE
from isolang.history.remarks import COLUMNS_COMMENT
from isolang.observe.history.edn import edn
from isolang.observe.history.lines import TAB
from isolang.observe.history.windows import Decided

_NUMBERS: Final = re.compile(r"\{:index (\d+), :type :(\w+), :process (\d+)")
_PERHAPS: Final = ", :perhaps ["


def write_orders(path: Path, decided: Decided, into: Path) -> None:
    """Write a history with orders, each as a key that one transaction writes and another reads."""
    first, last, steps = _operations(decided)
    index = process = -1
    with path.open(encoding="utf-8") as lines, into.open("x", encoding="utf-8") as out:
        columns = ""
        for number, line in enumerate(lines, 1):
            if line.startswith(COLUMNS_COMMENT):
                columns = line
                continue
            if (numbers := _NUMBERS.match(line)) is not None:
                index, process = max(index, int(numbers[1])), max(process, int(numbers[3]))
            added = [*first.get(number, ()), *last.get(number, ())]
            out.write(_with_facts(line, added) if added else line)
        for facts in steps:
            index, process = index + 1, process + 1
            out.write(
                f"{WHOLE_LINE}{{:index {index}, :type :ok, :process {process}, :time 0, :f :txn, "
                f":value [{TAB.join(text for text, _ in facts)}], "
                f":callers [{TAB.join(edn(why) for _, why in facts)}]}}\n"
            )
        out.write(columns)


_Facts = Sequence[tuple[str, str]]


def _operations(
    decided: Decided,
) -> tuple[dict[int, list[str]], dict[int, list[str]], list[_Facts]]:
    """Return the operations to add to lines of begins and of ends, and those of each step."""
    first: defaultdict[int, list[str]] = defaultdict(list)
    last: defaultdict[int, list[str]] = defaultdict(list)
    steps: list[list[tuple[str, str]]] = [[] for _ in range(decided.steps)]

    def add(node: int, text: str, why: str) -> None:
        if node < 0:
            steps[-node - 1].append((text, why))
            return
        begin, end = decided.lines[node]
        entry = f'[0 {text} "" {edn(why)} ""]'
        last[end].append(entry)
        if text.startswith("[:w"):  # a transaction of unknown outcome has what it was invoked with
            first[begin].append(entry)

    for number, order in enumerate(decided.orders):
        key = f"[:order {number}]"
        write, read = f"[:w {key} 1]", f"[:r {key} {'nil' if order.missed else '1'}]"
        add(order.first, read if order.missed else write, order.why)
        add(order.second, write if order.missed else read, order.why)
    return first, last, [*steps]


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
