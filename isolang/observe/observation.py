"""Stores the state that all sessions of one observed database share."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from isolang.observe.catalogue import Tables
from isolang.observe.history import ObservedHistory
from isolang.observe.rewriting import DatabaseFacts


class Observation(Struct, kw_only=True):
    """An observation of one database, which all sessions share.

    Attributes:
        database: the known facts about the database.
        history: the history to which sessions are written.
        tables: the tables that sessions have used.
        most_rows: the largest number of rows in a predicate read.
        epoch: how often a definition in the database has changed.
        refreshed: the epoch in which the names of functions were last read.
        audit: a function that audits before a definition changes, and then calls its argument;
            ``None`` if no audit is possible.
    """

    database: DatabaseFacts
    history: ObservedHistory
    tables: Tables
    most_rows: int
    epoch: int = 0
    refreshed: int = 0
    audit: Callable[[Callable[[], None]], None] | None = None
