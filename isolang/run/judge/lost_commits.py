"""Finds commits that were acknowledged before a server was killed or replaced, and then lost.

A write is lost if a transaction that began after the kill read an older version of its key. A
version is certainly older if it is the initial value, if all writers of its value had ended before
the lost transaction began, or if it is a list that does not contain the lost element. In these
cases no other writer can explain the read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from isolang.run.operation import DELETED

_KILL: Final = re.compile(
    rb"^\{:index (\d+), :type :info, :process :nemesis, :time (\d+), :f :(kill|promote)(?=[,} ])"
)
_EVENT: Final = re.compile(rb"^\{:index (\d+), :type :(\w+), :process (\d+), :time (\d+)")


class _AcknowledgedWrite(Struct, kw_only=True):
    """A write by a transaction that did not abort, with the transaction's begin and end."""

    name: str
    value: Any
    appended: bool
    began: int
    ended: float
    at: int
    committed: bool


def lost_commits(path: Path) -> tuple[str, ...]:
    """Return a message about each lost commit, in order of acknowledgement."""
    from isolang.history import read_history

    kills: list[tuple[int, int]] = []
    promoted: set[int] = set()  # when a standby was promoted
    times: dict[int, int] = {}
    with path.open("rb") as lines:
        for line in lines:
            if fault := _KILL.match(line):
                kills.append((int(fault[1]), int(fault[2])))
                promoted |= {int(fault[2])} if fault[3] == b"promote" else set()
            elif event := _EVENT.match(line):
                times[int(event[1])] = int(event[4])
    history = read_history(path)
    if history.real_time.startswith(":time"):  # transactions have times instead of event indices
        kills = [(at, at) for _, at in kills]
        times = {at: at for at in times.values()}
    writes: defaultdict[Any, list[_AcknowledgedWrite]] = defaultdict(list)
    reads: list[tuple[int, Any, Any]] = []
    aborted: set[tuple[Any, str]] = set()
    gone: set[Any] = set()
    for number, transaction in enumerate(history.transactions()):
        status, began = transaction.status, _index(transaction.begin)
        for name, key, value in ((*op, None)[:3] for op in transaction.ops):
            if name == "delete" or value == DELETED:
                gone.add(key)
            elif name in ("w", "append") and status == "aborted":
                aborted.add((key, repr(value)))
            elif name in ("w", "append"):
                committed = status == "committed"
                end = _index(transaction.end) if committed else None
                writes[key].append(
                    _AcknowledgedWrite(
                        name=history.name_of(number), value=value, appended=name == "append",
                        began=began or 0, ended=float("inf") if end is None else end,
                        at=times.get(-1 if end is None else end, 0), committed=committed,
                    )
                )  # fmt: skip
            elif name == "r" and status == "committed" and began is not None:
                reads.append((began, key, value))
    found: dict[str, tuple[int, str]] = {}
    for began, key, value in sorted(reads, key=lambda read: read[0]):
        before = [kill for kill in kills if kill[0] < began]
        if not before or key in gone or (key, repr(value)) in aborted:
            continue
        for one in writes[key]:
            kill = before[-1]
            if one.ended > kill[0] or not one.committed or not _is_older(value, one, writes[key]):
                continue
            first = next(at for place, at in before if one.ended <= place)
            by = f"the {'promotion' if first in promoted else 'kill'} at {_seconds(first)}"
            if first != kill[1]:  # it is unknown which of these kills lost the commit
                what = "a kill or promotion" if promoted else "a kill"
                by = f"{what} between {_seconds(first)} and {_seconds(kill[1])}"
            message = f"{one.name}, acknowledged at {_seconds(one.at)}, was lost by {by}"
            found.setdefault(one.name, (one.at, message))
    return tuple(message for _, message in sorted(found.values()))


def _is_older(value: Any, lost: _AcknowledgedWrite, writes: list[_AcknowledgedWrite]) -> bool:
    """Return whether a value that was read is certainly older than a write."""
    if lost.appended:
        return isinstance(value, list | tuple | type(None)) and lost.value not in (value or ())
    return value is None or _all_writers_ended(value, lost, writes)


def _all_writers_ended(
    value: Any, lost: _AcknowledgedWrite, writes: list[_AcknowledgedWrite]
) -> bool:
    writers = [one for one in writes if one.value == value]
    return bool(writers) and all(one.ended < lost.began for one in writers)


def _index(place: object) -> int | None:
    """Return a position in a history if it is a number, and ``None`` otherwise."""
    return place if isinstance(place, int) else None


def _seconds(nanoseconds: int) -> str:
    return f"{nanoseconds * 1e-9:.2f} s"
