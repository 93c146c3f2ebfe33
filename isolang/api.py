"""The public functions: ``load_history``, ``load_spec``, ``check``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING

from msgspec.structs import replace

from isolang.errors import HistoryError
from isolang.history import History
from isolang.history import load_history as _load_history
from isolang.history.before import texts, with_initial
from isolang.language.classify.route import Route, route
from isolang.language.load import load_spec
from isolang.limits import Deadline, default_memory, memory_cap
from isolang.options import FailedCas, Options, ReadOptions
from isolang.pipeline import decide

if TYPE_CHECKING:
    from isolang.language.meaning.core import Spec
    from isolang.verdict import Verdict

__all__ = ["check", "load_history", "load_spec"]


def load_history(
    path: str | os.PathLike[str] | IO[bytes],
    format: str = "auto",  # noqa: A002 - the word users know from the command line
    *,
    timestamps: bool = False,
    initial: int | None = None,
    initial_value: object = None,
    unwritten_initial: bool = False,
    per_key: bool = False,
    failed_cas: FailedCas = "auto",
    ignore_versions: bool = False,
    clock_error: str = "",
    timeout: float | None = None,
) -> History:
    """Read a history.

    Args:
        path: a file, a directory of logs, ``-`` for the standard input, or a binary stream; gzip,
            xz, bzip2 and zstd are read as they are.
        format: ``auto`` (by content) or a name of docs/formats.md.
        timestamps: Cobra logs have timestamps (the logs themselves do not say so).
        initial: the number of the transaction that is the initial one.
        initial_value: what the keys held before the history begins, instead of nil: one value for
            all of them, or a mapping from keys to values. A list is for keys that hold lists.
        unwritten_initial: what was read and nobody wrote was there before: at most one value of a
            key, the first in its version order. Not together with ``initial_value``.
        per_key: sessions order operations on the same key only; each transaction then has one key.
        failed_cas: of a log of single operations, what a compare-and-set that failed says:
            ``compared``, that it saw another value; ``nothing``; ``auto``, as docs/formats.md has
            it.
        ignore_versions: judge values alone, whatever versions operations state to have read or
            written.
        clock_error: how much two clocks may differ (``2ms``), or each session's be off
            (``a=2ms,b=1ms``); times that are nearer than that order nothing.
        timeout: seconds after which reading stops.

    Returns:
        The history; its attributes say how the input was understood.

    Raises:
        HistoryError: it cannot be read; the message names file and place.
        UnsupportedError: it is well-formed, but of a kind that cannot be judged.
        OptionError: an option is out of bounds.
        TimeoutError: the time is up.

    >>> import io
    >>> history = load_history(io.BytesIO(b'{:type :ok, :process 0, :value [[:w :x 1]]}'), "edn")
    >>> history.counts()["committed"], history.name_of(0)
    (1, 'T1')
    """
    where = Path(path) if isinstance(path, os.PathLike) else path
    reading = ReadOptions(
        format=format,
        timestamps=timestamps,
        initial=initial,
        initial_value=texts(initial_value),
        unwritten_initial=unwritten_initial,
        per_key=per_key,
        failed_cas=failed_cas,
        ignore_versions=ignore_versions,
        clock_error=clock_error,
    )
    return read(where, reading, timeout=Options(timeout=timeout).timeout)


def read(
    path: str | Path | IO[bytes], options: ReadOptions, *, timeout: float | None = None
) -> History:
    """Read a history; see :func:`load_history`."""
    history = _load_history(
        path,
        format=options.format,
        timestamps=options.timestamps,
        initial=options.initial,
        per_key=options.per_key,
        failed_cas=options.failed_cas,
        timeout=timeout,
    )
    history = with_initial(history, options.initial_value, unwritten=options.unwritten_initial)
    if options.ignore_versions:
        history = history.without_versions()
    history = replace(history, options=options.non_default())
    if not options.clock_error:
        return history
    from isolang.history.clock_error import with_clock_error

    return with_clock_error(history, options.clock_error)


def check(
    history: History,
    spec: Spec | Route | str | os.PathLike[str],
    *,
    timeout: float | None = None,
    memory: float | None = None,
    certify: bool = True,
    seed: int = 0,
    solver: str = "auto",
    encoding: str = "auto",
    prune: str = "auto",
    threads: int | None = None,
    simplest: bool = True,
    progress: Callable[[str], object] | None = None,
) -> Verdict:
    """Decide whether a history satisfies a specification.

    Args:
        history: of ``load_history`` or ``History.from_transactions``.
        spec: of ``load_spec``, or what that takes: a level's name, a file, the text itself; or a
            route (``isolang.language.classify.route``), to choose one once for many histories.
        timeout: seconds for all phases together; when they are over, the verdict is unknown.
        memory: megabytes that the check may allocate; beyond, the verdict is unknown (Linux; other
            platforms have no such limit). By default a share of what there is.
        certify: have an independent checker accept the witness or the refutation. What it refuses
            becomes unknown.
        seed: breaks ties in the search; equal seeds give equal runs.
        solver: which back end decides, of docs/encodings.md; ``sat:glucose4`` names one of
            python-sat's. Only specs of the kind *event graph* have a choice.
        encoding: how the problem is put to it.
        prune: what is concluded before: ``none``, ``known`` or ``fixpoint``.
        threads: how many may work on the history; by default as many as there are processors, up to
            eight. The verdict and its proof do not depend on it.
        simplest: look for the simplest violation; where nobody reads it, the first one is there
            sooner.
        progress: called with the name of each phase as it begins.

    Returns:
        ``Valid``, ``Invalid`` or ``Unknown``; see :mod:`isolang.verdict`.

    Raises:
        SpecError: the spec is outside what is supported; the message says why.
        HistoryError: the spec uses real time and the history has none.
        SolverError: there is no such pair, or it is not installed.
        OptionError: an option is out of bounds.

    >>> from isolang import History, Transaction
    >>> history = History.from_transactions([
    ...     Transaction([("r", "x", None), ("w", "x", 1)], session="a"),
    ...     Transaction([("r", "x", None), ("w", "x", 2)], session="b"),
    ... ])
    >>> verdict = check(history, "si")
    >>> verdict.outcome, verdict.violation.anomaly, verdict.certified
    ('invalid', 'lost update', True)
    >>> check(history, load_spec("pl-2")).outcome
    'valid'
    """
    if not isinstance(history, History):
        got = type(history).__name__
        msg = (
            f"check: not a history (got {got}, expected a History); "
            "give what load_history or History.from_transactions returns"
        )
        raise HistoryError(msg)
    options = Options(
        timeout=timeout,
        memory=memory,
        certify=certify,
        seed=seed,
        solver=solver,
        encoding=encoding,
        prune=prune,
        threads=threads,
    )
    deadline = Deadline(options.timeout)
    if isinstance(spec, str | os.PathLike):
        spec = load_spec(spec)
    chosen = spec if isinstance(spec, Route) else route(spec)
    with memory_cap(default_memory() if options.memory is None else options.memory):
        return decide(
            history,
            chosen,
            deadline,
            options,
            progress or (lambda phase: None),
            simplest=simplest,
        )
