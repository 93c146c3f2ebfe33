"""Writes what happened, or may have, besides the operations of a history.

These are facts that only may have decided an answer (:mod:`isolang.history.possible`), and what the
observer of an application did not see (:mod:`isolang.history.not_seen`). Only EDN can express them.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING

from msgspec.structs import replace

from isolang.errors import HistoryError
from isolang.history.not_seen import unseen_line
from isolang.history.possible import separate_possible_facts
from isolang.history.readers.reading import quantity
from isolang.history.writers.report import Contents, WriteReport

if TYPE_CHECKING:
    from isolang.history.history import History


def with_what_it_lacks(
    history: History,
    contents: Contents,
    report: WriteReport,
    encode: Callable[[History], Contents],
) -> tuple[Contents, WriteReport]:
    """Add what a history lacks to its contents, or to the report what the format cannot express.

    Args:
        encode: a function that returns the contents for a history.
    """
    notes = list(report.notes)
    is_edn = report.format == "edn"
    if history.possible_facts and "possible_facts" not in history.options:
        whole = history.with_all_facts() if is_edn else None
        merged = None if whole is None else _merged(contents, whole, encode)
        if merged is not None:
            contents = merged
        facts = f"{quantity(history.possible_facts, 'fact')} that only may have decided an answer"
        notes.append(f"{facts}, as :perhaps" if merged is not None else f"left out: {facts}")
    if history.unseen:
        if is_edn:
            contents = _joined(contents) + unseen_line(history.unseen).encode()
        else:
            notes += [f"left out: not seen: {p}" for of in history.unseen.values() for p in of]
    return contents, replace(report, notes=tuple(notes))


def _merged(
    contents: Contents, whole: History, encode: Callable[[History], Contents]
) -> bytes | None:
    """Return the contents with the further operations of ``whole``; ``None`` if that fails."""
    try:
        return separate_possible_facts(_joined(contents), _joined(encode(whole)))
    except HistoryError:
        return None


def _joined(contents: Contents) -> bytes:
    if isinstance(contents, bytes):
        return contents
    assert callable(contents), "EDN is a single file"
    file = BytesIO()
    contents(file.write)
    return file.getvalue()
