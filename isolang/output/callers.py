"""Where in an application the operations of a recorded transaction come from.

A recorder that knows it writes it at the end of each completion (``:callers ["app.py:12" …]``, one
for each operation). It is no part of the history that is checked: the report looks it up.
"""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from isolang.explain.violation import TransactionView

_CALLERS: Final = re.compile(r", :callers \[([^\]]*)\](?:, :error .*)?\}$")
_STRING: Final = r'"(?:[^"\\]|\\.)*"'
_OPERATION: Final = re.compile(rf"\[:([\w-]+) ({_STRING}) ([^\s\]]+)\]")


def callers_of(txn: TransactionView) -> list[tuple[str, str]]:
    """Give ``file:line`` and text of each operation that is shown; empty if none was recorded."""
    if txn.place.unit != "line":
        return []
    try:
        with Path(txn.place.file).open(encoding="utf-8") as lines:
            line = next(islice(lines, txn.place.position - 1, None), "").rstrip()
    except (OSError, ValueError):
        return []
    found = _CALLERS.search(line)
    if found is None:
        return []
    callers = [one[1:-1] for one in re.findall(_STRING, found.group(1))]
    operations = _OPERATION.findall(line[: found.start()])
    if len(operations) != len(callers):
        return []
    known: dict[str, str] = {}
    for (kind, key, value), where in zip(operations, callers, strict=True):
        known.setdefault(f"{kind}({key}, {value})", where)
    shown = ((known.get(op.text, ""), op.text) for op in txn.operations)
    return [one for one in shown if one[0]]
