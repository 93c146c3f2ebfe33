"""Tokens: how to find out what became of a transaction whose COMMIT ended in an unclear error.

A transaction that writes also writes a token, a key of its own, and can only commit if nobody has
written that key before. Whoever asks what became of it writes the same key, unless it is there. So
the two cannot both succeed: either the transaction has committed, or it never will.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import count
from typing import Final

from isolang.run.outcome import Outcome

PATIENCE: Final = 30.0  # seconds to find it out
POLL: Final = 0.1
_NUMBERS: Final = count()


def new_token() -> str:
    """A token that no other transaction of a run has."""
    return f"token/{os.getpid()}.{next(_NUMBERS)}"


def ask(token: str, whether: Callable[[str], bool | None]) -> Outcome:
    """Find out what became of the transaction with a token.

    Args:
        token: empty if the transaction has left none.
        whether: writes the token unless it is there, and tells whether the transaction has
            committed; ``None`` if that is not known yet. Errors mean that the server is down.
    """
    until = time.monotonic() + PATIENCE
    while token and time.monotonic() < until:
        try:
            committed = whether(token)
        except Exception:
            committed = None
        if committed is not None:
            return "committed" if committed else "aborted"
        time.sleep(POLL)
    return "maybe"
