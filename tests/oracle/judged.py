"""Random histories with the verdict of the semantics, for specifications nobody wrote."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator

from isolang.api import load_spec

from . import moments, relational, semantics, versions
from .expressions import Checks
from .generate import any_history, random_times, well_formed
from .generate_crossed import Crossed, crossed_history
from .generate_literature import MOST, by_statements, one_by_one
from .generate_rows import row_history
from .history import History, as_edn_says, timed
from .pipeline import as_judged
from .predicates import lower, rich
from .simulate import disturbed, partly_noted, timed_history

_LARGEST = 3_000  # assignments
_OF_OPERATIONS = semantics.TIMES - {"rt"}
_OF_PREDICATES = {"iwr", "pwr", "irw", "prw"}


def judged(
    rng: random.Random, checks: Checks, count: int, left_out: Counter[str] | None = None
) -> Iterator[tuple[History, str]]:
    """``valid`` or ``invalid`` for up to ``count`` histories.

    They have rows, or times of operations, where the checks use them. Left out are those without
    times where the checks use those; and those with too many assignments, which are counted.
    """
    named = set().union(*(semantics.names(c.expr) for c in checks))
    for _ in range(count):
        if named & _OF_PREDICATES:
            history = row_history(rng)
        else:
            history = _at_work(rng) if named & _OF_OPERATIONS else any_history(rng)
        if not well_formed(history) or (semantics.needs_time(checks) and not timed(history)):
            continue
        said = as_edn_says(history) if rich(history) else history
        try:
            (valid,) = semantics.satisfied(lower(said), [checks], limit=_LARGEST)
        except semantics.TooLargeError:
            if left_out is not None:
                left_out["too large for the oracle"] += 1
            continue
        yield history, "valid" if valid else "invalid"


NAMES = frozenset(("labels", "levels"))


def judged_by_names(
    rng: random.Random, checks: Checks, count: int, left_out: Counter[str] | None = None
) -> Iterator[tuple[Crossed, str]]:
    """The same for checks that speak of names, of histories of any mixture of features."""
    of_levels = "level" in set().union(*(semantics.names(c.expr) for c in checks))
    for _ in range(count):
        crossed = crossed_history(rng, wanted=NAMES if rng.random() < 0.8 else frozenset())
        history, initial, error = crossed.history, crossed.initial, crossed.error
        if not well_formed(history) or (semantics.needs_time(checks) and not timed(history)):
            continue
        if of_levels and all(t.level is None for t in history):
            continue
        try:
            said, before = as_judged(history, initial, error)
            resolved = versions.resolved(said, before)  # None: it contradicts itself
            valid = resolved is not None and all(
                semantics.satisfied(
                    lower(resolved, before), [checks], initial=before, limit=_LARGEST, error=error
                )
            )
        except semantics.TooLargeError:
            if left_out is not None:
                left_out["too large for the oracle"] += 1
            continue
        yield crossed, "valid" if valid else "invalid"


def judged_by_operations(
    rng: random.Random, text: str, count: int, left_out: Counter[str] | None = None
) -> Iterator[tuple[History, str]]:
    """The same for a specification in full, of what single operations do."""
    spec = load_spec(text)
    for _ in range(count):
        history = by_statements(rng) if rng.random() < 0.7 else row_history(rng)
        if re.search(r"\brt\b", text) and not timed(history):
            history = random_times(rng, history)
        if len(history) > MOST or not well_formed(history) or not one_by_one(history):
            continue
        said = as_edn_says(history) if rich(history) else history
        try:
            valid = relational.satisfied(lower(said), spec, limit=_LARGEST)
        except semantics.TooLargeError:
            if left_out is not None:
                left_out["too large for the oracle"] += 1
            continue
        yield history, "valid" if valid else "invalid"


def _at_work(rng: random.Random) -> History:
    """Of a database with the times of operations, or one that errs."""
    kind = rng.choice(list(moments.KINDS.values()))
    history = timed_history(rng, kind, fault=rng.random() < 0.7)
    history = disturbed(rng, history) if rng.random() < 0.6 else history
    return partly_noted(rng, history) if rng.random() < 0.4 else history
