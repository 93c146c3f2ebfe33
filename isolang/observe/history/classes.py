"""Writes the predicate reads whose conditions the server has evaluated into a history.

The versions of a table fall into classes: two versions are in one class if the same conditions
select them. Each row of the table gets its class as a column, and the predicate of a condition is
that the class is one of some numbers. One more of these numbers is negative, so that no row has it:
it names the condition, whose text is in the comment at the end of the file.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from isolang.history.remarks import COLUMNS_COMMENT, read_columns
from isolang.history.row_text import CLASS_COLUMN
from isolang.observe.history.edn import edn, predicate_edn
from isolang.observe.history.evaluated import EvaluatedCondition, EvaluatedConditions
from isolang.observe.history.images import RowImages
from isolang.observe.history.lines import (
    NOTHING,
    EvaluatedRead,
    changed_line,
    operations_of,
    possible_fact,
    with_possible_facts,
)
from isolang.observe.unseen import CONDITIONS, ERRORS, Unseen

_ROW: Final = re.compile(
    r'\[("(?:[^"\\]|\\.)*+") "(?:[^"\\]|\\.)*+"\] \{(?:[^"{}]|"(?:[^"\\]|\\.)*+")*+\}'
)
_VERSION: Final = '"xmin" "'
NumberOf: TypeAlias = Callable[[str], str | None]
_MOST_TEXT: Final = 1 << 19  # the largest number of characters of conditions in the comment


def write_evaluated(
    conditions: EvaluatedConditions,
    reads: Sequence[EvaluatedRead],
    images: RowImages,
    unseen: Unseen,
    path: Path,
    *,
    number_of: NumberOf | None = None,
) -> set[int]:
    """Write the conditions that the server has evaluated, and count the others as unseen.

    Return the numbers of the reads with others, unless the server contradicts itself.

    Args:
        number_of: returns the number of a version from its row in the history, or ``None``; by
            default, it is in the column ``xmin``.
    """
    refused = set()
    for read in reads:
        condition = read.condition
        selected = condition.matches | condition.ties
        if read.is_loose or condition.reason or selected.issuperset(read.rows):
            continue
        condition.why, condition.is_wrong = "a returned row does not satisfy it", True
    loose = [read for read in reads if read.is_loose and not read.condition.reason]
    known = {name: images.numbers(name) for name in {read.condition.table.name for read in loose}}
    for read in loose:
        if not known[read.condition.table.name].issuperset(read.rows):
            read.condition.why = "the images of some rows are not known"
    for read in reads:
        condition = read.condition
        if not condition.reason:
            conditions.evaluated.add(id(condition))
            conditions.evaluated_reads += 1
        elif read.is_loose and read.where and not condition.is_defect:
            pass  # what may have decided the answer is recorded
        elif condition.is_defect:
            text = f"{condition.reason}: {read.shown}"
            unseen.note(ERRORS, text, read.caller, form=read.shown)
        else:
            unseen.note(CONDITIONS, read.shown, read.caller)
            refused.add(read.number)
    if reads:
        other = path.with_name(f"{path.name}.part")
        with_evaluated_conditions(path, reads, other, number_of or _number_of)
        shutil.move(other, path)
    return refused


def _number_of(row: str) -> str | None:
    begin = row.rfind(_VERSION)
    return None if begin < 0 else row[begin + len(_VERSION) : -2]


def with_evaluated_conditions(
    path: Path, reads: Sequence[EvaluatedRead], into: Path, number_of: NumberOf = _number_of
) -> None:
    """Write a history with the predicates of the reads whose conditions were evaluated.

    A read whose condition was not evaluated becomes reads of the rows that it found.
    """
    by_table: defaultdict[str, dict[int, EvaluatedCondition]] = defaultdict(dict)
    by_line: defaultdict[int, list[EvaluatedRead]] = defaultdict(list)
    for read in reads:
        by_line[read.line].append(read)
        if not read.condition.reason:
            by_table[read.condition.table.name][id(read.condition)] = read.condition
    classes: dict[str, Mapping[str, int]] = {}
    predicates: dict[int, str] = {}
    texts: dict[str, dict[str, str]] = {}
    size = 0
    for table, conditions in by_table.items():
        classes[edn(table)], selected = _classes([*conditions.values()])
        for number, (of_condition, chosen) in enumerate(selected.items(), 1):
            predicates[of_condition] = predicate_edn(("in", CLASS_COLUMN, (-number, *chosen)))
            text = conditions[of_condition].condition.shown
            size += len(text)
            if size <= _MOST_TEXT:
                texts.setdefault(table, {})[f"{CLASS_COLUMN} {-number}"] = text

    def with_class(row: re.Match[str]) -> str:
        of_table = classes.get(row[1])
        number = None if of_table is None else number_of(row[0])
        if of_table is None or number is None:
            return row[0]
        return f"{row[0][:-1]} {edn(CLASS_COLUMN)} {of_table.get(number, 0)}}}"

    with path.open(encoding="utf-8") as lines, into.open("x", encoding="utf-8") as out:
        for number, line in enumerate(lines, 1):
            if line.startswith(COLUMNS_COMMENT):
                _add_forms(texts, json.loads(line.removeprefix(COLUMNS_COMMENT)))
                continue
            changed = line
            if number in by_line:
                of_line = by_line[number]
                change = partial(_with_predicates, of_line, predicates)
                possible = _with_possible_reads(line, of_line)
                changed, _ = changed_line(possible, change, remarks=_remarks(of_line))
            out.write(_ROW.sub(with_class, changed) if classes else changed)
        if texts:
            out.write(f"{COLUMNS_COMMENT}{json.dumps(texts)}\n")


def _add_forms(texts: dict[str, dict[str, str]], forms: Mapping[str, Mapping[str, str]]) -> None:
    for table, of_table in forms.items():
        texts[table] = {**of_table, **texts.get(table, {})}


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
    reads: Sequence[EvaluatedRead], predicates: Mapping[int, str], operations: Sequence[str]
) -> list[str]:
    """Return the operations of a line with the predicates of its reads."""
    changed = [*operations]
    for read in reads:
        places = range(read.place + 1, read.place + 1 + len(read.rows))
        if read.condition.reason:
            changed[read.place] = ""
            if read.columns == ():
                changed[places.start : places.stop] = [""] * len(places)
            continue
        # With a LIMIT, rows with the rank of the last one stay reads: others may be left out.
        inside = [
            place
            for place, number in zip(places, read.rows, strict=True)
            if number in read.condition.matches
        ]
        rows = " ".join(operations[p].removeprefix("[:r ").removesuffix("]") for p in inside)
        head = operations[read.place].removesuffix(f"{NOTHING}}} {{}}]")
        changed[read.place] = f"{head}{predicates[id(read.condition)]}}} {{{rows}}}]"
        for place in places if read.is_loose else inside:
            changed[place] = ""
    return changed


def _with_possible_reads(line: str, reads: Sequence[EvaluatedRead]) -> str:
    """Return a line with what may have decided query blocks that could not be evaluated."""
    loose = [read for read in reads if read.is_loose and read.where and read.condition.reason]
    if not loose:
        return line
    operations = operations_of(line)
    facts = []
    for read in loose:
        rows = operations[read.place + 1 : read.place + 1 + len(read.rows)]
        of_rows = " ".join(row.removeprefix("[:r ").removesuffix("]") for row in rows)
        table = edn(read.condition.table.name)
        operation = f"[:rp {{:table {table} :where {read.where}}} {{{of_rows}}}]"
        facts.append(possible_fact(read.place, operation, read))
    return with_possible_facts(line, facts)


def _remarks(reads: Sequence[EvaluatedRead]) -> dict[int, str]:
    """Return the remarks about reads of some columns in a line, by place."""
    return {
        read.place + 1 + n: read_columns(read.columns)
        for read in reads
        if read.condition.reason and read.columns
        for n in range(len(read.rows))
    }
