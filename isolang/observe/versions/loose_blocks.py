"""Derives what a query block read whose condition only the server can evaluate."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from isolang.observe.history.seen import RowVersion
from isolang.observe.sql.executed import condition_of_block
from isolang.observe.sql.loose_blocks import MOST_ROWS, LooseCondition
from isolang.observe.sql.predicates import CannotEvaluateError, Predicate
from isolang.observe.sql.rewriting import ReportedBlock
from isolang.observe.unseen import CONDITIONS, LIMITED
from isolang.observe.versions.facts import StatementFacts


def note_loose_block(
    facts: StatementFacts,
    block: ReportedBlock,
    loose: LooseCondition,
    rows: Sequence[RowVersion],
    *,
    perhaps: bool,
) -> None:
    """Note that a query block found those of some rows that satisfy its condition.

    If that cannot be evaluated, the rows only may have decided the answer.

    Args:
        perhaps: whether a LIMIT may have left rows out, so that this holds in any case.
    """
    done, table = facts.done, block.reported.table
    if len(rows) > min(MOST_ROWS, facts.observation.most_rows):
        facts.note_unseen(CONDITIONS)
        return
    where: Predicate = ""
    with suppress(CannotEvaluateError):
        where = loose.condition.predicate(table.columns, done.statement.part, done.parameters)
    condition = None if perhaps else condition_of_block(done, block)
    if condition is not None and facts.add_predicate_read(
        table, rows, condition, columns=(), loose=where
    ):
        return
    if not where:
        facts.note_unseen(LIMITED if perhaps else CONDITIONS)
        return
    facts.add_predicate_read(table, rows, where, perhaps=True)
