"""Writes the predicate reads whose conditions the server has evaluated into a history.

The versions of a table fall into classes: two versions are in one class if the same conditions
select them. Each row of the table gets its class as a column, and the predicate of a condition is
that the class is one of some numbers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from isolang.history.row_text import CLASS_COLUMN
from isolang.observe.history.edn import edn, end_of_bracket, predicate_edn
from isolang.observe.history.evaluated import EvaluatedCondition
from isolang.observe.history.lines import TAB, EvaluatedRead

_ROW: Final = re.compile(
    r'\[("(?:[^"\\]|\\.)*+") "(?:[^"\\]|\\.)*+"\] \{(?:[^"{}]|"(?:[^"\\]|\\.)*+")*+\}'
)
_VERSION: Final = '"xmin" "'
_VALUE: Final = ":value ["


def with_evaluated_conditions(path: Path, reads: Sequence[EvaluatedRead], into: Path) -> None:
    """Write a history with the predicates of the reads whose conditions were evaluated."""
    by_table: defaultdict[str, dict[int, EvaluatedCondition]] = defaultdict(dict)
    by_line: defaultdict[int, list[EvaluatedRead]] = defaultdict(list)
    for read in reads:
        by_table[read.condition.table.name][id(read.condition)] = read.condition
        by_line[read.line].append(read)
    classes: dict[str, Mapping[str, int]] = {}
    predicates: dict[int, str] = {}
    for table, conditions in by_table.items():
        classes[edn(table)], selected = _classes([*conditions.values()])
        for number, of_condition in selected.items():
            chosen = ("in", CLASS_COLUMN, tuple(of_condition))
            predicates[number] = predicate_edn(chosen) if of_condition else "[:not :true]"

    def with_class(found: re.Match[str]) -> str:
        row = found[0]
        of_table = classes.get(found[1])
        begin = row.rfind(_VERSION)
        if of_table is None or begin < 0:
            return row
        number = row[begin + len(_VERSION) : -2]
        return f"{row[:-1]} {edn(CLASS_COLUMN)} {of_table.get(number, 0)}}}"

    with path.open(encoding="utf-8") as lines, into.open("x", encoding="utf-8") as out:
        for number, line in enumerate(lines, 1):
            changed = line
            if number in by_line:
                changed = _with_predicates(line, by_line[number], predicates)
            out.write(_ROW.sub(with_class, changed))


def _classes(
    conditions: Sequence[EvaluatedCondition],
) -> tuple[dict[str, int], dict[int, list[int]]]:
    """Return the class of each version, and the classes that each condition selects."""
    members: defaultdict[str, list[int]] = defaultdict(list)
    for place, condition in enumerate(conditions):
        for version in condition.matches:
            members[version].append(place)
    numbers: dict[tuple[int, ...], int] = {(): 0}
    of_version = {
        version: numbers.setdefault(tuple(places), len(numbers))
        for version, places in members.items()
    }
    selected: dict[int, list[int]] = {id(condition): [] for condition in conditions}
    for places, number in numbers.items():
        for place in places:
            selected[id(conditions[place])].append(number)
    return of_version, selected


def _with_predicates(
    line: str, reads: Iterable[EvaluatedRead], predicates: Mapping[int, str]
) -> str:
    """Return a line with the predicates of its reads."""
    begin = line.index(_VALUE) + len(_VALUE)
    end = end_of_bracket(line, begin - 1) - 1
    operations = line[begin:end].split(TAB)
    for read in reads:
        text = operations[read.place]
        where = text.index(" :where ") + len(" :where ")
        stop = end_of_bracket(text, where)
        rows = text[stop:]
        if read.condition.condition.order:
            following = operations[read.place + 1 : read.place + 1 + len(read.rows)]
            before = [
                operation.removeprefix("[:r ").removesuffix("]")
                for number, operation in zip(read.rows, following, strict=True)
                if number in read.condition.matches
            ]
            rows = f"}} {{{' '.join(before)}}}]"
        operations[read.place] = f"{text[:where]}{predicates[id(read.condition)]}{rows}"
    return f"{line[:begin]}{TAB.join(operations)}{line[end:]}"
