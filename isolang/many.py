"""Checks many histories against one specification, with any executor of ``concurrent.futures``."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict, replace

from isolang.errors import HistoryError, IsolangError, WorkerError, internal_error
from isolang.history.history import History
from isolang.limits import default_memory
from isolang.machine import processors
from isolang.options import Options
from isolang.verdict import Verdict

if TYPE_CHECKING:
    from isolang.language.classify.route import Route
    from isolang.language.meaning.core import Spec

AnyHistory: TypeAlias = History | str | os.PathLike[str]

# The number of histories submitted to the executor at a time: enough for a large cluster, and few
# enough to check again if a worker breaks the executor.
_SUBMITTED_AT_A_TIME = 256

# Because an executor can take several milliseconds per task, histories that are quick to check are
# submitted together: as many as can be checked in this many seconds, but at most this number.
_BATCH_LIMITS = 0.05, 16


class Checked(Struct, frozen=True, kw_only=True):
    """The result for one of many histories.

    Attributes:
        number: the position of the history in the iterable, counted from 0.
        history: the path, or the history itself, as passed to :func:`check_many`.
        found: the verdict; ``None`` if the history could not be checked.
        error: the reason why there is no verdict; otherwise ``None``. For example, the history
            cannot be read or checked, or every worker that tried to check it died.
    """

    number: int
    history: AnyHistory
    found: Verdict | None = None
    error: IsolangError | None = None

    @property
    def outcome(self) -> Literal["valid", "invalid", "unknown", "error"]:
        """The outcome of the verdict as a word; ``error`` if there is no verdict."""
        return "error" if self.found is None else self.found.outcome

    @property
    def verdict(self) -> Verdict:
        """The verdict on the history.

        To continue after an unreadable file, check :attr:`outcome` first.

        Raises:
            IsolangError: if there is no verdict.
        """
        if self.found is None:
            assert self.error is not None
            raise self.error
        return self.found


def check_many(
    histories: Iterable[AnyHistory],
    spec: Spec | Route | str | os.PathLike[str],
    *,
    executor: Executor | None = None,
    timeout: float | None = None,
    memory: float | None = None,
    certify: bool = True,
    seed: int = 0,
    threads: int = 1,
) -> Iterator[Checked]:
    """Check many histories, and yield each result as soon as it is known.

    Histories are taken from the iterable as workers become free. If a history is a path, the worker
    reads the file. If an executor breaks because one of its processes died, isolang checks its
    pending histories in new processes. Executors that repair themselves, such as dask's, do not
    break.

    Args:
        histories: results of ``load_history`` or ``History.from_transactions``, or paths.
        spec: a specification in any form accepted by ``check``; its route is chosen only once.
        executor: the executor that runs the checks: a pool of processes or threads, dask's
            ``client.get_executor()``, or any other executor. By default, it is a pool with one
            process per processor, which ends with the iteration.
        timeout: the seconds for each history; ``None`` for no limit.
        memory: the megabytes for each history. The default is a share of the memory of the worker's
            machine.
        certify: whether to have an independent checker verify each witness or refutation.
        seed: the seed of the search; equal seeds give equal runs.
        threads: the number of threads for each history.

    Raises:
        HistoryError: if the argument is a single history.
        SpecError: if the spec is not supported.
        OptionError: if an option is out of bounds.

    >>> from isolang import History, Transaction
    >>> def history(seen):
    ...     return History.from_transactions([
    ...         Transaction([("w", "x", 1)], session="a"),
    ...         Transaction([("r", "x", seen)], session="b"),
    ...     ])
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as threads:
    ...     found = list(check_many([history(1), history(2)], "ser", executor=threads))
    >>> sorted((one.number, one.outcome) for one in found)
    [(0, 'valid'), (1, 'invalid')]
    """
    from isolang.language.classify.route import Route, route
    from isolang.language.load import load_spec

    if isinstance(histories, History | str | os.PathLike):
        got = type(histories).__name__
        raise HistoryError(f"check_many: not a list of histories (got {got})")
    options = Options(timeout=timeout, memory=memory, certify=certify, seed=seed, threads=threads)
    if isinstance(spec, str | os.PathLike):
        spec = load_spec(spec)
    chosen = spec if isinstance(spec, Route) else route(spec)
    task = pickle.dumps((chosen, options))
    own = pickle.dumps((chosen, replace(options, memory=memory or default_memory(processors()))))
    return _results(histories, task, own, executor)


_Judged: TypeAlias = tuple[list["Verdict | IsolangError"], float]
"""A worker's answer: a result for each history, and the seconds for all of them together."""


