"""What a process may really use of its machine: processors and memory, also in a container."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from math import ceil, inf
from pathlib import Path
from typing import Final

_MOST_THREADS: Final = 8  # more would wait for the memory, and for what one has to do
_ROOT: Final = Path("/")


def processors() -> int:
    """How many threads are worth having: one for each processor of this process, up to eight."""
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:  # not every platform has it
        usable = os.cpu_count() or 1
    quota = cpu_quota()
    return min(usable, _MOST_THREADS, usable if quota is None else max(1, ceil(quota)))


@cache
def cpu_quota(root: Path = _ROOT) -> float | None:
    """Processors' worth of time that the control groups of this process allow (Linux).

    A container sees all processors of its host, and is stopped for the rest of each period once its
    share is used up: more threads than that only wait.

    Args:
        root: where ``proc`` and ``sys`` are.

    Returns:
        The least quota of the group and those around it; ``None`` if there is none, or no telling.
    """
    quotas = [q for group in _groups(root, "cpu") if (q := _quota_of(group)) is not None]
    return min(quotas, default=None)


@cache
def memory(root: Path = _ROOT) -> tuple[float, str] | None:
    """How many megabytes this process may come to have, and whose they are (Linux).

    Args:
        root: where ``proc`` and ``sys`` are.

    Returns:
        The memory of the machine, or what the control groups or the process's own limits
        (``ulimit -v`` and ``-d``) allow if that is less; ``None`` if there is no telling.
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
    """The megabytes that this process may have by its own limits; infinite without one.

    Of its data the hard limit counts, as checks set the soft one for themselves.
    """
    try:
        import resource
    except ImportError:  # not every platform has it
        return inf
    limits = resource.getrlimit(resource.RLIMIT_AS)[0], resource.getrlimit(resource.RLIMIT_DATA)[1]
    return min((one / 1e6 for one in limits if one != resource.RLIM_INFINITY), default=inf)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of this process's groups that a controller limits, versions 2 and 1."""
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


def _memory_of(group: Path) -> float | None:
    """Megabytes; version 1 says *no limit* as a number that no machine has."""
    for name in ("memory.max", "memory.limit_in_bytes"):
        try:
            said = (group / name).read_text().strip()
            return None if said == "max" else int(said) / 1e6
        except (OSError, ValueError):
            continue
    return None
