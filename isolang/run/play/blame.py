"""Finds the package and the line that raised an error or in which a call hangs."""

from __future__ import annotations

import sys
import sysconfig
import threading
import traceback
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from types import FrameType
from typing import Final

from isolang.run.target import Target, TargetError

PROGRAMMING_ERRORS: Final = (AttributeError, LookupError, NameError, TypeError)
"""The exception classes that indicate a bug in a program rather than a database's response."""

_ISOLANG: Final = str(Path(__file__).parents[2])
_STANDARD_LIBRARY: Final = sysconfig.get_paths()["stdlib"]


def blame_error(error: BaseException, target: Target) -> TargetError | None:
    """Return an error message that names the package and line that raised an unexpected error.

    Returns:
        An error that names the innermost line outside isocheck and the standard library. If there
        is no such line and the adapter is part of isolang, ``None``, because then isocheck itself
        has a bug.
    """
    frames = traceback.extract_tb(error.__traceback__)
    places = [(frame.filename, frame.lineno or 0) for frame in frames]
    others = [(file, line) for file, line in places if _is_foreign(file)]
    home = type(target).__module__
    if not others and home.split(".", maxsplit=1)[0] == "isolang":
        return None
    where = _location(*others[-1]) if others else home
    what = f"{type(error).__name__}: {error}".rstrip(": ").splitlines()[0]
    return TargetError(
        f"{target.name}: an error in {where}: {what}; ISOLANG_TRACEBACK=1 shows more"
    )


def hanging_calls(threads: Iterable[threading.Thread]) -> Iterator[str]:
    """Yield isocheck's innermost function and its driver call for each hanging thread."""
    frames = sys._current_frames()
    for thread in threads:
        frame = frames.get(thread.ident or 0)
        if frame is not None:
            yield _hanging_call(frame)


def _hanging_call(frame: FrameType | None) -> str:
    driver = ""
    while frame is not None:
        code, line = frame.f_code, frame.f_lineno
        if _is_isolang(code.co_filename):
            call = f"{code.co_qualname} ({_location(code.co_filename, line)})"
            return f"{call}, in {driver}" if driver else call
        if not driver and not _is_standard_library(code.co_filename):
            driver = f"{code.co_name} ({_location(code.co_filename, line)})"
        frame = frame.f_back
    return driver or "a call"


def hanging_calls_in_dump(dump: str) -> tuple[str, ...]:
    """Return the calls in which another process's clients hang, from a dump of its threads.

    Calls in a driver come before those in isolang, whose threads may only wait for the lock of the
    interpreter while the driver holds it.
    """
    found, last = list[tuple[bool, str]](), ""
    for stack in dump.split("\n\n"):
        lines = [line.strip() for line in stack.splitlines() if line.strip().startswith("File ")]
        if not lines:
            continue
        inside = next(
            (one for one in lines if not _is_standard_library(one.split('"')[1])), lines[0]
        )
        _, file, rest = inside.split('"', 2)
        line = rest.split()[2]  # "???" if the thread was between two lines
        last = f"{rest.rpartition(' in ')[2]} ({_location(file, line)})"
        if any(_CLIENTS in line for line in lines):
            found.append((_is_isolang(file), last))
    found.sort(key=itemgetter(0))
    return tuple(call for _, call in found) or ((last,) if last else ())


_CLIENTS: Final = "isolang/run/play/clients.py"


def _is_isolang(file: str) -> bool:
    return file.startswith(_ISOLANG)


def _is_foreign(file: str) -> bool:
    return not (_is_isolang(file) or _is_standard_library(file))


def _is_standard_library(file: str) -> bool:
    return (file.startswith(_STANDARD_LIBRARY) and "-packages" not in file) or file.startswith("<")


def _location(file: str, line: int | str) -> str:
    """Return the path of a file, relative to the folder that contains its package, and the line."""
    parts = Path(file).parts
    roots = [i for i, part in enumerate(parts) if part in ("site-packages", "dist-packages")]
    if _is_isolang(file):
        roots = [len(Path(_ISOLANG).parts) - 2]
    start = roots[-1] + 1 if roots else max(0, len(parts) - 2)
    return f"{'/'.join(parts[start:])}, line {line}"
