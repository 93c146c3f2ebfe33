"""How many processors a process may really use: by its affinity, and by the quota of its groups."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from math import ceil
from pathlib import Path
from typing import Final

_MOST_THREADS: Final = 8  # more would wait for the memory, and for what one has to do


def processors() -> int:
    """How many threads are worth having: one for each processor of this process, up to eight."""
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:  # not every platform has it
        usable = os.cpu_count() or 1
    quota = cpu_quota()
    return min(usable, _MOST_THREADS, usable if quota is None else max(1, ceil(quota)))


@cache
def cpu_quota(root: Path = Path("/")) -> float | None:
    """Processors' worth of time that the control groups of this process allow (Linux).

    A container sees all processors of its host, and is stopped for the rest of each period once its
    share is used up: more threads than that only wait.

    Args:
        root: where ``proc`` and ``sys`` are.

    Returns:
        The least quota of the group and those around it; ``None`` if there is none, or no telling.
    """
    quotas = [quota for group in _groups(root) if (quota := _quota_of(group)) is not None]
    return min(quotas, default=None)


def _groups(root: Path) -> Iterator[Path]:
    """The folders of this process's groups that limit processor time, versions 2 and 1."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except (OSError, UnicodeError):
        return
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        mounted = root / "sys/fs/cgroup"
        if number != "0":
            if "cpu" not in controllers.split(","):
                continue
            mounted /= "cpu"
        # Inside a container the path may be the host's, and is not there: its own group is the top.
        inner = Path(path.lstrip("/"))
        yield from (mounted / group for group in (inner, *inner.parents))


def _quota_of(group: Path) -> float | None:
    try:
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota, period = (
                (group / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period")
            )
        return None if quota in ("max", "-1") else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None
