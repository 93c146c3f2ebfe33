"""Finds the line of application code that sent a statement, for messages."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Final

_LIBRARIES: Final = tuple(
    f"{folder.rstrip('/')}/"
    for folder in {
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        str(Path(__file__).resolve().parents[2]),
    }
)

_SESSION: Final = "sqlalchemy/orm/session.py"


def caller() -> str:
    """Return the ``file:line`` of the innermost frame that does not belong to a library.

    Return an empty string if all frames belong to libraries. If the file is below the working
    directory, its path is relative to that directory. If SQLAlchemy is sending changes that the
    application assigned earlier, ``(flush)`` is appended.
    """
    flush = ""
    for frame in _frames():
        name = frame.f_code.co_filename
        if frame.f_code.co_name == "_flush" and name.endswith(_SESSION):
            flush = " (flush)"
        if not name.startswith((*_LIBRARIES, "<")) and "/site-packages/" not in name:
            path = Path(name)
            here = Path.cwd()
            shown = path.relative_to(here) if path.is_relative_to(here) else path
            return f"{shown}:{frame.f_lineno}{flush}"
    return ""


def _frames() -> Iterator[FrameType]:
    """Yield the frames of the current greenlet, followed by those of the greenlets waiting for it.

    The outer greenlets matter because SQLAlchemy runs the code of an asynchronous engine in a
    separate greenlet.
    """
    greenlet = sys.modules.get("greenlet")
    waiting = greenlet.getcurrent() if greenlet is not None else None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
        while frame is None and waiting is not None:
            waiting = waiting.parent
            frame = waiting.gr_frame if waiting is not None else None
