"""Uses tokens to find out whether transactions with an unclear error at COMMIT have committed.

A transaction with writes also writes a key of its own, the token. It can commit only if no other
client has written the token first. To determine the outcome, another client writes the token unless
it already exists. Only one of the two writes can succeed: either the transaction has committed, or
it never will.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import count
from typing import Final

from isolang.run.outcome import Outcome

RESOLVE_TIMEOUT_S: Final = 30.0  # the time limit for determining an outcome
POLL_S: Final = 0.1
_TOKEN_NUMBERS: Final = count()


def new_token() -> str:
    """Return a token that no other transaction in the run uses."""
    return f"token/{os.getpid()}.{next(_TOKEN_NUMBERS)}"


def resolve_token(token: str, whether: Callable[[str], bool | None]) -> Outcome:
    """Determine how a transaction ended by writing its token unless the token exists.

    Args:
        whether: a function that writes the token unless it already exists, and returns whether the
            transaction has committed, or ``None`` if that cannot be known yet. If it raises an
            error, the server is assumed to be down.
    """
    until = time.monotonic() + RESOLVE_TIMEOUT_S
    while token and time.monotonic() < until:
        try:
            committed = whether(token)
        except Exception:
            committed = None
        if committed is not None:
            return "committed" if committed else "aborted"
        time.sleep(POLL_S)
    return "maybe"
