"""Finds the number of processors and the memory this process may use, even in a container."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from math import ceil, inf
from pathlib import Path
from typing import Final

_MOST_THREADS: Final = 8  # more threads would only wait for memory and sequential code
_ROOT: Final = Path("/")


def processors() -> int:
    """Return the useful number of threads: one per available processor, but at most eight."""
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:  # some platforms do not have this function
        usable = os.cpu_count() or 1
    quota = cpu_quota()
    return min(usable, _MOST_THREADS, usable if quota is None else max(1, ceil(quota)))


@cache
def cpu_quota(root: Path = _ROOT) -> float | None:
    """Return the number of processors that control groups let this process keep busy (Linux).

    A container sees all processors of its host. But once it has used up its share of a period, the
    kernel stops it for the rest of that period, so additional threads would only wait.

    Returns:
        The smallest quota among this process's control group and the groups that contain it;
        ``None`` if there is no quota or it is unknown.
    """
    quotas = [q for group in _groups(root, "cpu") if (q := _quota_of(group)) is not None]
    return min(quotas, default=None)


@cache
def memory(root: Path = _ROOT) -> tuple[float, str] | None:
    """Return the megabytes that this process may use, and the source of the limit (Linux).

    Returns:
        The lowest known limit, with one of the words ``machine`` (its memory), ``container``, or
        ``process`` (``ulimit -v`` and ``-d``); ``None`` if no limit is known.
    """
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        total = next(line for line in lines if line.startswith("MemTotal:"))
        found = int(total.split()[1]) * 1024 / 1e6
    except (OSError, UnicodeError, ValueError, StopIteration, IndexError):
        return None
    allowed = [m for group in _groups(root, "memory") if (m := _memory_of(group)) is not None]
    whose = {"machine": found, "container": min(allowed, default=found), "process": _own_limit()}
    least = min(whose, key=lambda name: whose[name])
    return whose[least], least


def _own_limit() -> float:
    """Return the memory limit of this process in megabytes; infinity if there is none.

    For data segments, the hard limit counts, because checks set the soft limit themselves.
    """
    try:
        import resource
    except ImportError:  # some platforms do not have this module
        return inf
    limits = resource.getrlimit(resource.RLIMIT_AS)[0], resource.getrlimit(resource.RLIMIT_DATA)[1]
    return min((one / 1e6 for one in limits if one != resource.RLIM_INFINITY), default=inf)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of this process's control groups, of version 2 and of version 1."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except (OSError, UnicodeError):
        return
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        mounted = root / "sys/fs/cgroup"
        if number != "0":
            if controller not in controllers.split(","):
                continue
            mounted /= controller
        # Inside a container, the path may belong to the host and not exist here. Then the topmost
        # folder is the group.
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


def _memory_of(group: Path) -> float | None:
    """Return the memory limit of a control group in megabytes; ``None`` if it has no limit.

    In version 1 of control groups, a huge number means no limit.
    """
    for name in ("memory.max", "memory.limit_in_bytes"):
        try:
            text = (group / name).read_text().strip()
            return None if text == "max" else int(text) / 1e6
        except (OSError, ValueError):
            continue
    return None
