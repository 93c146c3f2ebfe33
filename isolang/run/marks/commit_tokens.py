"""Finds the outcome of a transaction whose COMMIT ended in an unclear error, by a token.

A transaction that writes also writes its own key, the token, and can commit only if no other client
has written the token before. To find the outcome, another client writes the token, unless it
exists. Only one of the two writes can succeed: the transaction has committed, or it never will.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import count
from typing import Final

from isolang.run.outcome import Outcome

PATIENCE: Final = 30.0  # seconds that it may take to find the outcome
POLL: Final = 0.1
_NUMBERS: Final = count()


def new_token() -> str:
    """Return a token that no other transaction of a run has."""
    return f"token/{os.getpid()}.{next(_NUMBERS)}"


def ask(token: str, whether: Callable[[str], bool | None]) -> Outcome:
    """Return the outcome of the transaction with a token.

    Args:
        token: the token; empty if the transaction has none.
        whether: a function that writes the token unless it exists, and returns whether the
            transaction has committed; ``None`` if that is not known yet. Its errors mean that the
            server is down.
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
