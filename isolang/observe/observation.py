"""Stores the state shared by all sessions of an observed database."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from isolang.observe.database import StatementDialect, VersionNames
from isolang.observe.history.history import ObservedHistory
from isolang.observe.sql.catalogue import Tables
from isolang.observe.sql.notes import CallNotes
from isolang.observe.sql.rewriting import DatabaseFacts


class Observation(Struct, kw_only=True):
    """An observation of one database, shared by all of its sessions.

    Attributes:
        dialect: the part of the database's kind that understands statements.
        versions: the part that names the versions of rows.
        epoch: how many times definitions in the database have changed.
        refreshed: the epoch when the names of functions were last read.
        audit: a function that runs an audit before a definition changes, and then calls its
            argument; ``None`` if no audit is possible.
        next_mark: a function that returns a new number for the server's log; ``None`` if the log is
            not read.
        application_is_unit: whether ``application_name`` names the request of each transaction.
        notes: what callers in the same process noted; ``None`` if applications are other processes.
        call_names: the names of the application's calls, by number, which label their transactions.
    """

    dialect: StatementDialect
    versions: VersionNames
    database: DatabaseFacts
    history: ObservedHistory
    tables: Tables
    most_rows: int
    epoch: int = 0
    refreshed: int = 0
    audit: Callable[[Callable[[], None]], None] | None = None
    next_mark: Callable[[], int] | None = None
    application_is_unit: bool = False
    notes: CallNotes | None = None
    call_names: Mapping[int, str] = field(default_factory=dict)
