"""Asks the server for the rows of query blocks that an answer does not contain."""

from __future__ import annotations

from isolang.observe.mariadb import packets
from isolang.observe.mariadb.answers import AnswerForwarder, PreparedOnWire
from isolang.observe.mariadb.recording import StatementAnswer
from isolang.observe.mariadb.session import ROLLED_BACK, FollowedSession
from isolang.observe.mariadb.statements import Statement

_ERROR = b"\xff"


async def answered(
    forwarder: AnswerForwarder,
    session: FollowedSession,
    statement: Statement,
    prepared: PreparedOnWire | None = None,
    *,
    is_alone: bool = True,
) -> StatementAnswer:
    """Forward the answer to a statement, and ask for the rows of its query blocks, if needed.

    An answer without rows does not contain them, nor does that of UNION.

    SOUND BECAUSE: within a snapshot, or behind locks, a further SELECT reads the same. Elsewhere,
    only an answer without rows is followed by one. It executes the statement again, and if this
    finds no row either, the first answer might as well have been the second one.

    Args:
        is_alone: whether no other statement is in the same text.
    """
    blocks = statement.blocks
    forwarder.hidden_flags = 0
    if blocks is not None and blocks.is_in_answer:
        forwarder.hidden_flags = packets.ABOUT_INDEXES
    if blocks is None or not blocks.has_lists or not is_alone:
        return await forwarder.answer(statement.hidden, prepared)
    is_elsewhere = blocks.place < 0

    async def before_end(count: int, status: int) -> bytes | None:
        keeps = bool(status & packets.IN_TRANSACTION) and session.keeps_view
        is_needed = not count or (is_elsewhere and keeps)
        text = statement.lists_text() if is_needed and not status & packets.MORE_RESULTS else None
        if text is None:
            return None
        exists, lists = await forwarder.lists(text, statement.charset or "latin1")
        if lists is not None and lists[:1] == _ERROR:
            # If the transaction is gone, the application must know.
            code = int.from_bytes(lists[1:3], "little")
            return lists if code in ROLLED_BACK else None
        return lists if exists == bool(count) else None

    forwarder.before_end = before_end
    try:
        return await forwarder.answer(statement.hidden, prepared)
    finally:
        forwarder.before_end = None
