"""Checks a specification's examples: histories that it must allow or forbid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

if TYPE_CHECKING:
    from isolang.language.meaning.core import Check, Spec


def broken_examples(spec: Spec) -> Iterator[str]:
    """Yield an error message for each example whose verdict is not the stated one."""
    from isolang.api import check
    from isolang.errors import IsolangError
    from isolang.history.notation import read_line
    from isolang.language.syntax.source import message_at
    from isolang.verdict import Invalid, Unknown, Valid

    for example in spec.examples:
        context = ""
        try:
            verdict = check(read_line(example.history), spec, timeout=10)
        except IsolangError as error:
            what = f"cannot judge this history: {error}"
        else:
            if verdict.outcome == ("valid" if example.allows else "invalid"):
                continue
            match verdict:
                case Valid():
                    what = "this history is allowed"
                case Invalid():
                    what = "this history is forbidden"
                    name, why = verdict.violation.check, verdict.violation.headline()
                    context = f"{name}: {why}" if name else why
                case Unknown():
                    what = f"whether this history is allowed is unknown: {verdict.reason}"
                case _:
                    assert_never(verdict)
        yield message_at(example.pos, spec.texts, what, context=context)


def fails_in_an_example(spec: Spec, check: Check) -> bool:
    """Return whether any forbidden example violates a check.

    An example counts if it violates the check by itself, or if it satisfies all other checks
    together and only this check makes it invalid.
    """
    from isolang.api import check as judge
    from isolang.errors import IsolangError
    from isolang.history.notation import read_line

    others = tuple(one for one in spec.checks if one is not check and not one.flag)

    def outcome(history: str, *checks: Check) -> str:
        try:
            return judge(
                read_line(history), replace(spec, checks=checks, shows=()), timeout=10
            ).outcome
        except IsolangError:
            return "unknown"

    for example in spec.examples:
        if not example.allows and outcome(example.history, check) == "invalid":
            return True
        if example.allows or not others or outcome(example.history, *others) != "valid":
            continue
        if outcome(example.history, *others, check) == "invalid":
            return True
    return False
