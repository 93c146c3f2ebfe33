"""Finds quoted names in a specification that match nothing in a history."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from isolang.history.columns import INITIAL
from isolang.history.readers.reading import quantity
from isolang.language.meaning.mentions import key_classes, mentioned, named_sets
from isolang.language.vocabulary import COMPARING_NAMES

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.meaning.core import Spec


def missing_levels_reason(history: History, spec: Spec) -> str:
    """Return why the spec cannot judge a history whose transactions request no levels.

    The result is empty if the history has levels, or if the spec does not mention levels.
    """
    if len(history.columns.txn_levels) or not mentioned(spec) & COMPARING_NAMES["levels"]:
        return ""
    return (
        f"{spec.name} refers to the levels of transactions, but no "
        "transaction of the history names one; hint: `:level` of operation "
        "maps, `level` of transactions"
    )


def unmatched_name_notes(history: History, spec: Spec) -> list[str]:
    """Return notes on names that match no key or transaction, and on requested levels.

    The notes on levels concern transactions that request no level, or one not named by the
    specification.
    """
    columns, notes = history.columns, list[str]()
    sets_named = named_sets(spec)
    for word, sets, verb in (
        ("label", columns.label_sets, "has the label"),
        ("level", columns.level_sets, "requested the level"),
    ):
        there = {name for names in sets for name in names}
        named = sorted({one.name for one in sets_named if one.word == word})
        none = [pattern for pattern in named if not _any_matches(pattern, there)]
        # A specification that mentions levels names every possible level, so unused ones are
        # normal.
        if none and (word == "label" or none == named):
            notes.append(f"no transaction {verb} {_listed(none)}, which the spec names")
    patterns = sorted({pattern for within in key_classes(spec) for pattern in within.patterns})
    keys = [history.key_name(key) for key in range(columns.n_keys())] if patterns else []
    if none := [pattern for pattern in patterns if not _any_matches(pattern, keys)]:
        notes.append(f"no key matches {_listed(none)}, which the spec names")
    if mentioned(spec) & COMPARING_NAMES["levels"]:
        ordinary = int((columns.txn_status != INITIAL).sum())
        without = ordinary - int((columns.txn_levels != 0).sum())
        if without:
            notes.append(f"{quantity(without, 'transaction')} named no level")
        notes += _unnamed_level_notes(history, spec)
    return notes


def _unnamed_level_notes(history: History, spec: Spec) -> list[str]:
    """Return a list with a note on transactions that requested levels not named by the spec.

    If there are none, the list is empty.
    """
    columns = history.columns
    patterns = {one.name for one in named_sets(spec) if one.word == "level"}
    other = {
        number: names[0]
        for number, names in enumerate(columns.level_sets)
        if names and not any(_any_matches(pattern, names) for pattern in patterns)
    }
    requesting = sum(int((columns.txn_levels == number).sum()) for number in other)
    if not requesting:
        return []
    levels = _listed(sorted(other.values()))
    them = "it is" if requesting == 1 else "they are"
    return [
        f"{quantity(requesting, 'transaction')} requested {levels}, which the spec does not "
        f"mention: {them} checked only against what the spec requires of all transactions"
    ]


def _listed(patterns: Sequence[str]) -> str:
    quoted = [f'"{pattern}"' for pattern in patterns]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if quoted[1:] else quoted)


def _any_matches(pattern: str, names: Iterable[str]) -> bool:
    selected = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
    return any(selected.fullmatch(name) for name in names)
