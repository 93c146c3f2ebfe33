"""Names the tables in which frameworks keep the sessions of users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from isolang.history.history import History

SESSION_TABLES: Final = (
    "active_sessions",
    "django_session",
    "http_sessions",
    "session",
    "sessions",
    "spring_session",
    "spring_session_attributes",
)
"""Django, Rails, Laravel, connect-pg-simple, Flask-Session, Spring and others use these names.

A request reads its user's session at its begin, and writes it at its end, without a lock.
"""


def is_session_key(history: History, key: int) -> bool:
    """Return whether a key is a row of a table of sessions.

    A key such as ``["django_session" "7"]``, which messages show as ``django_session/7``, names its
    table. So does ``[:sessions 7]``.
    """
    return is_session_table(table_of_key(history.key(key)))


def table_of_key(shown: str) -> str:
    """Return the table of a key, as messages show the key; empty if it names none.

    >>> table_of_key("booking/2"), table_of_key("[:sessions 7]"), table_of_key("x")
    ('booking', ':sessions', '')
    """
    if shown.startswith("["):
        return shown[1:].partition(" ")[0]
    table, slash, _ = shown.partition("/")
    return table if slash else ""


def is_session_predicate(history: History, scan: int) -> bool:
    """Return whether a predicate read is one of a table of sessions."""
    number = int(history.columns.statement_predicate[scan])
    if number < 0:
        return False
    text = history.columns.predicates[number]
    if not text.startswith("{:table "):
        return False
    return is_session_table(text.removeprefix("{:table ").partition(" :where ")[0].strip('":'))


def is_session_table(name: str) -> bool:
    """Return whether a table has the name of one of sessions, in whatever schema or database.

    >>> is_session_table("public.django_session"), is_session_table("user_sessions")
    (True, False)
    """
    base = name.strip('"').rpartition(":")[2].rpartition(".")[2].partition("#")[0].strip('"')
    return base in SESSION_TABLES
