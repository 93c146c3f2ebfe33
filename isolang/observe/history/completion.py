"""Completes the file of a history once it has all transactions and the database was audited."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

from isolang.history.not_seen import unseen_line
from isolang.observe.history.classes import write_evaluated
from isolang.observe.history.history import ObservedHistory
from isolang.observe.history.lines import settle_possible_facts, without_predicate_reads
from isolang.observe.history.orders import write_orders
from isolang.observe.unseen import CONDITIONS_ON_UNSEEN_WRITES, Unseen, unseen_phrases


def complete_file(
    path: Path, history: ObservedHistory, accepted: Collection[str], *, trusts_server: bool
) -> Unseen:
    """Complete the file of a closed history, and return what was not seen.

    Conditions that the server evaluated become predicate reads. Predicate reads of doubtful tables
    are left out, possible facts are settled, and the orders of unseen reads that cannot matter are
    added. A comment at the end says what was not seen.

    Args:
        accepted: the kinds of unseen activity that do not prevent a valid verdict.
        trusts_server: whether the times of commits tell which versions unseen reads saw.
    """
    other = path.with_name(f"{path.name}.part")
    refused = write_evaluated(
        history.evaluated, history.evaluated_reads, history.images, history.unseen, path
    )
    if history.doubtful:
        for shown, caller in without_predicate_reads(path, history.doubtful, other):
            history.unseen.note(CONDITIONS_ON_UNSEEN_WRITES, shown, caller)
        shutil.move(other, path)
    if history.rests_on_versions:
        settle_possible_facts(path, history.keeps_from_start, other)
        shutil.move(other, path)
    if trusts_server:
        decided = history.windows.decide({*history.doubtful, *history.unordered}, accepted, refused)
        for read in decided.reads:
            history.unseen.note_decided(read.what, read.text, read.caller)
        if decided.orders:
            write_orders(path, decided, other)
            shutil.move(other, path)
    unseen = history.unseen.settled()
    with path.open("a", encoding="utf-8") as file:
        file.write(unseen_line(unseen_phrases(unseen)))
    return unseen
