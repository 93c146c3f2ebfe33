"""How tests are shared out among workers."""

from __future__ import annotations

import os

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Of ``-n auto``: two more workers than processors, as many tests wait for servers.

    Each begins with tests that stand side by side, which share their servers, and takes over of
    others when it has done its own.
    """
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # xdist reads it
    config.option.dist = "worksteal"
    return len(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else [0]) + 2
