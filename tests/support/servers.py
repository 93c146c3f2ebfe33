"""Real servers for tests: started by us, or the reason why there is none."""

from __future__ import annotations

from functools import cache

import pytest

from isolang.run.sql import SqlTarget
from isolang.run.target import TargetError
from isolang.run.targets import target_named


def started(text, *, keys=(), lists=(), tokens=False, proxied=False, cascading=False):
    """A target whose server runs, with a row for each key; skips where none is installed."""
    target = target_named(text)
    target.tokens = tokens
    if cascading and isinstance(target, SqlTarget):
        target.options(level=target.levels[0].name, cascading=True)
    if proxied:
        target.proxied = True
    try:
        target.start()
    except TargetError as error:
        target.close()
        if any(reason in str(error) for reason in ("no server is installed", "no driver")):
            pytest.skip(str(error))
        raise
    target.setup(list(keys), list(lists))
    return target


def required(text):
    """Skips where no server is installed; one start for all tests of a process tells."""
    missing = _missing(text)
    if missing:
        pytest.skip(missing)


@cache
def _missing(text):
    """Why no server of this kind starts here, or nothing."""
    try:
        started(text).close()
    except pytest.skip.Exception as skipped:
        return str(skipped)
    return ""


def holds(target, key):
    """What the server holds of a key now, asked over a connection of its own."""
    client = target.connect(direct=True)
    try:
        client.begin(target.levels[0].name)
        return client.read(key)
    finally:
        client.rollback()
        client.close()