class _PendingHistory(Struct, frozen=True):
    """A history that has not been checked yet, with its position in the iterable."""

    number: int
    history: AnyHistory

    def failed(self, error: IsolangError) -> Checked:
        return Checked(number=self.number, history=self.history, error=error)


def _results(
    histories: Iterable[AnyHistory], task: bytes, own: bytes, executor: Executor | None
) -> Iterator[Checked]:
    waiting: Iterator[_PendingHistory] = (
        _PendingHistory(number, one) for number, one in enumerate(histories)
    )
    lost: list[_PendingHistory] = []
    if executor is not None:
        yield from _run_with(executor, waiting, task, lost, ahead=_SUBMITTED_AT_A_TIME)
    waiting = chain(lost, waiting)
    while (one := next(waiting, None)) is not None:
        lost = []
        with _pool(processors()) as pool:
            yield from _run_with(pool, chain([one], waiting), own, lost, ahead=4 * processors())
        for one in lost:  # one by one: a check that kills its worker must not stop others
            again: list[_PendingHistory] = []
            with _pool(1) as pool:
                yield from _run_with(pool, iter([one]), own, again, ahead=1)
            for culprit in again:
                name = _name(culprit.history)
                yield culprit.failed(
                    WorkerError(f"{name}: the process that checked this history ended")
                )


def _pool(workers: int) -> Executor:
    """Return a pool of spawned processes; a forked process could inherit locks held by threads."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def _run_with(
    executor: Executor,
    waiting: Iterator[_PendingHistory],
    task: bytes,
    lost: list[_PendingHistory],
    *,
    ahead: int,
) -> Iterator[Checked]:
    """Check histories with an executor, and yield the results.

    If the executor breaks, histories without a result are added to ``lost``.
    """
    there: dict[Future[_Judged], list[_PendingHistory]] = {}
    alone: list[_PendingHistory] = []  # histories of a failed task; any of them may be the cause
    broken = False
    size = 1
    try:
        while True:
            while not broken and len(there) < ahead:
                some = [alone.pop()] if alone else list(islice(waiting, size))
                if not some:
                    break
                try:
                    batch = [one.history for one in some]
                    there[executor.submit(_judge_all, task, batch)] = some
                except BrokenExecutor:
                    broken = True
                    lost += some
            if not there:
                lost += alone
                return
            done, _ = wait(there, return_when=FIRST_COMPLETED)
            for future in done:
                some = there.pop(future)
                try:
                    found, seconds = future.result()
                except BrokenExecutor:
                    broken = True
                    lost += some
                    continue
                except Exception as error:  # the executor itself failed, for example its transport
                    if len(some) > 1:
                        alone += some
                        continue
                    what = f"{type(error).__name__}: {error}"
                    name = _name(some[0].history)
                    found, seconds = [WorkerError(f"{name}: the executor failed ({what})")], 0.0
                enough, most = _BATCH_LIMITS
                size = max(1, min(most, int(enough * len(some) / max(seconds, 1e-9))))
                for one, result in zip(some, found, strict=True):
                    yield (
                        one.failed(result)
                        if isinstance(result, IsolangError)
                        else _with_history(one, result)
                    )
    finally:
        for future in there:
            future.cancel()


def _name(history: AnyHistory) -> str:
    return history.name if isinstance(history, History) else str(history)


def _with_history(one: _PendingHistory, verdict: Verdict) -> Checked:
    """Return a worker's result, with the history that the worker did not send back."""
    if isinstance(one.history, History):
        verdict = replace(verdict, history=one.history)
    return Checked(number=one.number, history=one.history, found=verdict)


# --- in the worker ---


@lru_cache(maxsize=8)
def _task(task: bytes) -> tuple[Route, Options]:
    found: tuple[Route, Options] = pickle.loads(task)
    return found


def _judge_all(task: bytes, histories: list[AnyHistory]) -> _Judged:
    """Check histories, and return their results and the seconds that the checks took."""
    start = time.perf_counter()
    return [_judge(task, one) for one in histories], time.perf_counter() - start


def _judge(task: bytes, history: AnyHistory) -> Verdict | IsolangError:
    """Check one history; return an error as a value, so that other results are not lost."""
    from isolang.api import check, load_history

    route, options = _task(task)
    try:
        loaded = history if isinstance(history, History) else load_history(history)
        verdict = check(loaded, route, **asdict(options))
    except IsolangError as error:
        return error
    except Exception as error:
        return WorkerError(f"{_name(history)}: {internal_error(error)}")
    if isinstance(history, History):
        return replace(verdict, history=History(columns=None, name="", format=""))  # type: ignore[arg-type]
    return verdict
