"""``assert_level``: the way to say in a test that a history is as isolated as it has to be."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.classify.route import Route
    from isolang.language.meaning.core import Spec
    from isolang.verdict import Invalid, Unknown, Valid, Verdict


class IsolationError(AssertionError):
    """A history does not satisfy the level that was asserted; the message is the whole argument.

    Attributes:
        verdict: what was found.
    """

    def __init__(self, verdict: Invalid | Unknown) -> None:
        super().__init__(str(verdict))
        self.verdict = verdict

    def __reduce__(self) -> tuple[type[AssertionError], tuple[str]]:
        return AssertionError, (str(self),)  # for other processes the message is enough


class UndecidedError(IsolationError):
    """The check could not decide whether the history satisfies the level; the test fails."""


def assert_level(
    history: History | str | os.PathLike[str],
    level: Spec | Route | str | os.PathLike[str],
    *,
    timeout: float | None = None,
    memory: float | None = None,
) -> Valid:
    """Check a history, and raise unless it is valid.

    Args:
        history: or the file that holds it.
        level: as ``check`` takes it.
        timeout: seconds, after which the verdict is unknown.
        memory: megabytes.

    Returns:
        The verdict, with its witness.

    Raises:
        IsolationError: it is invalid.
        UndecidedError: it was not found out.

    >>> from isolang import History, Transaction
    >>> history = History.from_transactions([
    ...     Transaction([("r", "x", None), ("w", "x", 1)], session="a"),
    ...     Transaction([("r", "x", None), ("w", "x", 2)], session="b"),
    ... ])
    >>> assert_level(history, "pl-2").outcome
    'valid'
    >>> assert_level(history, "si")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    isolang.testing.assertion.IsolationError: INVALID  ...
    """
    __tracebackhide__ = True
    from isolang.api import check, load_history

    if isinstance(history, str | os.PathLike):
        history = load_history(history)
    return accept(check(history, level, timeout=timeout, memory=memory))


def accept(verdict: Verdict) -> Valid:
    """Give a verdict that is valid, and raise the others.

    Raises:
        IsolationError: it is invalid.
        UndecidedError: it is unknown.
    """
    __tracebackhide__ = True
    from isolang.verdict import Unknown, Valid

    if isinstance(verdict, Valid):
        return verdict
    raise UndecidedError(verdict) if isinstance(verdict, Unknown) else IsolationError(verdict)
