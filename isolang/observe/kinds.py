"""Lists the kinds of what an observer does not see, and which of them are harmless."""

from __future__ import annotations

from typing import Final

from isolang.observe import catalogue, history, plan, rewriting, session, wire

KINDS: Final = frozenset({
    catalogue.NOT_FOUND, catalogue.VIEWS, catalogue.FOREIGN, catalogue.RULES, catalogue.NO_KEY,
    catalogue.KEY_TYPE, catalogue.CHILDREN, catalogue.PRIVILEGE, catalogue.TEMPORARY,
    catalogue.CATALOGUE, history.FOREIGN, history.UNREAD, history.UNTOLD, history.MANY, *plan.KINDS,
    rewriting.FUNCTIONS, rewriting.TRIGGERS, rewriting.CASCADES, rewriting.PARTITIONED,
    rewriting.NAMED_OLD, session.CONDITION, session.RECHECKED, session.LIMITED, session.LARGE,
    session.OLD_SERVER, session.IN_THE_WAY, session.OTHER_TABLE, session.ALTERED, session.DDL,
    session.INTERNAL,
    session.TRUNCATED, session.NO_BEGIN, session.NO_END, session.NO_ANSWER, wire.FUNCTION_CALLS,
    wire.PREPARED_EARLIER, wire.NOT_OBSERVED, wire.SETTINGS,
})  # fmt: skip
"""All kinds, in the words of the output."""

_HARMLESS: Final = frozenset(
    {catalogue.CATALOGUE, catalogue.TEMPORARY, session.DDL, history.UNREAD}
)


def harmless(kind: str) -> bool:
    """Return whether what is not seen of a kind cannot change a verdict.

    Other sessions do not see temporary tables, and rows of a table that was altered are rows of
    another table in the history.
    """
    return kind in _HARMLESS
