"""Many histories of one level, over the workers of any executor of ``concurrent.futures``."""

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

if TYPE_CHECKING:
    from isolang.language.classify.route import Route
    from isolang.language.meaning.core import Spec
    from isolang.verdict import Verdict

Given: TypeAlias = History | str | os.PathLike[str]

# How many histories are with the executor at a time: enough for a large cluster, and little to lose
# where a worker takes the others with it.
_AHEAD = 256

# Handing a history over costs an executor up to several milliseconds. Quick ones are handed over
# together: as many as take this long (seconds), and no more than this.
_TOGETHER = 0.05, 16


class Checked(Struct, frozen=True, kw_only=True):
    """What became of one of many histories.

    Attributes:
        number: its place among those given, from 0.
        history: as given: a path, or the history itself.
        error: why there is no verdict: the history cannot be read or judged, or it ended each
            worker that had it; ``None`` if there is a verdict.
    """

    number: int
    history: Given
    found: Verdict | None = None
    error: IsolangError | None = None

    @property
    def outcome(self) -> Literal["valid", "invalid", "unknown", "error"]:
        """The verdict in a word; ``error`` where there is none."""
        return "error" if self.found is None else self.found.outcome

    @property
    def verdict(self) -> Verdict:
        """The verdict; :attr:`outcome` is for loops, which one bad file should not end.

        Raises:
            IsolangError: there is none.
        """
        if self.found is None:
            assert self.error is not None
            raise self.error
        return self.found


def check_many(
    histories: Iterable[Given],
    spec: Spec | Route | str | os.PathLike[str],
    *,
    executor: Executor | None = None,
    timeout: float | None = None,
    memory: float | None = None,
    certify: bool = True,
    seed: int = 0,
    threads: int = 1,
) -> Iterator[Checked]:
    """Check many histories, and give each result as soon as it is there.

    Histories are taken from the iterable as workers become free. Paths are opened where the worker
    is. Where an executor breaks, because one of its processes was ended, what it had is judged in
    processes of our own; executors that repair themselves (dask's) do that alone.

    Args:
        histories: each of ``load_history`` or ``History.from_transactions``, or a path.
        spec: as ``check`` takes it; routed once.
        executor: where to check: a pool of processes or threads, dask's ``client.get_executor()``,
            or any other; by default a pool of one process for each processor, which lives as long
            as the iteration.
        timeout: seconds for each history.
        memory: megabytes for each history; by default a share of what the worker's machine has.
        certify: have an independent checker accept each witness or refutation.
        seed: breaks ties in the search; equal seeds give equal runs.
        threads: how many may work on one history.

    Raises:
        HistoryError: one history is given instead of several.
        SpecError: the spec is outside what is supported.
        OptionError: an option is out of bounds.

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
        raise HistoryError(
            f"check_many: not several histories (got {got}, expected a list of them)"
        )
    options = Options(timeout=timeout, memory=memory, certify=certify, seed=seed, threads=threads)
    if isinstance(spec, str | os.PathLike):
        spec = load_spec(spec)
    chosen = spec if isinstance(spec, Route) else route(spec)
    task = pickle.dumps((chosen, options))
    own = pickle.dumps((chosen, replace(options, memory=memory or default_memory(processors()))))
    return _results(histories, task, own, executor)


_Judged: TypeAlias = tuple[list["Verdict | IsolangError"], float]
"""What a worker gives: a result for each history, and the seconds that it took."""


class _Waiting(Struct, frozen=True):
    """A history that is to be judged."""

    number: int
    history: Given

    def failed(self, error: IsolangError) -> Checked:
        return Checked(number=self.number, history=self.history, error=error)


def _results(
    histories: Iterable[Given], task: bytes, own: bytes, executor: Executor | None
) -> Iterator[Checked]:
    left: Iterator[_Waiting] = (_Waiting(number, given) for number, given in enumerate(histories))
    lost: list[_Waiting] = []
    if executor is not None:
        yield from _with(executor, left, task, lost, ahead=_AHEAD)
    left = chain(lost, left)
    while (one := next(left, None)) is not None:
        lost = []
        with _pool(processors()) as pool:
            yield from _with(pool, chain([one], left), own, lost, ahead=4 * processors())
        for one in lost:  # alone, whoever ended the pool ends nobody else
            again: list[_Waiting] = []
            with _pool(1) as pool:
                yield from _with(pool, iter([one]), own, again, ahead=1)
            for culprit in again:
                name = _name(culprit.history)
                yield culprit.failed(WorkerError(f"{name}: the process that judged it was ended"))


def _pool(workers: int) -> Executor:
    """Processes that share nothing with this one, whose threads may hold locks."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def _with(
    executor: Executor, left: Iterator[_Waiting], task: bytes, lost: list[_Waiting], *, ahead: int
) -> Iterator[Checked]:
    """The results of an executor, until all is done or it is broken; adds what it lost."""
    there: dict[Future[_Judged], list[_Waiting]] = {}
    alone: list[_Waiting] = []  # of those handed over together and lost, one may be to blame
    broken = False
    size = 1
    try:
        while True:
            while not broken and len(there) < ahead:
                some = [alone.pop()] if alone else list(islice(left, size))
                if not some:
                    break
                try:
                    given = [one.history for one in some]
                    there[executor.submit(_judge_all, task, given)] = some
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
                except Exception as error:  # of the executor's own: its transport, its scheduler
                    if len(some) > 1:
                        alone += some
                        continue
                    what = f"{type(error).__name__}: {error}"
                    name = _name(some[0].history)
                    found, seconds = [WorkerError(f"{name}: the executor failed ({what})")], 0.0
                enough, most = _TOGETHER
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


def _name(history: Given) -> str:
    return history.name if isinstance(history, History) else str(history)


def _with_history(one: _Waiting, verdict: Verdict) -> Checked:
    """Give a verdict on an object that object back, which did not travel."""
    if isinstance(one.history, History):
        verdict = replace(verdict, history=one.history)
    return Checked(number=one.number, history=one.history, found=verdict)


# --- in the worker ---


@lru_cache(maxsize=8)
def _task(task: bytes) -> tuple[Route, Options]:
    found: tuple[Route, Options] = pickle.loads(task)
    return found


def _judge_all(task: bytes, histories: list[Given]) -> _Judged:
    """Judge some histories; and how long that took."""
    start = time.perf_counter()
    return [_judge(task, one) for one in histories], time.perf_counter() - start


def _judge(task: bytes, history: Given) -> Verdict | IsolangError:
    """Judge one history; what cannot be judged is a value, so that no other is lost."""
    from isolang.api import check, load_history

    route, options = _task(task)
    try:
        given = history if isinstance(history, History) else load_history(history)
        verdict = check(given, route, **asdict(options))
    except IsolangError as error:
        return error
    except Exception as error:
        return WorkerError(f"{_name(history)}: {internal_error(error)}")
    if isinstance(history, History):
        return replace(verdict, history=History(columns=None, name="", format=""))  # type: ignore[arg-type]
    return verdict
