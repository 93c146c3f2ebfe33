"""How tests are shared out among workers, and which of them start a database server."""

from __future__ import annotations

import os

import pytest

from isolang.run.servers.server import Server

# Each of these fixtures starts a server for a whole module.
SERVER_FIXTURES = {"embedded", "server"}
_running: list[pytest.Item] = []


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Return two workers more than processors for ``-n auto``, as many tests wait for servers.

    Each worker begins with tests that stand side by side, which share their servers, and takes over
    tests of others when it has done its own.
    """
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # xdist reads it
    config.option.dist = "worksteal"
    return len(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else [0]) + 2


@pytest.hookimpl(tryfirst=True)  # before the tests that `-m` leaves out are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests whose fixtures start a server."""
    for item in items:
        if SERVER_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.server)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> object:
    """Note which test runs, so that a server that it starts is known to be its."""
    _running.append(item)
    try:
        return (yield)
    finally:
        _running.pop()


def _started(self: Server, name: str, user: str = "", *, start=Server.__init__) -> None:
    """Start a server, if the test is marked: ``-m "not server"`` must leave out all that do."""
    if _running and _running[-1].get_closest_marker("server") is None:
        pytest.fail(f"{_running[-1].nodeid} starts a server ({name}): mark it pytest.mark.server")
    start(self, name, user)


Server.__init__ = _started
