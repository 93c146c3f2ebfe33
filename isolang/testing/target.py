"""Provides ``check_target``, which runs the self-test in the tests of adapter authors."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isolang.run.play.selftest import AdapterCheck


def check_target(
    target: str, level: str = "", *, prefix: str = "isocheck_"
) -> tuple[AdapterCheck, ...]:
    """Check that an adapter records correct histories.

    ``isocheck run TARGET --selftest`` does the same on the command line.

    Args:
        target: the target, as for ``isocheck run``: ``"my_adapter.py:MyDatabase"``, or a URL.
        level: the isolation level to test the adapter at; if empty, every level.
        prefix: the prefix of the created tables' names.

    Returns:
        The result of each check, none of which failed.

    Raises:
        AssertionError: a check failed; the message lists all failed checks.
        TargetError: the database cannot be reached, or does not have the level.

    >>> found = check_target("memory", "serializable")
    >>> {one.outcome for one in found} <= {"passed", "not played"}
    True
    """
    __tracebackhide__ = True
    from isolang.run.play.selftest import LISTS, selftest
    from isolang.run.sql import SqlTarget
    from isolang.run.targets import level_named, target_named

    levels = target_named(target, prefix=prefix).levels
    found: list[AdapterCheck] = []
    failed = []
    for name in [level] if level else [one.name for one in levels]:
        made = target_named(target, prefix=prefix)
        chosen = level_named(made, name)
        made.lists = frozenset(LISTS)
        if isinstance(made, SqlTarget):
            made.options(level=chosen.name)
        try:
            made.start()
            checks = selftest(made, chosen)
        finally:
            made.close()
        found += checks
        failed += [
            f"{chosen.name}: {one.name}: {one.why}" for one in checks if one.outcome == "failed"
        ]
    if failed:
        raise AssertionError("\n".join([f"{target}: the adapter fails its self-test", *failed]))
    return tuple(found)
