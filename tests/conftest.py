"""How tests are shared out among workers, and which of them start a database server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from isolang.run.servers.server import Server

# Each of these fixtures starts a server for a whole module, `mariadb` for the whole run.
SERVER_FIXTURES = {"embedded", "mariadb", "server"}
_running: list[pytest.Item] = []


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Return a few workers more than processors for ``-n auto``.

    Many tests wait for servers, and some for processes. Each worker begins with tests that stand
    side by side, which share their servers, and takes over tests of others when it has done its
    own.
    """
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # xdist reads it
    config.option.dist = "worksteal"
    processors = len(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else [0])
    return processors + (1 if "not server" in config.option.markexpr else 2)


def pytest_configure(config: pytest.Config) -> None:
    """Let each worker begin to collect in another folder: it then reads what others compiled.

    Python and pytest compile the tests of a fresh checkout for ten seconds.
    """
    worker = getattr(config, "workerinput", None)
    if worker and config.args == config.getini("testpaths"):
        paths = sorted(p for p in Path(__file__).parent.iterdir() if p.name != "__pycache__")
        rooms = [str(p) for p in paths if p.is_dir() or p.match("test_*.py")]
        first = len(rooms) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        config.args[:] = rooms[first:] + rooms[:first]


@pytest.hookimpl(tryfirst=True)  # before the tests that `-m` leaves out are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests whose fixtures start a server; all workers have the same order of files."""
    items.sort(key=lambda item: item.path)
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
