"""Reads the operations of a log of Jepsen, Knossos or Porcupine, for any model."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

from msgspec import Struct

from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.edn import Elements
from isolang.history.readers.reading import quantity
from isolang.history.readers.workloads.operations import PairedOperation, pair_operations
from isolang.history.sources import read_source
from isolang.history.values import UNKNOWN, Keyword, preview
from isolang.models.operation import Operation
from isolang.options import FailedCas, ReadOptions
from isolang.patterns import pattern

_LINE: Final = pattern(rb"INFO\s+jepsen\.util\s+-\s+(\S+)\s+(:\S+)\s+(:\S+)\s*(.*)")
_LOG: Final = pattern(rb"\s*INFO\s+jepsen\.util\s+-\s")
_COMPARISONS: Final = frozenset(
    ("cas-failed", "compare-failed", "did-not-match", "did-not-succeed", "precondition-failed",
     "value-mismatch")
)  # fmt: skip
"""The errors that say that an operation ran, and that its comparison failed."""
_COMPARING: Final = frozenset(("cas", "acquire", "release"))


class OperationLog(Struct, frozen=True, kw_only=True):
    """The operations of a log.

    Attributes:
        operations: the operations that took effect, or may have.
        ignored: a phrase for each kind of record that says nothing about the object.
        notes: remarks on how the log was read.
    """

    name: str
    operations: tuple[Operation, ...]
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def load_operations(
    path: str | os.PathLike[str] | IO[bytes],
    *,
    independent: bool = False,
    failed_cas: FailedCas = "auto",
    timeout: float | None = None,
) -> tuple[Operation, ...]:
    """Read the operations of a log, for ``isolang.linearize``.

    The log is a file of Jepsen's or Knossos's operation maps, in EDN or JSON, or the lines that
    Jepsen logs. An operation that failed (``:fail``) took no effect, and is left out; one that
    ended with ``:info``, or never, may take effect at any time after its call.

    Args:
        path: a file, ``-`` for standard input, or a binary stream. Data compressed with gzip, xz,
            bzip2 or zstd is decompressed.
        independent: whether each value is a pair of an object's key and the value itself, as
            ``jepsen.independent`` writes it. A ``:key`` in a map always names the object.
        failed_cas: the meaning of a failed ``:cas``, ``:acquire`` or ``:release``, as for
            ``isolang.load_history``: if its comparison failed, it is an operation that returned
            ``False``.
        timeout: the number of seconds after which reading stops with an error; ``None`` for no
            limit.

    Raises:
        HistoryError: the log cannot be read, or has no invocations.
        TimeoutError: reading took longer than the timeout.

    >>> import io
    >>> from isolang import load_operations
    >>> log = b'''{:process 0, :type :invoke, :f :enqueue, :value 1}
    ... {:process 0, :type :ok, :f :enqueue, :value 1}'''
    >>> str(load_operations(io.BytesIO(log))[0])
    'enqueue 1 (line 1, process 0)'
    """
    where = Path(path) if isinstance(path, os.PathLike) else path
    options = ReadOptions(failed_cas=failed_cas)
    return read_log(
        where, independent=independent, failed_cas=options.failed_cas, timeout=timeout
    ).operations


def read_log(
    path: str | Path | IO[bytes],
    *,
    independent: bool,
    failed_cas: FailedCas,
    timeout: float | None,
) -> OperationLog:
    """Read the operations of a log, with remarks; see :func:`load_operations`."""
    source = read_source(path)
    if source.is_directory:
        raise HistoryError(f"{source.name}: a folder (expected a file with operations)")
    ((name, data),) = source.files
    is_log = _LOG.match(data) is not None
    other_lines = 0
    if is_log:
        data, other_lines = _maps_of_lines(data)
    paired = pair_operations(data, name, timeout=timeout or 0.0)
    if paired.done and not paired.timed:
        msg = f"{name}: no :invoke, so it is not known when operations began"
        raise HistoryError(f"{msg}; hint: keep the invocations in the log")
    compared = failed_cas == "compared" or (failed_cas == "auto" and is_log)
    operations, failed = [], 0
    names = paired.session_names
    for done in paired.done:
        if independent:
            _split(done, name)
        result = _result(done, compared=compared, nothing=failed_cas == "nothing")
        if done.status == c.ABORTED and result is None:
            failed += 1
            continue
        operations.append(
            Operation(
                done.function, plain(done.invoked), UNKNOWN if result is None else result[0],
                start=-math.inf if done.begin == c.UNKNOWN_BEGIN else done.begin,
                end=math.inf if done.end == c.UNKNOWN_END else done.end,
                process=names[done.session] if names else None,
                key=plain(done.group if independent else done.key),
                line=done.line,
            )
        )  # fmt: skip
    ignored = list(paired.ignored)
    if failed:
        ignored.append(f"{quantity(failed, 'operation')} that failed, and took no effect")
    if other_lines:
        ignored.append(f"{quantity(other_lines, 'line')} that other loggers wrote")
    return OperationLog(
        name=name,
        operations=tuple(operations),
        ignored=tuple(ignored),
        notes=tuple(note for note in paired.notes if "session" not in note),
    )


def _result(done: PairedOperation, *, compared: bool, nothing: bool) -> tuple[Any] | None:
    """Return the result of an operation, in a tuple; ``None`` if it is not known."""
    if done.status == c.COMMITTED:
        return (True,) if done.function in _COMPARING else (plain(done.completion),)
    if done.status == c.ABORTED and done.function in _COMPARING and not nothing:
        error = done.error[0] if isinstance(done.error, tuple) and done.error else done.error
        if error is not None:
            name = error.name if isinstance(error, Keyword) else error
            return (False,) if isinstance(name, str) and name in _COMPARISONS else None
        if compared and done.completion in (done.invoked, None):
            return (False,)
    return None


def _split(done: PairedOperation, name: str) -> None:
    """Take the key of an independent object out of the values of an operation."""
    pair = done.invoked
    if not isinstance(pair, tuple) or len(pair) != 2:
        problem = f"no [key value] of an independent object (got {preview(pair)})"
        raise HistoryError(f"{name}: line {done.line}: {problem}")
    done.group, done.invoked = pair
    answer = done.completion
    if isinstance(answer, tuple) and len(answer) == 2 and answer[0] == done.group:
        done.completion = answer[1]
    elif done.status == c.COMMITTED:
        problem = (
            f"the result has no key (got {preview(answer)}, expected [{preview(done.group)} …])"
        )
        raise HistoryError(f"{name}: line {done.line}: {problem}")


def plain(value: Any) -> Any:
    """Return a value of a file as Python would write it: sets become frozensets."""
    if isinstance(value, Elements):
        return frozenset(map(plain, value.elements))
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    return value


def _maps_of_lines(data: bytes) -> tuple[bytes, int]:
    """Return the lines of Jepsen's log as operation maps, and the number of other lines."""
    maps: list[bytes] = []
    others = 0
    for line in data.split(b"\n"):
        match = _LINE.search(line)
        if match is None:
            others += bool(line.strip())
            maps.append(b"")
            continue
        process, kind, function, value = match.groups()
        maps.append(
            b"{:process %b, :type %b, :f %b, :value %b}"
            % (process, kind, function, value.strip() or b"nil")
        )
    return b"\n".join(maps), others
