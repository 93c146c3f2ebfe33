"""What a watch has recorded, in a short form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isolang.history.history import History


def transactions(history: History) -> Iterator[tuple[str, list[str]]]:
    """Yield the status of each transaction of the application, with its operations.

    They are such as ``r(account/a {balance: 10})``; of a predicate read, one for each row found.
    """
    for number, transaction in enumerate(history.transactions()):
        if transaction.status != "initial":
            shown = [history.describe_op(op) for op in history.operations_of(number)]
            yield (
                transaction.status,
                [_short(text) for text in shown if not text.endswith("not found")],
            )


def _short(text: str) -> str:
    return re.sub(r'\["(\w+)" "?([^"\]]*)"?\]', r"\1/\2", text)


def operations(history: History) -> list[list[str]]:
    """Return the operations of each transaction of the application that has any."""
    return [shown for _, shown in transactions(history) if shown]


def names(shown: list[str]) -> list[str]:
    """Return the operations of a transaction without values, such as ``r(account/a``."""
    return [text.split(" ")[0] for text in shown]


def predicate_reads(history: History) -> list[Any]:
    """Return the predicate reads of a history."""
    return [op for txn in history.transactions() for op in txn.ops if op[0] == "scan"]


def sources(history: History) -> list[str]:
    """Return the source text of the line that each operation comes from, in order."""
    lines = []
    for op in range(len(history.columns.op_kind)):
        name, _, number = history.remark(op).caller.removesuffix(" (flush)").rpartition(":")
        if name and not history.describe_op(op).endswith("not found"):
            lines.append(Path(name).read_text(encoding="utf-8").splitlines()[int(number) - 1])
    return [line.strip() for line in lines]
