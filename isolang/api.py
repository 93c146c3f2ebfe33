"""Provides the public functions ``load_history``, ``load_spec``, ``check`` and ``levels``."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import IO, TYPE_CHECKING

from isolang.errors import HistoryError
from isolang.history import History
from isolang.history.before import initial_value_texts
from isolang.history.load import read_history
from isolang.language.classify.route import Route, route
from isolang.language.load import load_spec
from isolang.limits import Deadline, default_memory, memory_cap
from isolang.options import (
    Carry,
    FailedCas,
    Options,
    PossibleFacts,
    ReadOptions,
    SupersededReads,
    Unit,
)
from isolang.pipeline.possible import judge

if TYPE_CHECKING:
    from isolang.language.meaning.core import Spec
    from isolang.pipeline.levels import Levels
    from isolang.verdict import Verdict

__all__ = ["check", "levels", "load_history", "load_spec"]


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
    superseded_reads: SupersededReads = "auto",
    unit: Unit = "transaction",
    carry: Carry = "rows",
    possible_facts: PossibleFacts = "auto",
    allow_unseen: Collection[str] = (),
    clock_error: str = "",
    timeout: float | None = None,
) -> History:
    """Read a history from a file, a directory of logs, or a stream.

    Args:
        path: a file, a directory of logs, ``-`` for standard input, or a binary stream. Data
            compressed with gzip, xz, bzip2 or zstd is decompressed.
        format: the name of a format in docs/formats.md; ``auto`` to detect the format from the
            content.
        timestamps: whether Cobra logs have timestamps; the logs themselves do not show it.
        initial: the number of the initial transaction; ``None`` if there is none.
        initial_value: the value of keys before the history begins, if not nil: one value for all
            keys, or a mapping from keys to values. The value of a list key is a list.
        unwritten_initial: whether a value that was read but never written is the initial value of
            its key. A key can have at most one such value, which comes first in its version order.
            This option cannot be combined with ``initial_value``.
        per_key: whether a session orders only operations on the same key. If so, each transaction
            must have a single key.
        failed_cas: for a log of single operations, the meaning of a failed compare-and-set:
            ``compared`` if it saw a different value, ``nothing`` if the value it saw is unknown, or
            ``auto`` to apply the rule in docs/formats.md.
        ignore_versions: whether to use only values, and ignore the versions stated by operations.
        superseded_reads: what to do with a read whose transaction read the row again under a lock,
            with another result (docs/formats.md): ``ignore`` it; ``count`` it like any other; or
            ``auto``, so that ``check`` answers *unknown* if the verdict depends on it.
        unit: ``request`` to ask about requests: a transaction that writes has the reads that its
            request made before, in other transactions (docs/language.md). Transactions as such are
            judged with ``transaction``.
        carry: with ``unit="request"``, ``rows`` for the reads of the rows that the transaction
            writes, and ``all`` for those of other rows, too.
        possible_facts: what to do with facts that only may have decided an answer (``:perhaps``,
            docs/formats.md): ``ignore`` them; ``count`` them like all others; or ``auto``, so that
            ``check`` accuses without them and acquits with them.
        allow_unseen: the kinds of operations that a recording may lack (``;:unseen``,
            docs/formats.md) although the verdict is valid.
        clock_error: how far apart two clocks may be (``2ms``), or how wrong each session's clock
            may be (``a=2ms,b=1ms``). Events closer together than this are not ordered by time.
        timeout: the number of seconds after which reading stops with an error; ``None`` for no
            limit.

    Returns:
        The history; its attributes describe how the input was interpreted.

    Raises:
        HistoryError: if the history cannot be read. The message names the file and the position.
        UnsupportedError: if the history is well-formed, but isolang cannot judge this kind of
            history.
        OptionError: if an option is out of bounds.
        TimeoutError: if reading took longer than the timeout.

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
        initial_value=initial_value_texts(initial_value),
        unwritten_initial=unwritten_initial,
        per_key=per_key,
        failed_cas=failed_cas,
        ignore_versions=ignore_versions,
        superseded_reads=superseded_reads,
        unit=unit,
        carry=carry,
        possible_facts=possible_facts,
        allow_unseen=tuple(allow_unseen),
        clock_error=clock_error,
    )
    return read_history(where, reading, timeout=Options(timeout=timeout).timeout)


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
        history: a result of ``load_history`` or ``History.from_transactions``.
        spec: the specification: the name of a level, the path of a ``.iso`` file, or its text, as
            for ``load_spec``; or a result of ``load_spec``. To check many histories, pass a route
            from ``isolang.language.classify.route``, so that it is chosen only once.
        timeout: the number of seconds for all phases together, after which the verdict is unknown;
            ``None`` for no limit.
        memory: the number of megabytes that the check may allocate. If it needs more, the verdict
            is unknown. The default is a share of the available memory. Only Linux enforces this
            limit.
        certify: whether to have an independent checker verify the witness or the refutation. If it
            rejects the proof, the verdict is unknown.
        seed: the number used to break ties in the search. Equal seeds give equal runs.
        solver: the solver that decides, by its name in docs/encodings.md. For example,
            ``sat:glucose4`` is a python-sat solver. Only specifications with the route *event
            graph* allow a choice.
        encoding: the encoding of the problem for this solver, by its name in docs/encodings.md.
        prune: the choices to decide before the search: ``none``; ``known`` for choices decided by
            the history itself; or ``fixpoint`` for all choices that pruning can decide.
        threads: the number of threads that work on the history. The default is one per processor,
            but at most eight. The verdict and its proof do not depend on this number.
        simplest: whether to search for the simplest violation. Without this search, the check is
            faster and reports the first violation found.
        progress: a function called with the name of each phase when it begins; ``None`` for no
            calls.

    Returns:
        ``Valid``, ``Invalid`` or ``Unknown``; see :mod:`isolang.verdict`.

    Raises:
        SpecError: if the spec is not supported; the message says why.
        HistoryError: if the spec uses real time but the history has no times.
        SolverError: if the encoding or the solver does not exist or is not installed, or if the two
            do not work together.
        OptionError: if an option is out of bounds.

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
    _require_history("check", history)
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
        return judge(
            history,
            chosen,
            deadline,
            options,
            progress or (lambda phase: None),
            simplest=simplest,
        )


