"""Counts the reads and writes of a statement that its form hides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isolang.observe.history.seen import LoggedWrites
from isolang.observe.sql.plan import name_parts
from isolang.observe.unseen import (
    CALLED,
    CASCADES,
    CONDITIONS,
    COPY,
    KEY_TYPE,
    NO_KEY,
    PARTITIONED,
    PRIVILEGE,
    PROCEDURES,
    TRIGGERS,
    table_added_to,
)
from isolang.observe.versions.facts import StatementFacts

_READ_ANYTHING: Final = frozenset({CALLED, PROCEDURES, TRIGGERS})
# The kinds of unseen writes that depend on the target table of an INSERT.
_KINDS_OF_TABLES: Final = frozenset({NO_KEY, KEY_TYPE, PRIVILEGE, PARTITIONED})


def count_hidden(facts: StatementFacts) -> None:
    """Count the reads and writes hidden by the statement's form."""
    made, unseen = facts.statement.plan, facts.observation.history.unseen
    if made.kind != "insert":
        unseen.read.update([name_parts(name)[-1] for name in made.tables])
    in_log = [what for what in facts.statement.unseen if _log_shows(facts, what)]
    hidden = {*facts.statement.unseen}.difference(in_log)
    # SOUND BECAUSE: an INSERT with a subquery counts that, too.
    only_adds = made.kind == "insert" and not (made.upserts or made.may_skip)
    only_adds = only_adds and hidden <= _KINDS_OF_TABLES
    if hidden and not only_adds and not table_added_to(facts.statement.text):
        unseen.note_read(None if hidden & _READ_ANYTHING else facts.statement.names)
    triggered = facts.statement.triggered
    if {CASCADES, COPY}.intersection(in_log):
        # The tables that they write are not known.
        current = facts.observation.tables.current()
        triggered += tuple(table for table in current if table.readers and table not in triggered)
    if any(table.readers for table in triggered):
        unseen.note_read(None)
    for what in facts.statement.unseen:
        adds = made.kind == "insert" and what in _KINDS_OF_TABLES
        if what == CALLED:
            _note_functions(facts, facts.statement.functions)
        elif what not in in_log:
            facts.note_unseen(what, table=name_parts(made.tables[0])[-1] if adds else "")
        elif what == PARTITIONED and made.kind != "insert":
            facts.note_unseen(CONDITIONS)
    for table in triggered:
        _note_functions(facts, table.readers)
    if facts.done.mark:
        transaction = facts.transaction
        transaction.awaits_log = True
        transaction.operations.append(
            LoggedWrites(
                facts.done.mark, facts.shown, facts.statement.text, tuple(in_log),
                transaction.statement, transaction.caller,
            )
        )  # fmt: skip


def _log_shows(facts: StatementFacts, what: str) -> bool:
    """Return whether the server's log shows all that is unseen of a kind."""
    made = facts.statement.plan
    if not facts.done.mark:
        return False
    if what == PARTITIONED:
        return not (made.upserts or made.may_skip)
    if what == COPY:  # COPY (query) also reads
        return bool(facts.statement.part) and facts.statement.part[1].text != "("
    return what in (TRIGGERS, CASCADES)


def _note_functions(facts: StatementFacts, functions: Iterable[str]) -> None:
    """Count functions that may read rows, each with its schema and language."""
    for function in functions:
        text = f"{function}, in {facts.statement.text}"
        facts.observation.history.unseen.note(CALLED, text)
