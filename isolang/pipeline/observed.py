"""Decides whether the reads of a valid history observed other sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isolang.certify.proofs import Witness
    from isolang.history.history import History


def observes_other_sessions(history: History, witness: Witness) -> bool:
    """Return whether any read returned or missed another session's write."""
    return history.columns.observes_other_sessions(
        witness.source, witness.order_start, witness.order_txn
    )