def levels(
    history: History,
    *,
    timeout: float | None = None,
    memory: float | None = None,
    certify: bool = True,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[str], object] | None = None,
) -> Levels:
    """Find the strongest library levels that a history satisfies, and the weakest it violates.

    A level is checked only if no other verdict decides it: a history that satisfies a level
    satisfies all weaker ones, and one that violates a level violates all stronger ones.

    Args:
        history: a result of ``load_history`` or ``History.from_transactions``.
        timeout: the number of seconds for each level, after which its verdict is unknown; ``None``
            for no limit.
        memory: the number of megabytes that all checks together may allocate, as for ``check``.
        certify: whether to have an independent checker verify each verdict.
        seed: the number used to break ties in the search. Equal seeds give equal runs.
        threads: the number of threads that work on the history, as for ``check``.
        progress: a function called with the name of each level and each phase when it begins;
            ``None`` for no calls.

    Returns:
        The verdict of each level: ``strongest()`` and ``weakest_violated()`` name the levels at the
        border, and ``levels[name]`` has a level's verdict with its anomaly or reason.

    Raises:
        HistoryError: if the argument is not a history, or its columns are inconsistent.
        UnsupportedError: if no level can judge the history.
        MemoryError: if the memory limit was reached.
        OptionError: if an option is out of bounds.

    >>> from isolang import History, Transaction
    >>> found = levels(History.from_transactions([
    ...     Transaction([("r", "x", None), ("w", "y", 1)], session="a"),
    ...     Transaction([("r", "y", None), ("w", "x", 1)], session="b"),
    ... ]))
    >>> found.strongest(), found.weakest_violated()
    (('si',), ('pl-3',))
    >>> found.levels["ser"].standing, found.levels["ser"].anomaly
    ('violated', 'write skew')
    """
    from isolang.pipeline.levels import levels_of

    _require_history("levels", history)
    options = Options(timeout=timeout, memory=memory, certify=certify, seed=seed, threads=threads)
    with memory_cap(default_memory() if options.memory is None else options.memory):
        return levels_of(history, options, progress=progress or (lambda phase: None))


def _require_history(function: str, history: object) -> None:
    if not isinstance(history, History):
        got = type(history).__name__
        msg = (
            f"{function}: not a history (got {got}, expected a History); pass a "
            "history from load_history or History.from_transactions"
        )
        raise HistoryError(msg)
