"""Completes a recorded history with version orders and unrecorded writers from a database's log.

While clients run, each line of the history states the versions that a transaction read and wrote,
using the database's names for them. Afterwards, the database's log shows the order in which these
versions were installed, and the writes of unrecorded transactions. This module then rewrites the
history: it numbers the versions of each key in the order of their installation.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct

from isolang.files import open_replacement
from isolang.run.operation import DELETED
from isolang.run.record import lines

if TYPE_CHECKING:
    from isolang.history.history import History

_VERSIONS: Final = re.compile(rb", :versions \[[^\]]*\]")
_XID: Final = re.compile(rb", :xid \"?(\d+)\"?")
_COMMITTED: Final = re.compile(rb":type :ok,")
_PROCESS: Final = re.compile(rb":process (\d+)")
_PLACE: Final = re.compile(rb":index (-?\d+).*?:time (-?\d+)")

INITIAL: Final = 0
"""The number of the initial version of a key."""


class LoggedVersion(Struct, frozen=True, kw_only=True):
    """A version in the database's log.

    Attributes:
        value: the written value; ``DELETED`` if the row was deleted.
    """

    transaction: int
    key: str
    value: Any


class RewriteCounts(Struct, frozen=True, kw_only=True):
    """The counts of versions and transactions in a rewritten history.

    Attributes:
        stated: the number of operations whose version is now known.
        unknown: the number of operations in committed transactions whose version is still unknown.
        others: the number of unrecorded transactions that have been added.
    """

    versions: int
    stated: int
    unknown: int
    others: int


def summary_of(account: RewriteCounts) -> str:
    """Return a phrase for the user that summarizes the additions to a history."""
    stated_version = f"the server's log contains {account.versions:,} versions in their order"
    if account.unknown:
        stated_version += f"; {account.unknown:,} committed operations have no version"
    if account.others:
        stated_version += (
            f"; {account.others:,} transactions of other writers were added from the log"
        )
    return stated_version


def rewrite_history(
    path: Path,
    log: Iterable[LoggedVersion],
    *,
    is_initial: Callable[[str], bool],
) -> RewriteCounts:
    """Number the versions in a history, and add the unrecorded transactions.

    SOUND BECAUSE: each unrecorded writer gets its own session, which begins before all other
    sessions and ends after them. Therefore the history claims nothing about its time.

    Args:
        is_initial: a function that returns whether a version is older than the log. A version is a
            string that begins with the number of the transaction that wrote it.
    """
    from isolang.history import read_history

    history = read_history(path)
    text = path.read_bytes().splitlines(keepends=True)
    line_of_transaction = {
        int(found[1]): number for number, line in enumerate(text, 1) if (found := _XID.search(line))
    }
    ranks, made = _numbers_of_versions(log)
    lines_of = _operations_by_line(history, line_of_transaction.values())
    name = _numbers_by_name(history, text, lines_of, ranks)
    stated = unknown = 0
    new: dict[int, list[int | None]] = {}
    for number, ops in lines_of.items():
        of_each = [_version(history, op, name, ranks, is_initial) for op in ops]
        stated += sum(version is not None for version in of_each)
        if _COMMITTED.search(text[number - 1]):
            unknown += sum(version is None for version in of_each)
        new[number] = of_each
    others = {t: ops for t, ops in made.items() if t not in line_of_transaction}
    # SOUND BECAUSE: a transaction whose client did not learn that it had committed is now in the
    # history twice: as an indeterminate transaction, and as an unrecorded writer of the same
    # values. A check may decide that the indeterminate one did not commit, so that the transaction
    # happened only once.
    for number, line in enumerate(text, 1):
        text[number - 1] = _rewrite_line(line, new.get(number))
    with open_replacement(path) as file:
        head = next((i for i, line in enumerate(text) if not line.startswith(b";")), len(text))
        file.write(b"".join(text[:head]) + lines.ORDERED_LINE)
        file.write(b"".join(text[head:]))
        file.write(_unrecorded_lines(text, others))
    return RewriteCounts(
        versions=sum(len(ops) for ops in made.values()),
        stated=stated,
        unknown=unknown,
        others=len(others),
    )


class _NumberedVersion(NamedTuple):
    """A version of a key, with its number, and its value."""

    key: str
    rank: int
    value: Any


def _numbers_of_versions(
    log: Iterable[LoggedVersion],
) -> tuple[dict[tuple[int, str], list[int]], dict[int, list[_NumberedVersion]]]:
    """Return the version numbers by transaction and key, and the versions by transaction number."""
    count: defaultdict[str, int] = defaultdict(int)
    ranks: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    made: defaultdict[int, list[_NumberedVersion]] = defaultdict(list)
    for one in log:
        count[one.key] += 1
        ranks[one.transaction, one.key].append(count[one.key])
        made[one.transaction].append(_NumberedVersion(one.key, count[one.key], one.value))
    return ranks, made


def _operations_by_line(history: History, named: Iterable[int]) -> dict[int, list[int]]:
    """Return, by line, the operations of transactions that are named or state a version."""
    import numpy as np

    columns = history.columns
    selected = np.isin(columns.txn_position, np.fromiter(named, np.int64))
    if columns.has_versions:
        (stating,) = np.nonzero(columns.op_version >= 0)
        selected[np.searchsorted(columns.op_start, stating, side="right") - 1] = True
    (txns,) = np.nonzero(selected)
    return {
        int(columns.txn_position[t]): list(
            range(int(columns.op_start[t]), int(columns.op_start[t + 1]))
        )
        for t in txns.tolist()
    }


def _numbers_by_name(
    history: History,
    text: Sequence[bytes],
    lines_of: Mapping[int, list[int]],
    ranks: Mapping[tuple[int, str], list[int]],
) -> dict[tuple[Any, ...], int]:
    """Return the number of each version, by operation and also by key and stated version.

    If the log contains as many versions of a key as the transaction wrote, all their numbers are
    known. Otherwise only the number of the last version is known.
    """
    columns = history.columns
    key_of = [history.key_object(k) for k in range(columns.n_keys())]
    kinds, keys = columns.op_kind.tolist(), columns.op_key.tolist()
    found: dict[tuple[Any, ...], int] = {}
    for number, ops in lines_of.items():
        xid = _XID.search(text[number - 1])
        if xid is None:
            continue
        writes: defaultdict[int, list[int]] = defaultdict(list)
        for op in ops:
            if kinds[op] == 1:
                writes[keys[op]].append(op)
        for key, made in writes.items():
            known = ranks.get((int(xid[1]), str(key_of[key])), [])
            last = slice(None if len(known) == len(made) else -1, None)
            for op, rank in zip(made[last], known[last], strict=False):
                found["op", op] = rank
                stated_version = history.version(op)
                if stated_version is not None:
                    found["stated", key, stated_version] = rank
    return found


def _version(
    history: History,
    op: int,
    name: Mapping[tuple[Any, ...], int],
    ranks: Mapping[tuple[int, str], list[int]],
    is_initial: Callable[[str], bool],
) -> int | None:
    kind = int(history.columns.op_kind[op])
    if kind == 1:
        return name.get(("op", op))
    stated_version = history.version(op) if kind == 0 else None
    if stated_version is None:
        return None
    key = int(history.columns.op_key[op])
    rank = name.get(("stated", key, stated_version))
    if rank is not None:
        return rank
    # SOUND BECAUSE: of all versions of a row that a transaction wrote, other transactions see only
    # the last version. A version that it wrote after a savepoint has another number.
    made = ranks.get((int(str(stated_version).partition("(")[0]), str(history.key_object(key))))
    if made:
        return made[-1]
    return INITIAL if is_initial(str(stated_version)) else None


def _rewrite_line(line: bytes, versions: Sequence[int | None] | None) -> bytes:
    line = _XID.sub(b"", _VERSIONS.sub(b"", line))
    if versions is None or all(version is None for version in versions):
        return line
    return lines.with_versions(line, versions)


def _unrecorded_lines(
    text: Sequence[bytes], others: Mapping[int, Sequence[_NumberedVersion]]
) -> bytes:
    """Return the lines of the unrecorded writers, concurrent with all other transactions."""
    if not others:
        return b""
    process = max((int(p) for line in text for p in _PROCESS.findall(line)), default=0)
    places = [tuple(map(int, found.groups())) for line in text if (found := _PLACE.search(line))]
    first, last = min(places, default=(0, 0)), max(places, default=(0, 0))
    rows = any(
        b"[:delete " in line for line in text
    )  # without rows, a write of DELETED records the delete
    latest = max((time for _, time in places), default=0)
    out = []
    for number, made in enumerate(others.values(), 1):
        ops = " ".join(_version_edn(one, rows=rows) for one in made)
        for kind, index, time in (
            ("invoke", first[0] - number, min(first[1], 0)),
            ("ok", last[0] + number, latest),
        ):
            line = (
                f"{{:index {index}, :type :{kind}, :process {process + number}, :time {time}, "
                f":f :txn, :value [{ops}]}}\n"
            ).encode()
            if kind == "ok":
                line = lines.with_versions(line, [one.rank for one in made])
            out.append(line)
    return b"".join(out)


def _version_edn(made: _NumberedVersion, *, rows: bool) -> str:
    shown = lines.to_edn(made.key)
    if rows and made.value == DELETED:
        return f"[:delete {shown}]"
    return f"[:w {shown} {lines.to_edn(made.value)}]"
