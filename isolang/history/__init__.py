"""Histories: clients' observations of a database, read from many formats and stored in columns."""

from __future__ import annotations

from isolang.history.history import History
from isolang.history.load import read_history
from isolang.history.select import sub_history
from isolang.history.transaction import Transaction
from isolang.history.values import UNKNOWN, Keyword
from isolang.history.writers import save_history, write_history
from isolang.history.writers.report import WriteReport

__all__ = [
    "UNKNOWN",
    "History",
    "Keyword",
    "Transaction",
    "WriteReport",
    "read_history",
    "save_history",
    "sub_history",
    "write_history",
]
