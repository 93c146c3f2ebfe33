"""Notes the statements that change definitions, or what a session may see of tables."""

from __future__ import annotations

import re
from typing import Final

from isolang.observe.database import StatementRewriter
from isolang.observe.history.seen import SeenTransaction
from isolang.observe.observation import Observation
from isolang.observe.sql.plan import DEFINE
from isolang.observe.sql.rewriting import PreparedStatement
from isolang.observe.unseen import DEFINITIONS, TRUNCATED

# After these, rows may lack the parents that their foreign keys name.
_IGNORES_KEYS: Final = re.compile(
    r"session_replication_role|disable\s+trigger|pg_constraint|pg_trigger", re.IGNORECASE
)
# After these, policies may hide rows from a session that saw all rows before.
_CHANGES_ROLE: Final = re.compile(
    r"\b(role|session_authorization|session\s+authorization|row_security)\b"
    r"|set_config\s*\(\s*[^'\s]",
    re.IGNORECASE,
)


def note_settings(observation: Observation, statement: PreparedStatement) -> None:
    """Note what a statement may change for all later ones."""
    kind, text = statement.plan.kind, statement.text
    if kind in DEFINE:
        observation.history.evaluated.refuse_new()
    if kind not in ("forget", "ddl", "other") and "set_config" not in statement.plan.names:
        return
    if _IGNORES_KEYS.search(text):
        observation.database.keys_hold = False
    if _CHANGES_ROLE.search(text):
        observation.database.roles_change = True


def note_definition(
    observation: Observation,
    rewriter: StatementRewriter,
    transaction: SeenTransaction,
    statement: PreparedStatement,
) -> None:
    """Note a statement that defines, alters or truncates tables, or defines a function."""
    unseen, text = observation.history.unseen, statement.text
    if statement.plan.kind == "routine":
        observation.epoch += 1  # the names of functions have changed
        unseen.note(DEFINITIONS, text)
        return
    transaction.altered = True
    note_change(observation)
    if statement.plan.kind == "truncate":
        for name in statement.plan.tables:
            if (table := rewriter.tables.get(name)) is not None:
                observation.tables.note_truncation(table)
        unseen.note(TRUNCATED, text)
        return
    for what in (DEFINITIONS, *statement.unseen):
        unseen.note(what, text)
    if statement.unseen:
        unseen.note_read(None)


def note_change(observation: Observation) -> None:
    """Note that definitions in the database may have changed."""
    observation.epoch += 1
    observation.database.key_changes += 1
