"""Distributes a command's work to the workers of a dask cluster, and survives their failures.

The work is a list of independent tasks; their results are used in list order. If a worker dies,
dask gives its task to another worker. If workers die during a task several times, if no worker is
left, or if the scheduler itself is lost, the task runs in this process instead.
"""

from __future__ import annotations

import base64
import logging
import os
import pickle
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, Self, TypeVar

from msgspec.structs import replace

from isolang.errors import IsolangError, OptionError, WorkerError
from isolang.jobs.child import Children, Send
from isolang.jobs.job import Job
from isolang.machine import processors
from isolang.release import signature

if TYPE_CHECKING:
    from isolang.options import Options
    from isolang.output.records import Report

_T = TypeVar("_T")
_P = ParamSpec("_P")

_MAX_PENDING: Final = 256  # the maximum number of tasks on the cluster at the same time
_COUNT_INTERVAL_S: Final = 1.0  # the workers are counted again after this many seconds
_NO_WORKER_LIMIT_S: Final = (
    60.0  # after this many seconds without workers, this process does the work itself
)
_WORKER_CHECK_S: Final = 5.0  # seconds between two checks for workers while a task waits
_CONNECT_TIMEOUT_S: Final = 10.0  # the time limit in seconds for connecting to a scheduler


class Workers:
    """The workers of a cluster, with the interface of an executor of :mod:`concurrent.futures`."""

    def __init__(self, url: str) -> None:
        """Connect to the cluster.

        Raises:
            OptionError: dask is not installed, or the scheduler cannot be reached.
        """
        try:
            import distributed
        except ImportError:
            raise OptionError(
                "--workers: dask's distributed is not installed; hint: pip install 'isolang[dask]'"
            ) from None
        expected = "expected the address of one, such as tcp://HOST:8786"
        if not re.fullmatch(r"((tcp|tls|ws|wss)://)?[^/\s]+:\d+", url):
            raise OptionError(f"--workers: not a scheduler (got {url}, {expected})")
        # Silence the library: it would report lost workers and schedulers on stderr, although this
        # class handles them.
        for name in ("distributed", "distributed.client", "distributed.core", "distributed.comm"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        try:
            client: Any = distributed.Client
            self._client = client(url, timeout=_CONNECT_TIMEOUT_S, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            reason = str(error).strip().splitlines()[0] or type(error).__name__
            raise OptionError(
                f"--workers {url}: no scheduler answers ({reason}); {expected}"
            ) from None
        self._lost = False
        self._seen, self._counted_at, self._count = time.monotonic(), -_COUNT_INTERVAL_S, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Disconnect from the cluster, which drops the tasks that have not begun."""
        self._client.close(timeout=1)

    def workers_phrase(self) -> str:
        """Return a phrase with the number of connected workers, for a progress bar."""
        now = time.monotonic()
        if now >= self._counted_at + _COUNT_INTERVAL_S:
            self._counted_at = now
            try:
                self._count = len(self._client.nthreads())
            except Exception:  # any network error
                self._count = 0
            if self._count:
                self._seen = now
        return f"{self._count:,} workers" if self._count else "waiting for a worker"

    def has_no_worker(self) -> bool:
        """Return whether no worker has been connected for ``_NO_WORKER_LIMIT_S`` seconds."""
        self.workers_phrase()
        return self._counted_at - self._seen > _NO_WORKER_LIMIT_S

    def submit(self, work: Callable[_P, _T], /, *args: _P.args, **named: _P.kwargs) -> Result[_T]:
        """Give a task to the cluster, and return its future result."""
        future = None
        if not self._lost:
            try:
                future = self._client.submit(
                    _call_at_worker, signature("isolang"), work, args, named, pure=False
                )
            except Exception:  # any network error
                self._lost = True
        return Result(future, lambda: work(*args, **named), self)

    def submit_in_folder(
        self, work: Callable[_P, _T], /, *args: _P.args, **named: _P.kwargs
    ) -> Result[_T]:
        """Give the cluster a task that reads or writes files in the current folder."""
        return self.submit(call_in_child, partial(work, **named), os.getcwd(), *args)

    def in_order(self, work: Callable[..., _T], tasks: Iterable[tuple[Any, ...]]) -> Iterator[_T]:
        """Yield the result of a function for each tuple of arguments, in the same order."""
        there: deque[Result[_T]] = deque()
        for arguments in tasks:
            there.append(self.submit(work, *arguments))
            if len(there) >= _MAX_PENDING:
                yield there.popleft().result()
        while there:
            yield there.popleft().result()


class Result(Generic[_T]):
    """The future result of a task."""

    def __init__(self, future: Any, here: Callable[[], _T], workers: Workers) -> None:
        """Store a task and its future result."""
        self._future, self._here, self._workers = future, here, workers

    def result(self) -> _T:
        """Wait for the result, and return it; if the cluster fails, run the task in this process.

        Raises:
            IsolangError: the task raised this error.
        """
        if self._future is None:
            return self._here()
        try:
            while not self._future.done():
                try:
                    self._future.result(timeout=_WORKER_CHECK_S)
                except TimeoutError:
                    if self._workers.has_no_worker():
                        return self._here()
            found: _T = self._future.result()
            return found
        except IsolangError:
            raise
        except Exception:  # KilledWorker, CancelledError, or a network error
            return self._here()
        finally:
            self._future = None


def check_in_child(job: Job, folder: str) -> list[Report]:
    """Run a job in a child process with limits, and return its reports."""
    from isolang.jobs.pool import run_in_child

    job = replace(
        job, options=with_thread_share(job.options), parallel=max(job.parallel, tasks_at_a_time())
    )
    return run_in_child(Children(require_folder(folder)), job, lambda phase: None)


def call_in_child(work: Callable[..., _T], folder: str, *args: Any) -> _T:
    """Call a function in its own child process, and return the result.

    Raises:
        IsolangError: the function raised this error, or the child ended without a result.
    """
    found: list[Any] = []

    def receive(kind: str, content: Any) -> None:
        found.append(pickle.loads(base64.b64decode(content)))

    ended = Children(require_folder(folder)).run(f"{__name__}:_in_child", (work, args), receive)
    if not found:
        why = "it ran out of memory" if ended.lacked_memory else ended.last_line
        raise WorkerError(f"the worker process ended with {ended.status}: {why}")
    if isinstance(found[0], IsolangError):
        raise found[0]
    result: _T = found[0]
    return result


def with_thread_share(options: Options) -> Options:
    """Return the options, with as many threads as this task's share of the worker's processors."""
    if options.threads is not None or tasks_at_a_time() == 1:
        return options
    return replace(options, threads=max(1, processors() // tasks_at_a_time()))


def tasks_at_a_time() -> int:
    """Return how many tasks this worker runs simultaneously; 1 outside a worker."""
    try:
        from distributed import get_worker

        return int(get_worker().state.nthreads)
    except (ImportError, ValueError):
        return 1


def require_folder(folder: str) -> str:
    """Return a folder, after checking that it exists on this machine.

    Raises:
        WorkerError: the folder does not exist.
    """
    if not os.path.isdir(folder):
        raise WorkerError(
            f"a worker has no folder {folder}; hint: all workers need the same "
            "files under the same paths, for example on a shared volume"
        )
    return folder


def _call_at_worker(expected: str, work: Callable[..., _T], args: Any, named: Any) -> _T:
    """Run a task in this worker if it has the client's version of isolang."""
    found = signature("isolang")
    if found != expected:
        raise WorkerError(f"a worker runs another version (got {found}, expected {expected})")
    return work(*args, **named)


def _in_child(task: tuple[Callable[..., Any], tuple[Any, ...]], send: Send) -> None:
    work, args = task
    try:
        result = work(*args)
    except IsolangError as error:
        result = error
    send("result", base64.b64encode(pickle.dumps(result)).decode("ascii"))
