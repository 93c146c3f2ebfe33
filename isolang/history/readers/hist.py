"""dbcop's ``.hist`` text: ``[x:=1 y==2] [x==?]!``, sessions separated by lines of dashes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.readers.native import read_regular
from isolang.history.readers.reading import U64, Reading, counted, text_of
from isolang.history.readers.versions import (
    INITIAL_SENTENCE,
    REAL_TIME_SENTENCE,
    SESSION_SENTENCE,
    normalise_zero_reads,
)
from isolang.history.values import STRING

if TYPE_CHECKING:
    from isolang._native import Columns

_TOKEN = re.compile(
    r"(?P<blank>\s+|//.*)"
    r"|(?P<open>\[)"
    r"|(?P<close>\](?P<uncommitted>\s*!)?)"
    r"|(?P<write>(?P<wvar>\w+)\s*:=\s*(?P<wver>\d+)(?!\w))"
    r"|(?P<read>(?P<rvar>\w+)\s*==\s*(?:(?P<rver>\d+)(?!\w)|\?))",
    re.ASCII,
)
_DASHES = re.compile(r"\s*-{2,}\s*(?://.*)?")


def read_hist(name: str, data: bytes, timeout: float = 0.0) -> Reading:
    """Read a ``.hist`` history.

    Raises:
        HistoryError: naming the line.
    """
    regular = read_regular("hist", ((name, data),), timeout)
    if regular is None:
        return read_any_hist(name, data)
    columns, say = regular
    return _reading(columns, say["sessions"], say["empty"])


def read_any_hist(name: str, data: bytes) -> Reading:
    """The same of any file, regular or not, and slower."""
    from isolang._native import Columns

    columns = Columns()
    session, used, empty = 0, False, 0
    ordinals: list[int] = [1]  # of the sessions with transactions, for their names
    open_line = 0  # where the transaction that is being read began; 0 outside
    ops: list[tuple[int, int, int, int]] = []
    ordinal = 0
    for line_number, line in enumerate(text_of(name, data).split("\n"), 1):
        where = f"{name}: line {line_number}"
        if _DASHES.fullmatch(line):
            if open_line:
                msg = f"{where}: a session ends inside the transaction of line {open_line} (no ])"
                raise HistoryError(msg)
            if used:
                session += 1
                ordinals.append(ordinals[-1] + 1)
            else:
                empty += 1
                ordinals[-1] += 1
            used = False
            continue
        at = 0
        while at < len(line):
            token = _TOKEN.match(line, at)
            if token is None:
                msg = (
                    f"{where}: not a history (got {line[at : at + 20].strip()!r}, expected "
                    "[x:=1 y==2 z==?], ] or ]!, a line of dashes, or // and a comment)"
                )
                raise HistoryError(msg)
            at = token.end()
            if token["blank"]:
                continue
            if token["open"]:
                if open_line:
                    msg = f"{where}: [ inside the transaction of line {open_line} (no ])"
                    raise HistoryError(msg)
                open_line = line_number
                ops = []
            elif not open_line:
                msg = f"{where}: {token[0]!r} outside a transaction (no [ before it)"
                raise HistoryError(msg)
            elif token["close"]:
                if not ops:
                    msg = f"{where}: an empty transaction (got [], expected events in it)"
                    raise HistoryError(msg)
                ordinal += 1
                status = c.ABORTED if token["uncommitted"] else c.COMMITTED
                columns.begin_transaction(session, status, ordinal, open_line)
                for op in ops:
                    columns.add_op(*op)
                open_line = 0
                used = True
            else:
                write = token["write"] is not None
                key = columns.intern_key(STRING, token["wvar"] if write else token["rvar"])
                version = token["wver"] if write else token["rver"]
                value = c.NIL_ATOM
                if version is not None:
                    number = int(version) if len(version) <= 20 else U64
                    if number >= U64:
                        msg = f"{where}: a version beyond 64 bits (got {version[:40]})"
                        raise HistoryError(msg)
                    value = columns.intern_value(1 if number < 2**63 else 2, number)
                ops.append((c.WRITE if write else c.READ, key, value, line_number))
    if open_line:
        msg = f"{name}: line {open_line}: a transaction without ] (the file ends inside it)"
        raise HistoryError(msg)
    columns.validate()
    return _reading(columns, ordinals, empty + (not used and bool(ordinal)))


def _reading(columns: Columns, ordinals: Sequence[int], empty: int) -> Reading:
    notes = normalise_zero_reads(columns)
    return Reading(
        columns=columns,
        position_unit="line",
        initial=INITIAL_SENTENCE,
        session=SESSION_SENTENCE,
        real_time=REAL_TIME_SENTENCE,
        ignored=(counted(empty, "session") + " without transactions",) if empty else (),
        notes=notes,
        session_names=tuple(str(s) for s in ordinals[: columns.sessions]),
    )
