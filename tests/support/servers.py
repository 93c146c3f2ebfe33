"""Starts real database servers for tests, or skips a test if no server is installed."""

from __future__ import annotations

from functools import cache

import pytest

from isolang.run.sql import SqlTarget
from isolang.run.target import TargetError
from isolang.run.targets import target_named


def start_target(text, *, keys=(), lists=(), tokens=False, proxied=False, cascading=False):
    """Start a server and return its target, with a row for each key; skip if none is installed."""
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


def require_server(text):
    """Skip the test if no server of this kind is installed; each kind is tried only once."""
    missing = _missing(text)
    if missing:
        pytest.skip(missing)


@cache
def _missing(text):
    """Return why no server of this kind can be started; empty if it can be started."""
    try:
        start_target(text).close()
    except pytest.skip.Exception as skipped:
        return str(skipped)
    return ""


def value_on_server(target, key):
    """Return the value that the server has for a key, read over a new connection."""
    client = target.connect(direct=True)
    try:
        client.begin(target.levels[0].name)
        return client.read(key)
    finally:
        client.rollback()
        client.close()
