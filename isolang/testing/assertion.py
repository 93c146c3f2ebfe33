"""Provides ``assert_level``, which tests use to assert that a history satisfies a level."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isolang.explain.harm import Harm
    from isolang.explain.violation import ViolationGroups
    from isolang.history.history import History
    from isolang.language.classify.route import Route
    from isolang.language.meaning.core import Spec
    from isolang.verdict import Invalid, Unknown, Valid, Verdict


class IsolationError(AssertionError):
    """Raised when a history does not satisfy a level; the message contains the full explanation.

    Attributes:
        verdict: the verdict on the history, which is invalid or unknown.
        harm: the harm of the violation, if the test's calls could be made again.
    """

    def __init__(
        self,
        verdict: Invalid | Unknown,
        groups: ViolationGroups | None = None,
        harm: Harm | None = None,
    ) -> None:
        from isolang.output.text import text_of

        super().__init__(text_of(verdict, groups, harm))
        self.verdict, self.harm = verdict, harm

    def __reduce__(self) -> tuple[type[AssertionError], tuple[str]]:
        return AssertionError, (str(self),)  # another process needs only the message


class UndecidedError(IsolationError):
    """Raised when a check cannot decide whether the history satisfies the asserted level."""


def assert_level(
    history: History | str | os.PathLike[str],
    level: Spec | Route | str | os.PathLike[str],
    *,
    timeout: float | None = None,
    memory: float | None = None,
) -> Valid:
    """Check that a history satisfies a level, and raise an error if it does not.

    Args:
        history: the history, or the path of its file.
        level: the level, in any form accepted by :func:`isolang.check`.
        timeout: the number of seconds after which the verdict is unknown; ``None`` means no limit.
        memory: the memory limit in megabytes; ``None`` for the default limit.

    Returns:
        The valid verdict, with its witness.

    Raises:
        IsolationError: the history is invalid.
        UndecidedError: the verdict is unknown.

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
    verdict = check(history, level, timeout=timeout, memory=memory)
    return require_valid(*with_harmful_first(verdict, timeout))


def with_harmful_first(
    verdict: Verdict, timeout: float | None
) -> tuple[Verdict, ViolationGroups | None]:
    """Return the verdict with its most harmful violation, and all violations in groups.

    The verdict stays as it is, without groups, unless it is invalid and the history records which
    statements the application ran.
    """
    from isolang.language.classify.route import route
    from isolang.options import Options
    from isolang.pipeline.groups import with_groups
    from isolang.verdict import Invalid

    if not isinstance(verdict, Invalid) or not verdict.history.remarks():
        return verdict, None
    return with_groups(verdict, route(verdict.spec), Options(timeout=timeout))


def require_valid(
    verdict: Verdict, groups: ViolationGroups | None = None, harm: Harm | None = None
) -> Valid:
    """Return the verdict if it is valid, and raise an error if it is not.

    Args:
        verdict: the verdict.
        groups: the violations to name in the error's message.
        harm: the harm to name there.

    Raises:
        IsolationError: the verdict is invalid.
        UndecidedError: the verdict is unknown.
    """
    __tracebackhide__ = True
    from isolang.verdict import Unknown, Valid

    if isinstance(verdict, Valid):
        return verdict
    if isinstance(verdict, Unknown):
        raise UndecidedError(verdict)
    raise IsolationError(verdict, groups, harm)
