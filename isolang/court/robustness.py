"""Decides whether the programs of recorded calls are robust."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from isolang.errors import IsolangError

if TYPE_CHECKING:
    from isolang.foresee.schedules import Level
    from isolang.history.history import History

_HEAD: Final = re.compile(r"\{:index \d+, (?P<type>:type :\w+), :process (?P<process>\d+), ")
_TIME: Final = re.compile(r":time (\d+)")
_INIT: Final = ", :f :init, "


def robustness_of(histories: Sequence[History], level: Level) -> tuple[list[str], str]:
    """Return the conditions under which the programs of some runs are robust at a level.

    If they are not known to be robust, there are none, and the second result says why.
    """
    from isolang.foresee.service import SQL, conditions_of_run, decide_runs

    try:
        decision = decide_runs(histories, level)
    except IsolangError as error:
        return [], str(error)
    if decision.standing == "robust":
        return [
            f"all transactions that touch these rows are of these {len(decision.programs)} "
            "programs, with any arguments, and run on one server at "
            f"{SQL[level]} as PostgreSQL has it",
            *conditions_of_run(decision.run),
        ], ""
    example = decision.counterexample
    if example is not None:
        names = dict.fromkeys(decision.run.titles.get(name, name) for name in example.programs)
        return [], f"{example.forbidden.violation.anomaly} of {' and '.join(names)}"
    return [], decision.reason


def joined_lines(recordings: Iterable[str]) -> Iterator[str]:
    r"""Yield the lines of several recordings of one database as if they were one recording.

    Programs are read from the result, and it is never judged: each recording begins with the same
    rows, so a transaction may read a version that an earlier recording has replaced.

    >>> line = "{:index 7, :type :ok, :process 3, :time 9, :f :txn}\n"
    >>> [*joined_lines([line + ";:unseen {}\n", line])][1:]
    ['{:index 1, :type :ok, :process 7, :time 18, :f :txn}\n', ';:unseen {}\n']
    """
    comments: dict[str, None] = {}
    index, processes, passed = 0, 0, 0
    for number, text in enumerate(recordings):
        first, before = processes, passed
        for line in text.splitlines(keepends=True):
            head = _HEAD.match(line)
            if head is None:
                if number == 0:
                    comments[line] = None
                continue
            if number and _INIT in line:
                continue
            process = first + int(head["process"])
            processes = max(processes, process + 1)
            rest = line[head.end() :]
            if time := _TIME.match(rest):
                passed = max(passed, before + int(time[1]))
                rest = f":time {before + int(time[1])}{rest[time.end() :]}"
            yield f"{{:index {index}, {head['type']}, :process {process}, {rest}"
            index += 1
    yield from comments
