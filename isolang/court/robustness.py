"""Decides whether the programs of recorded calls are robust."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from isolang.errors import IsolangError

if TYPE_CHECKING:
    from isolang.foresee.schedules import Level
    from isolang.foresee.templates import Branch
    from isolang.history.history import History


def robustness_of(histories: Sequence[History], level: Level) -> tuple[tuple[str, ...], str]:
    """Return the conditions under which the programs of some runs are robust at a level.

    If they are not known to be robust, there are none, and the second result says why.
    """
    from isolang.foresee.decide import decide
    from isolang.foresee.extract import extract
    from isolang.foresee.templates import templates_of_branches

    branches: dict[tuple[str, str], Branch] = {}
    try:
        for history in histories:
            run = extract(history)
            if run.lacking:
                return (), f"the runs do not have everything: {run.lacking}"
            for branch in run.templates.branches:
                branches.setdefault((branch.program, str(branch.statements)), branch)
        templates = templates_of_branches(
            tuple(
                replace(branch, way=f"sequence {number}")
                for number, branch in enumerate(branches.values(), 1)
            )
        )
        decision = decide(templates, dict.fromkeys(templates.programs, level))
    except IsolangError as error:
        return (), str(error)
    if decision.standing != "robust":
        example = decision.counterexample
        return (), decision.gave_up or (
            f"{example.forbidden.violation.anomaly} of {' and '.join(example.programs)}"
            if example is not None
            else "the theorem does not exclude a counterexample"
        )
    return (
        f"any number of these {len(templates.programs)} programs, with any arguments, at "
        f"{_NAMES[level]} as PostgreSQL has it, and no other program that touches these rows",
        "a program executes no other sequences of statements than in these runs: branches that did "
        "not run are not covered",
        "each statement finds its rows by their primary keys, unless it is a scan",
    ), ""


_NAMES = {"mvrc": "READ COMMITTED", "si": "REPEATABLE READ", "ssi": "SERIALIZABLE"}
